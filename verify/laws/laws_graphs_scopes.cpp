// The law of scopes: what is recorded under NoGrad, EnableGrad, NoGradLevels and InferenceMode, nested in any
// order, and which memory is marked.
#include <algorithm>
#include <optional>
#include <thread>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/custom.h"
#include "lamella/transforms/inference.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// A scope, and what is opened inside of it one after the other. The root of a tree opens nothing.
struct ScopeTree {
  enum Kind : uint8_t { Root, Off, On, LevelsOff, Thread, Inference, InferenceOff } kind = Root;
  bool raises = false;  ///< it ends by an exception
  std::vector<ScopeTree> inside = {};
};

void draw_scopes(Draw& d, ScopeTree& tree, bool threads, int depth, int& left) {
  for (uint32_t n = 1 + d.below(3); n > 0 && left > 0; --n) {
    --left;
    const uint32_t w = d.word();
    ScopeTree child{ScopeTree::Kind(1 + (w % (threads ? 7 : 6)) / 2), (w >> 4) % 3 == 1};
    if (depth < 4 && (w >> 8) % 3) draw_scopes(d, child, threads, depth + 1, left);
    tree.inside.push_back(std::move(child));
  }
}

/// Makes scopes those of inference mode. The word is the last one of a case, so that records without it mean
/// what they did.
void draw_inference(uint32_t& word, ScopeTree& tree) {
  for (ScopeTree& t : tree.inside) {
    const uint32_t digit = word % 5;
    word /= 5;
    if (digit >= 3 && t.kind != ScopeTree::Thread)
      t.kind = digit == 3 ? ScopeTree::Inference : ScopeTree::InferenceOff;
    draw_inference(word, t);
  }
}

/// What a model says of a place: whether the base records there, and the levels that were open before; and
/// whether memory that is made is marked.
struct Records {
  bool base = true, levels = true, inference = false;
  void enter(ScopeTree::Kind kind) {
    if (kind == ScopeTree::LevelsOff) levels = false;
    if (kind == ScopeTree::Off) base = levels = false;
    if (kind == ScopeTree::On && !inference) base = levels = true;
    if (kind == ScopeTree::Inference) *this = {false, false, true};
    if (kind == ScopeTree::InferenceOff) *this = {};
  }
};

/// Opens the scopes in order, and calls `look` in each before, between and behind those inside.
class ScopeWalk {
 public:
  explicit ScopeWalk(std::function<void(Records)> look) : look_(std::move(look)) {}
  void walk(const ScopeTree& tree, Records now) const {
    look_(now);
    for (const ScopeTree& child : tree.inside) {
      open(child, now);
      look_(now);
    }
  }

 private:
  struct Ended {};
  void open(const ScopeTree& t, Records now) const {
    if (t.kind == ScopeTree::Thread) {
      std::exception_ptr raised;
      std::thread([&] {
        try {
          walk(t, {});  // a thread inherits nothing
        } catch (...) { raised = std::current_exception(); }
      }).join();
      if (raised) std::rethrow_exception(raised);
      return;
    }
    try {
      std::optional<NoGrad> off;
      std::optional<EnableGrad> on;
      std::optional<NoGradLevels> levels_off;
      std::optional<InferenceMode> inference;
      if (t.kind == ScopeTree::Off) off.emplace();
      else if (t.kind == ScopeTree::On) on.emplace();
      else if (t.kind == ScopeTree::LevelsOff) levels_off.emplace();
      else inference.emplace(t.kind == ScopeTree::Inference);
      now.enter(t.kind);
      walk(t, now);
      if (t.raises) throw Ended();
    } catch (const Ended&) {}
  }
  std::function<void(Records)> look_;
};

std::string scopes_text(const ScopeTree& tree, const std::string& indent = "    ") {
  static constexpr const char* kText[] = {
      "", "const NoGrad off;",       "const EnableGrad on;",           "const NoGradLevels off;",
      "", "const InferenceMode on;", "const InferenceMode off(false);"};
  std::string out = indent + "look();\n";
  for (const ScopeTree& t : tree.inside) {
    const bool thread = t.kind == ScopeTree::Thread;
    out += indent +
           (thread     ? "std::thread([&] {"
            : t.raises ? "try {"
                       : "{") +
           "\n" + (thread ? "" : indent + "  " + kText[t.kind] + "\n") + scopes_text(t, indent + "  ") +
           (t.raises && !thread ? indent + "  throw 0;\n" : "") + indent +
           (thread     ? "}).join();"
            : t.raises ? "} catch (int) {}"
                       : "}") +
           "\n" + indent + "look();\n";
  }
  return out;
}

