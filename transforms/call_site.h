// Where calls were made: return addresses of a thread's stack, and what a program's symbols say of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Return addresses, innermost first.
using CallSite = std::vector<void*>;

/// That of the caller: the addresses alone, some microseconds.
CallSite call_site();

/// One line a frame, "\n    digits.cpp:40 in train", innermost first; where the program has no lines, "\n
/// in train (digits+0x5a20)". Frames of this library and of the standard library are left out, unless there
/// are no others. Lines come from addr2line or llvm-addr2line, run as a process of its own, if one is found;
/// names else from the dynamic linker. Never throws but bad_alloc.
std::string call_site_text(const CallSite& site);

/// The functions of the lines that call_site_text() gives, innermost first; those without a name left out.
std::vector<std::string> call_site_functions(const CallSite& site);

/// What a tool was told, or said, of an address.
struct CallFrame {
  std::string function, file;  ///< empty: unknown
  int line = 0;
};
/// What addr2line -a -f -C -i prints, by address: the frames that were inlined there, innermost first.
std::vector<std::vector<CallFrame>> parse_frames(std::string_view output);
/// Whether a frame is this library's or the standard library's.
bool is_library_frame(const CallFrame& frame);

}  // namespace lamella
LAMELLA_API_END
