// Records of cases: nothing is lost on the way to a blob, to a file, to another process and back.
#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/run/apart.h"
#include "lamella/verify/run/kept_case.h"
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
  for (int depth = 0; depth <= 6; ++depth) {
    Record r{"captures", "add", words_of_all_lengths(), {}};
    r.decoding.depth = depth;
    if (depth % 2) r.decoding.partners = {"mul", "sum"};
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
  if (got.decoding.depth != want.decoding.depth)
    return format("depth {}, was {}", got.decoding.depth, want.decoding.depth);
  return got.decoding.partners == want.decoding.partners ? "" : "partners differ";
}

std::string blobs_are_whole() {
  for (const Record& r : known_records())
    if (const std::string d = difference_of(from_blob(to_blob(r)), r); !d.empty())
      return format("depth {}: ", r.decoding.depth) + d;
  return "";
}

/// Numbers at the ends of their range, every kind of tensor, and what shares memory.
KeptCase known_case() {
  KeptCase c{"captures", "add", 6, {}};
  c.answers.guard = GuardSide::Begin, c.answers.open = true;
  for (const uint32_t w : words_of_all_lengths()) c.answers.all.push_back({"word", std::to_string(w)});
  for (const int64_t n : {INT64_MIN, int64_t{-1}, INT64_MAX})
    c.answers.all.push_back({"attribute", std::to_string(n)});
  c.answers.all.push_back({"dim", "-1", 0, "where it is # mapped"});
  TensorWriter writer;
  for (const DType d : {DType::F64, DType::C64, DType::BF16, DType::Bool})
    for (const Dims& sizes : {Dims{2, 3}, Dims{}, Dims{0, 2}}) {
      const Tensor t = counted_up(sizes, d);
      for (const Tensor& x : {t, make_view_unchecked(t, Dims{}, Dims{}, 0), t})
        if (t.numel() > 0) c.answers.all.push_back({"tensor", writer.text(x)});
    }
  return c;
}

std::string difference_of(const KeptCase& got, const KeptCase& want) {
  if (got.law != want.law || got.op != want.op || got.depth != want.depth)
    return "law, operator or depth differ";
  if (got.answers.guard != want.answers.guard || got.answers.open != want.answers.open)
    return "guard or what follows differ";
  for (size_t k = 0; k < std::min(got.answers.all.size(), want.answers.all.size()); ++k) {
    const Answer &a = got.answers.all[k], &b = want.answers.all[k];
    if (a.kind != b.kind || a.text != b.text || a.what != b.what)
      return format("answer {} is \"{} {}\", was \"{} {}\"", k, a.kind, a.text, b.kind, b.text);
  }
  return got.answers.all.size() == want.answers.all.size() ? "" : "another number of answers";
}

std::string files_are_whole() {
  const KeptCase c = known_case();
  const std::string text = to_file_text(c, "law of words\nchoices 1 2 3", "int x;\n");
  return difference_of(kept_case_in(text, "file"), c);
}

