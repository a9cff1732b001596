// Loading a shared object that adds operators, kernels or laws.
#pragma once

#include <string>

namespace lamella::tools {

/// Loads `path` and runs what it has between LAMELLA_PLUGIN() and the end of that function, see
/// NOTE: [plug-ins]. It stays loaded for good: rows of the operator table point into it. Error usage when
/// there is no such file, it cannot be loaded (the loader's words are in the text), its stamp is missing or
/// another one, or it raises anything. What a static initialiser raises ends the program, with a message.
void load_plugin(const std::string& path);

}  // namespace lamella::tools
