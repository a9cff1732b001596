// Raising: the message, then what dispatch knows of the live transforms.
#include "lamella/core/check.h"

#include <utility>

#include "lamella/core/error_watch.h"

namespace lamella {

std::string_view name(ErrorCode code) {
  static constexpr std::string_view kNames[] = {"shape",
                                                "dtype",
                                                "device",
                                                "dim_out_of_range",
                                                "index_out_of_range",
                                                "value",
                                                "broadcast",
                                                "overlap",
                                                "overflow",
                                                "storage",
                                                "schema",
                                                "unknown_operator",
                                                "no_kernel",
                                                "not_differentiable",
                                                "level",
                                                "level_limit",
                                                "escaped_wrapper",
                                                "mapped_size",
                                                "randomness",
                                                "undefined",
                                                "out_of_memory",
                                                "usage",
                                                "internal"};
  return kNames[int(code)];
}

namespace {
thread_local constinit ErrorWatcher error_watcher = nullptr;
}

WatchErrors::WatchErrors(ErrorWatcher watcher) : saved_(std::exchange(error_watcher, watcher)) {}
WatchErrors::~WatchErrors() { error_watcher = saved_; }

namespace {
std::string sentence(const Error::Parts& p) {
  return (p.op.empty() ? std::string() : p.op + ": ") + p.text + p.levels;
}
}  // namespace

Error::Error(ErrorCode code, Parts parts)
    : std::runtime_error(sentence(parts)),
      code_(code),
      parts_(std::make_shared<const Parts>(std::move(parts))) {}

Error Error::by(std::string_view op, std::string_view argument) const {
  Parts p = *parts_;
  p.op = op;
  p.argument = argument;
  return {code_, std::move(p)};
}

Error Error::within(std::string_view op) const {
  Parts p = *parts_;
  if (!p.op.empty()) {
    p.text = p.op + ": " + p.text;
    p.argument.clear();  // it is not one of this operator's
  }
  p.op = op;
  return {code_, std::move(p)};
}

Error Error::noted(std::string_view more) const {
  Parts p = *parts_;
  p.levels += more;
  return {code_, std::move(p)};
}

namespace detail {
std::string (*error_context)() = nullptr;

namespace {
/// The text from `at` on, with `values` in its holes from `hole` on.
std::string filled_from(const Wording& w, std::initializer_list<Shown> values, size_t at, int hole) {
  std::string out;
  for (const Shown* v = values.begin() + hole; v != values.end(); ++v) {
    const size_t next = w.text.find("{}", at);
    if (next == w.text.npos) break;  // compilers that count holes only when the text is shown
    out += w.text.substr(at, next - at);
    out += v->text;
    at = next + 2;
  }
  return out += w.text.substr(at);
}
std::string part(const Wording& w, std::initializer_list<Shown> values, const Wording::Part& p) {
  const std::string_view text = w.text.substr(p.begin, p.length);
  if (p.hole < 0) return std::string(text);
  const Shown& v = values.begin()[p.hole];
  if (text.size() > 2) return std::string(text.substr(0, text.size() - 2)) + v.text;
  return v.is_text ? v.text : v.argument;
}
/// What the text begins with, or else the first value that says it.
std::string argument_of(const Wording& w, std::initializer_list<Shown> values) {
  std::string name = part(w, values, w.argument);
  for (const Shown& v : values)
    if (name.empty()) name = v.argument;
  return name;
}
}  // namespace

std::string filled(const Wording& w, std::initializer_list<Shown> values) {
  return filled_from(w, values, 0, 0);
}

void raise(ErrorCode code, const Wording& w, std::initializer_list<Shown> values, std::any reason) {
  Error::Parts parts{part(w, values, w.op), argument_of(w, values), {}, {}, std::move(reason)};
  const bool named = !parts.op.empty();
  parts.text = filled_from(w, values, named ? w.op.begin + w.op.length + 2 : 0, named && w.op.hole == 0);
  raise(code, std::move(parts));
}

void raise(ErrorCode code, Error::Parts parts) {
  if (error_watcher) error_watcher(code, sentence(parts));
  if (error_context) parts.levels = error_context();
  throw Error(code, std::move(parts));
}

void assertion_failed(const char* condition, const char* file, int line) {
  fail(ErrorCode::Internal, "internal error: {} does not hold at {}:{}; please report it", condition, file,
       line);
}
}  // namespace detail
}  // namespace lamella
