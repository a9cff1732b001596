// Laws of memory and leaves: views by sizes and strides, tensors of numbers, what may require a gradient.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/grad.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

/// A call that is to raise one of these codes, in a text that begins so; none: it is to be accepted.
struct Question {
  std::function<void()> call;
  std::vector<ErrorCode> codes;
  std::string begins, shown;
  void object(ErrorCode code) { codes.push_back(code); }
};

/// Refusals that leave something behind are wrong, too.
Finding wrong(const Question& q) {
  const Status raised = status_of(q.call);  // what is made once for the process is there now
  const Snapshot before;
  if (status_of(q.call).raised != raised.raised) return "raises one of two times";
  if (!raised.raised) return q.codes.empty() ? "" : format("is accepted, expected [{}]", name(q.codes[0]));
  if (const Finding left = before.changed(); !left.empty()) return "after a refusal: " + left;
  if (q.codes.empty()) return "raises " + str(raised) + "; expected no error";
  const bool fits = std::ranges::find(q.codes, raised.code) != q.codes.end();
  if (fits && raised.text.rfind(q.begins, 0) == 0) return "";
  return "raises " + str(raised) + format("; expected [{}] from {}", name(q.codes[0]), q.begins);
}

struct Strided {
  Dims sizes, strides;
  int64_t offset = 0;
};

/// Sizes and strides that lie in `room` elements or end a little behind them, or are no sizes at all.
Strided draw_strided(Draw& d, int64_t room) {
  static constexpr int64_t kOdd[] = {-1, kLeast, kMost, int64_t{1} << 62, -2, int64_t{1} << 32};
  Strided s;
  const int rank = int(d.below(4));
  int64_t last = 0;
  for (int k = 0; k < rank; ++k) {
    s.sizes.push_back(d.size());
    s.strides.push_back(int64_t(d.below(5)));
    last += std::max<int64_t>(s.sizes.back() - 1, 0) * s.strides.back();
  }
  s.offset = std::max<int64_t>(room - 1 - last, 0);  // the last element at the end of the memory
  const uint32_t w = d.word();
  const int k = rank == 0 ? 0 : int(w / 16 % uint32_t(rank));
  switch (w % 10) {
    case 0: s.offset += 1; break;
    case 1: s.offset = kOdd[w / 256 % std::size(kOdd)]; break;
    case 2:
      if (rank > 0) s.sizes[k] += 1;
      break;
    case 3:
      if (rank > 0) s.strides[k] += 1;
      break;
    case 4:
      if (rank > 0) s.sizes[k] = kOdd[w / 256 % std::size(kOdd)];
      break;
    case 5:
      if (rank > 0) s.strides[k] = kOdd[w / 256 % std::size(kOdd)];
      break;
    case 6: w & 256 ? s.sizes.push_back(1) : s.strides.push_back(1); break;
    case 7: s.offset -= 1; break;
    default: break;
  }
  return s;
}

/// Each element by itself: its place in the memory, or why there is none.
void judge(Question& q, const Strided& s, int64_t room) {
  const int rank = std::min(s.sizes.size(), s.strides.size());
  if (s.sizes.size() != s.strides.size()) q.object(ErrorCode::Shape);
  long double span = 1;
  bool negative = false, empty = false;
  for (const int64_t n : s.sizes) {
    negative |= n < 0, empty |= n == 0;
    span *= static_cast<long double>(std::max<int64_t>(n, 1));
  }
  if (span > 0x1p58L) q.object(ErrorCode::Overflow);
  for (const int64_t n : s.strides) negative |= n < 0;
  if (negative) q.object(ErrorCode::Shape);
  if (s.offset < 0) q.object(ErrorCode::Storage);
  // The farthest element has the last index in each dim; without elements the view's start may be the end.
  long double last = static_cast<long double>(s.offset);
  for (int d = 0; d < rank && !empty; ++d)
    last += static_cast<long double>((std::max<int64_t>(s.sizes[d], 1) - 1)) *
            static_cast<long double>(s.strides[d]);
  long double reach = static_cast<long double>(s.offset);  // with strides that no element needs
  for (int d = 0; d < rank; ++d)
    reach +=
        static_cast<long double>(std::max<int64_t>(s.sizes[d], 1)) * static_cast<long double>(s.strides[d]);
  if (reach >= 0x1p58L) q.object(ErrorCode::Overflow);
  if (empty ? s.offset > room : last >= static_cast<long double>(room)) q.object(ErrorCode::Storage);
}