/// Whether this thread, and memory it makes, are as the model says; a product with 1 is new memory.
Finding unlike_marks(const Tensors& ys, Records r) {
  if (is_inference_mode() != r.inference) return "is_inference_mode() is wrong";
  const Tensor fresh = zeros({2}), part = select(fresh, 0, 0);
  if (is_inference(fresh) != r.inference || is_inference(part) != r.inference)
    return "is_inference is wrong for zeros({2}), or for a view of it";
  for (size_t k = 0; k < ys.size(); ++k)
    if (ys[k].numel() > 0 && is_inference(ys[k] * 1.0) != r.inference)
      return format("is_inference(y * 1) is wrong for result {}", k);
  return "";
}

/// What may be done at a place with a tensor that was made at another one, marked or not, and what not.
Finding unlike_inference_tensor(const Tensor& c, bool marked, const Tensor& leaf, Records r) {
  const auto unlike = [&](bool refused, const char* what, const std::function<void()>& f) -> Finding {
    const Status st = status_of(f);
    if (st.raised == refused && (!refused || st.code == ErrorCode::Value)) return "";
    return format("{}, with a tensor c made {} inference mode, {} be refused: ", what,
                  marked ? "in" : "outside of", refused ? "should" : "should not") +
           str(st);
  };
  if (is_inference(c) != marked || is_inference(select(c, 0, 0)) != marked ||
      is_inference(detach(c)) != marked)
    return "is_inference is wrong for a tensor made before, or for a view of it";
  if (is_inference(clone(c)) != r.inference) return "is_inference(clone(c)) is wrong";
  if (is_grad_required(c * 2.0) || is_grad_required(leaf + c) != r.base) return "a sum's history is wrong";
  Finding wrong = unlike(marked && r.base, "leaf * c", [&] { (void)(leaf * c); });
  if (wrong.empty()) wrong = unlike(false, "leaf * clone(c)", [&] { (void)(leaf * clone(c)); });
  if (wrong.empty()) wrong = unlike(marked, "requires_grad(c)", [&] { (void)requires_grad(c); });
  const uint32_t before = version_of(c);
  if (wrong.empty()) wrong = unlike(false, "mul_(c, 1)", [&] { (void)mul_(c, ones({}, DType::F64)); });
  if (wrong.empty() && version_of(c) == before) wrong = "mul_(c, 1) is not counted";
  if (wrong.empty() && marked) wrong = unlike(r.base, "add_(c, leaf)", [&] { (void)add_(c, leaf); });
  return wrong;
}

/// In base autograd: which results require grad, whether a leaf may be written, which memory is marked.
class BaseLook {
 public:
  BaseLook(const Case& c, const Subject& s) : s_(s), arguments_(c.values(c.tensors())) {
    for (const Tensor& x : s.xs) leaves_.push_back(requires_grad(x));
    for (const Tensor& y : s.f(leaves_)) recorded_.push_back(is_grad_required(y));
  }
  void operator()(Records r) {
    if (Finding wrong = look(r); wrong_.empty() && !wrong.empty())
      wrong_ = format("at place {}, where the base {}{}: ", at_, r.base ? "records" : "does not record",
                      r.inference ? " and memory is marked" : "") +
               wrong;
    ++at_;
  }
  /// Behind all: writes inside of scopes are counted.
  Finding wrong() const {
    if (!wrong_.empty()) return wrong_;
    const Status st = status_of([&] { backward(sum(saves_)); });
    return st.raised == was_written_ && (!st.raised || st.code == ErrorCode::Value)
               ? ""
               : "backward of a leaf's square, with the leaf " +
                     std::string(was_written_ ? "written: " : "as it was: ") + str(st);
  }

 private:
  Finding look(Records r) {
    const Tensors ys = s_.f(leaves_);
    const auto is_one_of = [](const Tensors& ts, auto&& f) { return std::ranges::any_of(ts, f); };
    for (size_t k = 0; k < ys.size(); ++k) {
      const bool shared = is_one_of(arguments_, [&](const Tensor& x) { return ys[k].shares_storage(x); });
      if (ys[k].numel() > 0 && is_inference(ys[k]) != (r.inference && !shared))
        return format("is_inference is wrong for result {}", k);
      if (is_one_of(leaves_, [&](const Tensor& x) { return ys[k].is_same(x); })) continue;
      if (is_grad_required(ys[k]) != (r.base && recorded_[k]))
        return format("result {} {} a history", k, is_grad_required(ys[k]) ? "has" : "has not");
      if (const Finding d = differs(detach(ys[k]), s_.ys[k]); !d.empty()) return format("result {}: ", k) + d;
    }
    const Status st = status_of([&] { fill_(written_, 1); });
    was_written_ |= !st.raised;
    if (st.raised != r.base) return "writing to a leaf: " + str(st);
    Finding wrong = unlike_marks(ys, r);
    for (const bool marked : {false, true})
      if (made_[marked].defined() && wrong.empty())
        wrong = unlike_inference_tensor(made_[marked], marked, other_, r);
    made_[r.inference] = ones({2}, DType::F64);
    return wrong;
  }

