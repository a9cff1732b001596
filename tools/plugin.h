// Loading a shared object that adds operators, kernels or laws.
#pragma once

#include <string>

namespace lamella::tools {

/// Loads `path` and calls its `extern "C" void lamella_plugin()`. It stays loaded for good: rows of the
/// operator table point into it. Error usage when there is no such file, it cannot be loaded (the loader's
/// words are in the text), it exports no lamella_plugin, or that raises.
void load_plugin(const std::string& path);

}  // namespace lamella::tools