/// The bytes of a view's elements are those of the memory at its places.
Finding shows(const Tensor& view, const Tensor& base, const Strided& s, DType dtype) {
  if (!view.shares_storage(base)) return "the view has memory of its own";
  const size_t bytes = size_t(itemsize(dtype));
  const char* const memory = static_cast<const char*>(base.impl()->storage->data);
  if (view.numel() == 0 || view.numel() > 4096) return "";  // nothing, or 2^32 times one element
  const Tensor copy = plain_copy(view);
  const char* got = static_cast<const char*>(copy.raw_data());
  std::vector<int64_t> places{s.offset};
  for (int d = 0; d < s.sizes.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t at : places)
      for (int64_t i = 0; i < s.sizes[d]; ++i) next.push_back(at + i * s.strides[d]);
    places = std::move(next);
  }
  for (const int64_t at : places) {
    if (std::memcmp(got, memory + size_t(at) * bytes, bytes) != 0) return format("not the element at {}", at);
    got += bytes;
  }
  return "";
}

/// What is written to all of the memory later has a derivative in the view, too: it is of the same family.
Finding stays_constant(const Strided& s, int64_t room, DType of, DType dtype) {
  if (!is_inexact(of)) return "";
  const int64_t elements = room * itemsize(dtype) / itemsize(of);
  const Tensor memory = make_tensor(Dims{elements}, of), source = make_tensor(Dims{elements}, of);
  for (const Tensor& t : {memory, source})
    std::memset(t.raw_data(), 0,
                size_t(elements * itemsize(of)));  // no operator is asked for more than copy_
  const Tensor view = make_view(memory, s.sizes, s.strides, s.offset, dtype);
  if (view.numel() == 0) return "";
  copy_(memory, requires_grad(source));
  if (!is_grad_required(view)) return "a write to the memory that requires a gradient does not show";
  return differs(plain_copy(memory), source);
}

/// tensor_of with numbers that are too many or too few.
Question count_question(Case& c) {
  Dims sizes = c.draw.shape();
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  const int64_t count = std::max<int64_t>(n + c.draw.range(-2, 2), 0);
  const uint32_t w = c.draw.word();
  if (w % 4 == 3) sizes.push_back(w & 16 ? -1 : kMost);
  Question q{{}, {}, w % 4 == 3 ? "" : "tensor_of: ", format("tensor_of({}, {} numbers)", sizes, count)};
  const std::vector<double> values(static_cast<size_t>(count), 1.0);
  const DType dtype = DType(w / 64 % uint32_t(DType::F128));
  q.call = [=] { tensor_of(sizes, values, dtype); };
  if (w % 4 == 3) q.object(w & 16 ? ErrorCode::Shape : ErrorCode::Overflow);
  else if (count != n) q.object(ErrorCode::Shape);
  return q;
}

Verdict verdict_of(const Case& c, const Finding& what, const std::string& shown) {
  if (what.empty()) return Verdict::pass();
  return Verdict::fail(shown + ": " + what, cpp_declarations(c.args) + "  // " + shown + "\n");
}

/// Views of what the operator gives: a part of its argument's memory, and all of it is theirs.
Verdict views_stay_in_memory(Case& c) {
  if (c.draw.below(8) == 7) {
    const Question q = count_question(c);
    return verdict_of(c, wrong(q), q.shown);
  }
  const Tensor base = call_boxed(c.op, c.args)[0], x = c.at(c.tensors()[0]);
  if (!base.shares_storage(x)) return verdict_of(c, "the view has memory of its own", c.op.name);
  const uint32_t w = c.draw.word();
  DType dtype = base.dtype();
  if (is_complex(dtype) && w & 1) dtype = to_real(dtype);
  const bool foreign = w % 16 == 2;
  if (foreign) dtype = DType(w / 16 % uint32_t(DType::F128));
  const int64_t room = int64_t(base.impl()->storage->nbytes) / itemsize(dtype);
  const Strided s = draw_strided(c.draw, room);
  Tensor view;
  Question q{[&] { view = {}, view = make_view(base, s.sizes, s.strides, s.offset, dtype); },
             {},
             "view: ",
             format("make_view({}, {}, {}, {}, {})", base, s.sizes, s.strides, s.offset, dtype)};
  judge(q, s, room);
  const bool part = is_complex(base.dtype()) && dtype == to_real(base.dtype());
  if (dtype != base.dtype() && !part) q.object(ErrorCode::DType);
  Finding what = wrong(q);
  if (what.empty() && q.codes.empty()) what = shows(view, base, s, dtype);
  if (what.empty() && q.codes.empty()) what = stays_constant(s, room, base.dtype(), dtype);
  return verdict_of(c, what, q.shown);
}

