// Tensors as text, with the storages they lie in.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "lamella/verify/case/answers.h"

namespace lamella::verify {

namespace {
constexpr std::string_view kHexDigits = "0123456789abcdef";

/// A run of elements as their bits, highest first; what is alike one after the other is counted.
std::string bytes_text(const void* data, size_t nbytes, size_t unit) {
  if (unit == 0 || nbytes % unit != 0) unit = 1;
  const auto* const p = static_cast<const uint8_t*>(data);
  std::string out;
  for (size_t at = 0; at < nbytes;) {
    size_t alike = 1;
    while (at + (alike + 1) * unit <= nbytes && std::memcmp(p + at, p + at + alike * unit, unit) == 0)
      ++alike;
    out += ' ';
    for (size_t k = unit; k-- > 0;) out += kHexDigits[p[at + k] >> 4], out += kHexDigits[p[at + k] & 15];
    if (alike > 1) out += "*" + std::to_string(alike);
    at += alike * unit;
  }
  return out;
}

/// Whether `word` comes first: then it is behind.
bool take(std::string_view& rest, std::string_view word) {
  std::string_view after = rest;
  if (next_word(after) != word) return false;
  rest = after;
  return true;
}

/// Fills a storage; its text must have just as many bytes.
void read_bytes(std::string_view rest, char* to, size_t nbytes) {
  size_t at = 0, given = 0;
  while (!rest.empty()) {
    const std::string_view word = next_word(rest);
    const size_t star = word.find('*');
    const std::string_view digits = word.substr(0, star);
    const int64_t times = star == std::string_view::npos ? 1 : number_in(word.substr(star + 1));
    LAMELLA_CHECK(!digits.empty() && digits.size() % 2 == 0 && times > 0 &&
                      digits.find_first_not_of(kHexDigits) == std::string_view::npos,
                  Value, "record: \"{}\" are no bytes; expected 3ff0000000000000 or 00*16",
                  std::string(word));
    const size_t unit = digits.size() / 2;
    given += unit * size_t(times);
    for (int64_t k = 0; k < times && at + unit <= nbytes; ++k, at += unit)
      for (size_t b = 0; b < unit; ++b)
        to[at + b] = char(kHexDigits.find(digits[2 * (unit - 1 - b)]) << 4 |
                          kHexDigits.find(digits[2 * (unit - 1 - b) + 1]));
  }
  LAMELLA_CHECK(given == nbytes, Value, "record: a storage has {} bytes; expected the {} that it says", given,
                nbytes);
}

/// Whether the header carries the storage, or none could: what make_tensor gives.
bool is_made_whole(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  const Storage* const s = impl.storage;
  const auto* const behind = reinterpret_cast<const char*>(&impl) + TensorImpl::kHeader;
  return t.is_contiguous() && impl.offset == 0 && int64_t(s->nbytes) == t.numel() * itemsize(t.dtype()) &&
         std::ranges::equal(t.strides(), contiguous_strides(t.sizes())) &&
         (!s->embedded || reinterpret_cast<const char*>(s) == behind);
}

void check_reach(const Dims& sizes, const Dims& strides, int64_t offset, int64_t room) {
  LAMELLA_CHECK(sizes.size() == strides.size() && offset >= 0, Value,
                "record: sizes {} with strides {} at offset {}; expected as many strides, and an offset of 0 "
                "or more",
                sizes, strides, offset);
  __int128 last = offset;
  bool empty = false, negative = false;
  for (int d = 0; d < sizes.size(); ++d) {
    empty |= sizes[d] == 0, negative |= strides[d] < 0;
    last += __int128(std::max<int64_t>(sizes[d], 1) - 1) * strides[d];
  }
  LAMELLA_CHECK(!negative && (empty ? offset <= room : last < room), Value,
                "record: sizes {}, strides {}, offset {} lead behind the storage of {} elements", sizes,
                strides, offset, room);
}
}  // namespace

std::string TensorWriter::text(const Tensor& t) {
  const int number = tensors_++;
  if (!t.defined()) return "undefined";
  for (const Met& m : met_)
    if (m.tensor.impl() == t.impl()) return format("same {}", m.number);
  const auto known = std::ranges::find_if(met_, [&](const Met& m) { return m.tensor.shares_storage(t); });
  const bool fresh = known == met_.end();
  const int storage = fresh ? storages_++ : known->storage;
  std::string out = type_str(t);
  if (!fresh || !is_made_whole(t))
    out += format(" strides {} offset {}", Dims(t.strides()), t.impl()->offset);
  out += format(" storage {}", storage);
  const Storage& s = *t.impl()->storage;
  if (fresh)
    out +=
        format(" of {} bytes", s.nbytes) + bytes_text(s.data, s.nbytes, size_t(itemsize(to_real(t.dtype()))));
  if (keeps_) met_.push_back({t, number, storage});
  return out;
}

Tensor TensorReader::tensor(std::string_view text) {
  const int number = tensors_met_++;
  std::string_view rest = text;
  if (take(rest, "undefined")) return {};
  const auto known = [](const std::vector<Known>& all, std::string_view n,
                        const char* what) -> const Tensor& {
    for (const Known& k : all)
      if (k.number == number_in(n)) return k.tensor;
    fail(ErrorCode::Value, "record: {} {} is not known there", what, std::string(n));
  };
  if (take(rest, "same")) return known(tensors_, rest, "tensor");
  const std::string_view type = next_word(rest);
  const size_t bracket = std::min(type.find('['), type.size());
  const DType dtype = dtype_in(type.substr(0, bracket));
  const Dims sizes = dims_in(type.substr(bracket));
  const int64_t numel = checked_numel(sizes, "record");
  std::optional<Dims> strides;
  int64_t offset = 0;
  if (take(rest, "strides")) strides = dims_in(next_word(rest));
  if (strides && take(rest, "offset")) offset = number_in(next_word(rest));
  LAMELLA_CHECK(take(rest, "storage"), Value, "record: \"{}\" says no storage",
                std::string(text.substr(0, 60)));
  const std::string_view storage = next_word(rest);
  Tensor out;
  if (take(rest, "of")) {
    const int64_t nbytes = number_in(next_word(rest)), room = nbytes / itemsize(dtype);
    LAMELLA_CHECK(take(rest, "bytes") && nbytes >= 0 && room * itemsize(dtype) == nbytes && nbytes < 1 << 30,
                  Value, "record: a storage of {} bytes; expected whole elements of {}, less than 2^30 bytes",
                  nbytes, dtype);
    LAMELLA_CHECK(number_in(storage) == storages_met_++, Value, "record: storage {} comes as number {}",
                  std::string(storage), storages_met_ - 1);
    check_reach(sizes, strides ? *strides : contiguous_strides(sizes), offset, room);
    LAMELLA_CHECK(strides || room == numel, Value,
                  "record: a storage of {} elements for {}; expected strides", room, type_str(dtype, sizes));
    const Tensor whole = strides ? make_tensor(Dims{room}, dtype) : make_tensor(sizes, dtype);
    read_bytes(rest, static_cast<char*>(whole.impl()->storage->data), size_t(nbytes));
    out = strides ? make_view_unchecked(whole, sizes, *strides, offset) : whole;
    if (keeps_) storages_.push_back({storages_met_ - 1, out});
  } else {
    const Tensor& base = known(storages_, storage, "storage");
    LAMELLA_CHECK(strides, Value, "record: \"{}\" says no strides", std::string(text.substr(0, 60)));
    check_reach(sizes, *strides, offset, int64_t(base.impl()->storage->nbytes) / itemsize(dtype));
    out = make_view_unchecked(base, sizes, *strides, offset, dtype);
  }
  if (keeps_) tensors_.push_back({number, out});
  return out;
}

}  // namespace lamella::verify
