// Spike 0004: tapes as counted nodes. How chains are freed, ordered and visited; what one operation costs.
#include <memory>
#include <queue>
#include <sys/wait.h>
#include <unistd.h>
#include <unordered_map>

#include "lamella/core/pool.h"
#include "lamella/core/refcount.h"

#include "timing.h"

namespace {
using namespace lamella;

/// One operation with one parent: as transforms/machine/tape.h keeps it, saved values aside.
struct Node : RefCounted {
  uint64_t order = 0;
  Node* parent = nullptr;
  static Node* create(Node* parent) {
    Node* n = new (Pool<192>::allocate()) Node;
    n->parent = parent;
    if (parent) parent->retain();
    n->order = parent ? parent->order + 1 : 0;  // 1 + max over the parents: topological, no global counter
    return n;
  }
  static void destroy(Node* n) {  // with one edge a node, the library's work list is a variable
    for (Node* next; n; n = next) {
      next = n->parent && n->parent->release() ? n->parent : nullptr;
      n->~Node();
      Pool<192>::free(n);
    }
  }
};
Ref<Node> record(int64_t n) {
  auto tip = Ref<Node>::adopt(Node::create(nullptr));
  while (n--) tip = Ref<Node>::adopt(Node::create(tip.get()));
  return tip;
}

/// The obvious alternative: shared pointers, freed by their destructors, which recurse.
struct Shared {
  std::shared_ptr<Shared> parent;
};
void shared_chain(int64_t n) {
  for (auto tip = std::make_shared<Shared>(); n--;) tip = std::make_shared<Shared>(Shared{std::move(tip)});
}
bool survives(int64_t n) {
  const pid_t child = fork();
  if (child == 0) _exit((shared_chain(n), 0));
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status);
}

// Visiting by descending order: which node comes next, and where its cotangent waits.
void visit_with_map(const Ref<Node>& tip) {
  const auto before = [](const Node* a, const Node* b) { return a->order < b->order; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(before)> queue(before);
  std::unordered_map<Node*, double> waiting{{tip.get(), 1.0}};
  for (queue.push(tip.get()); !queue.empty();) {
    Node* const n = queue.top();
    queue.pop();
    const double ct = waiting.extract(n).mapped();
    if (n->parent && waiting.try_emplace(n->parent, ct).second) queue.push(n->parent);
  }
}
/// The few nodes that wait at a time are looked through; a map would take over beyond some tens of them.
int64_t visit_list(const Ref<Node>& tip) {
  std::vector<std::pair<Node*, double>> waiting{{tip.get(), 1.0}};
  const auto before = [](const auto& a, const auto& b) { return a.first->order < b.first->order; };
  for (int64_t visited = 0;; ++visited) {
    if (waiting.empty()) return visited;
    const auto next = std::max_element(waiting.begin(), waiting.end(), before);
    const auto [n, ct] = *next;
    waiting.erase(next);
    size_t i = 0;
    while (i < waiting.size() && waiting[i].first != n->parent) ++i;
    if (i < waiting.size()) waiting[i].second += ct;
    else if (n->parent) waiting.emplace_back(n->parent, ct);
  }
}
}  // namespace

int main() {
  for (const int64_t n : {10000, 1000000})
    std::printf("shared_ptr chain of %7lld: %s\n", (long long)n, survives(n) ? "freed" : "stack overflow");
  const double start = spike::now_ns();
  Ref<Node> tape = record(1000000), pullback = tape;
  tape = {};  // the level has ended; its pullback keeps the chain
  std::printf("counted chain, level ended: %lld nodes reachable", (long long)visit_list(pullback) - 1);
  pullback = {};
  std::printf(", freed; %.0f ns a node in all\n", (spike::now_ns() - start) / 1e6);
  const Ref<Node> chain = record(100);
  spike::Contest contest("a chain of 100 operations");
  contest.add("record and free: counted nodes, pooled", 2000, [] { record(100); });
  contest.add("record and free: shared_ptr", 2000, [] { shared_chain(100); });
  contest.add("visit: heap and hash map", 2000, [&] { visit_with_map(chain); });
  contest.add("visit: list", 2000, [&] { visit_list(chain); });
  contest.run();
}
