// Calls whose errors are found again by another call, in better words.
#pragma once

#include "lamella/core/check.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [tries] An error below a level speaks of the batch, or of other operators: the level makes the call
/// again, in another way that finds the words of a lane. Were every level to do so under another one that
/// will, n levels would make 2^n calls. So a call whose error will be found again is a try: what levels below
/// raise in it they raise at once. n levels make at most two tries each, and the lanes up to the first that
/// raises.
inline thread_local constinit bool trying = false;
struct Trying {
  Trying() { trying = true; }
  ~Trying() { trying = false; }
};

/// Whether `f` raised no error. In a try it does raise it.
template <class F> bool tried(F&& f) {
  if (trying) {
    f();
    return true;
  }
  const Trying scope;
  try {
    f();
    return true;
  } catch (const Error&) { return false; }
}

}  // namespace lamella
LAMELLA_API_END
