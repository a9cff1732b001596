// What users include names no type that only some compilers have: with LAMELLA_WRONG this is refused.
#include "lamella/plugin.h"

#ifndef LAMELLA_WRONG
#include "lamella/core/visit.h"
#endif

lamella::f128 third() { return lamella::f128(1) / 3; }
