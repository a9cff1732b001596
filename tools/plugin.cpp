// dlopen, and a name to call.
#include "plugin.h"

#include <dlfcn.h>
#include <filesystem>

#include "lamella/dispatch/table.h"
#include "lamella/ops/all.h"

namespace lamella::tools {

void load_plugin(const std::string& path) {
  std::error_code ignored;
  LAMELLA_CHECK(std::filesystem::is_regular_file(path, ignored), Usage, "plug-in: there is no file \"{}\"",
                path);
  install_operators();  // a plug-in may replace a built-in operator
  // A path with a slash: a bare name would be looked for in the system's folders instead.
  void* const library = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    fail(ErrorCode::Usage, "plug-in: \"{}\" cannot be loaded: {}", path, why ? why : "for no stated reason");
  }
  using Entry = void (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "lamella_plugin"));
  LAMELLA_CHECK(entry, Usage, "plug-in: \"{}\" exports no `extern \"C\" void lamella_plugin()`", path);
  try {
    entry();
  } catch (const std::exception& e) {
    fail(ErrorCode::Usage, "plug-in: lamella_plugin() of \"{}\" raised: {}", path, e.what());
  }
}

}  // namespace lamella::tools
