// The .safetensors format: 8 bytes of header length (little-endian), a JSON header, then the tensors' bytes.
#include "safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "lamella/core/limits.h"
#include "lamella/ops/functions/copy.h"

namespace lamella::tools {

static_assert(std::endian::native == std::endian::little, "tensor bytes are copied as they are");

namespace {
using nlohmann::json;
constexpr std::string_view kComplexEnding = "#complex";

struct FileDType {
  std::string_view name;
  DType dtype;
};
constexpr FileDType kFileDTypes[] = {
    {"BOOL", DType::Bool}, {"U8", DType::U8},   {"U16", DType::U16}, {"U32", DType::U32}, {"U64", DType::U64},
    {"I8", DType::I8},     {"I16", DType::I16}, {"I32", DType::I32}, {"I64", DType::I64}, {"F16", DType::F16},
    {"BF16", DType::BF16}, {"F32", DType::F32}, {"F64", DType::F64}};

template <class... A> [[noreturn]] void malformed(FormatOf<A...> text, const A&... a) {
  fail(ErrorCode::Value, "safetensors: {}", format(text, a...));
}

DType parse_file_dtype(const std::string& tensor, const std::string& text) {
  for (const FileDType& d : kFileDTypes)
    if (d.name == text) return d.dtype;
  malformed("tensor \"{}\" has dtype \"{}\", which is none of the format's", tensor, text);
}

std::string_view file_dtype_name(DType dtype) {
  for (const FileDType& d : kFileDTypes)
    if (d.dtype == dtype) return d.name;
  malformed("a tensor of {} cannot be written", dtype);
}

uint64_t unsigned_number(const json& v, const std::string& tensor) {
  if (!v.is_number_unsigned())
    malformed("tensor \"{}\": got a {}, expected a non-negative integer", tensor, v.type_name());
  return v.get<uint64_t>();
}

/// The member of that name and kind.
const json& member(const json& object, const char* key, json::value_t kind, const std::string& tensor) {
  const auto at = object.find(key);
  if (at == object.end() || at->type() != kind) malformed("tensor \"{}\" lacks a usable \"{}\"", tensor, key);
  return *at;
}

/// Product of sizes and item size, refused when it exceeds what a file could hold.
uint64_t bytes_of(const std::string& name, const std::vector<int64_t>& sizes, DType dtype) {
  uint64_t n = uint64_t(itemsize(dtype));
  bool empty = false;
  for (const int64_t s : sizes) {
    if (s == 0) empty = true;
    else if (__builtin_mul_overflow(n, uint64_t(s), &n))
      malformed("tensor \"{}\" has too many elements", name);
  }
  return empty ? 0 : n;
}
}  // namespace

SafetensorsReader::SafetensorsReader(std::string bytes) : bytes_(std::move(bytes)) {
  if (bytes_.size() < 8) malformed("got {} bytes, expected at least 8", bytes_.size());
  uint64_t header = 0;
  std::memcpy(&header, bytes_.data(), 8);
  if (header > bytes_.size() - 8)
    malformed("a header of {} bytes exceeds the file of {}", header, bytes_.size());
  data_ = 8 + size_t(header);
  const json root = json::parse(bytes_.data() + 8, bytes_.data() + data_, nullptr, false);
  if (!root.is_object()) malformed("the header is no JSON object");
  for (const auto& [name, entry] : root.items()) {
    if (!entry.is_object()) malformed("the entry of \"{}\" is no object", name);
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) malformed("the metadata \"{}\" is no string", key);
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    std::vector<int64_t> sizes;
    for (const json& s : member(entry, "shape", json::value_t::array, name)) {
      const uint64_t size = unsigned_number(s, name);
      if (size > uint64_t(INT64_MAX)) malformed("tensor \"{}\" has a size of {}", name, size);
      sizes.push_back(int64_t(size));
    }
    const json& range = member(entry, "data_offsets", json::value_t::array, name);
    if (range.size() != 2) malformed("tensor \"{}\" has {} offsets, expected 2", name, range.size());
    add_entry(name, member(entry, "dtype", json::value_t::string, name).get<std::string>(), std::move(sizes),
              unsigned_number(range[0], name), unsigned_number(range[1], name));
  }
}

void SafetensorsReader::add_entry(std::string name, const std::string& dtype_name, std::vector<int64_t> sizes,
                                  uint64_t begin, uint64_t end) {
  DType dtype = parse_file_dtype(name, dtype_name);
  const uint64_t available = bytes_.size() - data_;
  if (begin > end || end > available)
    malformed("tensor \"{}\" lies at [{}, {}), the file has {} bytes of data", name, begin, end, available);
  const uint64_t expected = bytes_of(name, sizes, dtype);
  if (end - begin != expected)
    malformed("tensor \"{}\" has {} bytes, its shape and dtype say {}", name, end - begin, expected);
  if (name.ends_with(kComplexEnding)) {
    if ((dtype != DType::F32 && dtype != DType::F64) || sizes.empty() || sizes.back() != 2)
      malformed("tensor \"{}\" is no complex one: {} and its last dim is not 2", name, dtype_name);
    dtype = to_complex(dtype);
    sizes.pop_back();
  }
  if (sizes.size() > kMaxFileDims)
    malformed("tensor \"{}\" has rank {}, expected at most {}", name, sizes.size(), kMaxFileDims);
  entries_[std::move(name)] = {dtype, std::move(sizes), data_ + size_t(begin), size_t(expected)};
}

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> out;
  for (const auto& entry : entries_) out.push_back(entry.first);
  return out;
}

Tensor SafetensorsReader::tensor(const std::string& name) const {
  const auto at = entries_.find(name);
  if (at == entries_.end()) malformed("there is no tensor \"{}\"", name);
  const Entry& e = at->second;
  if (e.sizes.size() > kMaxDims)
    malformed("tensor \"{}\" has rank {}, expected at most {}", name, e.sizes.size(), kMaxDims);
  const char* source = bytes_.data() + e.begin;
  if (e.dtype == DType::Bool)
    for (size_t i = 0; i < e.bytes; ++i)
      if (uint8_t(source[i]) > 1)
        malformed("tensor \"{}\" has a bool byte of {}", name, int(uint8_t(source[i])));
  const Tensor out = make_tensor(Ints(e.sizes.data(), e.sizes.size()), e.dtype);
  if (e.bytes) std::memcpy(out.raw_data(), source, e.bytes);
  return out;
}

std::string write_safetensors(const std::map<std::string, Tensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  json root = json::object();
  if (!metadata.empty()) root["__metadata__"] = metadata;
  std::string data;
  for (const auto& [name, t] : tensors) {
    const Tensor packed = contiguous(t);
    std::vector<int64_t> sizes(packed.sizes().begin(), packed.sizes().end());
    const bool complex = is_complex(packed.dtype());
    LAMELLA_CHECK(complex == name.ends_with(kComplexEnding), Value, "safetensors: \"{}\" names a {}", name,
                  type_str(t));
    if (complex) sizes.push_back(2);
    const size_t begin = data.size(), bytes = size_t(packed.numel()) * size_t(itemsize(packed.dtype()));
    if (bytes) data.append(static_cast<const char*>(packed.raw_data()), bytes);
    root[name] = {{"dtype", file_dtype_name(to_real(packed.dtype()))},
                  {"shape", sizes},
                  {"data_offsets", {begin, data.size()}}};
  }
  std::string header = root.dump(-1, ' ', false, json::error_handler_t::replace);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

}  // namespace lamella::tools
