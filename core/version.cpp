// The version of the library, as text and as the symbol that its own headers ask for.
#include "lamella/core/version.h"

extern "C" const char LAMELLA_VERSION_SYMBOL = 0;

namespace lamella {

const char* version() { return LAMELLA_VERSION; }

}  // namespace lamella
