// Drawn reports.
#include "drawn_report.h"

namespace lamella::tools {

using nlohmann::json;

std::string drawn_text(Dice& dice) {
  static const std::vector<std::string> pieces = {"a",
                                                  "word ",
                                                  "\"",
                                                  "'",
                                                  "<",
                                                  ">",
                                                  "&",
                                                  "&amp;",
                                                  "\n",
                                                  "\t",
                                                  "\r",
                                                  "  ",
                                                  "]]>",
                                                  "\x1b[31m",
                                                  "\x7f",
                                                  "\xc3\xa4",
                                                  "\xe2\x82\xac",
                                                  "\xf0\x9f\x8e\x89",
                                                  "\xed\xa0\x80",
                                                  "\xed\xbf\xbf",
                                                  "\xef\xbf\xbe",
                                                  "\xc2\x85",
                                                  "\xc0\x80",
                                                  "\xf4\x90\x80\x80",
                                                  "\xff",
                                                  "\xe2\x82",
                                                  "\xee\x80\x80",
                                                  "\xed\x9f\xbf"};
  std::string out;
  for (uint64_t n = dice.below(12); n > 0; --n)
    if (dice.one_in(6)) out += char(dice.below(256));
    else out += dice.of(pieces);
  return out;
}

namespace {
json drawn_cell(Dice& dice) {
  const uint64_t cases = dice.of<uint64_t>({0, 0, 1, 2 + dice.below(20), dice.below(3000000)});
  const uint64_t failures = cases && dice.one_in(3) ? 1 + dice.below(cases) : 0;
  json cell = {{"cases", cases},
               {"failures", failures},
               {"discards", dice.one_in(2) ? uint64_t(0) : 1 + dice.below(9)},
               {"deep", 0u},
               {"per_second", 1.0},
               {"seconds", double(dice.below(64)) / 8}};
  if (cases) cell["strata"] = {{dice.of<const char*>({"f32", "f64"}), {{"none", cases}}}};
  return cell;
}
}  // namespace

json drawn_report(Dice& dice) {
  json out = {{"checks", 0u},
              {"seed", 7u},
              {"cases", 0u},
              {"depth", 3u},
              {"format", 1u},
              {"version", "0.1"},
              {"seconds", double(1 + dice.below(32)) / 4},
              {"laws", json::array()},
              {"failures", json::array()},
              {"operators", json::object()},
              {"all_laws", true},
              {"interrupted", dice.one_in(3)}};
  out["shard"] = {{"of", 1u}, {"parts", {0u}}};
  const std::vector<std::string> ops = {"add", "exp", "mul", "sum"},
                                 laws = {"alpha", "beta", "gamma", "zeta"};
  const size_t kept = 1 + dice.below(laws.size());
  for (size_t k = 0; k < kept; ++k)
    out["laws"].push_back(
        {{"number", k + 1}, {"id", laws[k]}, {"group", "value"}, {"statement", "It holds."}});
  uint64_t checks = 0;
  double seconds = 0;
  for (size_t n = 1 + dice.below(ops.size()); n > 0; --n)
    for (size_t k = 0; k < kept; ++k) {
      if (dice.one_in(5)) continue;  // the law does not apply
      const json cell = drawn_cell(dice);
      out["operators"][ops[n - 1]][laws[k]] = cell;
      checks += cell["cases"].get<uint64_t>();
      seconds += cell["seconds"].get<double>();
      for (uint64_t f = std::min(cell["failures"].get<uint64_t>(), dice.below(3)); f > 0; --f)
        out["failures"].push_back(
            {{"operator", ops[n - 1]},
             {"law", laws[k]},
             {"message", "says " + std::to_string(dice.below(1000000)) + drawn_text(dice)},
             {"program", "prints " + std::to_string(dice.below(1000000)) + drawn_text(dice)}});
    }
  out["checks"] = checks;
  out["rate"] = {{"seconds", seconds}, {"per_second", double(checks) / std::max(seconds, 1e-9)}};
  return out;
}

}  // namespace lamella::tools
