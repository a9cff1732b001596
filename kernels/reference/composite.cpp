// Oracle: what composites compute, from the elements of their arguments, without the operators they call.
#include <limits>
#include <map>

#include "lamella/core/rng.h"
#include "lamella/kernels/definitions.h"
#include "lamella/kernels/reference/arith.h"

namespace lamella::kernels::reference {
namespace {

using Index = std::vector<int64_t>;

int64_t offset_of(const View& v, const Index& at) {
  LAMELLA_ASSERT(size_t(v.rank) == at.size());
  int64_t sum = 0;
  for (size_t d = 0; d < at.size(); ++d) sum += at[d] * v.strides[d];
  return sum;
}

/// Every multi-index of `sizes`, the last dim fastest.
std::vector<Index> indices(const Index& sizes) {
  std::vector<Index> out{{}};
  for (const int64_t size : sizes) {
    std::vector<Index> longer;
    for (const Index& at : out)
      for (int64_t i = 0; i < size; ++i) {
        longer.push_back(at);
        longer.back().push_back(i);
      }
    out = std::move(longer);
  }
  return out;
}
std::vector<Index> indices(const View& v) { return indices(sizes_of(v)); }

/// The type that sums are kept in: the widest of its kind.
template <class W> struct widest { using type = W; };
template <> struct widest<float> { using type = f128; };
template <> struct widest<double> { using type = f128; };
template <class R> struct widest<std::complex<R>> { using type = c256; };
template <class W> using widest_t = typename widest<W>::type;

template <class W> W read(const View& v, const Index& at, DType compute) {
  return load<W>(v, offset_of(v, at), compute);
}

/// The elements of `out` are sums of elements of `in`; `place(at)` is the index of the one that in[at] is
/// part of. Each is finished by `finish`.
template <class Place, class Finish>
void add_up(const KernelCall& call, const View& out, const View& in, Place place, Finish finish) {
  visit_working(call.compute, [&]<class W>(type_tag<W>) {
    using Sum = widest_t<W>;
    const std::vector<Index> places = indices(out);
    std::vector<Sum> sums(places.size(), Sum(0));
    for (const Index& at : indices(in)) {
      const Index to = place(at);
      size_t number = 0;  // in row-major order
      for (int d = 0; d < out.rank; ++d) number = number * size_t(out.sizes[d]) + size_t(to[size_t(d)]);
      sums[number] = plus<Sum>(sums[number], cast<Sum>(read<W>(in, at, call.compute)));
    }
    for (size_t k = 0; k < places.size(); ++k)
      store(out, offset_of(out, places[k]), wrap(cast<W>(finish(Sum(sums[k]))), call.compute));
  });
}

/// Where in outs[0] the element of ins[0] at this index goes, when the dims d with ints[d] != 0 are reduced.
Index place_of(const KernelCall& call, const Index& at) {
  const bool kept = call.outs[0].rank == call.ins[0].rank;
  Index to;
  for (size_t d = 0; d < at.size(); ++d) {
    if (!call.ints[d]) to.push_back(at[d]);
    else if (kept) to.push_back(0);
  }
  return to;
}

int64_t reduced_count(const KernelCall& call) {
  int64_t count = 1;
  for (size_t d = 0; d < size_t(call.ins[0].rank); ++d)
    if (call.ints[d]) count *= call.ins[0].sizes[d];
  return count;
}

}  // namespace

void in_row_major_order(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const std::vector<Index> from = indices(in), to = indices(out);
  LAMELLA_ASSERT(from.size() == to.size());
  for (size_t k = 0; k < to.size(); ++k) {
    const int64_t source = offset_of(in, from[k]), target = offset_of(out, to[k]);
    if (call.ints[0] == 0 && in.dtype == out.dtype) copy_element(out, target, in, source);
    else
      visit_working(out.dtype, [&]<class W>(type_tag<W>) {
        const W x = load<W>(in, source, out.dtype);
        store(out, target, call.ints[0] ? conjugate(x) : x);
      });
  }
}

void stacked(const KernelCall& call) {
  const View& out = call.outs[0];
  const auto dim = call.ints[0];
  visit_working(out.dtype, [&]<class W>(type_tag<W>) {
    for (const Index& at : indices(out)) {
      Index source = at;
      source.erase(source.begin() + dim);
      const View& from = call.ins[size_t(at[size_t(dim)])];
      if (from.dtype == out.dtype) copy_element(out, offset_of(out, at), from, offset_of(from, source));
      else store(out, offset_of(out, at), read<W>(from, source, out.dtype));
    }
  });
}

void cut(const KernelCall& call) {
  const View& in = call.ins[0];
  for (size_t k = 0; k < call.outs.size(); ++k)
    for (const Index& at : indices(call.outs[k])) {
      Index source = at;
      source[size_t(call.ints[0])] += call.ints[1 + k];
      copy_element(call.outs[k], offset_of(call.outs[k], at), in, offset_of(in, source));
    }
}

void mean(const KernelCall& call) {
  const auto place = [&](const Index& at) { return place_of(call, at); };
  const int64_t count = reduced_count(call);
  add_up(call, call.outs[0], call.ins[0], place, [count]<class W>(const W& sum) {
    if constexpr (Complex<W>) return W(sum.real() / f128(count), sum.imag() / f128(count));
    else return W(sum / W(count));
  });
}

/// `finish` of each variance.
static void spread(const KernelCall& call, f128 (*finish)(f128)) {
  const View &out = call.outs[0], &in = call.ins[0];
  std::map<Index, std::vector<c256>> groups;
  for (const Index& at : indices(in)) groups[place_of(call, at)].push_back(read<c256>(in, at, DType::C256));
  const int64_t count = reduced_count(call);
  const double left = double(count) - call.scalars[0].to<double>();
  const f128 divisor = count > 0 && left > 0 ? left : std::numeric_limits<double>::quiet_NaN();
  for (const Index& at : indices(out)) {
    f128 re = 0, im = 0, squares = 0;
    for (const c256& x : groups[at]) re += x.real(), im += x.imag();
    re /= f128(count), im /= f128(count);
    for (const c256& x : groups[at])
      squares += (x.real() - re) * (x.real() - re) + (x.imag() - im) * (x.imag() - im);
    store(out, offset_of(out, at), finish(squares / divisor));
  }
}

void variance(const KernelCall& call) {
  spread(call, [](f128 v) { return v; });
}

void deviation(const KernelCall& call) {
  spread(call, [](f128 v) { return math::sqrt(v); });
}

void summed_to(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const auto place = [&](const Index& at) {
    Index to(at.end() - out.rank, at.end());
    for (int d = 0; d < out.rank; ++d)
      if (out.sizes[d] == 1) to[size_t(d)] = 0;
    return to;
  };
  add_up(call, out, in, place, [](auto sum) { return sum; });
}

void normalised(const KernelCall& call) {
  const View &x = call.ins[0], &out = call.outs[0];
  const auto count = size_t(call.ints[0]), lead = size_t(x.rank) - count;
  const Index sizes = sizes_of(x), inner(sizes.begin() + long(lead), sizes.end());
  const View* const weight = call.ints[1] ? &call.ins[1] : nullptr;
  const View* const bias = call.ints[2] ? &call.ins[call.ints[1] ? 2 : 1] : nullptr;
  const f128 eps = call.scalars[0].to<f128>();
  const auto number = [](const View& v, const Index& at) { return read<f128>(v, at, DType::F128); };
  for (const Index& block : indices(Index(sizes.begin(), sizes.begin() + long(lead)))) {
    const auto whole = [&](const Index& at) {
      Index all = block;
      all.insert(all.end(), at.begin(), at.end());
      return all;
    };
    f128 n = 0, sum = 0, squares = 0;
    for (const Index& at : indices(inner)) n += 1, sum += number(x, whole(at));
    const f128 mean = sum / n;
    for (const Index& at : indices(inner)) {
      const f128 apart = number(x, whole(at)) - mean;
      squares += apart * apart;
    }
    const f128 deviation = math::sqrt(squares / n + eps);
    for (const Index& at : indices(inner)) {
      f128 y = (number(x, whole(at)) - mean) / deviation;
      if (weight) y = y * number(*weight, at);
      if (bias) y = y + number(*bias, at);
      store(out, offset_of(out, whole(at)), y);
    }
    if (call.outs.size() == 1) continue;
    const Index first = whole(Index(count, 0));
    store(call.outs[1], offset_of(call.outs[1], first), mean);
    store(call.outs[2], offset_of(call.outs[2], first), 1 / deviation);
  }
}

void product(const KernelCall& call) {
  const View &out = call.outs[0], &a = call.ins[0], &b = call.ins[1];
  const bool has_row = a.rank > 1, has_column = b.rank > 1;
  const int64_t inner = a.sizes[a.rank - 1];
  /// The batch index of an operand of as many batch dims as it has: those at the end, 0 where it has size 1.
  const auto batch_of = [](const View& v, const Index& batch) {
    Index at;
    const size_t n = v.rank > 2 ? size_t(v.rank) - 2 : 0;
    for (size_t d = 0; d < n; ++d) at.push_back(v.sizes[d] == 1 ? 0 : batch[batch.size() - n + d]);
    return at;
  };
  visit_working(out.dtype, [&]<class W>(type_tag<W>) {
    using Sum = widest_t<W>;
    for (const Index& to : indices(out)) {
      const Index batch(to.begin(), to.end() - has_row - has_column);
      Index left = batch_of(a, batch), right = batch_of(b, batch);
      if (has_row) left.push_back(to[to.size() - 1 - has_column]);
      left.push_back(0);
      right.push_back(0);
      if (has_column) right.push_back(to.back());
      Sum sum = Sum(0);
      for (int64_t k = 0; k < inner; ++k) {
        left.back() = k;
        right[right.size() - 1 - has_column] = k;
        sum = plus<Sum>(
            sum, times<Sum>(cast<Sum>(read<W>(a, left, out.dtype)), cast<Sum>(read<W>(b, right, out.dtype))));
      }
      store(out, offset_of(out, to), wrap(cast<W>(sum), out.dtype));
    }
  });
}

namespace {
template <class W, class T> void apply(const KernelCall& call, T (*fn)(const T*, const T*)) {
  if (!fn) fail(ErrorCode::Internal, "a definition takes no {}", name(call.compute));
  std::vector<T> numbers, x(call.ins.size());
  for (const Scalar& s : call.scalars) numbers.push_back(cast<T>(s.to<W>()));
  const View& out = call.outs[0];
  for (const Index& at : indices(out)) {
    for (size_t k = 0; k < x.size(); ++k) x[k] = cast<T>(read<W>(call.ins[k], at, call.compute));
    store(out, offset_of(out, at), wrap(cast<W>(fn(x.data(), numbers.data())), call.compute));
  }
}
}  // namespace

void each_element(const KernelCall& call, const ElementFns& fns) {
  visit_working(call.compute, [&]<class W>(type_tag<W>) {
    if constexpr (Complex<W>) apply<W>(call, fns.complex);
    else if constexpr (Floating<W>) apply<W>(call, fns.real);
    else apply<W>(call, fns.integer);
  });
}

void moved(const KernelCall& call,
           void (*source)(int64_t*, std::span<const int64_t>, std::span<const int64_t>)) {
  const View &out = call.outs[0], &in = call.ins[0];
  for (const Index& at : indices(out)) {
    Index from = at;
    source(from.data(), sizes_of(in), call.ints);
    copy_element(out, offset_of(out, at), in, offset_of(in, from));
  }
}

void keys_of(const KernelCall& call) {
  const View &out = call.outs[0], &key = call.ins[0];
  for (const Index& at : indices(out)) {
    const Index of(at.begin(), at.end() - 1);
    const auto k = read<uint64_t>(key, of, DType::U64);
    store(out, offset_of(out, at), lamella::fold_in(k, uint64_t(at.back())));
  }
}

}  // namespace lamella::kernels::reference
