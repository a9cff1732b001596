// Blocks, pending records, and accepting them.
#include "lamella/text/inline_text.h"

#include <algorithm>
#include <charconv>

#include "lamella/core/check.h"

namespace lamella::verify {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0;;) {
    const size_t end = text.find('\n', at);
    out.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return out;
    at = end + 1;
  }
}

size_t blanks_before(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }
bool is_blank(std::string_view line) { return blanks_before(line) == line.size(); }

std::string with_crlf(std::string_view text, bool crlf) {
  std::string out;
  for (const char c : text) out += crlf && c == '\n' ? std::string("\r\n") : std::string(1, c);
  return out;
}

constexpr size_t kColumns = 110;

/// The text as a block's lines: indented, long ones continued after a blank.
std::string block(std::string_view text, size_t indent) {
  std::string out;
  const std::vector<std::string_view> lines = lines_of(text);
  for (size_t k = 0; k < lines.size(); ++k) {
    std::string_view rest = lines[k];
    out += '\n';
    if (!rest.empty() || k + 1 == lines.size()) out += std::string(indent, ' ');
    const size_t room = kColumns - std::min(indent, kColumns / 2) - 6;  // )x"); or a backslash
    while (rest.size() > room) {
      size_t at = rest.rfind(' ', room - 1) + 1;
      if (at == 0 || rest[at] == ' ') at = room;
      while (at > 1 && (uint8_t(rest[at]) & 0xC0) == 0x80) --at;
      out += std::string(rest.substr(0, at)) + "\\\n" + std::string(indent, ' ');
      rest.remove_prefix(at);
    }
    out += rest;
  }
  return out;
}

/// "- old" lines not shared and so on: the longest common subsequence, by the plain table.
struct Edit {
  char mark;
  std::string_view line;
};
std::vector<Edit> edits(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<Edit> out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', a[i++]});
      ++j;
    } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1]))
      out.push_back({'-', a[i++]});
    else out.push_back({'+', b[j++]});
  }
  return out;
}

std::string shown(std::string_view line) {
  std::string out;
  for (const char c : line) {
    const uint8_t b = uint8_t(c);
    if (b >= 0x20 && b != 0x7F) out += c;
    else out += {'\\', char('0' + (b >> 6)), char('0' + (b >> 3 & 7)), char('0' + (b & 7))};
  }
  return out;
}

bool is(std::string_view source, const Token& t, std::string_view text) {
  return source.substr(t.begin, t.end - t.begin) == text;
}

/// The tokens of a call from its name on: index of the closing parenthesis, or 0.
size_t closing(std::string_view source, const std::vector<Token>& tokens, size_t name) {
  int depth = 0;
  for (size_t k = name + 1; k < tokens.size(); ++k) {
    if (tokens[k].kind != TokenKind::Punctuator) continue;
    const char c = source[tokens[k].begin];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) return k;
  }
  return 0;
}

InlineCall call_at(std::string_view source, const std::vector<Token>& tokens, size_t name, size_t close) {
  InlineCall out{tokens[name].line, tokens[close].line, 0, {}, std::string()};
  size_t start = source.rfind('\n', tokens[name].begin);
  start = start == std::string_view::npos ? 0 : start + 1;
  out.indent = blanks_before(source.substr(start, tokens[name].begin - start));
  size_t k = close;
  while (tokens[k - 1].kind == TokenKind::String) --k;
  const bool whole = k < close && is(source, tokens[k - 1], ",");
  if (whole) out.literals.assign(tokens.begin() + long(k), tokens.begin() + long(close));
  if (!whole) out.expected.reset();
  for (const Token& t : out.literals) {
    const auto piece = decode_literal(source.substr(t.begin, t.end - t.begin));
    if (!piece) out.expected.reset();
    if (out.expected) *out.expected += *piece;
  }
  return out;
}

/// The literal in the place of the call's first one; the others go, with what is between them unless that is
/// a comment.
void replace_literals(std::string& source, const InlineCall& call, const std::string& literal) {
  for (size_t k = call.literals.size(); k-- > 1;) {
    const Token& t = call.literals[k];
    const size_t before = call.literals[k - 1].end;
    const bool comment = !is_blank(std::string_view(source).substr(before, t.begin - before)) &&
                         source.find('/', before) < t.begin;
    const size_t from = comment ? t.begin : before;
    source.erase(from, t.end - from);
  }
  const Token& first = call.literals[0];
  source.replace(first.begin, first.end - first.begin, literal);
}