/// Cases of laws that draw whatever there is: what is noted of one that is played is what was played.
std::string kept_cases_play_alike() {
  for (const char* const id : {"vmap_equals_loop", "chains_under_vmap", "calls_at_once", "stacks"})
    for (const Op* op : smooth_ones()) {
      const Law& law = *find_law(id);
      if (!law.applies(*op)) continue;
      for (uint64_t i = 0; i < 6; ++i) {
        const Noted first = noted(law, *op, choices_of(9, law, *op, i));
        Played played{first.kept.answers};
        Decoding decoding;
        decoding.played = &played;
        const Noted again = noted(law, *op, {}, decoding);
        if (!played.wrong.empty()) return played.wrong;
        if (const std::string d = difference_of(again.kept, first.kept); !d.empty())
          return format("{} of {}, case {}: ", id, op->name, i) + d;
      }
    }
  return "";
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

/// How the arguments of a case lie in memory, and what lies there.
std::string memory_seen;
int shared_seen = 0;
Verdict sees_memory(Case& c) {
  memory_seen.clear();
  Tensors all;
  for (const Case::Slot& slot : c.tensors()) all.push_back(c.at(slot));
  for (const Tensor& t : all) {
    const Storage& s = *t.impl()->storage;
    memory_seen += type_str(t) + format("{} {} {} ", Dims(t.strides()), t.impl()->offset, s.nbytes) +
                   std::string(static_cast<const char*>(s.data), s.nbytes);
    for (const Tensor& other : all) {
      memory_seen += t.impl() == other.impl() ? '=' : t.shares_storage(other) ? '~' : '.';
      shared_seen += &t != &other && t.shares_storage(other);
    }
  }
  return Verdict::pass();
}

std::string kept_memory_is_whole() {
  const Law law = law_that(sees_memory, "calibration_of_memory");
  shared_seen = 0;
  for (const char* const name : {"mul", "where", "stack", "gather"})
    for (uint64_t i = 0; i < 150; ++i) {
      const Op& op = *OpTable::current().find(name);
      const KeptCase first = noted(law, op, choices_of(9, law, op, i)).kept;
      const std::string drawn = std::exchange(memory_seen, "");
      Played played{kept_case_in(to_file_text(first, "", ""), "file").answers};
      Decoding decoding;
      decoding.played = &played;
      (void)run_check(law, op, {}, decoding);
      if (!played.wrong.empty()) return played.wrong;
      if (memory_seen != drawn) return format("{}, case {}: arguments lie in memory in another way", name, i);
    }
  return shared_seen > 0 ? "" : "no case has arguments that share memory";
}

/// What the law below saw of its case.
int depth_seen = 0;
std::vector<std::string> partners_seen;
Verdict sees_its_decoding(Case& c) {
  depth_seen = c.draw.options().depth, partners_seen = c.given_partners;
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
          if (depth_seen != r.decoding.depth || partners_seen != r.decoding.partners)
            return Verdict::fail(
                format("a case of depth {} is replayed as one of {}", r.decoding.depth, depth_seen));
          depth_seen = -1;
          (void)replay(kept(r));
          if (depth_seen != r.decoding.depth)
            return Verdict::fail(
                format("a kept case of depth {} is replayed as one of {}", r.decoding.depth, depth_seen));
        }
        return Verdict::pass();
      },
      60);
  return v.kind == Verdict::Fail ? v.message : "";
}

/// A blob whose words gave something else, and one that does not say what they gave.
std::string other_meanings_are_refused() {
  const Record r{"captures", "add", {1, 2, 300}, {}};
  for (const uint32_t change : {0u, 1u, 1u << 31, 0x5A5A5A5Au}) {
    Record other = from_blob(to_blob(r));
    *other.meaning ^= change;
    bool refused = false;
    try {
      (void)replay(from_blob(to_blob(other)));
    } catch (const Error&) { refused = true; }
    if (refused != (change != 0))
      return format("a blob whose words give {} is {}", change ? "something else" : "what they gave",
                    refused ? "refused" : "replayed");
  }
  Record words = r;
  words.choices[0] = 29;  // the fourth dtype, not the first
  if (meaning_of(words) == meaning_of(r)) return "other words have the same meaning";
  for (const char* const older : {"LD18.", "LC2.", "LE"}) try {
      (void)from_blob(older + to_blob(r).substr(3));
      return format("a blob that begins with {} is read", older);
    } catch (const Error&) {}
  return "";
}

/// A file with one answer more than the law asks for today, or one fewer.
std::string other_answers_are_refused() {
  const Law& law = *find_law("calls_repeat");
  for (const Op* op : smooth_ones())
    for (const bool more : {true, false}) {
      KeptCase c = noted(law, *op, choices_of(9, law, *op, 5)).kept;
      if (more) c.answers.all.push_back({"word", "7"});
      else c.answers.all.pop_back();
      try {
        if (replay(c).kind == Verdict::Pass)
          return format("{}: a case with one answer too {} passes", op->name, more ? "many" : "few");
      } catch (const Error&) {}
    }
  return "";
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
                 "A case read back from its file is the one that was written, whatever its answers.",
                 files_are_whole});
  all.push_back({"damage_is_refused", "A blob with one letter changed is no other case.", damage_is_refused});
  all.push_back({"replays_decode_as_recorded",
                 "A record is replayed with its own depth and partners, from its file too.",
                 replays_decode_as_recorded});
  all.push_back({"kept_cases_play_alike",
                 "What is noted of a case that is played from its answers is what was played.",
                 kept_cases_play_alike});
  all.push_back({"kept_memory_is_whole",
                 "Arguments that are played lie in memory as they were drawn, and share it as they did.",
                 kept_memory_is_whole});
  all.push_back({"other_meanings_are_refused", "A blob whose words gave something else is no case.",
                 other_meanings_are_refused});
  all.push_back({"other_answers_are_refused",
                 "A kept case with more answers than its law asks for, or fewer, is no case.",
                 other_answers_are_refused});
  all.push_back({"verdicts_travel", "A verdict that another process found arrives whole.", verdicts_travel});
}

}  // namespace lamella::verify