  const Subject& s_;
  const Tensors arguments_;
  Tensors leaves_;
  const Tensor written_ = requires_grad(ones({2}, DType::F64)), saves_ = written_ * written_,
               other_ = requires_grad(ones({2}, DType::F64));
  Tensor made_[2];  ///< outside of inference mode, and in it
  std::vector<bool> recorded_;
  bool was_written_ = false;
  int at_ = 0;
  Finding wrong_;
};

Finding base_unlike_model(const Case& c, const Subject& s, const ScopeTree& tree) {
  BaseLook look(c, s);
  ScopeWalk([&](Records r) { look(r); }).walk(tree, {});
  return look.wrong();
}

/// All results of all places, under levels that are open around the tree; counts those that are recorded.
Function at_all_places(const Subject& s, const ScopeTree& tree, Tensors us, int& count, Finding& wrong) {
  return [&s, &tree, us, &count, &wrong](const Tensors& xs) {
    Tensors all;
    count = 0;
    Tensors marked;  // a one for each result, made in inference mode
    ScopeWalk([&](Records r) {
      const Tensors ys = s.f(xs);
      if (const Finding w = unlike_marks(ys, r); wrong.empty()) wrong = w;
      for (size_t k = 0; k < ys.size(); ++k) {
        const Tensor& y = ys[k];
        const bool same = std::ranges::any_of(xs, [&](const Tensor& x) { return y.is_same(x); });
        if (same && !r.levels) all.push_back(stop_gradient(y));
        else all.push_back(r.levels && !marked.empty() ? y * marked[k] : y);  // levels save what is marked
      }
      count += r.levels;
      for (size_t k = 0; r.inference && k < ys.size(); ++k) marked.push_back(ones({}, ys[k].dtype()));
      // A level that is opened inside records as ever.
      if (us.empty() || !wrong.empty()) return;
      const Tensors g = vjp(s.f, s.xs).pullback(us), outside = [&] {
        const EnableGrad on;
        return vjp(s.f, s.xs).pullback(us);
      }();
      if (const Finding d = differs(g, outside); !d.empty()) wrong = "vjp inside a scope: " + d;
    }).walk(tree, {});
    return all;
  };
}

Tensors repeated(const Tensors& ts, size_t times) {
  Tensors out;
  for (size_t k = 0; k < times; ++k) out.insert(out.end(), ts.begin(), ts.end());
  return out;
}

/// `got` is `count` times `want` (sums), or `want` at the places where it is recorded.
Finding unlike_count(const Tensors& got, const Tensors& want, int count, double u) {
  for (size_t k = 0; k < got.size(); ++k) {
    const Tensor w = to(want[k] * double(count), want[k].dtype());
    const Finding d = disagrees(plain_copy(got[k]), w, Agreement::Rounding, {64, 16, u});
    if (!d.empty()) return format("derivative {} of {} recorded places: ", k, count) + d;
  }
  return "";
}

/// Sums over places of what jvp gives at each.
Tensors summed(const Tensors& all, size_t n) {
  Tensors out(all.begin(), all.begin() + long(n));
  for (size_t k = n; k < all.size(); ++k) out[k % n] = out[k % n] + all[k];
  return out;
}

