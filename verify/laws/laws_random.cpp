// The law of randomness: what levels do to draws from the thread's generator, at every depth.
#include "lamella/core/generator.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/jacobian.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

/// A transform around the draws. Only lanes that draw apart may be seen in the numbers.
struct RandomLevel {
  enum Kind : uint8_t { Different, Same, Jvp, Vjp, Error } kind;
  int64_t size = 0;              ///< lanes; 0 too
  int64_t chunk = 0, first = 0;  ///< lanes at a time; the number of the first lane
  bool maps() const { return kind != Jvp && kind != Vjp; }
};

constexpr const char* kModeNames[] = {"Different", "Same", "", "", "Error"};

Function under(const RandomLevel& level, Function f) {
  static constexpr Randomness kModes[] = {Randomness::Different, Randomness::Same, {}, {}, Randomness::Error};
  if (level.maps()) return vmap(f, {{0}, {0}, kModes[level.kind], level.size, level.chunk, level.first});
  return [f, level](const Tensors& none) {
    const Tensor x = tensor_of({}, {1}, DType::F64);
    const Function of_one = [&](const Tensors&) { return f(none); };
    return level.kind == RandomLevel::Jvp ? jvp(of_one, {x}, {x}).values : vjp(of_one, {x}).values;
  };
}

Function under(const std::vector<RandomLevel>& levels, Function f, bool all) {
  for (size_t k = levels.size(); k-- > 0;)
    if (all || levels[k].kind == RandomLevel::Different) {
      RandomLevel level = levels[k];
      if (!all) level.chunk = 0;
      f = under(level, f);
    }
  return f;
}

std::string random_program(const Case& c, const std::vector<RandomLevel>& levels, uint64_t key,
                           uint64_t counter) {
  const std::string plain = cpp_call(c.op, c.args) + "[0]";
  std::string out = cpp_declarations(c.args) + "  const Tensor x = tensor_of({}, {1}, DType::F64);\n" +
                    "  const Function f0 = [&](const Tensors&) { return Tensors{" + plain + ", " + plain +
                    "}; };\n";
  for (size_t k = levels.size(), n = 0; k-- > 0; ++n) {
    const RandomLevel& l = levels[k];
    out += format("  const Function f{} = ", n + 1);
    if (l.maps())
      out += format("vmap(f{}, VmapOptions{InDims{0}, InDims{0}, Randomness::{}, {}, {}, {}});\n", n,
                    kModeNames[l.kind], l.size, l.chunk, l.first);
    else
      out +=
          format("[&](const Tensors&) { return {}(f{}, {x}", l.kind == RandomLevel::Jvp ? "jvp" : "vjp", n) +
          (l.kind == RandomLevel::Jvp ? ", {x}).values; };\n" : ").values; };\n");
  }
  return out +
         format("  Generator g({});\n  g.set_counter({});\n  const ScopedGenerator scope(g);\n", key,
                counter) +
         "  for (const Tensor& y : f" + std::to_string(levels.size()) +
         "({})) std::cout << str(y) << '\\n';\n" +
         "  std::cout << g.counter() << '\\n';  // expected: two more, and the numbers without levels that "
         "map "
         "nothing apart\n";
}

/// Compares lane by lane: `got` has a dim for each level that maps, `want` one for each that draws apart.
Finding lanes_differ(const std::vector<RandomLevel>& levels, size_t k, const Tensor& got,
                     const Tensor& want) {
  if (k == levels.size()) return differs(got, want);
  if (!levels[k].maps()) return lanes_differ(levels, k + 1, got, want);
  const bool apart = levels[k].kind == RandomLevel::Different;
  if (got.rank() == 0 || got.size(0) != levels[k].size)
    return format("got {}, expected {} lanes at level {}", got, levels[k].size, k);
  for (int64_t i = 0; i < levels[k].size; ++i) {
    const Finding d = lanes_differ(levels, k + 1, lane(got, 0, i), apart ? lane(want, 0, i) : want);
    if (!d.empty()) return format("lane {} of level {}: ", i, k) + d;
  }
  return "";
}

