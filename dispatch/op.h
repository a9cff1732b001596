// An operator: OpDef is what its one place states; Op is the row the table derives from it.
#pragma once

#include <array>
#include <limits>
#include <memory>

#include "lamella/core/limits.h"
#include "lamella/core/view.h"
#include "lamella/dispatch/column.h"
#include "lamella/dispatch/rule.h"
#include "lamella/dispatch/schema.h"

LAMELLA_API_BEGIN
namespace lamella {

class Draw;
struct BatchCall;

/// After ezyang's taxonomy of operators by shape. The class gives shape inference, batch rule, generator and
/// laws.
enum class ShapeClass : uint8_t {
  Broadcast,  ///< one result per element; inputs broadcast against each other
  Reduce,
  AlongDim,
  Contract,
  View,
  Index,
  Linalg,
  Factory,
  Random,
  Dynamic,
  Composite,
  Other  ///< says its shape and batch rule itself
};
std::string_view name(ShapeClass c);

/// What a shape function computes, from logical sizes and dtypes alone. It is the allocator, the check of
/// out=, the meta kernel, the error check under vmap and the generator's constraint.
struct Shape {
  Dims sizes;
  DType dtype = DType::F32;
};
/// A list of them with room for one in line, as nearly all have.
class Shapes {
 public:
  Shapes() = default;
  Shapes(std::initializer_list<Shape> shapes) {
    for (const Shape& s : shapes) push_back(s);
  }
  void push_back(Shape s) {
    if (more_.empty() && !has_one_) return void((one_ = std::move(s), has_one_ = true));
    if (more_.empty()) more_.push_back(std::move(one_));
    more_.push_back(std::move(s));
  }
  size_t size() const { return more_.empty() ? size_t(has_one_) : more_.size(); }
  bool empty() const { return size() == 0; }
  Shape* begin() { return more_.empty() ? &one_ : more_.data(); }
  const Shape* begin() const { return more_.empty() ? &one_ : more_.data(); }
  Shape* end() { return begin() + size(); }
  const Shape* end() const { return begin() + size(); }
  Shape& operator[](size_t i) { return begin()[i]; }
  const Shape& operator[](size_t i) const { return begin()[i]; }