void ask(Question& q, const std::string& shown, const std::string& begins, std::function<void()> call) {
  q.shown = shown, q.begins = begins, q.call = std::move(call);
}

/// Who may require a gradient and who may write. False: nothing to ask.
bool ask_of_leaf(Question& q, uint32_t kind, const Tensor& x, const Tensor& leaf, const Tensor& y, DType d,
                 bool as_out) {
  const Tensor whole = to(ones({2}), d);
  switch (kind) {
    case 0:
      ask(q, format("requires_grad({})", whole), "requires_grad: ", [=] { requires_grad(whole); });
      q.object(ErrorCode::DType);
      break;
    case 1:
      ask(q, "requires_grad(undefined)", "requires_grad: ", [] { requires_grad(Tensor()); });
      q.object(ErrorCode::Undefined);
      break;
    case 2:
      ask(q, "requires_grad under vmap", "requires_grad: ", [x] {
        vmap(UnaryFunction([](const Tensor& t) { return requires_grad(t); }))(unsqueeze(x, 0));
      });
      q.object(ErrorCode::Level);
      break;
    case 3:
      if (!is_grad_required(y) || y.is_same(leaf)) return false;
      ask(q, "requires_grad_ of a result", "requires_grad_: ", [y] { requires_grad_(y); });
      q.object(ErrorCode::Value);
      break;
    case 4: ask(q, "requires_grad_ of a leaf", "", [leaf] { requires_grad_(leaf); }); break;
    case 5:
      if (as_out)
        ask(q, "a leaf is written by out=", "", [leaf, x] { mul_out(leaf, plain_copy(x), plain_copy(x)); });
      else ask(q, "a leaf is written", "", [leaf] { lamella::fill_(leaf, 1); });
      q.codes = {ErrorCode::Value, ErrorCode::Level, ErrorCode::Usage};
      break;
    case 6:
      ask(q, "a view of a leaf is written", "", [leaf] { lamella::fill_(unsqueeze(leaf, 0), 1); });
      q.codes = {ErrorCode::Value, ErrorCode::Level, ErrorCode::Usage};
      break;
    default: return false;
  }
  return true;
}

/// A view, or a tensor that has one: what becomes a leaf would leave the other behind.
bool ask_of_family(Question& q, bool view, const Tensor& x) {
  ask(q, view ? "requires_grad_ of a view" : "requires_grad_ of a tensor with a view",
      "requires_grad_: ", [=] {
        const Tensor whole = plain_copy(x), part = make_view(whole, whole.sizes(), whole.strides(), 0);
        requires_grad_(view ? part : whole);
      });
  q.object(ErrorCode::Value);
  return true;
}

/// Hooks of the result, which may change a gradient and not its type. False: nothing to ask.
bool ask_of_hooks(Question& q, uint32_t kind, const Tensor& y) {
  if (!is_grad_required(y)) return false;
  const bool sizes = kind == 13;
  const DType other = y.dtype() == DType::F64 ? DType::F32 : DType::F64;
  ask(q, format("a hook that returns {}", sizes ? "other sizes" : "another dtype"), "backward: ", [=] {
    HookHandle handle = add_hook(y, [=](const Tensor& ct) {
      Dims of(ct.sizes());
      if (sizes) of.push_back(2);
      return zeros(of, sizes ? ct.dtype() : other);
    });
    const auto last = std::shared_ptr<void>(nullptr, [&](void*) { handle.remove(); });
    backward(y, ones(y.sizes(), y.dtype()));
  });
  q.object(sizes ? ErrorCode::Shape : ErrorCode::DType);
  return true;
}

