// Spike 0005: writes under levels. Telling inside from outside; what promoting views would cost; writing to a
// view.
#include <unordered_map>

#include "lamella/dispatch/call.h"

#include "timing.h"

namespace {
using namespace lamella;

struct Idle final : Transform {
  TransformKind kind() const override { return TransformKind::Carried; }
  std::string_view name() const override { return "idle"; }
  void call(Frame&, int) override {}
};
uint64_t birth(const Tensor& t) { return t.impl()->storage->birth; }

/// Three levels deep, one number tells for each storage inside which of them it was made; views inherit it.
void births() {
  Idle transform;
  const Tensor outside = tensor_of({2}, {1, 2});
  const Level first(transform);
  const Tensor in_first = tensor_of({2}, {1, 2});
  const Level second(transform);
  const Tensor in_second = tensor_of({2}, {1, 2}), view = make_view(in_first, Dims{1}, Dims{1}, 1);
  const auto inside = [](const Tensor& t, const Level& l) { return birth(t) >= l.serial() ? "yes" : "no"; };
  const std::pair<const char*, const Tensor*> cases[] = {{"made before both", &outside},
                                                         {"made in level 1", &in_first},
                                                         {"made in level 2", &in_second},
                                                         {"a view, in level 2, of level 1's", &view}};
  for (const auto& [what, t] : cases)
    std::printf("%-34s inside level 1: %-3s  inside level 2: %s\n", what, inside(*t, first),
                inside(*t, second));
}

/// If promotion covered views, each level would map storages to cells, and look at every plain argument.
void promotion() {
  const Tensor a = tensor_of({2}, {1, 2}), b = tensor_of({2}, {1, 2});
  std::unordered_map<const Storage*, int> cells;
  const auto look = [&](const Tensor& t) { spike::keep(cells.find(t.impl()->storage)); };
  const auto look_if_any = [&](const Tensor& t) {
    if (!cells.empty()) look(t);
    spike::keep(t);
  };
  spike::Contest contest("two plain arguments of a call that reaches a level");
  contest.add("promotion without views: nothing to ask", 200000, [&] { spike::keep(a), spike::keep(b); });
  contest.add("a map of promoted storages, none promoted", 200000, [&] { look_if_any(a), look_if_any(b); });
  std::vector<Tensor> promoted;
  contest.add("the same, sixteen promoted", 200000, [&](int64_t n) {
    while (promoted.size() < 16) cells[promoted.emplace_back(tensor_of({1}, {1})).impl()->storage] = 1;
    while (n--) look_if_any(a), look_if_any(b);
    cells.clear();
    promoted.clear();
  });
  contest.run();
}

/// x[i] = row for every i of n rows. Replayed by transposes: place the row and its mask in zeros, choose, for
/// all of x.
void write_rows(int64_t rows, int64_t columns) {
  std::vector<float> x(size_t(rows * columns)), row(size_t(columns), 1.0f);
  const auto through_transposes = [&] {
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<float> placed(x.size()), mark(x.size()), out(x.size());
      std::copy(row.begin(), row.end(), placed.begin() + i * columns);
      std::fill_n(mark.begin() + i * columns, columns, 1.0f);
      for (size_t k = 0; k < x.size(); ++k) out[k] = mark[k] != 0 ? placed[k] : x[k];
      x = std::move(out);
    }
  };
  const auto copy_once_each = [&] {
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<float> out = x;
      std::copy(row.begin(), row.end(), out.begin() + i * columns);
      x = std::move(out);
    }
  };
  const auto in_place = [&] {
    for (int64_t i = 0; i < rows; ++i)
      std::copy(row.begin(), row.end(), x.begin() + i * columns), spike::keep(x);
  };
  char title[80];
  std::snprintf(title, sizeof title, "write all rows of f32[%d,%d], one by one", int(rows), int(columns));
  spike::Contest contest(title);
  contest.add("in place (plain memory; vmap)", 20, in_place);
  contest.add("a new base each (an operator's own rule)", 20, copy_once_each);
  contest.add("a new base each, by transposes (grad, jvp)", 20, through_transposes);
  contest.run();
}
}  // namespace

int main() {
  set_builtin_operators([] {});
  births();
  promotion();
  write_rows(8, 8);
  write_rows(64, 64);
  write_rows(512, 64);
}
