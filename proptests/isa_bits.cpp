// Prints what drawn calls of each operator give, as digests: tools/isa_test.py compares instruction sets.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "lamella/core/generator.h"
#include "lamella/core/visit.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;

constexpr uint64_t kCases = 600, kSeed = 20261121;

/// FNV-1a of bytes.
struct Digest {
  uint64_t state = 0xcbf29ce484222325u;
  int64_t cases = 0;

  void add(const void* bytes, size_t n) {
    for (size_t i = 0; i < n; ++i)
      state = (state ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3u;
  }
  template <class T> void add_number(T x) {
    if constexpr (is_complex_type<T>) add_number(x.real()), add_number(x.imag());
    else if constexpr (std::is_integral_v<T>) add(&x, sizeof x);
    else if (double(x) != double(x)) add("nan", 3);  // which one is promised by nobody
    else add(&x, sizeof x);
  }
  void add_tensor(const Tensor& t) {
    if (!t.defined()) return add("undefined", 9);
    for (const int64_t size : t.sizes()) add(&size, sizeof size);
    const Tensor dense = verify::plain_copy(t);
    visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      if constexpr (!std::is_same_v<T, f128> && !std::is_same_v<T, c256>)
        for (int64_t i = 0; i < dense.numel(); ++i) add_number(static_cast<const T*>(dense.raw_data())[i]);
    });
  }
};

/// By operator and dtype of the first result: of its arguments, and of what it gives or raises.
struct Pair {
  Digest in, out;
};
using Digests = std::map<std::pair<std::string, std::string>, Pair>;

void add_case(Digests& all, const verify::Law& law, const Op& op, uint64_t index) {
  const verify::Choices choices = verify::choices_of(kSeed, law, op, index);
  const verify::Case c(op, choices, law.options);
  manual_seed(index);  // who is given no key draws the same all the same
  Tensors ys;
  const verify::Status s = verify::status_of([&] { ys = call_boxed(op, c.args); });
  const bool raised = s.raised || ys.empty() || !ys[0].defined();
  Pair& pair = all[{op.name, raised ? "none" : std::string(name(ys[0].dtype()))}];
  for (const auto& slot : c.tensors()) pair.in.add_tensor(c.at(slot));
  if (s.raised) pair.out.add(&s.code, sizeof s.code);
  for (const Tensor& y : ys) pair.out.add_tensor(y);
  ++pair.out.cases;
}

}  // namespace

int main() {
  const verify::Law& law = *verify::find_law("thresholds_are_invisible");  // large ones are drawn, too
  Digests all;
  for (const Op* op : verify::all_operators())
    for (uint64_t i = 0; law.applies(*op) && i < kCases; ++i) add_case(all, law, *op, i);
  for (const auto& [name, pair] : all)
    std::printf("%s %s %lld %016llx %016llx\n", name.first.c_str(), name.second.c_str(),
                static_cast<long long>(pair.out.cases), static_cast<unsigned long long>(pair.in.state),
                static_cast<unsigned long long>(pair.out.state));
  return 0;
}
