// Names that are a few letters apart.
#include "lamella/dispatch/nearest.h"

#include <algorithm>

#include "lamella/dispatch/call.h"
#include "lamella/dispatch/table.h"

namespace lamella {

namespace {
/// Letters to put in, take out, change, or swap with their neighbour.
size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t k = 0; k <= b.size(); ++k) last[k] = k;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t k = 1; k <= b.size(); ++k) {
      now[k] = std::min({last[k] + 1, now[k - 1] + 1, last[k - 1] + (a[i - 1] != b[k - 1])});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        now[k] = std::min(now[k], before[k - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}
}  // namespace

std::string nearest_text(std::string_view name, const std::vector<std::string_view>& names) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const std::string_view other : names) {
    const size_t apart = letters_apart(name, other);
    const bool part = name.size() > 1 && other.find(name) != other.npos;
    if (part || apart <= 1 + name.size() / 4) near.emplace_back(apart, other);
  }
  std::ranges::stable_sort(near, {}, &std::pair<size_t, std::string_view>::first);
  if (near.empty()) return "";
  near.resize(std::min(near.size(), kMost));
  std::string out = near.size() == 1 ? "; the nearest is " : "; the nearest are ";
  for (size_t k = 0; k < near.size(); ++k) out.append(k ? ", \"" : "\"").append(near[k].second).append("\"");
  return out;
}

std::string nearest_operators(std::string_view name, std::span<const std::string_view> others) {
  std::vector<std::string_view> names(others.begin(), others.end());
  for (const Op* op : OpTable::current().rows())
    if (op->form == OpForm::Functional && !op->has(kTestOnly)) names.push_back(op->name);
  return nearest_text(name, names);
}

}  // namespace lamella
