// to_strided and to_layout: operators between columns, so that derivatives and lanes pass through.
#include "lamella/ops/layout.h"

#include "lamella/ops/all.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/define.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/layout.h"

namespace lamella {

namespace {
std::string known_layouts() {
  std::string out = "strided";
  for (int key = kFirstTypeKey; key < kFirstTypeKey + kTypeKeys; ++key)
    if (const TensorType* const t = tensor_type(key); t && t->from_strided) out += ", " + t->name;
  return out;
}
}  // namespace

std::string_view layout_of(const Tensor& x) {
  LAMELLA_CHECK(x.defined(), Undefined, "layout_of: x is an undefined tensor; expected a defined one");
  const TensorImpl* impl = x.impl();
  while (!impl->storage && impl->keys >> kFirstLevelKey)
    impl = static_cast<const Wrapper*>(impl->wrap)->value.impl();
  return impl->layout ? type_name(impl->layout->key) : "strided";
}

namespace ops {
namespace {

/// What has another layout got here by its type's fallback, as strided values.
void convert_strided(Frame& f, int) {
  const std::string& layout = f.arg<std::string>(1);
  const TensorType* const type = tensor_type(find_tensor_type(layout));
  LAMELLA_CHECK(layout == "strided" || (type && type->from_strided), Value,
                "{}: layout = \"{}\", expected one of {}", op_name(f), layout, known_layouts());
  f.results[0] = type ? lamella::detail::laid_out(*type, f.tensor(0)) : clone(f.tensor(0));
}

Values any_samples(Draw& d) { return unary(d, kAllTypes); }

}  // namespace

void define_layout() {
  OpTable::add({.schema = "to_strided(Tensor x) -> Tensor",
                .shape = ShapeClass::Other,
                .infer = infer_same,
                .kernel = kernel("copy"),
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves(), [](Tensor dy) { return dy; })},
                .batch = [](BatchCall& b) { b.results[0] = lamella::to_strided(b.front(0)); },
                .properties = kLinear | kTestOnly | kNoInPlace | kNoOut,
                .samples = any_samples,
                .doc = "x's values in memory of their own, whatever its layout."});
  OpTable::add(
      {.schema = "to_layout(Tensor x, str layout) -> Tensor",
       .shape = ShapeClass::Other,
       .infer = infer_same,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves(), [](Tensor dy) { return lamella::to_strided(dy); })},
       .batch =
           [](BatchCall& b) { b.results[0] = lamella::to_layout(b.front(0), b.frame.arg<std::string>(1)); },
       .properties = kLinear | kTestOnly | kNoInPlace | kNoOut,
       .samples =
           [](Draw& d) {
             Values v = any_samples(d);
             v.emplace_back(std::string("strided"));
             return v;
           },
       .doc = "x's values in a tensor of the type of that name."});
  for (const Device d : {Device::CPU, Device::Reference})
    OpTable::set("to_layout", int(d), {"by_type", convert_strided, nullptr});
}

}  // namespace ops
}  // namespace lamella
