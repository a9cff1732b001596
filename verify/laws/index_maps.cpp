// Index maps of views, of operators that gather, join or cut, and of those that make tensors from numbers.
#include "lamella/verify/laws/index_maps.h"

#include <algorithm>

#include "lamella/core/visit.h"
#include "lamella/verify/case/listed.h"

namespace lamella::verify {

Asked::Asked(const Case& the_case) : c(the_case), tensors(the_case.values(the_case.tensors())) {}

int Asked::dim(std::string_view name, int rank) const {
  const int64_t d = get<int64_t>(name);
  return int(d < 0 ? d + std::max(rank, 1) : d);
}

Dims broadcast_by_hand(const Tensors& operands) {
  Dims out;
  for (const Tensor& t : operands) {
    while (out.size() < t.rank()) out.insert(0, 1);
    for (int d = 1; d <= t.rank(); ++d)
      if (t.size(-d) != 1) out[out.size() - d] = t.size(-d);
  }
  return out;
}

namespace {
using Sizes = std::vector<Dims>;

Sizes like_x(const Asked& a) { return {a.x().sizes()}; }
Origin itself(const Asked&, size_t, const Dims& at) { return {0, at}; }
template <int Part> Origin part_of(const Asked& a, size_t, const Dims& at) {
  return {0, at, is_complex(a.x().dtype()) ? Part : -1};
}

// In row-major order under other sizes.
Sizes other_sizes(const Asked& a) { return {*listed_sizes(a.get<Dims>("size"), a.x().numel())}; }
Origin in_order(const Asked& a, size_t, const Dims& at) {
  const Dims sizes = other_sizes(a)[0];
  int64_t number = 0;
  for (int d = 0; d < at.size(); ++d) number = number * sizes[d] + at[d];
  return {0, listed_indices(a.x().sizes())[size_t(number)]};
}

int wrapped(int64_t d, int rank) { return int(d < 0 ? d + rank : d); }

Sizes permuted_sizes(const Asked& a) {
  Dims out;
  for (const int64_t d : a.get<Dims>("dims")) out.push_back(a.x().size(wrapped(d, a.x().rank())));
  return {out};
}
Origin permuted(const Asked& a, size_t, const Dims& at) {
  const Dims& dims = a.get<Dims>("dims");
  Origin from{0, at};
  for (int i = 0; i < dims.size(); ++i) from.at[wrapped(dims[i], dims.size())] = at[i];
  return from;
}

Dims exchanged(const Asked& a, Dims v) {
  if (v.size() > 0) std::swap(v[a.dim("dim0", v.size())], v[a.dim("dim1", v.size())]);
  return v;
}
Sizes transposed_sizes(const Asked& a) { return {exchanged(a, a.x().sizes())}; }
Origin transposed(const Asked& a, size_t, const Dims& at) { return {0, exchanged(a, at)}; }

Sizes expanded_sizes(const Asked& a) {
  Dims out = a.get<Dims>("size");
  for (int d = 1; d <= a.x().rank(); ++d)
    if (out[out.size() - d] == -1) out[out.size() - d] = a.x().size(-d);
  return {out};
}
Origin expanded(const Asked& a, size_t, const Dims& at) {
  Dims from(a.x().rank());
  for (int d = 1; d <= from.size(); ++d) from[from.size() - d] = a.x().size(-d) == 1 ? 0 : at[at.size() - d];
  return {0, from};
}

/// Whether squeeze drops dim d.
bool squeezed(const Asked& a, int d) {
  if (a.x().size(d) != 1) return false;
  if (a.none("dim")) return true;
  for (const int64_t named : a.get<Dims>("dim"))
    if (wrapped(named, a.x().rank()) == d) return true;
  return false;
}
Sizes squeezed_sizes(const Asked& a) {
  Dims out;
  for (int d = 0; d < a.x().rank(); ++d)
    if (!squeezed(a, d)) out.push_back(a.x().size(d));
  return {out};
}
Origin unsqueezed_back(const Asked& a, size_t, const Dims& at) {
  Dims from;
  for (int d = 0, i = 0; d < a.x().rank(); ++d) from.push_back(squeezed(a, d) ? 0 : at[i++]);
  return {0, from};
}
Sizes unsqueezed_sizes(const Asked& a) {
  Dims out(a.x().sizes());
  out.insert(a.dim("dim", a.x().rank() + 1), 1);
  return {out};
}
Origin without_new_dim(const Asked& a, size_t, const Dims& at) {
  Dims from = at;
  from.erase(a.dim("dim", a.x().rank() + 1));
  return {0, from};
}

/// What a view picks of x: the origin of each of its elements.
int64_t selected(const Asked& a, int dim) {
  const int64_t index = a.get<int64_t>("index");
  return index < 0 ? index + a.x().size(dim) : index;
}
Sizes selected_sizes(const Asked& a) {
  Dims out(a.x().sizes());
  out.erase(a.dim("dim", a.x().rank()));
  return {out};
}
Dims origin_of_selected(const Asked& a, Dims at) {
  const int dim = a.dim("dim", a.x().rank());
  at.insert(dim, selected(a, dim));
  return at;
}

/// The indices that x[start:end:step] takes, one after the other.
std::vector<int64_t> taken(const Asked& a) {
  const int64_t size = a.x().size(a.dim("dim", a.x().rank()));
  const auto bound = [&](std::string_view name, int64_t otherwise) {
    if (a.none(name)) return otherwise;
    const int64_t at = a.get<int64_t>(name);
    return at < 0 ? at + size : at;
  };
  std::vector<int64_t> out;
  const int64_t from = std::max<int64_t>(bound("start", 0), 0), to = bound("end", size);
  const int64_t step = std::min(a.get<int64_t>("step"), size);  // a longer one could overflow
  for (int64_t i = from; i < to && i < size; i += step) out.push_back(i);
  return out;
}
Sizes sliced_sizes(const Asked& a) {
  Dims out(a.x().sizes());
  out[a.dim("dim", a.x().rank())] = int64_t(taken(a).size());
  return {out};
}
Dims origin_of_sliced(const Asked& a, Dims at) {
  int64_t& i = at[a.dim("dim", a.x().rank())];
  i = taken(a)[size_t(i)];
  return at;
}

/// Rows and columns of the diagonal, in order.
std::vector<std::pair<int64_t, int64_t>> diagonal_pairs(const Asked& a) {
  const int rank = a.x().rank();
  std::vector<std::pair<int64_t, int64_t>> out;
  for (int64_t i = 0; i < a.x().size(a.dim("dim1", rank)); ++i)
    for (int64_t j = 0; j < a.x().size(a.dim("dim2", rank)); ++j)
      if (j - i == a.get<int64_t>("offset")) out.emplace_back(i, j);
  return out;
}
Sizes diagonal_sizes(const Asked& a) {
  Dims out;
  for (int d = 0; d < a.x().rank(); ++d)
    if (d != a.dim("dim1", a.x().rank()) && d != a.dim("dim2", a.x().rank())) out.push_back(a.x().size(d));
  out.push_back(int64_t(diagonal_pairs(a).size()));
  return {out};
}
Dims origin_of_diagonal(const Asked& a, Dims at) {
  const int rank = a.x().rank();
  const auto [row, column] = diagonal_pairs(a)[size_t(at.back())];
  Dims from;
  for (int d = 0, i = 0; d < rank; ++d)
    from.push_back(d == a.dim("dim1", rank) ? row : d == a.dim("dim2", rank) ? column : at[i++]);
  return from;
}

using Back = Dims (*)(const Asked&, Dims);
template <Back B> Origin picked(const Asked& a, size_t, const Dims& at) { return {0, B(a, at)}; }
/// x with src where the view would be.
template <Sizes (*Of)(const Asked&), Back B> Origin scattered(const Asked& a, size_t, const Dims& at) {
  for (const Dims& in_src : listed_indices(Of(a)[0]))
    if (B(a, in_src) == at) return {1, in_src};
  return {0, at};
}

Origin flipped(const Asked& a, size_t, const Dims& at) {
  Origin from{0, at};
  for (const int64_t d : a.get<Dims>("dims"))
    if (const int k = wrapped(d, at.size()); at.size() > 0) from.at[k] = a.x().size(k) - 1 - at[k];
  return from;
}

Origin turned(const Asked& a, size_t, const Dims& at) {
  const Dims& shifts = a.get<Dims>("shifts");
  const Tensor& x = a.x();
  const auto back = [](int64_t i, int64_t by, int64_t n) { return ((i - by % n) % n + n) % n; };
  if (is_none(a.c.args[size_t(a.c.op.schema.find("dims"))])) {
    const std::vector<Dims> all = listed_indices(x.sizes());
    const auto number = std::ranges::find(all, at) - all.begin();
    return {0, all[size_t(back(number, shifts[0], int64_t(all.size())))]};
  }
  Origin from{0, at};
  const Dims& dims = a.get<Dims>("dims");
  for (int i = 0; i < dims.size(); ++i)
    if (const int d = wrapped(dims[i], at.size()); at.size() > 0)
      from.at[d] = back(from.at[d], shifts[i], x.size(d));
  return from;
}

int64_t index_at(const Tensor& index, const Dims& at) {
  int64_t offset = 0;
  for (int d = 0; d < index.rank(); ++d) offset += at[d] * index.stride(d);
  return index.dtype() == DType::I32 ? index.data<int32_t>()[offset] : index.data<int64_t>()[offset];
}
Sizes gathered_sizes(const Asked& a) { return {a.tensors[1].sizes()}; }
/// Rank 0 counts as rank 1, of x and of the index.
Origin gathered(const Asked& a, size_t, const Dims& at) {
  Dims from = at;
  from.resize(a.x().rank());
  if (a.x().rank() > 0) from[a.dim("dim", a.x().rank())] = index_at(a.tensors[1], at);
  return {0, from};
}
Sizes chosen_sizes(const Asked& a) {
  Dims out(a.x().sizes());
  if (out.size() > 0) out[a.dim("dim", out.size())] = a.tensors[1].numel();
  return {out};
}
Origin chosen(const Asked& a, size_t, const Dims& at) {
  Origin from{0, at};
  if (at.size() == 0) return from;
  int64_t& i = from.at[a.dim("dim", at.size())];
  i = index_at(a.tensors[1], Dims{i});
  return from;
}

/// A rank-1 tensor without elements joins with anything and adds nothing.
bool adds_nothing(const Tensor& t) { return t.rank() == 1 && t.numel() == 0; }
const Tensor& first_joined(const Asked& a) {
  for (const Tensor& t : a.tensors)
    if (!adds_nothing(t)) return t;
  return a.tensors.back();
}
Sizes joined_sizes(const Asked& a) {
  Dims out(first_joined(a).sizes());
  int64_t& size = out[a.dim("dim", out.size())];
  size = 0;
  for (const Tensor& t : a.tensors)
    if (!adds_nothing(t)) size += t.size(a.dim("dim", out.size()));
  return {out};
}
Origin joined(const Asked& a, size_t, const Dims& at) {
  Origin from{0, at};
  int64_t& i = from.at[a.dim("dim", at.size())];
  for (const Tensor& t : a.tensors) {
    const int64_t size = adds_nothing(t) ? 0 : t.size(a.dim("dim", at.size()));
    if (i < size) break;
    i -= size;
    ++from.tensor;
  }
  return from;
}
Sizes stacked_sizes(const Asked& a) {
  Dims out(a.x().sizes());
  out.insert(a.dim("dim", out.size() + 1), int64_t(a.tensors.size()));
  return {out};
}
Origin stacked_of(const Asked& a, size_t, const Dims& at) {
  const int dim = a.dim("dim", at.size());
  Dims from = at;
  from.erase(dim);
  return {int(at[dim]), from};
}

/// Lengths of the parts that split cuts, and of those it is given.
Dims lengths(const Asked& a) {
  if (a.param("split_sizes") >= 0) return a.get<Dims>("split_sizes");
  const int64_t size = a.x().size(a.dim("dim", a.x().rank())), most = a.get<int64_t>("split_size");
  Dims out;
  for (int64_t at = 0; at < size; at += most) out.push_back(std::min(most, size - at));
  if (out.empty()) out.push_back(0);
  return out;
}
Sizes cut_sizes(const Asked& a) {
  Sizes out;
  for (const int64_t n : lengths(a)) {
    out.emplace_back(a.x().sizes());
    out.back()[a.dim("dim", a.x().rank())] = n;
  }
  return out;
}
Origin cut_from(const Asked& a, size_t k, const Dims& at) {
  Origin from{0, at};
  const Dims parts = lengths(a);
  for (size_t i = 0; i < k; ++i) from.at[a.dim("dim", at.size())] += parts[int(i)];
  return from;
}

template <bool Lower> Origin of_triangle(const Asked& a, size_t, const Dims& at) {
  const int64_t beyond = at[at.size() - 1] - at[at.size() - 2], diagonal = a.get<int64_t>("diagonal");
  return (Lower ? beyond <= diagonal : beyond >= diagonal) ? Origin{0, at} : Origin{-1};
}

// Made from numbers.
Sizes asked_size(const Asked& a) { return {a.get<Dims>("size")}; }
template <int N> Origin constant(const Asked&, size_t, const Dims&) { return {-1, {}, -1, int64_t{N}}; }
Origin given(const Asked& a, size_t, const Dims&) {
  return {-1, {}, -1, a.get<Scalar>(a.param("value") >= 0 ? "value" : "fill_value")};
}
Sizes eye_sizes(const Asked& a) {
  const int64_t n = a.get<int64_t>("n");
  return {Dims{n, a.none("m") ? n : a.get<int64_t>("m")}};
}
Origin of_eye(const Asked&, size_t, const Dims& at) { return {-1, {}, -1, int64_t(at[0] == at[1])}; }

template <class N> struct Steps {
  N start = 0, end, step = 1;
  explicit Steps(const Asked& a) : end(number(a, "start")) {
    if (!a.none("end")) start = end, end = number(a, "end");
    if (!a.none("step")) step = number(a, "step");
  }
  static N number(const Asked& a, std::string_view name) {
    return a.get<Scalar>(name).to<std::conditional_t<std::is_same_v<N, double>, double, int64_t>>();
  }
  N at(int64_t n) const { return start + N(n) * step; }
  bool has(int64_t n) const { return step > 0 ? at(n) < end : at(n) > end; }
};
/// Integers at the ends of i64 are no doubles.
bool steps_are_whole(const Asked& a) {
  for (const std::string_view name : {"start", "end", "step"})
    if (!a.none(name) && a.get<Scalar>(name).kind() != DType::I64) return false;
  return true;
}
Sizes arange_sizes(const Asked& a) {
  int64_t n = 0;
  if (steps_are_whole(a))
    for (const Steps<__int128> s(a); s.has(n);) ++n;
  else
    for (const Steps<double> s(a); s.has(n);) ++n;
  return {Dims{n}};
}
Origin of_arange(const Asked& a, size_t, const Dims& at) {
  if (steps_are_whole(a)) return {-1, {}, -1, int64_t(Steps<__int128>(a).at(at[0]))};
  return {-1, {}, -1, Steps<double>(a).at(at[0])};
}

/// Indices of the elements that are not 0, one a row.
std::vector<Dims> nonzero_indices(const Asked& a) {
  const std::vector<double> parts = [&] {
    std::vector<double> out;
    visit_dtype(a.x().dtype(), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      each_element(a.x(), [&](int64_t offset) {
        const T& v = static_cast<const T*>(a.x().raw_data())[offset];
        if constexpr (is_half_type<T>) out.push_back(float(v) != 0);
        else out.push_back(v != T(0));
      });
    });
    return out;
  }();
  const std::vector<Dims> all = listed_indices(a.x().sizes());
  std::vector<Dims> out;
  for (size_t k = 0; k < all.size(); ++k)
    if (parts[k] != 0) out.push_back(all[k]);
  return out;
}
Sizes nonzero_sizes(const Asked& a) { return {Dims{int64_t(nonzero_indices(a).size()), a.x().rank()}}; }
Origin of_nonzero(const Asked& a, size_t, const Dims& at) {
  return {-1, {}, -1, nonzero_indices(a)[size_t(at[0])][int(at[1])]};
}

// Of operators that compute their elements: sizes alone.
Sizes drawn_sizes(const Asked& a) {
  Dims out;
  if (!a.none("key")) out = Dims(a.tensors[0].sizes());
  for (const int64_t s : a.get<Dims>("size")) out.push_back(s);
  return {out};
}
/// Rows of the first, columns of the second, which a vector has not.
Sizes product_sizes(const Asked& a) {
  Dims out(a.x().sizes());
  out.erase(out.size() - 1);
  if (a.tensors[1].rank() > 1) out.push_back(a.tensors[1].size(-1));
  return {out};
}
/// Those of B, whose batch dims broadcast with A's.
Sizes solved_sizes(const Asked& a) {
  const Tensor &m = a.tensors[0], &b = a.tensors[1];
  const auto batch = [](const Tensor& t) {
    const Dims sizes(t.sizes().first(size_t(t.rank() - 2)));
    return make_tensor(sizes, DType::Bool, Device::Meta);
  };
  Dims out = broadcast_by_hand({batch(m), batch(b)});
  out.push_back(b.size(-2)), out.push_back(b.size(-1));
  return {out};
}
}  // namespace

