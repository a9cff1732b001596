// The law of scopes: what is recorded under NoGrad, EnableGrad and NoGradLevels, nested in any order.
#include <algorithm>
#include <optional>
#include <thread>

#include "lamella/ops/functions.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/custom.h"
#include "lamella/verify/compare.h"
#include "lamella/verify/lanes.h"
#include "lamella/verify/laws_more.h"
#include "lamella/verify/subject.h"

namespace lamella::verify {

namespace {

/// A scope, and what is opened inside of it one after the other. The root of a tree opens nothing.
struct ScopeTree {
  enum Kind : uint8_t { Root, Off, On, LevelsOff, Thread } kind = Root;
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

/// What a model says of a place: whether the base records there, and the levels that were open before.
struct Records {
  bool base = true, levels = true;
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
      if (t.kind == ScopeTree::Off) off.emplace(), now = {false, false};
      else if (t.kind == ScopeTree::On) on.emplace(), now = {true, true};
      else levels_off.emplace(), now.levels = false;
      walk(t, now);
      if (t.raises) throw Ended();
    } catch (const Ended&) {}
  }
  std::function<void(Records)> look_;
};

std::string scopes_text(const ScopeTree& tree, const std::string& indent = "    ") {
  static constexpr const char* kText[] = {"", "const NoGrad off;", "const EnableGrad on;",
                                          "const NoGradLevels off;"};
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

/// In base autograd: which results require grad, and whether a leaf may be written.
std::string base_unlike_model(const Subject& s, const ScopeTree& tree) {
  Tensors leaves;
  for (const Tensor& x : s.xs) leaves.push_back(requires_grad(x));
  const Tensor written = requires_grad(ones({2}, DType::F64));
  std::vector<bool> recorded;
  for (const Tensor& y : s.f(leaves)) recorded.push_back(is_grad_required(y));
  std::string wrong;
  int at = 0;
  ScopeWalk([&](Records r) {
    const Tensors ys = s.f(leaves);
    for (size_t k = 0; k < ys.size() && wrong.empty(); ++k) {
      if (std::ranges::any_of(leaves, [&](const Tensor& x) { return ys[k].is_same(x); })) continue;
      if (is_grad_required(ys[k]) != (r.base && recorded[k]))
        wrong = format("at place {} result {} {} a history; the base {} there", at, k,
                       is_grad_required(ys[k]) ? "has" : "has not", r.base ? "records" : "does not record");
      else if (const std::string d = differs(detach(ys[k]), s.ys[k]); !d.empty())
        wrong = format("at place {} result {}: ", at, k) + d;
    }
    if (const Status st = status_of([&] { fill_(written, 1); }); wrong.empty() && st.raised != r.base)
      wrong = format("at place {} the base {}, and writing to a leaf: ", at,
                     r.base ? "records" : "does not record") +
              str(st);
    ++at;
  }).walk(tree, {});
  return wrong;
}

/// All results of all places, under levels that are open around the tree; counts those that are recorded.
Function at_all_places(const Subject& s, const ScopeTree& tree, Tensors us, int& count, std::string& wrong) {
  return [&s, &tree, us, &count, &wrong](const Tensors& xs) {
    Tensors all;
    count = 0;
    ScopeWalk([&](Records r) {
      for (Tensor y : s.f(xs)) {
        const bool same = std::ranges::any_of(xs, [&](const Tensor& x) { return y.is_same(x); });
        all.push_back(same && !r.levels ? stop_gradient(y) : y);
      }
      count += r.levels;
      // A level that is opened inside records as ever.
      if (us.empty() || !wrong.empty()) return;
      const Tensors g = vjp(s.f, s.xs).pullback(us), outside = [&] {
        const EnableGrad on;
        return vjp(s.f, s.xs).pullback(us);
      }();
      if (const std::string d = differs(g, outside); !d.empty()) wrong = "vjp inside a scope: " + d;
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
std::string unlike_count(const Tensors& got, const Tensors& want, int count, double u) {
  for (size_t k = 0; k < got.size(); ++k) {
    const Tensor w = to(want[k] * double(count), want[k].dtype());
    const std::string d = disagrees(plain_copy(got[k]), w, Agreement::Rounding, {64, 16, u});
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

std::string levels_unlike_model(const Subject& s, const ScopeTree& tree, const Tensors& ts, const Tensors& us,
                                uint32_t engine) {
  int count = 0;
  std::string wrong;
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
  const std::string wrong =
      engine == 5 ? base_unlike_model(s, tree) : levels_unlike_model(s, tree, ts, us, engine);
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
       "Under NoGrad, EnableGrad and NoGradLevels, nested in any order, ended by exceptions too, and on "
       "other threads, that is recorded which the innermost scopes say.",
       {.dtypes = kWideTypes, .tame = true, .max_numel = 6},
       false,
       both_ways,
       scopes_nest});
}

}  // namespace lamella::verify
