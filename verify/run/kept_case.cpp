// Keeping a failing case, its file, and playing it.
#include "lamella/verify/run/kept_case.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/mman.h>

#include "lamella/dispatch/table.h"
#include "lamella/verify/run/apart.h"

namespace lamella::verify {

namespace {
const Law& law_of(std::string_view id) {
  const Law* const law = find_law(id);
  LAMELLA_CHECK(law, Value, "replay: there is no law \"{}\"", std::string(id));
  return *law;
}
const Op& op_of(std::string_view name) {
  const Op* const op = OpTable::current().find(name);
  LAMELLA_CHECK(op && op->base->samples, Value, "replay: there is no operator \"{}\" with samples",
                std::string(name));
  return *op->base;
}

/// Lines in memory that a process shares with the one it has started: they outlive its end.
class SharedLines final : public AnswerSink {
 public:
  static constexpr size_t kRoom = size_t{1} << 28;  // of addresses: pages come as they are written
  SharedLines()
      : page_(::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                     0)) {
    LAMELLA_CHECK(page_ != MAP_FAILED, Usage, "verify: no memory for the answers of a case");
  }
  SharedLines(const SharedLines&) = delete;
  ~SharedLines() { ::munmap(page_, kRoom); }

  void begin() override { used() = 0; }
  void note(std::string_view line) override {
    LAMELLA_CHECK(used() + line.size() + 1 + sizeof(uint64_t) < kRoom, Value,
                  "verify: the answers of a case are more than 2^28 bytes");
    char* const to = text() + used();
    std::memcpy(to, line.data(), line.size());
    to[line.size()] = '\n';
    used() += line.size() + 1;
  }
  std::string lines() { return {text(), used()}; }

 private:
  uint64_t& used() { return *static_cast<uint64_t*>(page_); }
  char* text() { return static_cast<char*>(page_) + sizeof(uint64_t); }
  void* page_;
};

/// Likewise in one string: its memory is there before the check, which counts what it leaves.
class OwnLines final : public AnswerSink {
 public:
  OwnLines() { text.reserve(4096); }
  void begin() override { text.clear(); }
  void note(std::string_view line) override { text.append(line).push_back('\n'); }
  std::string text;
};

std::vector<Answer> answers_of(const std::string& lines) {
  std::vector<Answer> out;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) out.push_back(answer_in(line));
  return out;
}

KeptCase kept_of(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding,
                 const std::string& lines, const Verdict& v) {
  return {std::string(law.id),
          op.name,
          decoding.depth,
          {answers_of(lines), guard_of(choices, decoding), v.kind == Verdict::Fail}};
}

constexpr double kPatience = 10;  ///< processor seconds
constexpr std::string_view kSides[] = {"none", "end", "begin", "blocks"};
constexpr std::string_view kSimplest = "and the simplest";
}  // namespace

KeptCase kept(const Record& r) {
  const Law& law = law_of(r.law);
  const Op& op = op_of(r.op);
  SharedLines lines;
  Decoding decoding = r.decoding;
  decoding.sink = &lines;
  const Verdict v = check_apart([&] { return run_check(law, op, r.choices, decoding); }, kPatience);
  return kept_of(law, op, r.choices, decoding, lines.lines(), v);
}

Noted noted(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding) {
  OwnLines lines;
  Decoding telling = decoding;
  telling.sink = &lines;
  Verdict v = run_check(law, op, choices, telling);
  KeptCase kept = kept_of(law, op, choices, decoding, lines.text, v);
  return {std::move(kept), std::move(v)};
}

std::string to_file_text(const KeptCase& c, const std::string& message, const std::string& program) {
  std::string out;
  std::istringstream lines(message + "\n\n" + program);
  for (std::string line; std::getline(lines, line);) out += line.empty() ? "#\n" : "# " + line + "\n";
  out += format("law {}\noperator {}\ndepth {}\n", c.law, c.op, c.depth);
  if (c.answers.guard != GuardSide::None) out += format("guard {}\n", kSides[size_t(c.answers.guard)]);
  out += format("answers {}{}{}\n", c.answers.all.size(), c.answers.open ? " " : "",
                c.answers.open ? kSimplest : "");
  for (const Answer& a : c.answers.all) {
    out += a.kind + (a.text.empty() ? "" : " ") + a.text;
    out += (a.what.empty() ? "" : "  # ") + a.what + "\n";
  }
  return out;
}