const std::vector<IndexMap>& index_maps() {
  static const std::vector<IndexMap> all = {
      {"view", other_sizes, in_order},
      {"reshape", other_sizes, in_order},
      {"contiguous", like_x, itself},
      {"clone", like_x, itself},
      {"to_device", like_x, itself},
      {"detach", like_x, itself},
      {"real", like_x, part_of<0>},
      {"real_part", like_x, part_of<0>},
      {"imag", like_x, part_of<1>},
      {"permute", permuted_sizes, permuted},
      {"transpose", transposed_sizes, transposed},
      {"expand", expanded_sizes, expanded},
      {"squeeze", squeezed_sizes, unsqueezed_back},
      {"unsqueeze", unsqueezed_sizes, without_new_dim},
      {"select", selected_sizes, picked<origin_of_selected>},
      {"slice", sliced_sizes, picked<origin_of_sliced>},
      {"diagonal", diagonal_sizes, picked<origin_of_diagonal>},
      {"select_scatter", like_x, scattered<selected_sizes, origin_of_selected>},
      {"slice_scatter", like_x, scattered<sliced_sizes, origin_of_sliced>},
      {"diagonal_scatter", like_x, scattered<diagonal_sizes, origin_of_diagonal>},
      {"roll", like_x, turned},
      {"flip", like_x, flipped},
      {"gather", gathered_sizes, gathered},
      {"index_select", chosen_sizes, chosen},
      {"cat", joined_sizes, joined},
      {"stack", stacked_sizes, stacked_of},
      {"split", cut_sizes, cut_from},
      {"split_with_sizes", cut_sizes, cut_from},
      {"tril", like_x, of_triangle<true>},
      {"triu", like_x, of_triangle<false>},
      {"zeros", asked_size, constant<0>},
      {"ones", asked_size, constant<1>},
      {"full", asked_size, given},
      {"eye", eye_sizes, of_eye},
      {"arange", arange_sizes, of_arange},
      {"zeros_like", like_x, constant<0>},
      {"ones_like", like_x, constant<1>},
      {"full_like", like_x, given},
      {"fill", like_x, given},
      {"new_zeros", asked_size, constant<0>},
      {"new_full", asked_size, given},
      {"nonzero", nonzero_sizes, of_nonzero},
      {"empty", asked_size, nullptr},
      {"empty_like", like_x, nullptr},
      {"rand", drawn_sizes, nullptr},
      {"randn", drawn_sizes, nullptr},
      {"index_add", like_x, nullptr},
      {"scatter_add", like_x, nullptr},
      {"mm", product_sizes, nullptr},
      {"bmm", product_sizes, nullptr},
      {"mv", product_sizes, nullptr},
      {"linalg_cholesky", like_x, nullptr},
      {"linalg_solve_triangular", solved_sizes, nullptr},
  };
  return all;
}

const IndexMap* index_map_of(const Op& op) {
  const auto at = std::ranges::find(index_maps(), op.name, &IndexMap::op);
  return at == index_maps().end() ? nullptr : &*at;
}

}  // namespace lamella::verify
