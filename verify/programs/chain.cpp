// Chains of operators: drawing, running and printing.
#include "lamella/verify/programs/chain.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "lamella/core/visit.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/lanes.h"

namespace lamella::verify {

namespace {

/// Operators that may stand beside the one under test.
const std::vector<const Op*>& partners() {
  static thread_local const OpTable* of = nullptr;
  static thread_local std::vector<const Op*> all;
  if (of == &OpTable::current()) return all;
  of = &OpTable::current();
  all.clear();
  for (const Op* op : of->rows())
    if (op->form == OpForm::Functional && !op->has(kTestOnly) && !op->has(kRandom) && takes_tensors(*op) &&
        op->shape != ShapeClass::Dynamic)
      all.push_back(op);
  return all;
}

std::vector<Case::Slot> inexact_slots(const Op& op, const Values& args) {
  std::vector<Case::Slot> out;
  const auto note = [&](const Tensor& t, int param, int element) {
    if (t.defined() && is_inexact(t.dtype())) out.push_back({param, element});
  };
  for (const uint8_t p : op.tensor_params) {
    if (const auto* t = std::get_if<Tensor>(&args[p])) note(*t, p, 0);
    if (const auto* list = std::get_if<Tensors>(&args[p]))
      for (size_t k = 0; k < list->size(); ++k) note((*list)[k], p, int(k));
  }
  return out;
}

/// `x` in the type of `like`: its elements in a row, from the beginning again when there are too few.
Tensor fitted(const Tensor& x, const Tensor& like) {
  Tensor t = is_complex(x.dtype()) && !is_complex(like.dtype()) ? real(x) : x;
  if (t.dtype() != like.dtype()) t = to(t, like.dtype());
  if (std::ranges::equal(t.sizes(), like.sizes())) return t;
  const Tensor row = reshape(t, {t.numel()});
  const Tensors rows(size_t((like.numel() + t.numel() - 1) / t.numel()), row);
  return reshape(slice(rows.size() > 1 ? cat(rows) : row, 0, 0, like.numel()), like.sizes());
}

Tensors inexact(Tensors ts) {
  std::erase_if(ts, [](const Tensor& t) { return !t.defined() || !is_inexact(t.dtype()); });
  return ts;
}

/// Keys of the levels that know some of these.
uint64_t levels_of(const Values& args) {
  uint64_t keys = 0;
  const auto note = [&](const Tensor& t) {
    if (t.defined()) keys |= t.keys();
  };
  for (const Value& v : args) {
    if (const auto* t = std::get_if<Tensor>(&v)) note(*t);
    if (const auto* list = std::get_if<Tensors>(&v))
      for (const Tensor& t : *list) note(t);
  }
  return keys >> kFirstLevelKey;
}

/// What a level knows cannot be written to a tensor with views that it does not know, and is refused. Where
/// every level knows the tensor, it must be written to.
void write(const Op& op, const Values& args, const Tensor& base) {
  try {
    call_boxed(op, args);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Level && (levels_of(args) & ~levels_of({base})) == 0)
      fail(ErrorCode::Internal, "a write was refused, though all levels know the tensor: {}", e.what());
    throw;
  }
}

Tensors run(const Step& s, const Tensors& values) {
  Values args = s.args;
  for (const Step::Link& l : s.links) entry(args, l.slot) = fitted(values[l.value], entry(args, l.slot));
  if (!s.in_place) return call_boxed(*s.op, args);
  const Tensor x = std::get<Tensor>(args[0]), base = stack(Tensors{x, x}, 0);
  args[0] = select(base, 0, 1);
  write(*s.in_place, args, base);
  return {base};
}

}  // namespace

bool small_numbers(const Tensors& ts) {
  for (const Tensor& t : ts) {
    bool small = true;
    visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      const auto part = [&](double v) { small &= std::abs(v) <= 4096 && std::floor(v * 16) == v * 16; };
      const T* const data = static_cast<const T*>(t.raw_data());
      each_element(t, [&](int64_t i) {
        if constexpr (is_complex_type<T>) part(double(data[i].real())), part(double(data[i].imag()));
        else part(double(data[i]));
      });
    });
    if (!small) return false;
  }
  return true;
}

Chain::Chain(Case& c) : inputs_(c.values(c.inexact())) {
  std::erase_if(inputs_, [](const Tensor& t) { return t.numel() == 0; });
  if (inputs_.empty()) return;
  values_ = inputs_;
  const uint32_t steps = 1 + c.draw.below(8), own = c.draw.below(steps);
  for (uint32_t k = 1 + c.draw.below(5); k > 0; --k) pool_.push_back(&c.partner(partners()));
  for (uint32_t s = 0; s < steps; ++s) {
    const bool added = add(c, s == own);
    if (s == own && !added) return;
  }
  valid_ = true;
}

bool Chain::add(Case& c, bool own) {
  Step step{&c.op, c.args, {}};
  if (!own) {
    step.op = pool_[c.draw.below(uint32_t(pool_.size()))];
    step.args = canonical(*step.op, step.op->samples(c.draw));
  }
  const std::vector<Case::Slot> slots = inexact_slots(*step.op, step.args);
  for (size_t k = 0; k < slots.size(); ++k) {
    if (k > 0 && c.draw.one_in(4)) continue;
    const size_t value = own && c.draw.flag() == 0 ? k : c.draw.below(uint32_t(values_.size()));
    step.links.push_back({slots[k], value % values_.size()});
  }
  if (step.links.empty()) return false;
  const bool in_place = c.draw.one_in(3) && step.links[0].slot.param == 0;
  if (in_place) step.in_place = OpTable::current().find(step.op->name + "_");
  Tensors results;
  if (status_of([&] { results = run(step, values_); }).raised || !small_numbers(results)) return false;
  for (const Tensor& t : results)
    if (t.numel() == 0 || t.numel() > 64) return false;
  for (const Tensor& t : results) step.inexact.push_back(t.defined() && is_inexact(t.dtype()));
  results = inexact(results);
  values_.insert(values_.end(), results.begin(), results.end());
  steps_.push_back(std::move(step));
  return true;
}

