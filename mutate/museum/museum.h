// Historical bugs of other libraries, planted again: which law notices each, after how many cases, and how
// small its counterexample becomes.
#pragma once

#include <csignal>

#include "lamella/dispatch/table.h"
#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// One bug that was found elsewhere, as an error in one row of the operator table.
struct Exhibit {
  std::string_view id;               ///< "squeeze_takes_the_lanes"
  std::string_view kind;             ///< "rule", "view": a section of docs/museum.md
  std::string_view source;           ///< where it was reported: "pt#91041 ft#27"
  std::string_view summary;          ///< what went wrong, in our words
  std::string_view op;               ///< whose laws are checked, and whose row is replaced
  std::string_view law;              ///< checked first
  void (*plant)(Op& row);            ///< changes a copy of the row
  OpForm form = OpForm::Functional;  ///< of the row that is replaced
  std::string_view row = {};         ///< the row that is replaced when it is not that of `op`
};

/// All exhibits, in the order of the files of mutate/museum.
const std::vector<Exhibit>& museum();

void add_rule_exhibits(std::vector<Exhibit>&);          ///< rules.cpp
void add_value_rule_exhibits(std::vector<Exhibit>&);    ///< rules_values.cpp
void add_second_order_exhibits(std::vector<Exhibit>&);  ///< second_order.cpp
void add_batch_exhibits(std::vector<Exhibit>&);         ///< batch.cpp
void add_index_batch_exhibits(std::vector<Exhibit>&);   ///< batch_index.cpp
void add_level_exhibits(std::vector<Exhibit>&);         ///< levels.cpp
void add_kernel_exhibits(std::vector<Exhibit>&);        ///< kernels.cpp
void add_form_exhibits(std::vector<Exhibit>&);          ///< forms.cpp
void add_view_exhibits(std::vector<Exhibit>&);          ///< views.cpp
void add_random_exhibits(std::vector<Exhibit>&);        ///< random.cpp
void add_autograd_exhibits(std::vector<Exhibit>&);      ///< autograd.cpp

struct MuseumOptions {
  uint64_t seed = 1;
  int cases = 4000, oracle_cases = 1000;  ///< of the exhibit's own law, at most; an eighth of others
  bool all_laws = false;                  ///< go on after the first law that notices
  int shrink_ms = 1000;
  const volatile std::sig_atomic_t* stop = nullptr;  ///< once set, what runs is given up
};

/// A law that noticed.
struct Sighting {
  std::string law;
  int cases = 0;         ///< until it noticed
  size_t words = 0;      ///< choices of the reduced counterexample that are not zero
  int64_t elements = 0;  ///< of all tensors among its arguments
  std::string message, program;
};

struct MuseumResult {
  const Exhibit* exhibit;
  std::vector<Sighting> red;  ///< with the bug
  int green = 0;              ///< the same cases without it: how many passed
  std::string alarm;          ///< a case that fails without the bug
  std::string ended;          ///< how the process died, if it did
  bool shown() const { return (!red.empty() || !ended.empty()) && alarm.empty(); }
};

/// In a process of its own.
MuseumResult visit(const Exhibit& exhibit, const MuseumOptions& options);

}  // namespace lamella::verify
LAMELLA_API_END
