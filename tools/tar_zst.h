// The files of a pack: a folder, one file, or a .tar.zst that is read as a stream.
#pragma once

#include <functional>
#include <istream>
#include <string>

namespace lamella::tools {

/// Name within the pack (no folders), and all bytes.
using PackVisitor = std::function<void(const std::string& name, std::string bytes)>;

/// Calls `visit` for every regular file whose name `wanted` takes, in the order of the archive or of the
/// names. Errors: value (a malformed or truncated archive), usage (`path` does not exist; an archive where
/// the program was built without zstd).
void visit_pack(const std::string& path, const std::function<bool(const std::string&)>& wanted,
                const PackVisitor& visit);
/// Likewise for an archive that is no file.
void visit_archive(std::istream& in, const std::function<bool(const std::string&)>& wanted,
                   const PackVisitor& visit);

}  // namespace lamella::tools