void put(std::string& out, std::string_view name, std::string_view value) {
  out += format("{} {}\n{}\n", name, value.size(), value);
}

class PendingReader {
 public:
  explicit PendingReader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  std::string take(std::string_view name) {
    const size_t end = rest_.find('\n');
    size_t size = 0;
    const std::string_view head = rest_.substr(0, end);
    const bool named = end != std::string_view::npos && head.starts_with(std::string(name) + " ");
    const char* last = head.data() + head.size();
    const bool sized = named && std::from_chars(head.data() + name.size() + 1, last, size).ptr == last;
    LAMELLA_CHECK(sized && size < rest_.size() - end - 1 && rest_[end + 1 + size] == '\n', Schema,
                  "pending record: got \"{}\", expected \"{} SIZE\" and as many bytes",
                  shown(head.substr(0, 40)), name);
    std::string out(rest_.substr(end + 1, size));
    rest_.remove_prefix(end + size + 2);
    return out;
  }
  template <class N> N number(std::string_view name) {
    const std::string text = take(name);
    N out = 0;
    const auto r = std::from_chars(text.data(), text.data() + text.size(), out);
    LAMELLA_CHECK(r.ec == std::errc{} && r.ptr == text.data() + text.size(), Schema,
                  "pending record: {} is \"{}\", expected a number", name, shown(text));
    return out;
  }

 private:
  std::string_view rest_;
};

/// The one readable call that spans the record's line and holds the text the test compared with.
size_t call_of(const std::vector<InlineCall>& calls, const PendingText& p, std::string& refusal) {
  size_t found = calls.size();
  for (size_t k = 0; k < calls.size(); ++k) {
    const bool spans = calls[k].first_line <= p.line && p.line <= calls[k].last_line;
    if (!spans || !calls[k].expected || unindent(*calls[k].expected) != p.expected) continue;
    if (found < calls.size())
      refusal = "two calls in this line hold the same text; put them in lines of their own";
    found = k;
  }
  if (found == calls.size()) refusal = "no call in this line holds the text that the test compared with";
  return found;
}

/// Of records of one file, those of all of it: they have the file to themselves.
AcceptedTexts accept_whole(std::string_view source, std::span<const PendingText> records) {
  AcceptedTexts out{std::string(source), std::vector<std::string>(records.size())};
  const PendingText& first = records[0];
  const bool agree = std::ranges::all_of(
      records, [&](const PendingText& p) { return p.line == first.line && p.got == first.got; });
  for (size_t i = 0; i < records.size(); ++i) {
    if (!agree) out.refused[i] = "runs of this file disagree; run them again";
    else if (records[i].source_hash != source_hash(source))
      out.refused[i] = "the file has changed since the test ran; run it again";
    else out.source = first.got;
  }
  return out;
}

}  // namespace

std::string unindent(std::string_view literal) {
  if (literal.empty() || literal[0] != '\n') return std::string(literal);
  literal.remove_prefix(1);
  if (literal.starts_with("\\\n")) return std::string(literal.substr(2));
  const std::vector<std::string_view> lines = lines_of(literal);
  size_t indent = is_blank(lines.back()) ? lines.back().size() : std::string_view::npos;
  for (const std::string_view line : lines)
    if (!is_blank(line)) indent = std::min(indent, blanks_before(line));
  std::string out;
  for (size_t k = 0; k < lines.size(); ++k) {
    const std::string_view line = lines[k].substr(std::min(indent, lines[k].size()));
    const bool last = k + 1 == lines.size(), goes_on = !last && line.ends_with('\\');
    out += goes_on ? line.substr(0, line.size() - 1) : line;
    if (!last && !goes_on) out += '\n';
  }
  return out;
}

std::string inline_literal(std::string_view text, size_t indent, size_t column, bool crlf) {
  const bool one_line = text.find('\n') == std::string_view::npos;
  if (one_line && column + text.size() + std::string_view("R\"()\");").size() <= kColumns) {
    if (const auto literal = raw_literal(text)) return *literal;
  }
  for (const size_t columns : {indent + 4, size_t(0)}) {
    const std::string lines = block(text, columns);
    const auto literal = raw_literal(lines);
    if (literal && unindent(lines) == text) return with_crlf(*literal, crlf);
  }
  const std::string between = "\n" + std::string(indent + 4, ' ');
  const bool block_like = text.starts_with('\n');
  return with_crlf(escaped_literal((block_like ? "\n\\\n" : "") + std::string(text), between), crlf);
}

