// Subscripts by lot: positions are counted out from the list alone, bytes are moved by hand.
#include "lamella/verify/programs/subscripts.h"

#include <cstring>

#include "lamella/core/overlap.h"
#include "lamella/core/visit.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/subscript.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"

namespace lamella::verify {

namespace {

/// A list of indices, and what it chooses: sizes of the result, positions in a dense x in row-major order.
struct Chosen {
  std::vector<Index> indices = {};
  Dims sizes = {};
  std::vector<int64_t> at = {0};
  std::vector<std::pair<size_t, int64_t>> integers = {};  ///< which entries are, and the sizes of their dims
  std::string text = {};

  void add(const Index& index, const std::string& name) {
    indices.push_back(index);
    text += (text.empty() ? "" : ", ") + name;
  }
  /// Goes through `places` of the next `count` elements of x, for each position so far.
  void choose(int64_t count, const std::vector<int64_t>& places) {
    std::vector<int64_t> next;
    for (const int64_t before : at)
      for (const int64_t place : places) next.push_back(before * count + place);
    at = std::move(next);
  }
  void choose_whole(int64_t size) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < size; ++i) all.push_back(i);
    choose(size, all);
    sizes.push_back(size);
  }
};

void add_integer(Draw& d, Chosen& out, int64_t size) {
  const int64_t i = d.range(-size, size - 1);
  out.integers.emplace_back(out.indices.size(), size);
  out.add(i, std::to_string(i));
  out.choose(size, {i < 0 ? i + size : i});
}

void add_slice(Draw& d, Chosen& out, int64_t size) {
  const auto bound = [&]() -> std::optional<int64_t> {
    return d.flag() ? std::optional(d.range(-size - 2, size + 2)) : std::nullopt;
  };
  const Slice s{bound(), bound(), d.range(1, 3)};
  const auto from_front = [size](int64_t end) { return end < 0 ? end + size : end; };
  const int64_t from = std::max<int64_t>(from_front(s.start.value_or(0)), 0),
                to = from_front(s.stop.value_or(size));
  std::vector<int64_t> places;
  for (int64_t i = from; i < std::min(to, size); i += s.step) places.push_back(i);
  const auto str_of = [](std::optional<int64_t> end) { return end ? std::to_string(*end) : "None"; };
  out.add(s, "Slice{" + str_of(s.start) + ", " + str_of(s.stop) + ", " + std::to_string(s.step) + "}");
  out.choose(size, places);
  out.sizes.push_back(int64_t(places.size()));
}

void add_mask(Draw& d, Chosen& out, Ints covered) {
  const Tensor mask = d.boolean(Dims(covered)), dense = plain_copy(mask);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < dense.numel(); ++i)
    if (static_cast<const bool*>(dense.raw_data())[i]) places.push_back(i);
  out.add(mask, "a mask of " + std::to_string(covered.size()) + " dims");
  out.choose(dense.numel(), places);
  out.sizes.push_back(int64_t(places.size()));
}

/// One mask and one Ellipsis at most; behind an Ellipsis every dim has an entry, since it takes what they
/// leave.
Chosen draw_list(Draw& d, Ints x) {
  Chosen out;
  bool rest = false, masked = false;
  int entries = 0;
  for (size_t k = 0; k < x.size();) {
    const uint32_t kind = ++entries > 2 * int(x.size()) ? 6 : d.below(8);
    const auto left = uint32_t(x.size() - k);
    if (kind == 1) out.add(None, "None"), out.sizes.push_back(1);
    else if (kind == 2 && !rest) {
      out.add(Ellipsis, "Ellipsis"), rest = true;
      for (uint32_t n = d.below(left + 1); n > 0; --n) out.choose_whole(x[k++]);
    } else if (kind == 3 && !masked) {
      const size_t n = 1 + d.below(left);
      add_mask(d, out, x.subspan(k, n)), masked = true, k += n;
    } else if (kind == 4 && !rest) {
      while (k < x.size()) out.choose_whole(x[k++]);
    } else if (kind == 0 || kind == 7) {
      x[k] > 0 ? add_integer(d, out, x[k]) : add_slice(d, out, x[k]), ++k;
    } else add_slice(d, out, x[k++]);
  }
  return out;
}

char* element(const Tensor& dense, int64_t i) {
  return static_cast<char*>(dense.raw_data()) + i * itemsize(dense.dtype());
}
Tensor part_of(const Tensor& dense, const Chosen& list) {
  const Tensor out = make_tensor(list.sizes, dense.dtype());
  for (size_t i = 0; i < list.at.size(); ++i)
    std::memcpy(element(out, int64_t(i)), element(dense, list.at[i]), size_t(itemsize(dense.dtype())));
  return out;
}
void put_back(const Tensor& dense, const Chosen& list, const Tensor& part) {
  for (size_t i = 0; i < list.at.size(); ++i)
    std::memcpy(element(dense, list.at[i]), element(part, int64_t(i)), size_t(itemsize(dense.dtype())));
}

