// Which operators the further kernels serve.
#include "lamella/ops/alternatives.h"

#include "lamella/dispatch/table.h"
#include "lamella/kernels/kernels.h"
#include "lamella/ops/all.h"

namespace lamella {

namespace {
/// Operators whose calls launch the kernel on results of their own. (Others call it inside.)
struct ServedBy {
  std::string_view kernel, op;
};
constexpr ServedBy kServed[] = {
    {"matmul", "mm"}, {"matmul", "bmm"}, {"matmul", "mv"}, {"softmax", "softmax"}, {"copy", "clone"}};

void add_all() {
  const ScopedOrigin library("");
  for (const kernels::AlternativeText& text : kernels::alternative_texts())
    for (const ServedBy& by : kServed) {
      if (by.kernel != text.kernel) continue;
      OpTable::set(by.op, int(Device::CPU), {.name = std::string(text.name), .kernel = text.run});
      OpTable::choose(by.op, int(Device::CPU), "built_in");
    }
}
}  // namespace

void add_alternatives() {
  static const bool done = [] {
    install_operators();
    add_all();
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace lamella
