// Blobs of recorded cases.
#include "lamella/verify/run/record.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <utility>

#include "lamella/dispatch/table.h"
#include "lamella/verify/case/recorder.h"

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

/// All bytes of the character of UTF-8 that begins at `i`.
std::string character_at(std::string_view text, size_t i) {
  size_t end = i + 1;
  while (end < text.size() && (uint8_t(text[end]) & 0xC0) == 0x80) ++end;
  return std::string(text.substr(i, end - i));
}

std::string from_base64(std::string_view text) {
  std::string out;
  uint32_t buffer = 0;
  int bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    LAMELLA_CHECK(digit != std::string_view::npos, Value, "replay: '{}' is no digit of a blob",
                  character_at(text, i));
    buffer = buffer << 6 | uint32_t(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += char(buffer >> bits & 255);
  }
  return out;
}

constexpr std::string_view kBegins = "LE.";

constexpr uint32_t kHashOfNothing = 2166136261u;
uint32_t hashed(std::string_view bytes, uint32_t h = kHashOfNothing) {
  for (const char c : bytes) h = (h ^ uint8_t(c)) * 16777619u;
  return h;
}
std::string four_bytes(uint32_t h) { return {char(h), char(h >> 8), char(h >> 16), char(h >> 24)}; }
/// All 32 bits, of which one changed letter changes some: of eight one damaged blob in 256 was another case.
std::string checksum(std::string_view bytes) { return four_bytes(hashed(bytes)); }

std::string until_zero(std::string_view bytes, size_t& at) {
  const size_t end = bytes.find('\0', at);
  LAMELLA_CHECK(end != std::string_view::npos, Value, "replay: the blob is damaged");
  const size_t begin = std::exchange(at, end + 1);
  return std::string(bytes.substr(begin, end - begin));
}

/// Answers as one number.
class Print final : public AnswerSink {
 public:
  void begin() override {}
  void note(std::string_view line) override { value = hashed("\n", hashed(line, value)); }
  uint32_t value = kHashOfNothing;
};

/// Of answers of every kind, to words that are always the same: they are others where the decoder is.
uint32_t print_of_decoder() {
  Print print;
  for (const DrawOptions& options : {DrawOptions{}, DrawOptions{.nonfinite = true, .ends = true},
                                     DrawOptions{.exact = true}, DrawOptions{.tame = true, .max_numel = 200}})
    for (uint32_t first = 1; first <= 16; ++first) {
      Choices words(96);
      for (uint32_t k = 0; k < words.size(); ++k) words[k] = (first * 96 + k) * 2654435761u >> 3;
      Decoder decoder(words, options);
      Recorder all(decoder, print);
      const DType d = all.dtype(kAllTypes);
      const Dims sizes = all.shape();
      (void)all.tensor(sizes, d), (void)all.tensor(all.broadcastable(sizes), all.partner(d, kAllTypes));
      (void)all.scalar(d), (void)all.dims(3), (void)all.dim(4), (void)all.anywhere(2, 5),
          (void)all.entries(1, 9);
      (void)all.index({3, 4}, 7), (void)all.boolean({5}), (void)all.keys({2});
      (void)all.triangular({}, 3, DType::F64), (void)all.positive_definite({}, 3, DType::C64);
      (void)all.dtype_argument(d, kAllTypes, true), (void)all.below(100), (void)all.tensor({4}, DType::F32);
    }
  return print.value;
}
}  // namespace

uint32_t meaning_of(const Record& r) {
  static const uint32_t of_decoder = print_of_decoder();
  const Law* const law = find_law(r.law);
  const Op* const op = OpTable::current().find(r.op);
  if (!law || !op || !op->base->samples) return 0;
  DrawOptions options = law->options;
  options.depth = r.decoding.depth;
  Decoder decoder(r.choices, options);
  Print print;
  print.value = of_decoder;
  Recorder recorder(decoder, print);
  try {
    const Case c(*op->base, recorder);
  } catch (const std::exception&) { print.note("raises"); }
  return print.value;
}

Record record_of(const Law& law, const Op& op, Choices choices, const Verdict& verdict) {
  Record r{std::string(law.id), op.name, std::move(choices), {}};
  r.decoding.partners = verdict.partners;
  return r;
}

namespace {
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
  bytes += std::to_string(r.decoding.depth) + '\0' + spaced(r.decoding.partners) + '\0';
  for (uint32_t w : r.choices) {  // seven bits a byte, low ones first
    for (; w >= 128; w >>= 7) bytes += char(w | 128);
    bytes += char(w);
  }
  bytes += four_bytes(r.meaning ? *r.meaning : meaning_of(r));
  return std::string(kBegins) + base64(bytes + checksum(bytes));
}

Record from_blob(std::string_view blob) {
  const bool older = blob.starts_with("LC") || blob.starts_with("LD");
  LAMELLA_CHECK(
      blob.starts_with(kBegins), Value, "replay: \"{}\" is {}; expected {}…", std::string(blob.substr(0, 40)),
      older ? "a blob of words without what they gave: replay the file of the case" : "no blob", kBegins);
  std::string bytes = from_base64(blob.substr(kBegins.size()));
  constexpr size_t kNumber = 4;  // bytes; two numbers stand behind the record
  LAMELLA_CHECK(
      bytes.size() >= 2 * kNumber && bytes.ends_with(checksum({bytes.data(), bytes.size() - kNumber})), Value,
      "replay: the blob is damaged");
  // One blob, one text: the last digit has no bits that belong to no byte.
  LAMELLA_CHECK(blob == std::string(kBegins) + base64(bytes), Value, "replay: the blob is damaged");
  Record r;
  r.meaning = 0;
  for (size_t k = 0; k < kNumber; ++k)
    *r.meaning |= uint32_t(uint8_t(bytes[bytes.size() - 2 * kNumber + k])) << (8 * k);
  bytes.resize(bytes.size() - 2 * kNumber);
  size_t at = 0;
  r.law = until_zero(bytes, at);
  r.op = until_zero(bytes, at);
  r.decoding.depth = std::atoi(until_zero(bytes, at).c_str());
  r.decoding.partners = split(until_zero(bytes, at));
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

Verdict replay(const Record& r) {
  const Law* const law = find_law(r.law);
  LAMELLA_CHECK(law, Value, "replay: there is no law \"{}\"", r.law);
  const Op* const op = OpTable::current().find(r.op);
  LAMELLA_CHECK(op && op->base->samples, Value, "replay: there is no operator \"{}\" with samples", r.op);
  LAMELLA_CHECK(
      !r.meaning || *r.meaning == meaning_of(r), Value,
      "replay: the words of this blob gave other arguments where it was printed, by another program; "
      "replay the file of the case, which keeps its arguments");
  return run_check(*law, *op->base, r.choices, r.decoding);
}

}  // namespace lamella::verify
