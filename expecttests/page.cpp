// The text of an operator's page, from its row.
#include "page.h"

#include "lamella/lamella.h"
#include "lamella/verify/text/op_text.h"

#include "arguments.h"
#include "formula.h"

namespace lamella::expect {
namespace {

/// Each line in lines of at most 100 columns, broken at blanks; what goes on is indented by `more`.
std::string wrapped(std::string_view text, size_t more) {
  constexpr size_t kPageColumns = 100;
  std::string out;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    std::string_view rest = text.substr(at, end - at);
    const size_t indent = std::min(rest.find_first_not_of(' '), rest.size());
    for (size_t room = kPageColumns; rest.size() > room; room = kPageColumns - indent - more) {
      size_t blank = rest.rfind(' ', room);
      if (blank == std::string_view::npos || blank <= indent) blank = rest.find(' ', room);
      if (blank == std::string_view::npos) break;
      out += std::string(rest.substr(0, blank)) + "\n" + std::string(indent + more, ' ');
      rest.remove_prefix(blank + 1);
    }
    out += std::string(rest) + "\n";
  }
  return out;
}

/// "head: a, b\n", or nothing.
std::string listed(std::string_view head, const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(between)) + word;
  return out.empty() ? "" : format("{}: {}\n", head, out);
}

std::string forms_of(const Op& op) {
  std::vector<std::string> out;
  for (const char* suffix : {"_", "_out"})
    if (const Op* form = OpTable::current().find(op.name + suffix)) out.push_back(form->name);
  return listed("forms", out, ", ");
}

std::string dtypes_of(const Op& op) {
  std::vector<std::string> out;
  for (const DType d : verify::sampled_dtypes(op)) out.emplace_back(name(d));
  return listed("dtypes", out, " ");
}

std::string at_kinks(AtKinks at) {
  switch (at) {
    case AtKinks::Unstated: return "has kinks";
    case AtKinks::Zero: return "has kinks (the derivative is 0 there)";
    case AtKinks::Shared: return "has kinks (ties share the derivative)";
    case AtKinks::Chosen: return "has kinks (the derivative goes to the elements that are chosen)";
    case AtKinks::Interval: return "has kinks (x's derivative at a bound, high's where bounds meet)";
  }
  return "";
}

/// Those that its forms and schema do not show.
std::string properties_of(const Op& op) {
  std::vector<std::string> out;
  const auto say = [&](Property p, std::string text) {
    if (op.has(p)) out.push_back(std::move(text));
  };
  say(kLinear, "linear");
  say(kKinks, at_kinks(op.at_kinks));
  say(kDiscontinuous, "piecewise constant");
  say(kSymmetricInput, "the first argument is symmetric");
  say(kRandom, "draws random numbers");
  say(kAmbient, "seen by levels that no argument carries");
  say(kValueErrors, "may refuse values");
  say(kUnspecified, "elements are unspecified");
  say(kExactOut, "out= has the result's very dtype");
  say(kAnyDevice, "the same on every device");
  say(kCrosses, "takes tensors of several devices");
  return listed("properties", out, ", ");
}

std::string bound(double x) { return format("{}", x); }

std::string promises_of(const Op& op) {
  const Promises& p = op.promises;
  std::vector<std::string> out;
  const bool low = std::isfinite(p.range.low), high = std::isfinite(p.range.high);
  if (low || high || p.range.low_open || p.range.high_open)
    out.push_back(format("in {}{}, {}{}", p.range.low_open || !low ? "(" : "[", bound(p.range.low),
                         bound(p.range.high), p.range.high_open || !high ? ")" : "]"));
  if (!p.sign_of.empty()) out.push_back(format("the sign of {}", p.sign_of));
  if (p.whole == "always") out.emplace_back("whole numbers");
  else if (!p.whole.empty()) out.push_back(format("whole numbers with {}", p.whole));
  if (p.once) out.emplace_back("rounded once");
  if (p.odd) out.emplace_back("odd");
  if (p.even) out.emplace_back("even");
  if (p.rising) out.emplace_back("rising");
  if (p.falling) out.emplace_back("falling");
  if (p.symmetric) out.emplace_back("symmetric");
  return listed("promises", out, ", ");
}

std::string overflows_of(const Op& op) {
  static constexpr std::string_view kSizes[] = {"", "sums", "products", "powers"};
  const Inside& in = op.overflows_in;
  if (in.size == Inside::Nothing) return "";
  std::string when(kSizes[in.size]);
  if (in.complex) when += ", of complex numbers";
  if (in.argument >= 0) when += ", where " + op.schema.params[size_t(in.argument)].name + " is given";
  return format("may overflow inside ({}): {}\n", when, in.what);
}

std::string numerics_of(const Op& op) {
  const Numerics& n = op.numerics;
  std::vector<std::string> out;
  if (n.additions > 0) out.push_back(format("additions in a row, an input: {}", n.additions));
  if (n.transposed_additions > 0)
    out.push_back(format("additions in a row of derivatives, a result: {}", n.transposed_additions));
  const std::string times = n.times.empty() ? "" : format(", times {}", n.times);
  const std::string_view over = n.over_result ? " over the result, an order more" : "";
  if (n.floor > 0) out.push_back(format("floor of derivatives {}{}{}: {}", n.floor, over, times, n.reason));
  return listed("numerics", out, "; ");
}

/// The operators that calls at depth 1 were of.
class Inner final : public Observer {
 public:
  void on_call(const Frame& f, KeySet, int) override {
    if (depth_++ == 1) names.push_back(f.op->name);
  }
  void on_return(const Frame&) override { --depth_; }
  std::vector<std::string> names;

 private:
  int depth_ = 0;
};

/// "batch: shape class, which calls: bmm\n": all tensors mapped, two lanes; nothing more if that is itself.
std::string batch_of(const Op& op) {
  const std::string kind = "batch: " + verify::batch_text(op);
  const Values args = shown_sample(op);
  Tensors lanes;
  for (const Tensor& t : tensors_of(args)) lanes.push_back(stack(Tensors{t, t}, 0));
  if (op.composite || lanes.empty()) return kind + "\n";
  Inner seen;
  const Function f = [&](const Tensors& ts) {
    const ScopedObserver scope(&seen);
    return call(op, with_tensors(args, ts));
  };
  try {
    vmap(f, VmapOptions{{0}, {0}, Randomness::Different})(lanes);
  } catch (const Error& e) { return kind + ", refused: " + e.text() + "\n"; }
  if (seen.names == std::vector{op.name}) return kind + "\n";
  return kind + listed(", which calls", seen.names, ", ");
}
}  // namespace

std::string page(const Op& op) {
  std::string out =
      format("class: {}\n", name(op.shape)) + dtypes_of(op) + properties_of(op) + promises_of(op);
  out += overflows_of(op) + numerics_of(op) + batch_of(op) + "\n";
  if (op.composite) out += composed(op);
  const std::string head = str(op.schema) + "\n" + forms_of(op);
  return wrapped(head, 4) + "\n" + wrapped(op.doc, 0) + "\n" + wrapped(out + formulas(op), 4);
}

}  // namespace lamella::expect