/// Who may be asked for a gradient. False: nothing to ask.
bool ask_for_gradient(Question& q, uint32_t kind, const Tensor& x, const Tensor& y) {
  switch (kind) {
    case 7:
      ask(q, "backward from a plain tensor", "backward: ", [x] { backward(sum(x)); });
      q.object(ErrorCode::NotDifferentiable);
      break;
    case 8: {
      if (!is_grad_required(y)) return false;
      Dims sizes(y.sizes());
      sizes.push_back(2);
      ask(q, "backward with a cotangent of other sizes",
          "backward: ", [y, sizes] { backward(y, ones(sizes, y.dtype())); });
      q.object(ErrorCode::Shape);
      break;
    }
    case 9: {
      if (!is_grad_required(y)) return false;
      const DType other = y.dtype() == DType::F64 ? DType::F32 : DType::F64;
      ask(q, "backward with a cotangent of another dtype",
          "backward: ", [y, other] { backward(y, ones(y.sizes(), other)); });
      q.object(ErrorCode::DType);
      break;
    }
    case 10:
      ask(q, "the gradient of a plain tensor", "grad_of: ", [x] { grad_of(x); });
      q.object(ErrorCode::Usage);
      break;
    default:
      ask(q, "a hook of a plain tensor",
          "add_hook: ", [x] { add_hook(x, [](const Tensor&) { return Tensor(); }); });
      q.object(ErrorCode::NotDifferentiable);
      break;
  }
  return true;
}

/// A leaf, a result, what was written: what requires a gradient, may be asked for one, or be written.
Verdict leaves_are_judged(Case& c) {
  if (c.inexact().empty()) return Verdict::pass();
  const Case::Slot slot = c.inexact()[c.draw.below(uint32_t(c.inexact().size()))];
  const Tensor x = plain_copy(c.at(slot));
  const Tensor leaf = requires_grad(x);
  Tensors ys = c.smooth_function({slot})({leaf});
  if (ys.empty()) return Verdict::pass();
  const Tensor y = ys[0];
  const bool tracked = !c.op.composite && c.op.vjp_of(slot.param);
  const uint32_t w = c.draw.word();
  Question q;
  const DType integral = DType(w / 16 % uint32_t(DType::F16));
  const uint32_t kind = w % 14;
  const bool asks = kind == 4 && w >> 31 ? ask_of_family(q, w >> 30 & 1, x)
                    : kind < 7           ? ask_of_leaf(q, kind, x, leaf, y, integral, w >> 31)
                    : kind >= 12         ? ask_of_hooks(q, kind, y)
                                         : ask_for_gradient(q, kind, x, y);
  if (!asks) return Verdict::pass();
  const Tensor before = plain_copy(leaf);
  Finding what = wrong(q);
  if (what.empty()) what = differs(x, before);
  if (what.empty() && tracked && !is_grad_required(y))
    what = "the result of a leaf does not require a gradient";
  return verdict_of(c, what, q.shown);
}

bool views_memory(const Op& op) { return op.is_view(); }
bool takes_leaves(const Op& op) { return has_vjp(op) && inexact_arguments(op) > 0; }

}  // namespace

void add_memory_refusal_laws(std::vector<Law>& laws) {
  laws.push_back(
      {112,
       "views_stay_in_memory",
       "layout",
       "make_view shows exactly the elements of the memory that sizes, strides and offset name, one "
       "by one, with the derivatives that are written there, and refuses what lies outside, is negative or "
       "too large; so does tensor_of.",
       {.tame = true, .max_numel = 16},
       false,
       views_memory,
       views_stay_in_memory});
  laws.push_back({113,
                  "leaves_are_judged",
                  "derivative",
                  "Integers, wrapped tensors, results, views and what has some become no leaves, leaves and "
                  "their views are not "
                  "written, and backward refuses roots, cotangents and hooks that do not fit.",
                  {.dtypes = kInexact, .tame = true, .max_numel = 8},
                  false,
                  takes_leaves,
                  leaves_are_judged});
}

}  // namespace lamella::verify