namespace {
/// The lines before the answers, and how many answers they announce.
class Reading {
 public:
  explicit Reading(const std::string& file) : file_(file) {}

  void take(const std::string& text) {
    ++line_;
    if (left_ == 0 && (text.empty() || text.starts_with('#'))) return;
    if (left_ == 0) return take_key(answer_in(text));
    c_.answers.all.push_back(answer_in(text));
    c_.answers.all.back().line = line_;
    --left_;
  }
  KeptCase done() {
    for (const auto& [key, text] : {std::pair("law", &c_.law), std::pair("operator", &c_.op)})
      LAMELLA_CHECK(!text->empty(), Value, "{}: there is no line \"{} …\"", file_, key);
    LAMELLA_CHECK(said_ >= 0, Value, "{}: there is no line \"answers N\"", file_);
    LAMELLA_CHECK(left_ == 0, Value, "{}: {} answers; expected the {} that it says", file_,
                  c_.answers.all.size(), said_);
    return std::move(c_);
  }

 private:
  void take_key(const Answer& a) {
    LAMELLA_CHECK(a.kind != "choices" && a.kind != "version", Value,
                  "{}: line {} is of choices, which only the decoder of their time reads; expected a line "
                  "\"answers N\" and answers",
                  file_, line_);
    LAMELLA_CHECK(said_ < 0, Value, "{}: line {} is \"{} {}\", behind the {} answers that it says", file_,
                  line_, a.kind, a.text.substr(0, 40), said_);
    if (a.kind == "law") c_.law = a.text;
    else if (a.kind == "operator") c_.op = a.text;
    else if (a.kind == "depth") c_.depth = int(number(a.text));
    else if (a.kind == "guard") c_.answers.guard = side(a.text);
    else if (a.kind == "answers") take_count(a.text);
    else
      fail(ErrorCode::Value, "{}: line {} is \"{} {}\"; expected law, operator, depth, guard or answers",
           file_, line_, a.kind, a.text.substr(0, 40));
  }
  void take_count(std::string text) {
    c_.answers.open = text.ends_with(kSimplest);
    if (c_.answers.open) text = text.substr(0, text.find(' '));
    said_ = left_ = number(text);
  }
  int64_t number(const std::string& text) const {
    size_t used = 0;
    int64_t n = -1;
    try {
      n = std::stoll(text, &used);
    } catch (const std::exception&) {}  // said below
    LAMELLA_CHECK(n >= 0 && used == text.size(), Value, "{}: line {} has \"{}\"; expected a number", file_,
                  line_, text.substr(0, 40));
    return n;
  }
  GuardSide side(const std::string& text) const {
    const auto* const at = std::ranges::find(kSides, text);
    LAMELLA_CHECK(at != std::end(kSides), Value,
                  "{}: line {} guards \"{}\"; expected none, end, begin or blocks", file_, line_,
                  text.substr(0, 40));
    return GuardSide(at - kSides);
  }

  const std::string& file_;
  KeptCase c_;
  int line_ = 0;
  int64_t said_ = -1, left_ = 0;
};
}  // namespace

KeptCase kept_case_in(const std::string& text, const std::string& file) {
  Reading reading(file);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) reading.take(line);
  return reading.done();
}

KeptCase read_kept_case(const std::filesystem::path& path) {
  std::error_code ignored;  // a folder cannot be read, and a pipe might be waited for
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, ignored)) file.open(path);
  LAMELLA_CHECK(file.is_open(), Value, "cannot read {}", path.string());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return kept_case_in(text, path.filename().string());
}

std::vector<std::filesystem::path> record_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> out;
  if (!std::filesystem::is_directory(directory)) return out;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

Verdict replay(const KeptCase& c) {
  Played played{c.answers};
  Decoding decoding{.depth = c.depth};
  decoding.played = &played;
  Verdict v = run_check(law_of(c.law), op_of(c.op), {}, decoding);
  LAMELLA_CHECK(played.wrong.empty(), Value, "{}", played.wrong);
  return v;
}

std::string cpp_plain_call(const KeptCase& c) {
  Played played{c.answers};
  Decoding decoding{.depth = c.depth};
  decoding.played = &played;
  return cpp_plain_call(law_of(c.law), op_of(c.op), {}, decoding);
}

}  // namespace lamella::verify