bool Chain::writes() const {
  return std::ranges::any_of(steps_, [](const Step& s) { return s.in_place != nullptr; });
}

Function Chain::function() const {
  return [this](const Tensors& xs) {
    Tensors values = xs, all;
    for (const Step& s : steps_) {
      const Tensors results = run(s, values), next = inexact(results);
      values.insert(values.end(), next.begin(), next.end());
      all.insert(all.end(), results.begin(), results.end());
    }
    return all;
  };
}

Tensors Chain::watched(const Tensors& xs, const Watch& watch) const {
  Tensors values = xs, all;
  for (const Step& s : steps_) {
    Tensors results = inexact(run(s, values));
    for (Tensor& y : results) {
      y = watch(all.size(), results.size(), y);
      values.push_back(y), all.push_back(y);
    }
  }
  return all;
}

Function Chain::smooth_function() const {
  return [f = function()](const Tensors& xs) { return inexact(f(xs)); };
}

namespace {
/// Among all tensors of the arguments, in order.
size_t position(const Values& args, const Case::Slot& slot) {
  size_t at = 0;
  for (int p = 0; p < slot.param; ++p) {
    if (const auto* t = std::get_if<Tensor>(&args[size_t(p)])) at += t->defined();
    if (const auto* list = std::get_if<Tensors>(&args[size_t(p)])) at += list->size();
  }
  return at + size_t(slot.element);
}

std::string text(DType d) {
  std::string out(name(d));
  for (char& c : out) c = char(std::toupper(uint8_t(c)));
  return d == DType::Bool ? "DType::Bool" : "DType::" + out;
}
std::string text(Ints sizes) {
  std::string out;
  for (const int64_t n : sizes) out += format("{}{}", out.empty() ? "" : ", ", n);
  return "{" + out + "}";
}

/// What fitted() does to the value called `name`, which is like `x`.
std::string fitted_text(std::string name, const Tensor& x, const Tensor& like) {
  DType type = x.dtype();
  if (is_complex(type) && !is_complex(like.dtype())) name = "real(" + name + ")", type = to_real(type);
  if (type != like.dtype()) name = format("to({}, {})", name, text(like.dtype()));
  if (std::ranges::equal(x.sizes(), like.sizes())) return name;
  name = "reshape(" + name + ", " + text(Dims{x.numel()}) + ")";
  if (const int64_t copies = (like.numel() + x.numel() - 1) / x.numel(); copies > 1)
    name = format("cat(Tensors({}, {}))", copies, name);
  return format("reshape(slice({}, 0, 0, {}), {})", name, like.numel(), text(like.sizes()));
}
}  // namespace

/// Every tensor under its name: constants are declared before the function, links fit their values.
std::vector<std::string> Chain::names_of(const Step& s, const std::vector<std::string>& values,
                                         std::string& constants, int& next) const {
  std::vector<std::string> names;
  std::vector<Tensor> given;
  for (const Value& v : s.args) {
    if (const auto* t = std::get_if<Tensor>(&v); t && t->defined()) given.push_back(*t);
    if (const auto* list = std::get_if<Tensors>(&v)) given.insert(given.end(), list->begin(), list->end());
  }
  names.resize(given.size());
  for (const Step::Link& l : s.links)
    names[position(s.args, l.slot)] =
        fitted_text(values[l.value], values_[l.value], given[position(s.args, l.slot)]);
  for (size_t k = 0; k < names.size(); ++k) {
    if (!names[k].empty()) continue;
    names[k] = format("c{}", next++);
    constants += cpp_tensor(names[k], given[k]);
  }
  return names;
}

std::string Chain::cpp(bool smooth) const {
  std::string constants, body, last, list;
  std::vector<std::string> values;
  for (size_t k = 0; k < inputs_.size(); ++k) values.push_back(format("xs[{}]", k));
  int next = 0;
  bool whole = steps_.size() == 1;  // the call's results are the function's
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    std::vector<std::string> names = names_of(step, values, constants, next);
    if (step.in_place) {
      body += format("    const Tensor y{} = stack(Tensors{", s) + names[0] + ", " + names[0] + "}, 0);\n";
      names[0] = format("select(y{}, 0, 1)", s);
      body += "    " + cpp_call(*step.in_place, step.args, names) + ";\n";
      whole = false;
    } else {
      last = cpp_call(*step.op, step.args, names);
      body += format("    const Tensors y{} = {};\n", s, last);
    }
    for (size_t r = 0; r < step.inexact.size(); ++r) {
      const std::string name = step.in_place ? format("y{}", s) : format("y{}[{}]", s, r);
      if (step.inexact[r]) values.push_back(name);
      else if (smooth) whole = false;
      if (step.inexact[r] || !smooth) list += (list.empty() ? "" : ", ") + name;
    }
  }
  const char* const name = smooth ? "f0" : "f";
  if (whole)
    return constants + format("  const Function {} = [&](const Tensors& xs) { return {}; };\n", name, last);
  return constants + format("  const Function {} = [&](const Tensors& xs) {\n", name) + body +
         "    return Tensors{" + list + "};\n  };\n";
}

}  // namespace lamella::verify
