// Any bytes are an archive or refused. The first byte says whether the rest is compressed already, so that
// the reader of tar is reached as well as that of zstd.
#include <sstream>
#include <zstd.h>

#include "tar_zst.h"
#include "target.h"

namespace lamella::fuzz {
namespace {

std::string compressed(const uint8_t* data, size_t size) {
  std::string out(ZSTD_compressBound(size), '\0');
  const size_t n = ZSTD_compress(out.data(), out.size(), data, size, 1);
  if (ZSTD_isError(n)) finding("zstd does not compress");
  out.resize(n);
  return out;
}

/// A checksum that fits, for headers: what chance would not find.
void mend_checksums(std::vector<uint8_t>& tar) {
  constexpr size_t kBlock = 512, kField = 148;
  for (size_t at = 0; at + kBlock <= tar.size(); at += kBlock) {
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += i >= kField && i < kField + 8 ? unsigned(' ') : tar[at + i];
    if (tar[at] == 0) continue;
    char text[9];
    std::snprintf(text, sizeof text, "%06o", sum);
    std::copy(text, text + 7, tar.begin() + ptrdiff_t(at + kField));
    tar[at + kField + 7] = ' ';
  }
}

void run_archive(const uint8_t* data, size_t size) {
  if (size == 0) return;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 != 0) {
    std::vector<uint8_t> tar(data + 1, data + size);
    if (data[0] % 4 != 1) mend_checksums(tar);
    bytes = compressed(tar.data(), tar.size());
  }
  answers([&] {
    std::istringstream in(bytes);
    size_t total = 0;
    tools::visit_archive(
        in, [](const std::string& name) { return !name.empty(); },
        [&](const std::string&, std::string entry) { total += entry.size(); });
    if (data[0] % 4 != 0 && total > size) finding("more bytes came out than went in");
  });
}

[[maybe_unused]] const bool archive_added = add_target("archive", run_archive);
}  // namespace
}  // namespace lamella::fuzz
