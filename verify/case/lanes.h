// Batches of examples and the loop over their lanes: what laws compare vmap with. Lanes are cut by stride
// arithmetic, never by operators.
#pragma once

#include "lamella/transforms/lanes.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Examples for a list of tensors; a mapped one has one more dim, with one example a lane.
struct Batch {
  int64_t size = 0;
  Tensors xs;
  InDims in_dims;  ///< non-negative, kNone where all lanes see the same tensor
  bool any_mapped() const;
};

/// 2, 3, 1, 7 or 0 lanes.
int64_t draw_lanes(Draw& d);
/// Square matrices in the last two dims that are Hermitian or triangular, as some operators need them.
bool structured(const Tensor& t);
/// Whether moving elements about leaves the tensors of a case valid arguments.
bool may_rotate(const Case& c);
/// `size` distinct variations of each example along a drawn dim in a drawn memory order: scaled, and with
/// elements moved about if they may `rotate`. `dense`: the elements of each lane lie together.
Batch draw_batch(Draw& d, const Tensors& examples, const std::vector<bool>& mapped, int64_t size, bool rotate,
                 bool dense = false);
/// As above, for the tensors in `slots` of a case.
Batch draw_batch(Case& c, const std::vector<Case::Slot>& slots, const std::vector<bool>& mapped,
                 int64_t size);
/// A drawn non-empty choice among n (empty for n = 0).
std::vector<bool> draw_mapped(Draw& d, size_t n);

/// Lane i of `x` along `dim`, as a view.
Tensor lane(const Tensor& x, int dim, int64_t i);
/// What f sees in lane i.
Tensors lane(const Batch& b, int64_t i);
/// A tensor of the type and strides of a lane, holding `example`: stands for the lanes that an empty batch
/// does not have.
Tensor in_layout_of_lane(const Tensor& x, int dim, const Tensor& example);
/// `x` seen with dim `from` moved to `to`, both non-negative.
Tensor moved(const Tensor& x, int from, int to);
/// Lanes along a new dim `dim`, in the layout of the first; at least one.
Tensor stacked(const Tensors& lanes, int dim);

/// How closely two computations of one thing must agree.
enum class Agreement : uint8_t {
  Bitwise,  ///< the same kernels on the same elements
  Rounding  ///< sums may be ordered differently: a few roundings of the largest element; bitwise where
            ///< results are integers
};
/// Of an operator's lanes, by its shape class.
Agreement agreement(const Op& op);
/// How far Rounding lets results differ: `count` roundings of the largest element, or of `least` if that is
/// larger.
struct Roundings {
  double count = 64, least = 0;
  double unit = 0;  ///< roundoff of the coarsest dtype in play; 0: of the result
};
/// How far sums of a few products of these numbers may differ when they are added in another order.
Roundings of_sums(const Tensors& xs);
/// The largest roundoff of these, for Roundings::unit. A gradient of a wider dtype than the result's has the
/// result's roundings: those of its directions, where a dtype= argument made the result the narrowest.
double coarsest(const Tensors& ts);
/// The largest finite real or imaginary part of any element.
double largest_part(const Tensors& ts);
/// Roundings of the largest number that a call within `computation` gives, of which the results may be what
/// is left when it cancels: 1/x - x/x^2, the derivative of x/x; tangents of equal factors that add up to 0.
Roundings on_the_way(const std::function<void()>& computation);
/// Whether a number that a call within `computation` gives is within 16 times of the largest one of its
/// dtype: there sums in another order may pass the end of the range though these did not, (1 - 64) * -1024
/// and -1024 + 64 * 1024 in f16, say, the gradient of 1/x at 1/32 and of its derivative.
bool nears_the_end(const std::function<void()>& computation);
/// Empty when `got` agrees with `want`; else the first difference.
Finding disagrees(const Tensor& got, const Tensor& want, Agreement how, Roundings r = {});
Finding disagrees(const Tensors& got, const Tensors& want, Agreement how, Roundings r = {});

/// Another default dtype of this thread, for a scope.
class ScopedDefaultDType {
 public:
  explicit ScopedDefaultDType(DType d) : saved_(dispatch_state().default_dtype) {
    dispatch_state().default_dtype = d;
  }
  ~ScopedDefaultDType() { dispatch_state().default_dtype = saved_; }
  ScopedDefaultDType(const ScopedDefaultDType&) = delete;

 private:
  DType saved_;
};

/// What a lane raised, if anything.
struct Status {
  bool raised = false;
  ErrorCode code = ErrorCode::Internal;
  std::string text;
  std::any reason = {};  ///< Error::reason()
  template <class R> const R* because() const { return std::any_cast<R>(&reason); }
};
/// Runs f; an Error becomes the status, anything else passes through.
Status status_of(const std::function<void()>& f);
/// "error shape: …", of the kind that it is; "no error".
Finding str(const Status& s);
FailureKind failure_kind(const Status& s);

/// Out dims for results of these ranks, negative half of the time.
InDims draw_out_dims(Draw& d, const Tensors& lane_results);
/// `dims`, some entries counted from the end instead; `rank_of(i)` is the rank of the tensor entry i belongs
/// to.
InDims some_negative(Draw& d, const InDims& dims, const Tensors& xs);

/// Law 1 for each lane of `ys`, whose types are those of `lanes` (else a failure): where a composite's
/// numbers cancel inside, its results say nothing of their sizes, and a product that overflows on its way is
/// infinite, or NaN, by the order of its factors (a discard).
Verdict::Kind lanes_as_defined(const Case& c, const std::vector<Case::Slot>& slots, const Batch& b,
                               const Tensors& ys, const InDims& out_dims, const std::vector<Tensors>& lanes);

/// "InDims{0, kNone}"
std::string cpp_dims(const InDims& dims);
/// Declarations, f0 and a line "Tensors xs{a0, a2};" for a case whose `slots` are replaced by `xs`.
std::string cpp_setting(const Case& c, const std::vector<Case::Slot>& slots, const Tensors& xs);

}  // namespace lamella::verify
LAMELLA_API_END
