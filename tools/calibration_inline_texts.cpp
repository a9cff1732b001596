// Questions about `lamella accept`: which texts get into sources, which stay pending, what a dialogue means.
#include <algorithm>
#include <iostream>
#include <sstream>

#include "lamella/text/inline_text.h"

#include "calibration_aids.h"
#include "calibrations.h"
#include "commands.h"

namespace lamella::tools {

namespace {
namespace fs = std::filesystem;
using verify::PendingText;

/// A source with calls in lines of their own: what stands between their literals, and what these hold.
struct DrawnSource {
  std::vector<std::string> between;  ///< one more than there are texts
  std::vector<std::string> texts, literals;
  bool crlf;

  std::string source() const {
    std::string lines, out;
    for (size_t k = 0; k < texts.size(); ++k) lines += between[k] + literals[k];
    for (const char c : lines + between.back())
      out += crlf && c == '\n' ? std::string("\r\n") : std::string(1, c);
    return out;
  }
};

std::string drawn_lines(Dice& dice) {
  static const std::vector<std::string> lines = {"",           "a",   "  b c", "f32[2,3]",
                                                 "\"quoted\"", ")\"", "tab\t", "\\"};
  std::string out = "text " + std::to_string(dice.below(1000000));
  for (uint64_t n = dice.below(5); n > 0; --n) out += "\n" + dice.of(lines);
  return out;
}

DrawnSource drawn_source(Dice& dice) {
  DrawnSource out{{"// A test.\nvoid test() {\n"}, {}, {}, dice.one_in(2)};
  for (size_t k = 0; k < 1 + dice.below(4); ++k) {
    out.between.back() += format("  EXPECT_INLINE(f({}), ", k);
    const std::string text = format("old {}", k);
    const bool block = dice.one_in(2);
    out.texts.push_back(block ? text + "\nmore" : text);
    out.literals.push_back(block            ? "R\"(\n      " + text + "\n      more)\""
                           : dice.one_in(2) ? "\"" + text + "\""
                                            : "R\"(" + text + ")\"");
    out.between.push_back(dice.one_in(3) ? ");  // a comment\n" : ");\n");
  }
  out.between.back() += "}\n";
  return out;
}

/// What the calls of a source hold, as a compiler and unindent() read them.
std::vector<std::string> held(const std::string& source) {
  std::vector<std::string> out;
  for (const verify::InlineCall& c : verify::inline_calls(source, "EXPECT_INLINE"))
    out.push_back(c.expected ? verify::unindent(*c.expected) : "unreadable");
  return out;
}

/// Whether a source is what lies between the literals, with something in their places; and all lines end
/// alike.
std::string damage(const DrawnSource& drawn, const std::string& source) {
  size_t at = 0;
  std::string plain;
  for (size_t k = 0; k < source.size(); ++k) {
    const bool with_cr = k > 0 && source[k - 1] == '\r';
    if (source[k] == '\n' && with_cr != drawn.crlf)
      return drawn.crlf ? "a line among others with CR LF ends in LF" : "a line gets a CR";
    if (source[k] != '\r') plain += source[k];
  }
  for (const std::string& piece : drawn.between) {
    const size_t found = plain.find(piece, at);
    if (found == std::string::npos || (at == 0 && found != 0)) return "what is no literal is changed";
    at = found + piece.size();
  }
  return at == plain.size() ? "" : "what is no literal is changed";
}

/// What a test leaves behind for call `k` of a source.
PendingText pending(const DrawnSource& drawn, const std::string& file, size_t k, std::string got) {
  std::string before;
  for (size_t i = 0; i <= k; ++i) before += drawn.between[i] + (i < k ? drawn.literals[i] : "");
  const int line = 1 + int(std::count(before.begin(), before.end(), '\n'));
  return {"Suite.Test", file, line, verify::source_hash(drawn.source()), drawn.texts[k], std::move(got)};
}

std::string accepted_texts_are_held() {
  Dice dice(15);
  for (int round = 0; round < 150; ++round) {
    const DrawnSource drawn = drawn_source(dice);
    std::vector<std::string> want = drawn.texts;
    std::vector<PendingText> records;
    std::vector<size_t> order;
    for (size_t k = 0; k < want.size(); ++k) order.push_back(k);
    dice.shuffle(order);
    std::vector<bool> wrong;
    for (const size_t k : order) {
      PendingText p = pending(drawn, "a.cpp", k, drawn_lines(dice));
      const uint64_t kind = dice.below(6);
      if (kind == 0) p.source_hash ^= 1 + dice.below(1000);
      else if (kind == 1) p.expected += "?";
      else want[k] = p.got;
      wrong.push_back(kind < 2);
      records.push_back(verify::parse_pending(str(p)).at(0));
    }
    const verify::AcceptedTexts got = verify::accept_texts(drawn.source(), records);
    for (size_t i = 0; i < records.size(); ++i)
      if (got.refused[i].empty() == wrong[i])
        return wrong[i] ? "a text that was compared with another source is accepted" : got.refused[i];
    if (const std::string d = damage(drawn, got.source); !d.empty()) return d;
    const std::vector<std::string> holds = held(got.source);
    if (holds.size() != want.size()) return "another number of calls than before";
    for (size_t k = 0; k < want.size(); ++k)
      if (const std::string d = first_difference(holds[k], want[k]); !d.empty())
        return format("call {} of {}: {}", k, want.size(), d);
  }
  return "";
}

/// A folder of sources and pending texts, and what `lamella accept` must make of it.
struct Dialogue {
  fs::path folder;
  std::vector<DrawnSource> sources;
  std::vector<std::string> files;
  std::vector<PendingText> records;  ///< by file, then by line
  std::vector<bool> stale;

