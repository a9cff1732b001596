// Blobs and files of recorded cases.
#include "lamella/verify/run/record.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "lamella/dispatch/table.h"

namespace lamella::verify {

namespace {
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string base64(const std::string& bytes) {
  std::string out;
  uint32_t buffer = 0;
  int bits = 0;
  for (const char c : bytes) {
    buffer = buffer << 8 | uint8_t(c);
    for (bits += 8; bits >= 6; bits -= 6) out += kDigits[buffer >> (bits - 6) & 63];
  }
  if (bits > 0) out += kDigits[buffer << (6 - bits) & 63];
  return out;
}

std::string from_base64(std::string_view text) {
  std::string out;
  uint32_t buffer = 0;
  int bits = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    LAMELLA_CHECK(digit != std::string_view::npos, Value, "replay: '{}' is no digit of a blob",
                  std::string(1, c));
    buffer = buffer << 6 | uint32_t(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += char(buffer >> bits & 255);
  }
  return out;
}

uint32_t hashed(std::string_view bytes) {
  uint32_t h = 2166136261u;
  for (const char c : bytes) h = (h ^ uint8_t(c)) * 16777619u;
  return h;
}
/// Of blobs "LD": all 32 bits, of which one changed letter changes some. "LC", of before, folded them into 8,
/// and one damaged blob in 256 was another case.
std::string checksum(std::string_view bytes, bool folded) {
  const uint32_t h = hashed(bytes);
  if (folded) return std::string(1, char(h ^ h >> 8 ^ h >> 16 ^ h >> 24));
  return {char(h), char(h >> 8), char(h >> 16), char(h >> 24)};
}

std::string until_zero(std::string_view bytes, size_t& at) {
  const size_t end = bytes.find('\0', at);
  LAMELLA_CHECK(end != std::string_view::npos, Value, "replay: the blob is damaged");
  const size_t begin = std::exchange(at, end + 1);
  return std::string(bytes.substr(begin, end - begin));
}
}  // namespace

Record record_of(const Law& law, const Op& op, Choices choices, const Verdict& verdict) {
  Record r{std::string(law.id), op.name, std::move(choices), {}};
  r.decoding.partners = verdict.partners;
  return r;
}

namespace {
constexpr int kDepthKept = 5;  ///< the first version of records that say their depth and partners
constexpr int kDepthBefore = 3;

std::string spaced(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : " ") + n;
  return out;
}
std::vector<std::string> split(const std::string& names) {
  std::istringstream in(names);
  return {std::istream_iterator<std::string>(in), {}};
}
}  // namespace

std::string to_blob(const Record& r) {
  std::string bytes = r.law + '\0' + r.op + '\0';
  if (r.decoding.version >= kDepthKept)
    bytes += std::to_string(r.decoding.depth) + '\0' + spaced(r.decoding.partners) + '\0';
  for (uint32_t w : r.choices) {  // seven bits a byte, low ones first
    for (; w >= 128; w >>= 7) bytes += char(w | 128);
    bytes += char(w);
  }
  return format("LD{}.", r.decoding.version) + base64(bytes + checksum(bytes, false));
}

Record from_blob(std::string_view blob) {
  const size_t dot = blob.find('.');
  int version = 0;
  const bool folded = blob.starts_with("LC");
  if ((folded || blob.starts_with("LD")) && dot != std::string_view::npos)
    for (const char c : blob.substr(2, dot - 2))
      version = c >= '0' && c <= '9' ? version * 10 + c - '0' : 1 << 20;
  LAMELLA_CHECK(version > 0, Value, "replay: \"{}\" is no blob; expected LD{}.…",
                std::string(blob.substr(0, 40)), kDecoderVersion);
  LAMELLA_CHECK(version <= kDecoderVersion, Value, "replay: the blob is of decoder version {}, this is {}",
                version, kDecoderVersion);
  std::string bytes = from_base64(blob.substr(dot + 1));
  const size_t behind = folded ? 1 : 4;
  LAMELLA_CHECK(
      bytes.size() >= behind && bytes.ends_with(checksum({bytes.data(), bytes.size() - behind}, folded)),
      Value, "replay: the blob is damaged");
  bytes.resize(bytes.size() - behind);
  Record r;
  r.decoding.version = version;
  r.decoding.depth = kDepthBefore;
  size_t at = 0;
  r.law = until_zero(bytes, at);
  r.op = until_zero(bytes, at);
  if (version >= kDepthKept) {
    r.decoding.depth = std::atoi(until_zero(bytes, at).c_str());
    r.decoding.partners = split(until_zero(bytes, at));
  }
  uint32_t word = 0, shift = 0;
  for (; at < bytes.size(); ++at) {
    word |= uint32_t(uint8_t(bytes[at]) & 127) << shift;
    shift += 7;
    if (uint8_t(bytes[at]) & 128 && shift < 35) continue;
    r.choices.push_back(word);
    word = shift = 0;
  }
  return r;
}

std::string to_file_text(const Record& r, const std::string& message, const std::string& program) {
  std::string out;
  std::istringstream lines(message + "\n\n" + program);
  for (std::string line; std::getline(lines, line);) out += line.empty() ? "#\n" : "# " + line + "\n";
  out += "law " + r.law + "\noperator " + r.op + format("\nversion {}", r.decoding.version);
  if (r.decoding.version >= kDepthKept) out += format("\ndepth {}", r.decoding.depth);
  if (!r.decoding.partners.empty()) out += "\npartners " + spaced(r.decoding.partners);
  out += "\nchoices";
  for (const uint32_t w : r.choices) out += " " + std::to_string(w);
  return out + "\n";
}

Record read_record(const std::filesystem::path& path) {
  Record r;
  r.decoding.version = 1, r.decoding.depth = kDepthBefore;
  std::ifstream file(path);
  LAMELLA_CHECK(file.good(), Value, "cannot read {}", path.string());
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "law") words >> r.law;
    if (key == "operator") words >> r.op;
    if (key == "version") words >> r.decoding.version;
    if (key == "depth") words >> r.decoding.depth;
    LAMELLA_CHECK(!words.fail(), Value, "{}: the line \"{}\" cannot be read", path.string(), line);
    if (key == "partners") r.decoding.partners = {std::istream_iterator<std::string>(words), {}};
    if (key != "choices") continue;
    for (uint32_t w; words >> w;) r.choices.push_back(w);
    LAMELLA_CHECK(words.eof(), Value, "{}: a choice is no number of 32 bits", path.string());
  }
  return r;
}

std::vector<std::filesystem::path> record_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> out;
  if (!std::filesystem::is_directory(directory)) return out;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

Verdict replay(const Record& r) {
  const Law* const law = find_law(r.law);
  LAMELLA_CHECK(law, Value, "replay: there is no law \"{}\"", r.law);
  const Op* const op = OpTable::current().find(r.op);
  LAMELLA_CHECK(op && op->base->samples, Value, "replay: there is no operator \"{}\" with samples", r.op);
  return run_check(*law, *op->base, r.choices, r.decoding);
}

}  // namespace lamella::verify