std::string line_diff(std::string_view expected, std::string_view got) {
  const std::vector<Edit> all = edits(lines_of(expected), lines_of(got));
  constexpr size_t kAround = 3;
  std::string out;
  bool skipped = false;
  for (size_t k = 0; k < all.size(); ++k) {
    const size_t from = k < kAround ? 0 : k - kAround, to = std::min(all.size(), k + kAround + 1);
    const bool near = std::any_of(all.begin() + long(from), all.begin() + long(to),
                                  [](const Edit& e) { return e.mark != ' '; });
    if (near) out += format("{} {}\n", all[k].mark, shown(all[k].line));
    else if (!skipped) out += "  ...\n";
    skipped = !near;
  }
  return out;
}

std::vector<InlineCall> inline_calls(std::string_view source, std::string_view macro) {
  const std::vector<Token> all = tokenise(source);
  std::vector<Token> tokens;
  std::copy_if(all.begin(), all.end(), std::back_inserter(tokens),
               [](const Token& t) { return !t.in_directive; });
  std::vector<InlineCall> out;
  for (size_t k = 0; k + 1 < tokens.size(); ++k) {
    if (!is(source, tokens[k], macro) || !is(source, tokens[k + 1], "(")) continue;
    if (const size_t close = closing(source, tokens, k)) out.push_back(call_at(source, tokens, k, close));
  }
  return out;
}

uint64_t source_hash(std::string_view text) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ uint8_t(c)) * 0x100000001b3;
  return h;
}

std::string str(const PendingText& p) {
  std::string out;
  put(out, "test", p.test);
  put(out, "file", p.file);
  put(out, "line", std::to_string(p.line));
  put(out, "source_hash", std::to_string(p.source_hash));
  put(out, "expected", p.expected);
  put(out, "got", p.got);
  return out;
}

std::vector<PendingText> parse_pending(std::string_view text) {
  std::vector<PendingText> out;
  for (PendingReader in(text); !in.done();) {
    PendingText p;
    p.test = in.take("test");
    p.file = in.take("file");
    p.line = in.number<int>("line");
    p.source_hash = in.number<uint64_t>("source_hash");
    p.expected = in.take("expected");
    p.got = in.take("got");
    out.push_back(std::move(p));
  }
  return out;
}

AcceptedTexts accept_texts(std::string_view source, std::span<const PendingText> records,
                           std::string_view macro) {
  if (std::ranges::any_of(records, [](const PendingText& p) { return p.line == 0; }))
    return accept_whole(source, records);
  AcceptedTexts out{std::string(source), std::vector<std::string>(records.size())};
  const std::vector<InlineCall> calls = inline_calls(source, macro);
  const uint64_t hash = source_hash(source);
  std::vector<std::vector<size_t>> of_call(calls.size());
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].source_hash != hash) {
      out.refused[i] = "the source has changed since the test ran; run it again";
      continue;
    }
    const size_t call = call_of(calls, records[i], out.refused[i]);
    if (out.refused[i].empty()) of_call[call].push_back(i);
  }
  const bool crlf = source.find("\r\n") != std::string_view::npos;
  std::vector<size_t> order;
  for (size_t k = 0; k < calls.size(); ++k)
    if (!of_call[k].empty()) order.push_back(k);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return calls[a].literals[0].begin > calls[b].literals[0].begin; });
  for (const size_t k : order) {
    const std::string& got = records[of_call[k][0]].got;
    const bool agree =
        std::all_of(of_call[k].begin(), of_call[k].end(), [&](size_t i) { return records[i].got == got; });
    for (const size_t i : of_call[k])
      if (!agree) out.refused[i] = "runs of this line disagree; give each text a line of its own";
    const size_t at = calls[k].literals[0].begin;
    const size_t column = at - std::min(at, source.rfind('\n', at) + 1);
    if (agree) replace_literals(out.source, calls[k], inline_literal(got, calls[k].indent, column, crlf));
  }
  return out;
}

}  // namespace lamella::verify