/// A Jacobian of what draws, from the same start: the numbers do not depend on how many rows or columns go
/// together.
Finding groups_show(Case& c, Generator& g, uint64_t start) {
  JacobianOptions o;
  o.randomness = c.draw.flag() ? Randomness::Different : Randomness::Same;
  const bool forward = !c.draw.one_in(4);
  const Function plain = c.function({}), f = [&plain](const Tensors&xs) {
    const Tensor drawn = plain({})[0];
    return Tensors{drawn.numel() == 0 ? xs[0]
                                      : xs[0] * select(reshape(to(real(drawn), DType::F64), {-1}), 0, 0)};
  };
  const Tensor x = tensor_of({3}, {1, 2, 3}, DType::F64);
  const auto run = [&](int64_t chunk) {
    g.set_counter(start);
    o.chunk = chunk;
    return forward ? jacfwd(f, o)({x}) : jacrev(f, o)({x});
  };
  const Tensors whole = run(0);
  const uint64_t counter = g.counter();
  const Tensors parts = run(1 + c.draw.below(2));
  if (g.counter() != counter)
    return format("in groups the counter moved to {}, not {}", g.counter(), counter);
  const Finding d = differs(parts, whole);
  return d.empty() ? d : format("{} in groups: ", forward ? "jacfwd" : "jacrev") + d;
}

/// What a function gives beside its results is given once for all columns: numbers that differ from column to
/// column are refused.
Finding aux_of_columns(const Function& plain, Generator& g, uint64_t start) {
  const Tensor x = tensor_of({3}, {1, 2, 3}, DType::F64);
  const AuxFunction f = [&plain](const Tensors& xs) {
    return std::pair(Tensors{mul(xs[0], xs[0])}, plain({}));
  };
  for (const Randomness mode : {Randomness::Same, Randomness::Different}) {
    JacobianOptions o;
    o.randomness = mode;
    Tensors aux;
    g.set_counter(start);
    const Status s = status_of([&] { aux = jacfwd_has_aux(f, o)({x}).second; });
    if (mode == Randomness::Different) {
      if (!s.raised || s.code != ErrorCode::Randomness)
        return "aux of jacfwd that differs from column to column: " + str(s);
      continue;
    }
    if (s.raised) return "aux of jacfwd that is one for all columns: " + str(s);
    g.set_counter(start);
    if (const Finding d = differs(aux[0], plain({})[0]); !d.empty()) return "aux of jacfwd: " + d;
  }
  return "";
}

Verdict random_modes(Case& c) {
  if (const int key = c.op.schema.find("key"); key >= 0) c.args[size_t(key)] = Value{};
  std::vector<RandomLevel> levels;  // outermost first
  const int depth = 1 + int(c.draw.below(uint32_t(c.draw.options().depth) + 1));
  bool refused = false;
  for (int k = 0; k < depth; ++k) {
    const uint32_t w = c.draw.below(9);  // an error in one level of nine: most stacks run
    levels.push_back({RandomLevel::Kind(w < 8 ? w % 4 : 4), draw_lanes(c.draw) % 4, 0});
    refused |= levels.back().kind == RandomLevel::Error;
  }
  const uint64_t key = c.draw.word(), start = c.draw.below(5);
  for (RandomLevel& level : levels) level.chunk = c.draw.below(3), level.first = c.draw.below(3);
  Generator g(key);
  g.set_counter(start);
  const ScopedGenerator scope(g);
  const Function plain = c.function({});
  const Function twice = [&](const Tensors&) { return Tensors{plain({})[0], plain({})[0]}; };
  Tensors got;
  const Status s = status_of([&] { got = under(levels, twice, true)({}); });
  Finding wrong;
  if (refused) {
    if (!s.raised || s.code != ErrorCode::Randomness)
      wrong = "a level refuses random numbers; expected error randomness, got " + str(s);
    else if (g.counter() != start) wrong = "a refused call moved the generator";
  } else if (s.raised) {
    wrong = str(s);
  } else if (g.counter() != start + 2) {
    wrong = format("two calls moved the counter from {} to {}", start, g.counter());
  } else {
    g.set_counter(start);
    const Tensors want = under(levels, twice, false)({});
    for (size_t k = 0; k < want.size() && wrong.empty(); ++k)
      if (wrong = lanes_differ(levels, 0, got[k], want[k]); !wrong.empty())
        wrong = format("call {}, against the levels that draw apart alone: ", k) + wrong;
  }
  if (wrong.empty()) wrong = groups_show(c, g, start);
  if (wrong.empty()) wrong = aux_of_columns(plain, g, start);
  if (wrong.empty()) return Verdict::pass(depth);
  return Verdict::fail(wrong, random_program(c, levels, key, start), depth);
}

