// Blobs of recorded cases.
#include "lamella/verify/run/record.h"

#include <algorithm>
#include <cstdlib>
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

uint32_t hashed(std::string_view bytes) {
  uint32_t h = 2166136261u;
  for (const char c : bytes) h = (h ^ uint8_t(c)) * 16777619u;
  return h;
}
/// All 32 bits, of which one changed letter changes some: of eight one damaged blob in 256 was another case.
std::string checksum(std::string_view bytes) {
  const uint32_t h = hashed(bytes);
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
  return format("LD{}.", kDecoder) + base64(bytes + checksum(bytes));
}

namespace {
/// What stands between "LD" and the dot; older ones begin with "LC".
int decoder_of(std::string_view blob) {
  const size_t dot = blob.find('.');
  int number = 0;
  if ((blob.starts_with("LC") || blob.starts_with("LD")) && dot != std::string_view::npos)
    for (const char c : blob.substr(2, std::min<size_t>(dot - 2, 8)))
      number = c >= '0' && c <= '9' ? number * 10 + c - '0' : 0;
  LAMELLA_CHECK(number > 0, Value, "replay: \"{}\" is no blob; expected LD{}.…",
                std::string(blob.substr(0, 40)), kDecoder);
  return number;
}
}  // namespace

Record from_blob(std::string_view blob) {
  const int decoder = decoder_of(blob);
  LAMELLA_CHECK(decoder == kDecoder, Value,
                "replay: the blob is of decoder {}, this is {}; replay the file of the case, which keeps its "
                "arguments",
                decoder, kDecoder);
  std::string bytes = from_base64(blob.substr(blob.find('.') + 1));
  constexpr size_t kBehind = 4;
  LAMELLA_CHECK(bytes.size() >= kBehind && bytes.ends_with(checksum({bytes.data(), bytes.size() - kBehind})),
                Value, "replay: the blob is damaged");
  // One blob, one text: neither bits of the last digit that belong to no byte nor letters in the number.
  LAMELLA_CHECK(blob == format("LD{}.", kDecoder) + base64(bytes), Value, "replay: the blob is damaged");
  bytes.resize(bytes.size() - kBehind);
  Record r;
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
  return run_check(*law, *op->base, r.choices, r.decoding);
}

}  // namespace lamella::verify
