// Questions about archives: what was put in comes out, and what is damaged is refused.
#include <memory>
#include <sstream>

#include "calibration_aids.h"
#include "calibrations.h"
#include "tar_zst.h"

#if LAMELLA_HAVE_ZSTD
#include <zstd.h>
#endif

namespace lamella::tools {

#if LAMELLA_HAVE_ZSTD
namespace {
constexpr size_t kTarBlock = 512;

/// The ways in which archivers write an octal number into a field.
enum class Octal { Zeros, Blanks, Full, BlankBehind, Short };

std::string octal(uint64_t value, size_t size, Octal way) {
  std::string digits;
  for (; value; value /= 8) digits.insert(digits.begin(), char('0' + value % 8));
  if (digits.empty()) digits = "0";
  const auto padded = [&](size_t to, char by) {
    return digits.size() < to ? std::string(to - digits.size(), by) + digits : digits;
  };
  std::string out;
  switch (way) {
    case Octal::Zeros: out = padded(size - 1, '0'); break;
    case Octal::Blanks: out = padded(size - 1, ' '); break;
    case Octal::Full: out = padded(size, '0'); break;
    case Octal::BlankBehind: out = padded(size - 2, '0') + ' '; break;
    case Octal::Short: out = digits; break;
  }
  out.resize(size, '\0');
  return out;
}

struct PackedFile {
  std::string name, bytes;
  bool operator==(const PackedFile&) const = default;
};

/// Its header, the checksum over bytes as they are, without signs.
std::string tar_header(const PackedFile& file, Octal size_way, Octal sum_way) {
  std::string block = file.name;
  block.resize(100, '\0');
  block += octal(0644, 8, Octal::Zeros) + octal(0, 8, Octal::Zeros) + octal(0, 8, Octal::Zeros);
  block += octal(file.bytes.size(), 12, size_way) + octal(1700000000, 12, Octal::Zeros);
  block += std::string(8, ' ') + '0';
  block.resize(257, '\0');
  block += std::string("ustar\0", 6) + "00";
  block.resize(kTarBlock, '\0');
  uint64_t sum = 0;
  for (const char c : block) sum += uint8_t(c);
  block.replace(148, 8, octal(sum, 8, sum_way));
  return block;
}

std::string tar_of(Dice& dice, const std::vector<PackedFile>& files) {
  const std::initializer_list<Octal> ways = {Octal::Zeros, Octal::Blanks, Octal::Full, Octal::BlankBehind,
                                             Octal::Short};
  std::string out;
  for (const PackedFile& f : files) {
    out += tar_header(f, dice.of(ways), dice.of(ways)) + f.bytes;
    out.resize((out.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  }
  return out + std::string(2 * kTarBlock, '\0');
}

/// A frame of zstd; one that is not `ended` was flushed, as by a program that goes on writing: all bytes have
/// arrived, and nothing says that they were the last ones.
std::string frame_of(std::string_view part, bool ended) {
  const std::unique_ptr<ZSTD_CStream, size_t (*)(ZSTD_CStream*)> stream(ZSTD_createCStream(),
                                                                        ZSTD_freeCStream);
  std::string out(ZSTD_compressBound(part.size()) + 1024, '\0');
  ZSTD_inBuffer in{part.data(), part.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  while (ZSTD_compressStream2(stream.get(), &to, &in, ended ? ZSTD_e_end : ZSTD_e_flush) != 0) continue;
  out.resize(to.pos);
  return out;
}

enum class LastFrame { Ended, Any };

/// In one frame of zstd or several.
std::string compressed(Dice& dice, std::string_view text, LastFrame last = LastFrame::Ended) {
  std::string out;
  do {
    const std::string_view part = text.substr(0, dice.one_in(2) ? text.size() : 1 + dice.below(3000));
    text.remove_prefix(part.size());
    out += frame_of(part, !text.empty() || last == LastFrame::Ended || dice.one_in(2));
  } while (!text.empty());
  return out;
}

std::vector<PackedFile> drawn_files(Dice& dice) {
  std::vector<PackedFile> out;
  for (uint64_t n = 1 + dice.below(4); n > 0; --n) {
    std::string name = dice.of<const char*>({"plain", "\xc3\xa4hnlich", "\xff\xfe\x80", "x.safetensors"});
    name += std::to_string(n);
    const size_t size =
        512 * dice.below(4) + dice.of<size_t>({0, 0, 1, 2, 511}) + (dice.one_in(12) ? 200000 : 0);
    out.push_back({name, dice.one_in(2) ? dice.bytes(size) : std::string(size, 'a')});
  }
  return out;
}

std::vector<PackedFile> files_in(const std::string& archive) {
  std::vector<PackedFile> out;
  std::istringstream in(archive);
  visit_archive(
      in, [](const std::string&) { return true; },
      [&](const std::string& name, std::string bytes) {
        out.push_back({name, std::move(bytes)});
      });
  return out;
}

std::string archives_hold_their_files() {
  Dice dice(5);
  for (int round = 0; round < 60; ++round) {
    const std::vector<PackedFile> files = drawn_files(dice);
    std::vector<PackedFile> got;
    const std::string raised =
        raised_by([&] { got = files_in(compressed(dice, tar_of(dice, files), LastFrame::Any)); });
    std::string sizes;
    for (const PackedFile& f : files) sizes += format(" {}", f.bytes.size());
    if (!raised.empty()) return format("files of{} bytes: {}", sizes, raised);
    if (got != files)
      return format("files of{} bytes are read as {} files, or other ones", sizes, got.size());
  }
  return "";
}

std::string damaged_archives_are_refused() {
  Dice dice(6);
  for (int round = 0; round < 24; ++round) {
    const std::vector<PackedFile> files = drawn_files(dice);
    const std::string tar = tar_of(dice, files), whole = compressed(dice, tar);
    const size_t blocks = tar.size() / kTarBlock - 2;  // those that close it aside
    const size_t kept = dice.one_in(2) ? dice.below(blocks + 1) * kTarBlock : dice.below(blocks * kTarBlock);
    if (raised_by([&] { (void)files_in(compressed(dice, tar.substr(0, kept))); }).empty())
      return format("{} of {} bytes of an archive are accepted", kept, tar.size());
    const size_t arrived = dice.below(whole.size() - 1);
    if (raised_by([&] { (void)files_in(whole.substr(0, arrived)); }).empty())
      return format("{} of {} bytes of a compressed archive are accepted", arrived, whole.size());
    std::string changed = tar;
    const size_t at = dice.below(148);  // of the first header
    changed[at] = char(changed[at] + 1 + char(dice.below(200)));
    if (raised_by([&] { (void)files_in(compressed(dice, changed)); }).empty())
      return format("byte {} of a header is changed, and the archive is accepted", at);
  }
  return "";
}
}  // namespace

Calibrations calibrations_of_archives() {
  return {
      {"archives_hold_their_files",
       "An archive gives back the files that were put into it, whatever their sizes and names, the spelling "
       "of its numbers and its frames, of which the last one may have been flushed and not ended.",
       guarded<archives_hold_their_files>},
      {"damaged_archives_are_refused",
       "An archive that ends early, wherever, or has another byte in a header is refused.",
       guarded<damaged_archives_are_refused>},
  };
}
#else
Calibrations calibrations_of_archives() { return {}; }
#endif

}  // namespace lamella::tools
