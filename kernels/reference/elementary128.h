// exp and tanh of f128 on integers of 128 bits: what libquadmath does in 2 to 3 us takes 0.1 to 0.5 us here.
#pragma once

#include "lamella/core/dtype.h"
#include "lamella/core/visit.h"

namespace lamella::kernels::reference {

/// e^x, within 0.51 units in the last place where it is normal, and 1 where it is subnormal; e^-inf is 0, of
/// NaN NaN. Method: x = k ln 2 + r, the series of e^(r/64) - 1, six doublings (Muller, Elementary Functions,
/// 3rd ed., 2016, sections 6.2 and 11.1).
f128 exp128(f128 x);
/// tanh x, within 3 units in the last place, odd to the bit; +-1 for the infinities, NaN for NaN. Through
/// e^(2x) - 1, whose small values come from their own series.
f128 tanh128(f128 x);

}  // namespace lamella::kernels::reference
