// Records of cases: nothing is lost on the way to a blob, to a file, to another process and back.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/run/apart.h"
#include "lamella/verify/run/record.h"
#include "lamella/verify/run/wire.h"

namespace lamella::verify {

namespace {

/// Words about every power of two, which is where an encoding may end.
Choices words_of_all_lengths() {
  Choices out{0};
  for (int k = 0; k < 32; ++k)
    for (const uint32_t w : {(1u << k) - 1, 1u << k, (1u << k) + 1, ~(1u << k)}) out.push_back(w);
  out.push_back(5);  // words behind large ones
  return out;
}

std::vector<Record> known_records() {
  std::vector<Record> out;
  for (int version = 1; version <= kDecoderVersion; ++version) {
    Record r{"captures", "add", words_of_all_lengths(), {}};
    r.decoding.version = version;
    r.decoding.depth = 3;
    if (version >= 5) r.decoding.depth = version, r.decoding.partners = {"mul", "sum"};
    out.push_back(r);
  }
  return out;
}

std::string difference_of(const Record& got, const Record& want) {
  if (got.law != want.law || got.op != want.op) return "law or operator differ";
  for (size_t k = 0; k < std::min(got.choices.size(), want.choices.size()); ++k)
    if (got.choices[k] != want.choices[k])
      return format("word {} is {}, was {}", k, got.choices[k], want.choices[k]);
  if (got.choices.size() != want.choices.size())
    return format("{} words, were {}", got.choices.size(), want.choices.size());
  if (got.decoding.version != want.decoding.version || got.decoding.depth != want.decoding.depth)
    return format("version {} and depth {}, were {} and {}", got.decoding.version, got.decoding.depth,
                  want.decoding.version, want.decoding.depth);
  return got.decoding.partners == want.decoding.partners ? "" : "partners differ";
}

std::string blobs_are_whole() {
  for (const Record& r : known_records())
    if (const std::string d = difference_of(from_blob(to_blob(r)), r); !d.empty())
      return format("version {}: ", r.decoding.version) + d;
  return "";
}

std::string files_are_whole() {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / format("lamella-calibration-{}.txt", ::getpid());
  std::string wrong;
  for (const Record& r : known_records()) {
    std::ofstream(file) << to_file_text(r, "law of words\nchoices 1 2 3", "int x;\n");
    const std::string d = difference_of(read_record(file), r);
    if (!d.empty() && wrong.empty()) wrong = format("version {}: ", r.decoding.version) + d;
  }
  std::filesystem::remove(file);
  return wrong;
}

/// Every letter, changed into every other one.
std::string damage_is_refused() {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const Record r{"captures", "add", {1, 2, 300, 70000, 1u << 31}, {}};
  const std::string good = to_blob(r);
  int tried = 0, accepted = 0;
  for (size_t at = good.find('.') + 1; at < good.size(); ++at)
    for (const char c : kDigits) {
      if (c == good[at]) continue;
      std::string bad = good;
      bad[at] = c;
      ++tried;
      try {
        accepted += !difference_of(from_blob(bad), r).empty();
      } catch (const Error&) {}
    }
  return accepted > 0 ? format("{} of {} damaged blobs are read as other cases", accepted, tried) : "";
}

/// What the law below saw of its case.
Decoding seen;
Verdict sees_its_decoding(Case& c) {
  seen = {c.draw.options().version, c.draw.options().depth, c.given_partners};
  return Verdict::pass();
}

/// In a process of its own: it has one law more.
std::string replays_decode_as_recorded() {
  const Verdict v = check_apart(
      [] {
        add_law(law_that(sees_its_decoding, "calibration_of_replays"));
        for (Record r : known_records()) {
          r.law = "calibration_of_replays", r.op = smooth_ones().at(0)->name;
          (void)replay(from_blob(to_blob(r)));
          if (seen.version != r.decoding.version || seen.depth != r.decoding.depth ||
              seen.partners != r.decoding.partners)
            return Verdict::fail(format("a case of version {} and depth {} is replayed as one of {} and {}",
                                        r.decoding.version, r.decoding.depth, seen.version, seen.depth));
        }
        return Verdict::pass();
      },
      60);
  return v.kind == Verdict::Fail ? v.message : "";
}

std::string verdicts_travel() {
  for (const Verdict::Kind kind : {Verdict::Pass, Verdict::Discard, Verdict::Fail}) {
    Verdict v{kind, "12:a message\nof lines", "int x = 3;\n", 3, 17, {"mul", "sum"}, {What::Raised, "shape"}};
    const Verdict back = decode_verdict(encode(v));
    if (back.kind != v.kind || back.message != v.message || back.program != v.program || back.depth != 3 ||
        back.used != 17 || back.partners != v.partners || back.failure != v.failure)
      return format("a verdict of kind {} arrives as one of kind {}", int(kind), int(back.kind));
  }
  return "";
}

}  // namespace

void add_record_calibrations(std::vector<Calibration>& all) {
  all.push_back({"blobs_are_whole",
                 "A record read back from its blob is the one that was written, whatever its words.",
                 blobs_are_whole});
  all.push_back({"files_are_whole",
                 "A record read back from its file is the one that was written, whatever its words.",
                 files_are_whole});
  all.push_back({"damage_is_refused", "A blob with one letter changed is no other case.", damage_is_refused});
  all.push_back({"replays_decode_as_recorded",
                 "A record is replayed with its own version, depth and partners.",
                 replays_decode_as_recorded});
  all.push_back({"verdicts_travel", "A verdict that another process found arrives whole.", verdicts_travel});
}

}  // namespace lamella::verify
