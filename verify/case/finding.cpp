// Kinds of failure in words.
#include "lamella/verify/case/finding.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <ostream>
#include <typeinfo>

namespace lamella::verify {

std::string str(const FailureKind& kind) {
  switch (kind.what) {
    case What::Value: return "value";
    case What::Nan: return "nan";
    case What::DType: return "dtype";
    case What::Shape: return "shape";
    case What::Results: return "number of results";
    case What::Strides: return "strides";
    case What::Raised: return "raises " + kind.about;
    case What::Accepted: return "raises nothing";
    case What::State: return "state";
    case What::Leak: return "leak";
    case What::Memory: return "memory";
    case What::Crashed: return "crashed: " + kind.about;
    case What::Exited: return "exited with status " + kind.about;
    case What::NeverEnded: return "did not end";
  }
  return {};
}

FailureKind failure_kind(const std::exception& e) {
  if (const auto* const ours = dynamic_cast<const Error*>(&e)) {
    std::string about(name(ours->code()));
    if (!ours->op().empty()) about += " of " + ours->op();
    return {What::Raised, std::move(about)};
  }
  const char* const type = typeid(e).name();
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(type, nullptr, nullptr, nullptr), std::free);
  return {What::Raised, plain ? plain.get() : type};
}

Finding raised_by(const std::exception& e, std::string_view before) {
  return {failure_kind(e), std::string(before) + e.what()};
}

/// A friend that its class alone declares: g++ hides it where nothing is said.
LAMELLA_API void PrintTo(const Finding& f, std::ostream* out) { *out << '"' << f.text_ << '"'; }

}  // namespace lamella::verify
