// Laws of strided memory: what core and view operators say of geometries is what lists of bytes say.
#include <algorithm>
#include <array>
#include <cstring>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/listed.h"
#include "lamella/verify/programs/census.h"
#include "lamella/verify/programs/shared_write.h"

namespace lamella::verify {

namespace {

constexpr int64_t kRoom = 48;  ///< elements of the buffer that views are drawn of

/// Sizes 0 to 4, strides that repeat, overlap or leave gaps, within the buffer.
Strided draw_strided(Draw& d, DType dtype, int64_t room) {
  Strided v{{}, {}, 0, dtype};
  const uint32_t rank = d.below(5);
  int64_t last = 0;
  for (uint32_t k = 0; k < rank; ++k) {
    const int64_t size = d.one_in(16) ? 0 : std::array{2, 1, 3, 4}[d.below(4)];
    int64_t stride = d.one_in(8) ? 0 : d.range(1, d.flag() ? 4 : 13);
    if (d.flag()) stride = last + 1;  // behind what the dims so far touch
    if (last + (size - 1) * stride >= room) stride = 0;
    last += std::max<int64_t>(size - 1, 0) * stride;
    v.sizes.push_back(size), v.strides.push_back(stride);
  }
  if (d.flag()) {  // the slowest dim first, as in most tensors
    std::reverse(v.sizes.begin(), v.sizes.end());
    std::reverse(v.strides.begin(), v.strides.end());
  }
  v.offset = d.range(0, room - 1 - last);
  return v;
}

/// Another one; half of the time the first one moved, so that both lie between each other.
Strided draw_beside(Draw& d, const Strided& v, int64_t room) {
  if (d.flag()) return draw_strided(d, v.dtype, room);
  Strided out = v;
  const std::vector<int64_t> places = listed_places(v);
  const int64_t end = places.empty() ? room : places.back() / itemsize(v.dtype) - v.offset;
  out.offset = d.range(0, std::max<int64_t>(room - 1 - end, 0));
  if (out.sizes.size() > 0 && d.flag()) {  // some of its columns
    int64_t& size = out.sizes[int(d.below(uint32_t(out.sizes.size())))];
    size = std::min<int64_t>(size, d.range(1, 2));
  }
  return out;
}

std::string cpp_view(const std::string& name, const Strided& v) {
  return format("  const Tensor {} = make_view(buffer, Dims{}, Dims{}, {}, parse(\"{}\"));\n", name,
                Path::braces(v.sizes), Path::braces(v.strides), v.offset, lamella::name(v.dtype));
}
std::string cpp_views(DType dtype, const std::vector<std::pair<std::string, Strided>>& views) {
  std::string out =
      "  const auto parse = [](const char* s) { DType d; parse_dtype(s, d); return d; };\n" +
      format("  const Tensor buffer = make_tensor(Dims{{}}, parse(\"{}\"));\n", kRoom, name(dtype));
  for (const auto& [name, v] : views) out += cpp_view(name, v);
  return out;
}

/// Empty when core's answers about one view are those of the lists.
Finding unlike_list(const Tensor& t) {
  const Strided v = strided(t);
  const auto count = int64_t(listed_places(v).size());
  if (t.numel() != count) return format("numel() is {}, {} elements are listed", t.numel(), count);
  if (t.is_contiguous() != listed_contiguous(v))
    return format("is_contiguous() is {}, its elements {} each other", t.is_contiguous(),
                  listed_contiguous(v) ? "follow" : "do not follow");
  if (!overlaps_itself(t) && listed_shares_itself(v))
    return "overlaps_itself() is false, but two elements share a byte";
  if (overlaps_itself(t) && listed_nested(v))
    return "overlaps_itself() is true, but its strides show that no elements meet";
  return "";
}

/// Likewise of two views of one storage.
Finding unlike_list(const Tensor& a, const Tensor& b) {
  static constexpr const char* kNames[] = {"None", "Same", "Partial"};
  const Strided v = strided(a), w = strided(b);
  const std::vector<int64_t> in_v = listed_places(v), in_w = listed_places(w);
  const Overlap got = overlap(a, b);
  Overlap want = Overlap::None;
  if (!in_v.empty() && !in_w.empty() && !listed_between(v, w)) {
    const bool same = v.dtype == w.dtype && v.sizes == w.sizes && in_v == in_w;
    want = same ? Overlap::Same : Overlap::Partial;
  }
  if (got == Overlap::None && listed_meet(v, w)) return "overlap() is None, but they share a byte";
  if (got == want) return "";
  return format("overlap() is {}, their bytes say {}", kNames[int(got)], kNames[int(want)]);
}

/// Whether make_view takes what lies within the storage, and nothing else.
Finding unlike_list(const Tensor& base, const Strided& v) {
  const bool valid = std::ranges::all_of(v.sizes, [](int64_t s) { return s >= 0; }) &&
                     std::ranges::all_of(v.strides, [](int64_t s) { return s >= 0; }) &&
                     listed_within(v, int64_t(base.impl()->storage->nbytes));
  const Status s = status_of([&] { (void)make_view(base, v.sizes, v.strides, v.offset, v.dtype); });
  if (s.raised != valid) return "";
  return {failure_kind(s),
          format("make_view {}, but {}", s.raised ? "raises " + str(s).text() : "raises nothing",
                 valid ? "all bytes lie within the storage" : "some size, stride or byte is out of range")};
}

Strided spoiled(Draw& d, Strided v) {
  const int64_t by = d.range(1, 4);
  const int at = v.sizes.empty() ? -1 : int(d.below(uint32_t(v.sizes.size())));
  switch (d.below(4)) {
    case 0: v.offset = kRoom - by; break;
    case 1: v.offset = -by; break;
    case 2:
      if (at >= 0) v.strides[at] = d.flag() ? -by : v.strides[at] + 8 * by;
      break;
    default:
      if (at >= 0) v.sizes[at] = d.flag() ? -by : v.sizes[at] + by;
  }
  return v;
}

Verdict memory_as_listed(Case& c) {
  const Case::Slot first{c.op.tensor_params[0], 0};
  const DType dtype = c.at(first).dtype();
  const Tensor buffer = make_tensor(Dims{kRoom}, dtype);
  std::memset(buffer.raw_data(), 0, size_t(kRoom * itemsize(dtype)));
  const Strided v = draw_strided(c.draw, dtype, kRoom);
  Strided w = draw_beside(c.draw, v, kRoom);
  if (is_complex(dtype) && c.draw.flag()) {  // parts of what lies there, or of something before
    w.dtype = to_real(dtype);
    if (c.draw.flag()) {
      for (int64_t& s : w.strides) s *= 2;
      w.offset = 2 * w.offset + int64_t(c.draw.below(2));
    }
  }
  const std::string program = cpp_views(dtype, {{"x", v}, {"z", w}});
  const auto verdict = [&](const Finding& d, const std::string& more = {}) {
    return d.empty() ? Verdict::pass() : Verdict::fail(d, program + more);
  };
  const Strided wrong = spoiled(c.draw, v);
  if (const Finding d = unlike_list(buffer, wrong); !d.empty())
    return Verdict::fail(d, cpp_views(dtype, {{"x", wrong}}));
  const Tensor x = make_view(buffer, v.sizes, v.strides, v.offset);
  const Tensor z = make_view(buffer, w.sizes, w.strides, w.offset, w.dtype);
  const Tensor y = call_boxed(c.op, c.with({first}, {x}))[0];
  const std::string more = "  const Tensor y = " + cpp_call(c.op, c.with({first}, {x}), {"x"}) + "[0];\n";
  if (!y.shares_storage(x)) return verdict("y, a view of x, has a storage of its own", more);
  const std::pair<const char*, const Tensor*> all[] = {{"x", &x}, {"z", &z}, {"y", &y}};
  for (const auto& [name, t] : all)
    if (const Finding d = unlike_list(*t); !d.empty())
      return verdict(name + (": " + d), more + format("  std::cout << {}.is_contiguous() << "
                                                      "overlaps_itself({});\n",
                                                      name, name));
  for (const auto& [one, a] : all)
    for (const auto& [other, b] : all)
      if (const Finding d = unlike_list(*a, *b); !d.empty())
        return verdict(format("{} and {}: ", one, other) + d,
                       more + format("  std::cout << int(overlap({}, {}));\n", one, other));
  // What it shows of x are bytes of x.
  const std::vector<int64_t> in_x = listed_places(strided(x)), in_y = listed_places(strided(y));
  if (in_x.size() != in_y.size()) return verdict("y has another number of elements", more);
  for (size_t k = 0; k < in_x.size(); ++k)
    if (in_y[k] < in_x[k] || in_y[k] + itemsize(y.dtype()) > in_x[k] + itemsize(dtype))
      return verdict(format("element {} of y lies at byte {}, that of x at {}", k, in_y[k], in_x[k]), more);
  return Verdict::pass();
}

/// A view of x and of nothing else.
bool views_x_alone(const Op& op) { return op.is_view() && op.schema.params.size() == 1; }

/// Other sizes of about as many elements: dims merged, cut and added, -1, and now and then a count that
/// differs.
Dims draw_sizes(Draw& d, const Dims& from) {
  Dims out = from;
  const uint32_t changes = 1 + d.below(3);
  for (uint32_t k = 0; k < changes; ++k) {
    const int n = out.size(), at = n > 0 ? int(d.below(uint32_t(n))) : 0;
    switch (d.below(5)) {
      case 0:  // two neighbours as one
        if (at + 1 < n) out[at] *= out[at + 1], out.erase(at + 1);
        break;
      case 1:  // one as two
        for (const int64_t by : {2, 3, 4})
          if (n > 0 && n < 5 && out[at] > by && out[at] % by == 0) {
            out[at] /= by;
            out.insert(at + (d.flag() ? 1 : 0), by);
            break;
          }
        break;
      case 2:
        if (n < 5) out.insert(n > 0 ? at : 0, 1);
        break;
      case 3:
        if (n > 0 && out[at] == 1) out.erase(at);
        else if (n > 1) std::swap(out[0], out[at]);
        break;
      default:
        if (n > 0 && d.flag()) out[at] = d.one_in(4) ? d.range(-2, 4) : -1;
    }
  }
  return out;
}

Verdict views_as_listed(Case& c) {
  const Case::Slot first{c.op.tensor_params[0], 0};
  const DType dtype = c.at(first).dtype();
  const Tensor buffer = make_tensor(Dims{kRoom}, dtype);
  for (int64_t k = 0; k < kRoom * itemsize(dtype); ++k)  // bytes that are valid in every dtype
    static_cast<char*>(buffer.raw_data())[k] = char(is_bool(dtype) ? k & 1 : k % 61);
  const Strided v = draw_strided(c.draw, dtype, kRoom);
  const Tensor x = make_view(buffer, v.sizes, v.strides, v.offset);
  const Dims asked = draw_sizes(c.draw, v.sizes);
  Values args = c.with({first}, {x});
  for (size_t i = 0; i < args.size(); ++i)
    if (c.op.schema.params[i].role == ParamRole::Size) args[i] = asked;
  const std::string program =
      cpp_views(dtype, {{"x", v}}) + "  std::cout << " + cpp_call(c.op, args, {"x"}) + "[0];\n";
  const auto failed = [&](const Finding& d) { return Verdict::fail(d, program); };

  const std::optional<Dims> sizes = listed_sizes(asked, x.numel());
  const std::optional<Strided> view = sizes ? listed_view(v, *sizes) : std::nullopt;
  const bool legal = c.op.composite ? sizes.has_value() : view.has_value();  // a composite may copy
  Tensor y;
  const Status s = status_of([&] { y = call_boxed(c.op, args)[0]; });
  counts_of_case()[legal ? "legal" : "refused"]++;
  if (legal && s.raised) return failed("raises " + str(s) + ", but the elements allow it");
  if (!legal && !s.raised)
    return failed(format("gives {} with strides {}, but {}", y, Dims(y.strides()),
                         sizes ? "no strides show these elements" : "the sizes do not fit"));
  if (!legal) return s.code == ErrorCode::Shape ? Verdict::pass() : failed("raises " + str(s));
  if (!(Dims(y.sizes()) == *sizes)) return failed(format("got {}, expected sizes {}", y, *sizes));
  if (y.shares_storage(x) != view.has_value())
    return failed(view ? "is a copy, but a view shows these elements" : "shares x's storage");
  if (view && y.numel() > 0 && listed_places(strided(y)) != listed_places(v))
    return failed(
        format("has strides {}, which show other elements; expected {}", Dims(y.strides()), view->strides));
  const Tensor flat_x = plain_copy(x), flat_y = plain_copy(y);
  if (std::memcmp(flat_x.raw_data(), flat_y.raw_data(), size_t(x.numel() * itemsize(dtype))))
    return failed("has other elements than x in row-major order");
  return Verdict::pass();
}

/// Takes sizes and gives x's elements under them: finds out by asking.
bool gives_other_sizes(const Op& op) {
  static AskedOnce asked;
  const auto is_size = [](const Param& p) { return p.role == ParamRole::Size; };
  if (!op.schema.returns_alias || std::ranges::count_if(op.schema.params, is_size) != 1) return false;
  return asked(op, [&] {
    return !status_of([&] { call(op, {make_tensor(Dims{6}, DType::F64), Dims{2, 3}}); }).raised;
  });
}

}  // namespace

void add_listed_laws(std::vector<Law>& laws) {
  laws.push_back(
      {141,
       "memory_as_listed",
       "layout",
       "Which views fit a storage, are contiguous, overlap themselves or each other, is what a list "
       "of their bytes says.",
       {.layouts = false, .tame = true, .max_numel = 4, .mixed = false},
       false,
       views_x_alone,
       memory_as_listed});
  laws.push_back({142,
                  "views_as_listed",
                  "layout",
                  "Elements are seen under other sizes exactly where some strides show all of them in order.",
                  {.layouts = false, .tame = true, .max_numel = 4, .mixed = false},
                  false,
                  gives_other_sizes,
                  views_as_listed});
}

}  // namespace lamella::verify
