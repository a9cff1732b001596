// Drawing stacks, and reading them by the transforms.
#include "lamella/verify/programs/stack.h"

#include <algorithm>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/strata.h"

namespace lamella::verify {

namespace {
Tensor sum_of_squares(const Tensor& z) { return sum(real(mul(z, conj(z)))); }

/// y, of which the first entry along dim 0 is squared in place, through a view.
Tensor squared_in_part(const Tensor& y) {
  Tensor t = clone(y);
  const Tensor part = t.rank() > 0 ? select(t, 0, 0) : t;
  mul_(part, part);
  return t;
}

/// y * y + y: y is written into zeros through a view that is read again once its base has been written.
Tensor written_and_read(const Tensor& y) {
  const Tensor t = sub(y, y), view = unsqueeze(t, 0);
  copy_(view, unsqueeze(y, 0));
  const Tensor before = clone(t);
  mul_(t, y);
  return add(select(view, 0, 0), before);
}

Tensor finished(const Tensor& y, const Tensors& xs, const Program& p) {
  switch (p.after) {
    case 1: return sin(y);
    case 2: return mul(y, y);
    case 3: return log(real(mul(y, conj(y))) + 1.0);
    case 4: return mul(y, sum(xs[0]));
    case 5: return mul(y, conj(y));
    case 6: return y.numel() > 0 ? squared_in_part(y) : y;
    case 7: return written_and_read(y);
    default: return y;
  }
}

Tensors chosen(const Tensors& xs, const std::vector<bool>& active) {
  Tensors out;
  for (size_t k = 0; k < xs.size(); ++k)
    if (active[k]) out.push_back(xs[k]);
  return out;
}

Tensors replaced(Tensors xs, const std::vector<bool>& active, const Tensors& by) {
  for (size_t k = 0, j = 0; k < xs.size(); ++k)
    if (active[k]) xs[k] = by[j++];
  return xs;
}

Tensor weighted_sum(const Tensors& ys, const Tensors& weights) {
  Tensor total;
  for (size_t k = 0; k < ys.size(); ++k) {
    const Tensor part = sum(real(mul(ys[k], weights[k])));
    total = total.defined() ? add(total, part) : part;
  }
  return total;
}

Function under(const Function& f, const Layer& layer) {
  if (layer.kind == Layer::Share)
    return [f](Tensors xs) {
      xs.push_back(xs[0]);
      return f(xs);
    };
  const VmapOptions options{layer.in_dims, layer.out_dims, Randomness::Error, layer.size};
  if (layer.kind == Layer::Vmap && !layer.capture) return vmap(f, options);
  return [f, layer, options](const Tensors& xs) {
    const Function inner = [&](const Tensors& ys) { return f(replaced(xs, layer.active, ys)); };
    const Tensors active = chosen(xs, layer.active);
    if (layer.kind == Layer::Vmap) {
      VmapOptions o = options;
      std::erase(o.in_dims, kNone);
      return vmap(inner, o)(active);
    }
    if (layer.kind == Layer::Vjp) return vjp(inner, active).pullback(layer.constants);
    if (layer.kind == Layer::Jvp) {
      Tensors tangents = layer.constants;
      for (size_t k = 0; layer.scaled && k < active.size(); ++k) tangents[k] = mul(active[k], tangents[k]);
      return jvp(inner, active, tangents).tangents;
    }
    std::vector<int> argnums;
    for (size_t k = 0; k < xs.size(); ++k)
      if (layer.active[k]) argnums.push_back(int(k));
    return grad([&](const Tensors& ys) { return weighted_sum(f(ys), layer.constants); }, argnums)(xs);
  };
}

int64_t components(const Tensor& t) { return t.numel() * (is_complex(t.dtype()) ? 2 : 1); }
}  // namespace

Function Stack::program(Function op) const {
  return [op = std::move(op), p = program_](const Tensors& all) {
    Tensors xs = all;
    if (p.extra) xs.pop_back();
    Tensors moved_in = xs;
    if (p.before) {
      Tensor total;
      for (const Tensor& x : xs) total = total.defined() ? add(total, sum(real(x))) : sum(real(x));
      const Tensor factor = sin(total) * 0.25 + 1.25;
      for (Tensor& x : moved_in) x = mul(x, factor);
    }
    Tensors ys = op(moved_in);
    for (Tensor& y : ys) {
      y = finished(y, xs, p);
      if (p.extra) y = mul(y, sum_of_squares(all.back()) + 1.0);
    }
    return ys;
  };
}

namespace {
/// Swarm: each stack has only some of the transforms, so that runs of one kind are as likely as mixtures.
std::vector<Layer::Kind> draw_kinds(Draw& d) {
  const uint32_t some = 1 + d.below(15);
  std::vector<Layer::Kind> out;
  for (const Layer::Kind k : {Layer::Vmap, Layer::Jvp, Layer::Vjp, Layer::Grad})
    if (some >> int(k) & 1) out.push_back(k);
  return out;
}
std::vector<Layer::Kind> without_vmap(std::vector<Layer::Kind> kinds) {
  std::erase(kinds, Layer::Vmap);
  return kinds.empty() ? std::vector{Layer::Jvp, Layer::Vjp, Layer::Grad} : kinds;
}
}  // namespace

Stack::Stack(Case& c, const Options& o) : case_(c), slots_(c.inexact()), max_cost_(o.max_cost) {
  Draw& d = c.draw;
  if (slots_.size() > 2) slots_ = {slots_[d.below(uint32_t(slots_.size() - 1))], slots_.back()};
  if (slots_.empty()) return;
  inputs_ = c.values(slots_);
  program_ = {d.below(2), d.below(8), o.captures || o.shares};
  if (program_.extra) inputs_.push_back(c.direction(inputs_[0]));
  if (status_of([&] { results_ = program(c.smooth_function(slots_))(inputs_); }).raised) return;
  if (results_.empty()) return;
  const int depth = int(d.range(o.min_depth, o.max_depth));
  const std::vector<Layer::Kind> kinds = draw_kinds(d), derivatives = without_vmap(kinds);
  for (int k = 0; k < depth; ++k) {
    if (o.shares && k == 1) draw_layer(d, o, Layer::Share);
    const bool forced = o.shares && k < 2;  // a derivative on either side of what is shared
    const std::vector<Layer::Kind>& from = forced ? derivatives : kinds;
    draw_layer(d, o, from[d.below(uint32_t(from.size()))]);
  }
  note_stratum();
}

void Stack::note_stratum() const {
  Stratum& s = stratum_of_case();
  s.clear_transforms();
  int position = 0;
  for (const Layer& l : layers_)
    if (l.kind != Layer::Share)
      s.add_transform(position++, Stratum::Transform(int(Stratum::Vmap) + int(l.kind)));
}

int Stack::depth() const {
  return int(
      std::count_if(layers_.begin(), layers_.end(), [](const Layer& l) { return l.kind != Layer::Share; }));
}

void Stack::draw_vmap(Draw& d, const Options&, Layer& layer) {
  constexpr int64_t kSizes[] = {1, 2, 3, 2, 3, 7};  // a loop over no lanes says nothing of values
  layer.size = kSizes[d.below(6)];
  layer.capture = d.flag();
  const Batch b = draw_batch(d, inputs_, layer.active, layer.size, may_rotate(case_), case_.op.is_view());
  layer.in_dims = b.in_dims;
  layer.out_dims = draw_out_dims(d, results_);
  inputs_ = b.xs;
  for (size_t k = 0; k < results_.size(); ++k) {
    Dims sizes(results_[k].sizes());
    const int dim = layer.out_dims[k];
    sizes.insert(dim < 0 ? dim + sizes.size() + 1 : dim, layer.size);
    results_[k] = make_tensor(sizes, results_[k].dtype());
  }
}

void Stack::draw_layer(Draw& d, const Options& o, Layer::Kind kind) {
  Layer layer;
  layer.kind = kind;
  if (kind == Layer::Share) {
    inputs_.pop_back();
    layers_.push_back(std::move(layer));
    return;
  }
  layer.active = draw_mapped(d, inputs_.size());
  if (o.captures && inputs_.size() > 1) layer.active[d.below(uint32_t(inputs_.size()))] = false;
  if (o.shares && layers_.empty())
    std::fill(layer.active.begin(), layer.active.end() - 1, false), layer.active.back() = true;
  if (std::none_of(layer.active.begin(), layer.active.end(), [](bool a) { return a; }))
    layer.active.back() = true;
  const Tensors active = chosen(inputs_, layer.active);
  double reverse = 0;
  for (const Tensor& x : active) reverse += 4 * double(components(x));
  if (kind != Layer::Vmap && kind != Layer::Jvp && cost_ * reverse > max_cost_) layer.kind = Layer::Jvp;
  const double factor = layer.kind == Layer::Vmap ? 3 : layer.kind == Layer::Jvp ? 4 : std::max(reverse, 1.0);
  if (cost_ * factor > max_cost_) return;
  cost_ *= factor;
  if (layer.kind == Layer::Vmap) {
    draw_vmap(d, o, layer);
  } else if (layer.kind == Layer::Jvp) {
    layer.scaled = d.flag();
    for (const Tensor& x : active) layer.constants.push_back(case_.direction(x));
  } else {
    for (const Tensor& y : results_) layer.constants.push_back(case_.direction(y));
    results_ = active;
  }
  layers_.push_back(std::move(layer));
}

Function Stack::function() const {
  Function f = program(case_.smooth_function(slots_));
  for (const Layer& layer : layers_) f = under(f, layer);
  return f;
}

std::string Stack::str() const {
  static constexpr const char* kNames[] = {"vmap", "jvp", "vjp", "grad", "share"};
  std::string out = case_.op.name;
  for (const Layer& l : layers_) out = std::string(kNames[l.kind]) + "(" + out + ")";
  return out;
}

}  // namespace lamella::verify
