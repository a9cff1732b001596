// NumPy's validation sets: dtype, input bits, correctly rounded output bits, ULP limit; lines after # are
// notes.
#include <bit>
#include <cstring>
#include <sstream>

#include "lamella/dispatch/call.h"

#include "reference_compare.h"
#include "reference_run.h"

namespace lamella::tools {

namespace {
struct UlpRow {
  DType dtype;
  uint64_t input, output, limit;
};

/// NumPy's names where they differ.
std::string operator_name(std::string name) {
  constexpr std::string_view kPrefix = "umath-validation-set-";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  name.resize(name.find('.') == std::string::npos ? name.size() : name.find('.'));
  if (name.starts_with("arc")) name.replace(0, 3, "a");
  return name;
}

uint64_t parse_number(const std::string& text, int base) {
  size_t used = 0;
  uint64_t value = 0;
  try {
    value = std::stoull(text, &used, base);
  } catch (const std::exception&) { used = 0; }
  LAMELLA_CHECK(used && used == text.find_last_not_of(" \r") + 1, Value, "reference: \"{}\" is no number",
                text);
  return value;
}

std::vector<UlpRow> parse_rows(const std::string& bytes) {
  std::vector<UlpRow> rows;
  std::istringstream in(bytes);
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \r") == std::string::npos || line[0] == '#' || line.starts_with("dtype"))
      continue;
    std::istringstream fields(line);
    std::string dtype, input, output, limit;
    const bool whole = std::getline(fields, dtype, ',') && std::getline(fields, input, ',') &&
                       std::getline(fields, output, ',') && std::getline(fields, limit);
    LAMELLA_CHECK(whole && (dtype == "np.float32" || dtype == "np.float64"), Value,
                  "reference: got the line \"{}\", "
                  "expected np.float32 or np.float64, input, output, limit",
                  line);
    rows.push_back({dtype == "np.float32" ? DType::F32 : DType::F64, parse_number(input, 16),
                    parse_number(output, 16), parse_number(limit, 10)});
  }
  return rows;
}

uint64_t bits_at(const Tensor& t, size_t i) {
  if (t.dtype() == DType::F64) return std::bit_cast<uint64_t>(t.data<double>()[i]);
  return std::bit_cast<uint32_t>(t.data<float>()[i]);
}

/// All rows of one dtype in one call, as users call: SIMD bodies and remainders both take part.
Tensor compute(const Op& op, const std::vector<UlpRow>& rows, DType dtype) {
  int64_t n = 0;
  for (const UlpRow& r : rows) n += r.dtype == dtype;
  const Tensor x = make_tensor({&n, 1}, dtype);
  char* to = static_cast<char*>(x.raw_data());
  for (const UlpRow& r : rows) {
    if (r.dtype != dtype) continue;
    std::memcpy(to, &r.input, size_t(itemsize(dtype)));  // little-endian: the low bytes first
    to += itemsize(dtype);
  }
  const Tensor y = call(op, {x})[0];
  LAMELLA_CHECK(y.dtype() == dtype && y.numel() == n, Internal, "{}: got {} for {}", op.name, y, x);
  return y;
}
}  // namespace

void run_ulp_file(const std::string& name, const std::string& bytes, const RunOptions& options,
                  std::map<std::string, Tally>& tallies) {
  const std::string op_name = operator_name(name);
  if (!selected(options, op_name, "ulp")) return;
  const std::vector<UlpRow> rows = parse_rows(bytes);
  Tally& tally = tallies[op_name + ".ulp"];
  tally.cases += int(rows.size());
  const Op* op = OpTable::current().find(op_name);
  if (!op) {
    tally.not_implemented += int(rows.size());
    tally.note = "no such operator";
    return;
  }
  const Tensor computed[] = {compute(*op, rows, DType::F32), compute(*op, rows, DType::F64)};
  size_t next[2] = {0, 0};
  uint64_t worst[2] = {0, 0};
  std::ostringstream written;
  written << "dtype,input,output,ulperrortol\n" << std::hex;
  for (size_t i = 0; i < rows.size(); ++i) {
    const UlpRow& r = rows[i];
    const bool wide = r.dtype == DType::F64;
    const uint64_t got = bits_at(computed[wide], next[wide]++), apart = ulps_apart(got, r.output, r.dtype);
    written << (wide ? "np.float64" : "np.float32") << ",0x" << r.input << ",0x" << got << ',' << r.limit
            << '\n';
    worst[wide] = std::max(worst[wide], apart);
    if (apart <= r.limit) ++tally.passed;
    else {
      std::ostringstream text;
      text << name << ": " << r.dtype << " of 0x" << std::hex << r.input << ": got 0x" << got
           << ", expected 0x" << r.output << std::dec << ", " << apart << " ULP apart, at most " << r.limit;
      tally.fail(int(i), text.str());
    }
  }
  tally.note = format("at most {} ULP in f32, {} in f64", worst[0], worst[1]);
  if (!options.write_dir.empty()) write_file(options.write_dir + "/" + name, written.str());
}

}  // namespace lamella::tools