Finding levels_unlike_model(const Subject& s, const ScopeTree& tree, const Tensors& ts, const Tensors& us,
                            uint32_t engine) {
  int count = 0;
  Finding wrong;
  const Function f = at_all_places(s, tree, engine == 0 ? us : Tensors(), count, wrong);
  const size_t n = s.ys.size(), places = f(s.xs).size() / n, m = s.xs.size();
  Tensors got, want;
  if (engine == 0) {
    got = vjp(f, s.xs).pullback(repeated(us, places)), want = vjp(s.f, s.xs).pullback(us);
  } else if (engine == 1) {
    got = summed(jvp(f, s.xs, ts).tangents, n), want = jvp(s.f, s.xs, ts).tangents;
  } else if (engine == 2) {  // two lanes, one result each
    Tensors xs;
    for (const Tensor& x : s.xs) xs.push_back(stacked({x, x}, 0));
    got = vmap([&](const Tensors& x) { return vjp(f, x).pullback(repeated(us, places)); },
               {InDims(m, 0), {0}, Randomness::Error, 2})(xs);
    for (Tensor& g : got) g = lane(g, 0, 1);
    want = vjp(s.f, s.xs).pullback(us);
  } else if (engine == 3) {  // two levels around what both carry
    const auto twice = [&](const Function& h) {
      return jvp([&](const Tensors& xs) { return jvp(h, xs, ts).tangents; }, s.xs, ts).tangents;
    };
    got = summed(twice(f), n), want = twice(s.f);
  } else {  // the outer one knows nothing of the arguments, and multiplies what the inner one gives
    const Tensor one = ones({}, DType::F64);
    const auto scaled = [&](const Tensors& factor) {
      Tensors out = jvp(f, s.xs, ts).tangents;
      for (Tensor& t : out) t = to(t * factor[0], t.dtype());
      return out;
    };
    got = summed(jvp(scaled, {one}, {one}).tangents, n), want = jvp(s.f, s.xs, ts).tangents;
  }
  if (!wrong.empty()) return wrong;
  return finite(want) ? unlike_count(got, want, count, s.u) : "";
}

/// The squares of the inputs too, all by one operator that gives a list.
void with_squares(Subject& s) {
  const auto all = [f = s.f](const Tensors& xs) {
    Tensors ys = f(xs);
    for (const Tensor& x : xs) ys.push_back(x * x);
    return ys;
  };
  s.f = custom_vjp([all](const Tensors& xs) { return std::pair(all(xs), xs); },
                   [all](const Tensors& xs, const Tensors& cts) { return vjp(all, xs).pullback(cts); });
  s.ys = s.f(s.xs);
}

Verdict scopes_nest(Case& c) {
  Subject s;
  const uint32_t engine = c.draw.below(6);
  const bool several = c.draw.one_in(3);
  ScopeTree tree;
  int left = 8;
  draw_scopes(c.draw, tree, engine == 5, 1, left);
  if (!prepare(c, s)) return Verdict::discard();
  if (several) with_squares(s);
  const Tensors ts = directions(c, s.xs), us = directions(c, s.ys);
  uint32_t modes = c.draw.word();
  draw_inference(modes, tree);
  const Finding wrong =
      engine == 5 ? base_unlike_model(c, s, tree) : levels_unlike_model(s, tree, ts, us, engine);
  const int depth = engine == 5 ? 1 : 2;
  if (wrong.empty()) return Verdict::pass(depth);
  static constexpr const char* kEngines[] = {"vjp(f, xs)", "jvp(f, xs, ts)", "vmap(vjp(f))", "jvp(jvp(f))",
                                             "jvp(jvp(f) times a factor)"};
  const std::string xs = cpp_list(cpp_names(c, s.slots));
  return Verdict::fail(
      wrong,
      cpp_declarations(c.args) + cpp_tensors("t", ts) + cpp_tensors("u", us) + "  const Function f0 = " +
          cpp_function(c, s.slots, true) + (several ? ";  // and the squares of xs, by custom_vjp" : ";") +
          "\n  const Function f = [&](const Tensors& xs) {\n"
          "    Tensors all;\n    const auto look = [&] {\n      for (const Tensor& y : f0(xs)) {\n        "
          "std::cout << str(y) << '\\n';\n        all.push_back(y);\n      }\n    };\n" +
          scopes_text(tree) + "    return all;\n  };\n" +
          (engine == 5 ? "  Tensors leaves;\n  for (const Tensor& x : Tensors" + xs +
                             ") leaves.push_back(requires_grad(x));\n  f(leaves);\n"
                       : format("  // derivatives by {}\n", kEngines[engine]) +
                             "  for (const Tensor& y : jvp(f, " + xs + ", " + cpp_names("t", ts.size()) +
                             ").tangents) std::cout << \"tangent \" << str(y) << '\\n';\n"),
      depth);
}

}  // namespace

void add_scope_laws(std::vector<Law>& laws) {
  laws.push_back(
      {88,
       "scopes_nest",
       "derivative",
       "Under NoGrad, EnableGrad, NoGradLevels and InferenceMode, nested in any order, ended by exceptions "
       "too, and on other threads, that is recorded, and that memory is marked, which the innermost scopes "
       "say; base autograd neither saves nor follows what is marked.",
       {.dtypes = kWideTypes, .tame = true, .max_numel = 6},
       false,
       both_ways,
       scopes_nest});
}

}  // namespace lamella::verify