  Dialogue(Dice& dice, const fs::path& in) : folder(in) {
    for (size_t n = 0; n < 1 + dice.below(2); ++n) {
      sources.push_back(drawn_source(dice));
      files.push_back((folder / format("source{}.cpp", n)).string());
      std::string pendings;
      for (size_t k = 0; k < sources[n].texts.size(); ++k) {
        records.push_back(pending(sources[n], files[n], k, drawn_lines(dice)));
        stale.push_back(dice.one_in(4));
        if (stale.back()) ++records.back().source_hash;
        pendings += str(records.back());
      }
      write_plainly(files[n], sources[n].source());
      write_plainly(folder / format("tests{}.pending", n), pendings);
    }
  }

  /// All records that are still pending.
  std::vector<std::string> left() const {
    std::vector<std::string> out;
    for (size_t n = 0; n < files.size(); ++n)
      for (const PendingText& p : verify::parse_pending(read_plainly(folder / format("tests{}.pending", n))))
        out.push_back(str(p));
    return out;
  }

  /// What is wrong when those of `yes` were accepted.
  std::string wrong(const std::vector<bool>& yes) const {
    std::vector<std::string> want;
    for (size_t i = 0; i < records.size(); ++i)
      if (!yes[i] || stale[i]) want.push_back(str(records[i]));
    std::vector<std::string> got = left();
    std::sort(got.begin(), got.end()), std::sort(want.begin(), want.end());
    if (got != want)
      return format("{} of {} texts stay pending, expected {}", got.size(), records.size(), want.size());
    size_t i = 0;
    for (size_t n = 0; n < files.size(); ++n) {
      std::vector<std::string> texts = sources[n].texts;
      for (std::string& t : texts) {
        if (yes[i] && !stale[i]) t = records[i].got;
        ++i;
      }
      if (held(read_plainly(files[n])) != texts) return "a source holds other texts than those accepted";
    }
    return "";
  }
};

/// One run with drawn answers, which may end early; what they mean, plainly.
std::string dialogue_goes_wrong(Dice& dice) {
  const Folder scratch;
  const fs::path folder = scratch.path / "pending";
  fs::create_directory(folder);
  const Dialogue d(dice, folder);
  const bool interactive = !dice.one_in(4), dry = dice.one_in(3);
  std::string script;
  std::vector<bool> yes(d.records.size(), !interactive);
  for (size_t i = 0; interactive && i < yes.size();) {
    const char* answer = dice.of({"y", "y", "y", "n", "what", "", "q", "the end"});
    if (std::string_view(answer) == "the end") break;
    script += answer + std::string("\n");
    if (*answer == 'q') break;
    if (std::string_view(answer) == "y") yes[i++] = true;
    else if (std::string_view(answer) == "n") ++i;
  }
  std::istringstream input(script);
  std::streambuf* const before = std::cin.rdbuf(input.rdbuf());
  std::vector<std::string> words = {"accept", "--pending", folder.string()};
  if (interactive) words.emplace_back("--interactive");
  if (dry) words.emplace_back("--dry-run");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  int status = 0;
  {
    const Caught caught(scratch.path / "output");
    status = main_accept(int(argv.size()), argv.data());
  }
  std::cin.clear();
  std::cin.rdbuf(before);
  bool refused = false;
  for (size_t i = 0; i < yes.size(); ++i) refused |= yes[i] && d.stale[i];
  if (status != int(refused))
    return format("status {} where {} is refused", status, refused ? "a text" : "none");
  if (dry) yes.assign(yes.size(), false);
  std::string wrong = d.wrong(yes);
  if (wrong.empty()) return "";
  return format("{}{}, {} records, answers {}: {}", interactive ? "asked" : "not asked",
                dry ? ", dry run" : "", yes.size(), script, wrong);
}

std::string answers_decide() {
  const auto dialogues = [] {
    Dice dice(16);
    std::string wrong;
    for (int round = 0; round < 30 && wrong.empty(); ++round) wrong = dialogue_goes_wrong(dice);
    return wrong;
  };
  return said_apart(dialogues, 2);  // a dialogue may not end
}
}  // namespace

Calibrations calibrations_of_inline_texts() {
  return {
      {"accepted_texts_are_held",
       "A text that is accepted is what its call holds, in the line ends of its source, whose other bytes "
       "stay; one of another source is refused.",
       guarded<accepted_texts_are_held>},
      {"answers_decide",
       "Of pending texts those answered with yes are accepted, the others stay pending, and a dry run or the "
       "end of the answers changes nothing more.",
       guarded<answers_decide>},
  };
}

}  // namespace lamella::tools
