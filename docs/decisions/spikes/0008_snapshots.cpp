// Spike 0008: the operator table as published snapshots. Threads call while others register; mutants are
// rows. Under -fsanitize=thread it must stay silent.
#include <atomic>
#include <malloc.h>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "lamella/dispatch/call.h"

#include "timing.h"

namespace {
using namespace lamella;

OpDef operator_named(const std::string& name) {
  return {.schema = *new std::string(name + "(Tensor x) -> Tensor"),  // rows keep what they view for good
          .shape = ShapeClass::Broadcast,
          .jvp = not_differentiable("a spike"),
          .vjp = not_differentiable("a spike"),
          .samples = nullptr,
          .doc = "a spike"};
}
void right(Frame& f, int) { *f.results = f.tensor(0); }
void wrong(Frame& f, int) { *f.results = Tensor(); }

/// The row of "first" with another kernel: what a mutant is.
Op first_with(Cell cell) {
  Op row = *OpTable::current().find("first");
  row.cells[int(Device::CPU)] = cell;
  return row;
}
int64_t wrong_results(const Tensor& x, int64_t calls) {
  static const OpHandle handle("first");
  int64_t wrong = 0;
  for (int64_t i = 0; i < calls; ++i) wrong += !call_one(handle, {&x}, keys_of_all(x)).defined();
  return wrong;
}

/// Three threads call, one of them under a mutant; a fourth registers and publishes meanwhile.
void together() {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> calls{0}, wrong_seen{0}, mutant_missed{0};
  const auto caller = [&](bool mutant) {
    const Tensor x = tensor_of({1}, {1});
    static const Op row = first_with(wrong);
    const ScopedTable pinned(mutant ? OpTable::current().with(row) : nullptr);
    while (!stop) {
      const int64_t seen = wrong_results(x, 100);
      mutant ? mutant_missed += 100 - seen : wrong_seen += seen;
      calls += 100;
    }
  };
  std::thread threads[] = {std::thread(caller, false), std::thread(caller, false), std::thread(caller, true)};
  for (int i = 0; i < 200; ++i) OpTable::add(operator_named("added" + std::to_string(i)));
  stop = true;
  for (std::thread& t : threads) t.join();
  std::printf(
      "%lld calls beside 200 registrations: %lld wrong; under the mutant %lld right; table of %zu rows\n",
      (long long)calls, (long long)wrong_seen, (long long)mutant_missed, OpTable::current().size());
}

void costs() {
  const auto* table = &OpTable::current();
  std::atomic<const OpTable*> published{table};
  std::mutex mutex;
  std::shared_mutex shared;
  std::atomic<std::shared_ptr<const OpTable>> counted{std::make_shared<OpTable>(*table)};
  spike::Contest contest("the row of an operator whose position is known");
  contest.add("one acquire load (snapshot)", 200000,
              [&] { spike::keep(published.load(std::memory_order_acquire)->row(0)); });
  contest.add("under a mutex", 100000, [&] { spike::keep((std::lock_guard(mutex), table->row(0))); });
  contest.add("under a shared_mutex", 100000,
              [&] { spike::keep((std::shared_lock(shared), table->row(0))); });
  contest.add("atomic<shared_ptr>: snapshots that could be freed", 100000,
              [&] { spike::keep(counted.load()->row(0)); });
  contest.run();
  spike::Contest writing("one mutant of a table of this size");
  const Op row = first_with(wrong);
  writing.add("with(row): a snapshot with one row replaced", 200, [&] { spike::keep(*table->with(row)); });
  writing.run();
  const size_t before = mallinfo2().uordblks;
  spike::keep(*table->with(row));
  std::printf("bytes kept for good by one snapshot: %zu, %zu an operator\n", mallinfo2().uordblks - before,
              (mallinfo2().uordblks - before) / table->size());
}
}  // namespace

int main() {
  set_builtin_operators([] {});
  OpTable::add(operator_named("first"));
  OpTable::publish(OpTable::current().with(*new Op(first_with(right))));
  together();
  costs();
}
