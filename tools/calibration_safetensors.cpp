// Questions about .safetensors: what is written is read back, plainly too, and what cannot be is refused.
#include <cstring>
#include <nlohmann/json.hpp>

#include "lamella/core/limits.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/compare.h"

#include "calibration_aids.h"
#include "calibrations.h"
#include "safetensors.h"

namespace lamella::tools {

namespace {
using nlohmann::json;

/// Up to three dims of sizes 0 to 3, any dtype of the format or complex, and any strides.
Tensor drawn_tensor(Dice& dice) {
  static const std::vector<DType> dtypes = {DType::Bool, DType::U8,  DType::I16, DType::I64, DType::F16,
                                            DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128};
  Dims sizes;
  for (uint64_t rank = dice.below(4); rank > 0; --rank)
    sizes.push_back(int64_t(dice.below(8) ? 1 + dice.below(3) : 0));
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(double(dice.below(100)));
  Tensor t = to(tensor_of(Ints(sizes), values, DType::F64), dice.of(dtypes));
  if (t.rank() >= 2 && dice.one_in(2)) t = transpose(t, 0, t.rank() - 1);
  if (t.rank() >= 1 && dice.one_in(3)) t = slice(t, 0, std::nullopt, std::nullopt, 2);
  return t;
}

/// A file, and what it says of itself.
struct PlainFile {
  std::string padding;  ///< behind the header's last brace
  json header;
  size_t data = 0;  ///< where the tensors begin
};

PlainFile read_plain_header(const std::string& bytes) {
  PlainFile out;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const std::string text = bytes.substr(8, length);
  const size_t end = text.rfind('}') + 1;
  out.padding = text.substr(end);
  out.header = json::parse(text.substr(0, end));
  out.data = 8 + length;
  return out;
}

std::string tensors_are_read_back() {
  Dice dice(7);
  for (int round = 0; round < 80; ++round) {
    std::map<std::string, Tensor> tensors;
    for (uint64_t n = dice.below(4); n > 0; --n) {
      const Tensor t = drawn_tensor(dice);
      tensors["t" + std::to_string(n) + (is_complex(t.dtype()) ? "#complex" : "")] = t;
    }
    std::map<std::string, std::string> metadata;
    if (dice.one_in(2)) metadata["text"] = dice.of<const char*>({"", "a", "\"{}\"", "\xc3\xa4"});
    const std::string bytes = write_safetensors(tensors, metadata);
    const PlainFile plain = read_plain_header(bytes);
    if (plain.data % 8 != 0) return format("the header ends at byte {}", plain.data);
    if (plain.padding.find_first_not_of(' ') != std::string::npos)
      return "the header is filled up with other bytes than blanks";
    const SafetensorsReader file{bytes};
    if (file.metadata() != metadata) return "the metadata are read back as others";
    if (file.names().size() != tensors.size())
      return format("{} tensors are read back as {}", tensors.size(), file.names().size());
    for (const auto& [name, t] : tensors) {
      if (!file.has(name)) return "there is no " + name;
      const std::string d = verify::differs(file.tensor(name), t).text();
      if (!d.empty()) return format("{} with strides {}: {}", type_str(t), Dims(t.strides()), d);
    }
  }
  return "";
}

std::string file_of(const json& header, size_t data) {
  const std::string text = header.dump();
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text + std::string(data, '\1');
}

/// One tensor whose range, shape and file fit or do not: by one entry, one byte or one dim.
std::string files_must_fit_their_tensors() {
  Dice dice(8);
  for (int round = 0; round < 400; ++round) {
    const bool wide = dice.one_in(2), complex = dice.one_in(3);
    std::vector<int64_t> sizes;
    uint64_t need = wide ? 8 : 4;
    for (uint64_t rank = dice.below(4); rank > 0; --rank) {
      sizes.push_back(int64_t(dice.one_in(2) ? 2 : dice.below(4)));
      need *= uint64_t(sizes.back());
    }
    const uint64_t begin = dice.of<uint64_t>({0, 0, 1, 8});
    const auto near = [&](uint64_t n) {
      return dice.one_in(2) ? n : n + dice.below(9) - std::min<uint64_t>(n, 4);
    };
    const uint64_t end = near(begin + need), data = near(end);
    const std::string name = complex ? "t#complex" : "t";
    const json entry = {{"dtype", wide ? "F64" : "F32"}, {"shape", sizes}, {"data_offsets", {begin, end}}};
    const std::string raised = raised_by([&] {
      SafetensorsReader(file_of({{name, entry}}, data)).tensor(name);
    });
    const bool pairs = !complex || (!sizes.empty() && sizes.back() == 2);
    const bool fits = begin <= end && end <= data && end - begin == need && pairs;
    if (raised.empty() != fits)
      return format("{} in a file of {} bytes of data: {}", entry.dump(), data,
                    fits ? raised : (complex ? "accepted as complex" : "accepted"));
  }
  return "";
}
/// About the limit, complex ones too, whose last dim is no dim of theirs.
std::string ranks_have_a_limit() {
  Dice dice(9);
  for (int round = 0; round < 40; ++round) {
    const bool complex = dice.one_in(2);
    const size_t rank = round == 0 ? size_t(kMaxFileDims) + 1 : size_t(kMaxDims) - 3 + dice.below(7);
    const int most = round == 0 ? kMaxFileDims : kMaxDims;  // a header's is asked first
    std::vector<int64_t> sizes(rank, 1);
    if (complex) sizes.push_back(2);
    const std::string name = complex ? "t#complex" : "t";
    const uint64_t bytes = complex ? 8 : 4;
    const json entry = {{"dtype", "F32"}, {"shape", sizes}, {"data_offsets", {0, bytes}}};
    int read = -1;
    const std::string raised = raised_by([&] {
      read = SafetensorsReader(file_of({{name, entry}}, bytes)).tensor(name).rank();
    });
    const bool fits = rank <= size_t(kMaxDims);
    if (fits && read != int(rank)) return format("rank {} is read as {}: {}", rank, read, raised);
    if (fits != raised.empty()) return format("rank {} is accepted", rank);
    for (const std::string& part : {"\"" + name + "\"", format("rank {},", rank), format("at most {}", most)})
      if (!fits && raised.find(part) == raised.npos)
        return format("{}: the error does not say {}", raised, part);
  }
  return "";
}
}  // namespace

Calibrations calibrations_of_safetensors() {
  return {
      {"tensors_are_read_back",
       "A file of tensors, of any number, sizes, dtypes and strides, has a header filled up with blanks to "
       "eight bytes, and is read back as the same tensors and metadata.",
       guarded<tensors_are_read_back>},
      {"files_must_fit_their_tensors",
       "A tensor is read exactly when its range lies in the file and holds what its shape and dtype need.",
       guarded<files_must_fit_their_tensors>},
      {"ranks_have_a_limit",
       "A tensor of any rank up to a file's limit is read with that rank; beyond it the error names "
       "tensor, "
       "rank and limit.",
       guarded<ranks_have_a_limit>},
  };
}

}  // namespace lamella::tools