void write(Subscript place, char how, const Tensor& value) {
  if (how == '+') place += value;
  else if (how == '-') place -= value;
  else if (how == '*') place *= value;
  else if (how == '/') place /= value;
  else place = value;
}
/// The same of a tensor that is all of it.
void change(const Tensor& part, char how, const Tensor& value) {
  if (how == '+') add_(part, value);
  else if (how == '-') sub_(part, value);
  else if (how == '*') mul_(part, value);
  else if (how == '/') div_(part, value);
  else copy_(part, value);
}

struct Written {
  Status status;
  Tensor dense;
};
Written wanted(const Tensor& x, const Chosen& list, char how, const Tensor& value) {
  Written out{{}, plain_copy(x)};
  const Tensor part = part_of(out.dense, list);
  out.status = status_of([&] { change(part, how, value); });
  if (!out.status.raised) put_back(out.dense, list, part);
  return out;
}

Finding wrong_write(const Tensor& x, const Tensor& another, const Chosen& list, char how,
                    const Tensor& value) {
  const Tensor as_it_lies = strided_copy(x),
               target = overlaps_itself(as_it_lies) ? plain_copy(x) : as_it_lies;
  const Written want = wanted(x, list, how, value);
  const Status s = status_of([&] { write(Subscript(target, list.indices), how, value); });
  if (s.raised != want.status.raised)
    return "raises " + str(s) + "; an operator on these elements " + str(want.status).text();
  if (Finding d = differs(target, want.dense); !d.empty() || s.raised) return d;
  const Function in_lane = [&](const Tensors& xs) {
    const Tensor y = clone(xs[0]);
    write(Subscript(y, list.indices), how, value);
    return Tensors{y};
  };
  const Written other = wanted(another, list, how, value);
  if (other.status.raised) return {};
  const Tensor lanes = vmap(in_lane)({stacked({plain_copy(x), plain_copy(another)}, 0)})[0];
  const Finding d = differs(lanes, stacked({want.dense, other.dense}, 0));
  return d.empty() ? d : "in lanes of vmap: " + d;
}

/// An index that is none, in the place of one that is.
Finding accepted(Draw& d, const Tensor& x, Chosen list) {
  if (list.integers.empty()) return {};
  const auto [at, size] = list.integers[d.below(uint32_t(list.integers.size()))];
  const int64_t beyond = d.flag() ? size : -size - 1;
  list.indices[at] = beyond;
  const Status s = status_of([&] { (void)Subscript(x, list.indices); });
  if (s.raised && s.code == ErrorCode::IndexOutOfRange) return {};
  return {What::Accepted, format("entry {} = {} of a dim of {}: ", at, beyond, size) + str(s).text()};
}

/// Integers that f32 does not hold, in the sizes of x: a value of f32 that promoted what it leaves alone
/// would change that.
Tensor beyond_f32(const Tensor& x) {
  const Tensor out = make_tensor(x.sizes(), x.dtype());
  visit_dtype(x.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (std::is_integral_v<T>)
      for (int64_t i = 0; i < out.numel(); ++i) static_cast<T*>(out.raw_data())[i] = T((1 << 24) + 1 + 2 * i);
  });
  return out;
}

}  // namespace

Finding wrong_subscript(Case& c, const Tensor& given) {
  const bool large = is_integer(given.dtype()) && itemsize(given.dtype()) >= 4 && c.draw.flag();
  const Tensor x = large ? beyond_f32(given) : given;
  const Chosen list = draw_list(c.draw, x.sizes());
  const char how = "=+-*/"[large ? 0 : c.draw.below(5)];
  const DType other = large              ? DType::F32
                      : c.draw.one_in(3) ? DType(c.draw.below(uint32_t(DType::F128)))
                                         : x.dtype();
  const Tensor value = c.draw.tensor(c.draw.broadcastable(list.sizes), other),
               another = c.draw.tensor(Dims(x.sizes()), x.dtype());
  Finding d;
  const Status s =
      status_of([&] { d = differs(Subscript(x, list.indices).read(), part_of(plain_copy(x), list)); });
  if (s.raised) d = str(s);
  if (d.empty()) d = wrong_write(x, another, list, how, value);
  if (d.empty()) d = accepted(c.draw, x, list);
  if (d.empty()) return d;
  return format("x[{{{}}}] {}= of {} at {}: ", list.text, how == '=' ? ' ' : how, type_str(value),
                type_str(x)) +
         d;
}

}  // namespace lamella::verify
