// Inside of drawing statement programs: the digits of a word, and what a statement may be.
#pragma once

#include <optional>

#include "lamella/verify/programs/statements.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// One word of the choices, taken apart by remainders: small words are simple statements.
class Digits {
 public:
  explicit Digits(uint32_t word) : left_(word) {}
  uint32_t below(uint32_t n) {
    const uint32_t d = left_ % n;
    left_ /= n;
    return d;
  }
  uint32_t rest() const { return left_; }

 private:
  uint32_t left_;
};

/// What is alive while a program is drawn, seen from the newest handle back.
struct Scene {
  const Tensors& handles;    ///< undefined once let go
  size_t inputs;             ///< the first handles
  bool writes_inputs;        ///< this program may try to
  bool only_shared = false;  ///< targets are handles whose memory others show
  int open = 0;              ///< scopes
  std::vector<std::pair<int, int>> hookable =
      {};         ///< handles that are all of their memory, and what made them
  int only = -1;  ///< the handle that is written, or viewed; -1: any
  std::vector<int> live() const;
  /// Handles that may be written; half of the time those whose memory others show, if there are any.
  std::vector<int> targets(Digits& d) const;
  bool is_of_input(int handle) const;
  bool is_shared(int handle) const;
};

/// What a statement has to be: a step towards a write through an alias, or anything.
enum class Wanted : uint8_t { Anything, Result, View, Write };

/// A statement of these digits; none where no handle fits. It may raise when it is run.
std::optional<Statement> draw_statement(Digits& d, const Scene& scene, const Case& c, Wanted wanted);
/// The operator of the case on handles of the sizes it was drawn with.
std::optional<Statement> own_statement(Digits& d, const Scene& scene, const Case& c);

/// Statements of other kinds.
std::optional<Statement> draw_more(Digits& d, const Scene& scene);
/// A view of the real or the imaginary part of a complex handle.
std::optional<Statement> view_of_part(Digits& d, const Scene& s, int handle);

// For those who make statements.
const Op* operator_named(const std::string& name);
/// Multiples of 1/8, none of them 0, 1 or 2 in magnitude.
double eighths(Digits& d);
int pick(Digits& d, const std::vector<int>& among);
std::optional<Statement> made(StatementKind kind, const Op* op, Values args,
                              std::vector<Statement::Link> links);

/// A copy that lies in one of six ways; 0 is dense.
Tensor laid_out(const Tensor& t, uint32_t kind);
inline constexpr uint32_t kLayouts = 6;
/// Those of a capture that is written before it is viewed: behind others half of the time, else with gaps.
inline constexpr uint32_t kLaidForWrites[kLayouts] = {4, 2, 4, 3, 4, 5};

}  // namespace lamella::verify
LAMELLA_API_END
