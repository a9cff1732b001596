// Counting cases by dtype and stack.
#include "lamella/verify/case/strata.h"

#include <algorithm>
#include <cstring>

namespace lamella::verify {

std::string Stratum::dtype() const {
  const uint32_t d = code & 31u;
  return d < uint32_t(kDTypeCount) ? std::string(name(DType(d))) : "none";
}

std::string Stratum::stack() const {
  static constexpr const char* kNames[] = {"", "vmap", "jvp", "vjp", "grad", "?", "?", "?"};
  std::string out;
  int depth = 0;
  bool named = true;
  for (uint32_t rest = code >> 5; rest; rest >>= 3, ++depth) {
    named &= (rest & 7u) < Any;
    out = std::string(kNames[rest & 7u]) + (out.empty() ? "" : "(" + out + ")");
  }
  if (depth == 0) return "none";
  return named ? out : "depth " + std::to_string(depth);
}

void Strata::add(Stratum stratum, uint64_t cases, uint64_t failures) {
  const auto before = [](const Entry& e, uint32_t code) { return e.stratum.code < code; };
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), stratum.code, before);
  if (at == entries_.end() || at->stratum.code != stratum.code) {
    entries_.insert(at, {stratum, cases, failures});
    return;
  }
  at->cases += cases, at->failures += failures;
}

void Strata::merge(const Strata& other) {
  for (const Entry& e : other.entries_) add(e.stratum, e.cases, e.failures);
}

std::string Strata::bytes() const {
  return std::string(reinterpret_cast<const char*>(entries_.data()), entries_.size() * sizeof(Entry));
}

Strata Strata::parse(const std::string& bytes) {
  Strata out;
  out.entries_.resize(bytes.size() / sizeof(Entry));
  if (!out.entries_.empty())
    std::memcpy(out.entries_.data(), bytes.data(), out.entries_.size() * sizeof(Entry));
  return out;
}

}  // namespace lamella::verify