/// Real parts of one stream, and imaginary ones, as sequences of bytes.
std::vector<std::string> sequences_of(const Tensor& stream) {
  const Tensor dense = plain_copy(stream);
  const int parts = is_complex(dense.dtype()) ? 2 : 1;
  const size_t bytes = size_t(itemsize(to_real(dense.dtype())));
  const char* const p = static_cast<const char*>(dense.raw_data());
  std::vector<std::string> out(size_t(parts), "");
  for (size_t i = 0; i < size_t(dense.numel()); ++i)
    for (size_t k = 0; k < size_t(parts); ++k) out[k].append(p + (i * size_t(parts) + k) * bytes, bytes);
  return out;
}

/// Sequences of 24 numbers of 8 bits or more: two equal ones are no chance. Each dtype, with keys of their
/// own and twice with the generator's.
Verdict draws_are_apart(Case& c) {
  static constexpr int64_t kNumbers = 24;
  const int size = c.op.schema.find("size"), key = c.op.schema.find("key");
  Values args = c.args;
  args[size_t(size)] = Dims{kNumbers};
  Tensors streams;
  if (const Tensor keys = plain_copy(std::get<Tensor>(c.args[size_t(key)])); c.draw.flag()) {
    std::vector<uint64_t> known;
    for (int64_t i = 0; i < keys.numel(); ++i) {
      if (std::ranges::find(known, keys.data<uint64_t>()[i]) != known.end()) continue;
      known.push_back(keys.data<uint64_t>()[i]);
      const Tensor one = make_tensor({}, DType::U64);
      *one.data<uint64_t>() = known.back();
      args[size_t(key)] = one;
      streams.push_back(call_boxed(c.op, args)[0]);
    }
  } else {
    Generator g(c.draw.word());
    const ScopedGenerator scope(g);
    args[size_t(key)] = Value{};
    for (int call = 0; call < 2; ++call) streams.push_back(call_boxed(c.op, args)[0]);
  }
  std::vector<std::string> all;
  for (const Tensor& s : streams)
    if (!s.defined()) return Verdict::fail("a stream gives no result", cpp_declarations(args));
  for (const Tensor& s : streams)
    for (std::string& sequence : sequences_of(s)) all.push_back(std::move(sequence));
  std::ranges::sort(all);
  if (std::ranges::adjacent_find(all) == all.end()) return Verdict::pass();
  const Finding wrong = format("of {} sequences of {} numbers two are equal", all.size(), kNumbers);
  return Verdict::fail(wrong, cpp_declarations(args) + "  std::cout << str(" + cpp_call(c.op, args) +
                                  "[0]) << '\\n';  // " + wrong.text() + "\n");
}

bool draws(const Op& op) { return op.has(kRandom) && op.schema.result_kind == ResultKind::Tensors; }
bool has_streams(const Op& op) {
  return draws(op) && op.schema.find("size") >= 0 && op.schema.find("key") >= 0;
}

}  // namespace

void add_random_laws(std::vector<Law>& laws) {
  laws.push_back(
      {50,
       "random_modes",
       "random",
       "At every depth `error` refuses draws, `same`, chunks and derivatives do not show in them, a call "
       "moves the generator by one; nor do groups of a Jacobian's rows and columns, whose aux is one for "
       "all.",
       {},
       false,
       draws,
       random_modes});
  laws.push_back(
      {154,
       "draws_are_apart",
       "random",
       "Streams of different keys, parts of complex numbers, and calls of a generator one after the "
       "other draw different numbers.",
       {.max_numel = 8},
       false,
       has_streams,
       draws_are_apart});
}

}  // namespace lamella::verify
