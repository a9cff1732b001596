// Reports and verdicts as text: records of length-prefixed text.
#include "lamella/verify/run/wire.h"

#include <charconv>
#include <sstream>

namespace lamella::verify {

void put(std::string& out, const std::string& s) {
  char size[24];
  char* const end = std::to_chars(size, size + sizeof size, s.size()).ptr;
  *end = ':';
  out.append(size, size_t(end + 1 - size)).append(s);
}

namespace {
/// The texts of a message, one after the other.
struct Reader {
  const std::string& text;
  size_t at = 0;
  std::string next() {
    const size_t colon = text.find(':', at);
    const size_t n = std::stoul(text.substr(at, colon - at));
    at = colon + 1 + n;
    return text.substr(colon + 1, n);
  }
  FailureKind kind() {
    const auto what = What(std::stoi(next()));
    return {what, next()};
  }
};
}  // namespace

static void put(std::string& out, const FailureKind& kind) {
  put(out, std::to_string(int(kind.what))), put(out, kind.about);
}

std::string encode(const Report& r) {
  std::string out;
  put(out, std::to_string(r.tallies.size()));
  for (const auto& [key, t] : r.tallies) {
    put(out, key.first), put(out, key.second);
    std::string numbers;  // by hand: a snapshot a second has thousands of them
    for (const uint64_t n : {t.cases, t.failures, t.discards, t.deep}) numbers += std::to_string(n) + ' ';
    put(out, numbers + std::to_string(t.seconds));
    put(out, t.strata.bytes());
  }
  put(out, std::to_string(r.failures.size()));
  for (const Failure& f : r.failures) {
    put(out, f.op), put(out, f.law), put(out, f.message), put(out, f.program),
        put(out, std::to_string(f.depth));
    put(out, f.kind), put(out, f.blob), put(out, f.free);
    put(out, format("{} {} {} {} {} {} {}", int(f.flaky), f.executions, f.milliseconds, f.index, f.process,
                    f.ran, f.checks));
  }
  put(out, std::to_string(r.coverage.size()));
  for (const auto& [op, c] : r.coverage) put(out, op), put(out, c.text());
  put(out, std::to_string(r.counts.size()));
  for (const auto& [law, counted] : r.counts) {
    put(out, law), put(out, std::to_string(counted.size()));
    for (const auto& [what, n] : counted) put(out, what), put(out, std::to_string(n));
  }
  put(out, r.branches.bytes());
  put(out, std::to_string(r.seconds));
  return out;
}

Report decode_report(const std::string& text) {
  Reader in{text};
  Report r;
  for (size_t n = std::stoul(in.next()); n > 0; --n) {
    const std::string op = in.next(), law = in.next();
    std::istringstream numbers(in.next());
    Tally& t = r.tallies[{op, law}];
    numbers >> t.cases >> t.failures >> t.discards >> t.deep >> t.seconds;
    t.strata = Strata::parse(in.next());
  }
  for (size_t n = std::stoul(in.next()); n > 0; --n) {
    Failure f;
    f.op = in.next(), f.law = in.next(), f.message = in.next(), f.program = in.next();
    f.depth = std::stoi(in.next());
    f.kind = in.kind(), f.blob = in.next(), f.free = in.next();
    std::istringstream(in.next()) >> f.flaky >> f.executions >> f.milliseconds >> f.index >> f.process >>
        f.ran >> f.checks;
    r.failures.push_back(std::move(f));
  }
  for (size_t n = std::stoul(in.next()); n > 0; --n) {
    const std::string op = in.next();
    r.coverage[op] = Coverage::parse(in.next());
  }
  for (size_t n = std::stoul(in.next()); n > 0; --n) {
    Counts& counted = r.counts[in.next()];
    for (size_t k = std::stoul(in.next()); k > 0; --k) {
      const std::string what = in.next();
      counted[what] = std::stoull(in.next());
    }
  }
  r.branches = Branches::parse(in.next());
  r.seconds = std::stod(in.next());
  return r;
}

std::string encode(const Verdict& v) {
  std::string out;
  put(out, format("{} {} {}", int(v.kind), v.depth, v.used));
  put(out, v.message), put(out, v.program), put(out, v.failure);
  for (const std::string& p : v.partners) put(out, p);
  return out;
}

Verdict decode_verdict(const std::string& text) {
  Reader in{text};
  Verdict v;
  int kind = 0;
  std::istringstream(in.next()) >> kind >> v.depth >> v.used;
  v.kind = Verdict::Kind(kind);
  v.message = in.next(), v.program = in.next(), v.failure = in.kind();
  while (in.at < text.size()) v.partners.push_back(in.next());
  return v;
}

}  // namespace lamella::verify