 private:
  Shape one_;
  bool has_one_ = false;
  std::vector<Shape> more_;  ///< all of two and more
};
struct Inferred {
  Shapes outs;                 ///< one per result
  DType compute = DType::F32;  ///< dtype the kernel works in
  Dims ints;                   ///< attributes for the kernel: normalised dims, flags
  /// Said by definitions of composites, which leave it to the composite to raise.
  std::optional<ErrorCode> refused = {};
};

/// Sizes, strides and offset: what a view operator reads and changes, besides the dtype of real and imaginary
/// parts, whose elements strides and offset then count.
struct Geometry {
  Dims sizes, strides;
  int64_t offset = 0;
  std::optional<DType> dtype = {};  ///< of the view; none: the tensor's
};
using ViewFn = Geometry (*)(const Frame&, const Geometry& of_first);
/// The short way of a ViewFn, see NOTE: [views in headers]: makes the view of a header that says what that of
/// the first argument, a tensor of at most TensorImpl::kInlineRank dims, says of sizes, strides and offset.
/// What follows from sizes and strides is the caller's. False: it is left to the ViewFn, as refusals are.
using ViewEdit = bool (*)(const Frame&, TensorImpl& view);

/// Runs kernels on allocated outputs when the class's default launch (views of the tensor arguments in order)
/// does not fit.
struct Launch {
  const Frame& frame;
  const Inferred& inferred;
  std::span<const Tensor> outs;
  Device device;  ///< of all tensors
};
using LaunchFn = void (*)(const Launch&);
using CompositeFn = void (*)(Frame&);
using BatchFn = void (*)(BatchCall&);
/// Valid arguments of the operator, drawn from a choice stream (verify/ interprets; ops/ only states).
using SampleFn = Values (*)(Draw&);

enum Property : uint32_t {
  kLinear = 1u << 0,         ///< jointly linear in its tensor inputs that carry derivatives
  kRandom = 1u << 1,         ///< draws; ambient as kAmbient is
  kKinks = 1u << 2,          ///< not differentiable everywhere
  kNoInPlace = 1u << 3,      ///< no name_ form
  kNoOut = 1u << 4,          ///< no name_out form
  kValueErrors = 1u << 5,    ///< may raise depending on element values
  kDiscontinuous = 1u << 6,  ///< piecewise constant results (comparisons, indices)
  kTestOnly = 1u << 7,       ///< plumbing between columns and test operators: left out of listings and laws
  kExactOut = 1u << 9,  ///< out= must have the result's very dtype (as PyTorch's, for operators that pick or
                        ///< move elements)
  kUnspecified = 1u << 10,  ///< the elements of the result are whatever they are
  kAmbient = 1u << 11,      ///< seen by ambient levels (vmap) that no argument carries
  kAnyDevice = 1u << 12,    ///< its launch asks the devices' hooks: the class serves it on every device
  kCrosses = 1u << 13,      ///< takes tensors of several devices: those behind the first come to it
  kNamesDevice = 1u << 14,  ///< has a Device parameter; the table says it
  kSymmetricInput =
      1u << 8  ///< the first argument lives in the symmetric (Hermitian) matrices: so do its tangents
};

/// What the derivative of an operator with kinks is where one-sided ones differ. Law 30 holds it to that.
enum class AtKinks : uint8_t {
  Unstated,  ///< for operators without kinks
  Zero,      ///< 0 in every element that is 0
  Shared,    ///< ties share it evenly
  Chosen,    ///< goes to the elements that the integer results name
  Interval   ///< of (x, low, high): x's at a bound, high's where the bounds meet or cross
};

/// NOTE: [promises] What an operator's `doc` says of its values, as data: laws 99 to 104 hold it to them.
/// They are about real tensors, and about arguments that are no tensors at their defaults, except `range`,
/// `sign_of` and `whole`.
struct Promises {
  /// From `low` to `high`, NaN aside; an open end is no value, in no dtype.
  struct Range {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
    bool low_open = false, high_open = false;
  };
  Range range = {};
  /// The tensor whose sign a result has, element by element, where it is neither 0 nor NaN.
  std::string_view sign_of = {};
  /// Whole numbers, infinities and NaN aside: "always", or when this argument is given.
  std::string_view whole = {};
  bool once = false;       ///< the exact result, rounded once to its dtype: all bits but a NaN's
  bool odd = false;        ///< f(-x) = -f(x), bit by bit
  bool even = false;       ///< f(-x) = f(x), bit by bit
  bool rising = false;     ///< a greater number in any one tensor gives no smaller result
  bool falling = false;    ///< and no greater one
  bool symmetric = false;  ///< of two tensors: either order gives the same bits
};

/// What an operator computes on the way to its results that may overflow although they do not, and lead to
/// infinity or NaN there: law 14 excuses it where numbers are so large, and nowhere else.
struct Inside {
  enum Size : uint8_t {
    Nothing,
    Sums,      ///< of all elements
    Products,  ///< sums of products of two elements
    Powers     ///< more: excused where any number, or its reciprocal, is beyond the root of the range
  };
  Size size = Nothing;
  std::string_view what = {};  ///< "the sum, before it is divided"
  bool complex = false;        ///< of complex numbers alone
  int argument = -1;           ///< only where the argument at this position is not its default
};

/// NOTE: [numerics] What laws allow an operator besides the roundings that all have
/// (verify/case/tolerances.h).
///
/// Additions: of operators that add their terms one after another. An addition is off by u times the partial
/// sum P, and 2 |P| <= |y| + sum |terms|, which is the least that the condition can be: n additions need k of
/// n / 2, and one more for the terms themselves. Fewer are made where terms are products of two inputs: a sum
/// of n of them has n elements of each. So do their derivatives, and transposed ones add cotangents of
/// results: gather's are scattered, and a row of n results gives n terms of v's in mv.
///
/// Floor: of derivatives that are right to roundoff, and not relative to a result that cancelled. With
/// `over_result`, terms grow with the order of the derivative: those of order n are of the size of
/// 1 / |result|^(n - 1), and so is the floor.
struct Numerics {
  double additions = 0;             ///< in a row, per input that a result depends on
  double transposed_additions = 0;  ///< likewise of derivatives, per result that depends on an input
  double floor = 0;                 ///< of derivatives, in units of the size of the direction
  std::string_view reason = {};     ///< for the floor
  std::string_view times = {};      ///< the parameter whose largest magnitude, if above 1, multiplies it
  bool over_result = false;         ///< the floor grows with the order; a result of 0 has none
};

/// A field that has no default: forgetting it does not compile.
template <class T> struct Required {
  T value;
  template <class U> Required(U&& v) : value(std::forward<U>(v)) {}
  Required() = delete;
};

struct OpDef {
  Required<std::string_view> schema;
  Required<ShapeClass> shape;
  InferFn infer = nullptr;  ///< else the class's
  Kernels kernel = {};
  LaunchFn launch = nullptr;
  ViewFn view = nullptr;
  ViewEdit edit = nullptr;          ///< of views of parameter 0 that keep its dtype
  CompositeFn composite = nullptr;  ///< of operators that take functions: their body, see Op::body
  Rules jvp;
  Rules vjp;
  BatchFn batch = nullptr;  ///< only where the class cannot give it
  uint32_t properties = 0;
  AtKinks at_kinks = AtKinks::Unstated;  ///< with kKinks, and only then
  Promises promises = {};
  Inside overflows_in = {};
  Numerics numerics = {};
  Required<SampleFn> samples;
  Required<std::string_view> doc;
};

enum class OpForm : uint8_t { Functional, InPlace, Out };

/// A formula bound to its operator: names resolved to positions.
struct BoundSave {
  enum Kind : uint8_t { Argument, Result, SizesOf, DTypeOf, MetaOf, DeviceOf } kind;
  uint8_t index;
};
struct BoundFormula {
  int input;
  std::vector<BoundSave> saves;
  Tensor (*one)(const RuleArgs&);
  Tensors (*many)(const RuleArgs&);
  Tensor (*hidden)(const RuleArgs&) = nullptr;  ///< vjp: elements the input has no part in
  bool linear = false;                          ///< jvp: apply the operator itself to the tangent
};

struct Op;
/// The row that stands in the place of another for calls with an argument of a type: it has derivative rules
/// of its own (OpTable::set_rules), and is that row otherwise.
struct RulesOfType {
  int key;  ///< the type's
  std::shared_ptr<const Op> row;
  std::string_view from;  ///< who registered them
};

/// One row of the operator table. Immutable once published; a mutant is a copy with something replaced.
struct Op {
  uint32_t id = 0;
  std::string name;
  Schema schema;
  OpForm form = OpForm::Functional;
  const Op* base = nullptr;  ///< the functional row of an in-place or out= form (itself otherwise)
  ShapeClass shape = ShapeClass::Other;
  InferFn infer = nullptr;
  Kernels kernel;
  LaunchFn launch = nullptr;
  ViewFn view = nullptr;
  ViewEdit edit = nullptr;
  ViewFn edit_of = nullptr;  ///< what `edit` is the short way of: with another `view` it is not taken
  CompositeFn composite = nullptr;
  CompositeFn body = nullptr;  ///< of operators that take functions: calls them, below all levels
  std::vector<BoundFormula> jvp, vjp;
  std::string_view no_jvp, no_vjp;
  BatchFn batch = nullptr;
  uint32_t properties = 0;
  SampleFn samples = nullptr;
  std::string_view doc;
  Promises promises;
  Inside overflows_in;
  Numerics numerics;
  std::vector<uint8_t> tensor_params;  ///< positions of Tensor and TensorList parameters
  uint8_t arity = 0;                   ///< parameters
  bool simple = true;                  ///< every tensor parameter is a plain Tensor, and none is a function
  bool takes_functions = false;        ///< NOTE: [callables] in dispatch/state.h
  int8_t device_param = -1;            ///< position of its Device parameter; -1: it has none
  /// Pointwise operators without a rule of their own whose first 1 to 3 parameters are their tensors: how
  /// many; else 0. Short ways for small tensors ask for it.
  uint8_t straight = 0;
  AtKinks at_kinks = AtKinks::Unstated;
  std::string_view origin;  ///< who defined it: "" the library, else a plug-in's file. Lives for good.
  std::vector<RulesOfType> rules_of_types;  ///< the highest key first
  std::vector<Column> columns;              ///< alternatives that were registered for single keys, and
  std::shared_ptr<const Kernels> library;   ///< the kernels before that
  std::shared_ptr<const Op> steady;         ///< this row without alternatives that vary; null: it has none
  Cell cells[kKeyCount] = {};               ///< total: holes hold the cell that explains them
  /// Of keys below base autograd: the cell that somebody brought, for the operator or its class; null: none.
  /// Forms have their base's, and write what it gives.
  Cell brought[kAutogradKey] = {};
  Served served[kAutogradKey] = {};  ///< of keys below base autograd: by what

  bool has(Property p) const { return properties & p; }
  bool is_view() const { return view != nullptr; }
  /// Whether an alternative that is a cell runs for `key`.
  bool has_cell(int key) const {
    const Column* const c = column(key);
    return c && c->now().cell;
  }
  const Column* column(int key) const {
    for (const Column& c : columns)
      if (c.key == key) return &c;
    return nullptr;
  }
  const BoundFormula* jvp_of(int input) const { return formula_of(jvp, input); }
  const BoundFormula* vjp_of(int input) const { return formula_of(vjp, input); }

 private:
  static const BoundFormula* formula_of(const std::vector<BoundFormula>& all, int input) {
    for (const BoundFormula& f : all)
      if (f.input == input) return &f;
    return nullptr;
  }
};

}  // namespace lamella
LAMELLA_API_END
