// A program's measured rows: printed beside another program's, and exchanged with it as tab-separated text.
#pragma once

#include "support/instructions.h"
#include "support/times.h"

namespace bench {

struct Figure {
  std::string name;
  Times times;
  double instructions = -1;
};

struct Figures {
  std::string title;  ///< what was measured, with its version
  std::string isa;
  std::string why_not;  ///< why the instructions are missing
  std::vector<Figure> rows;
};

/// Measures all rows: times in this process, instructions, if wished, in one under valgrind.
Figures measure(const Rows& rows, const std::string& title, const std::string& isa, bool counts);

/// One line a row, for read_figures of another program.
void write_figures(const Figures& figures);

/// Runs another program that writes its figures; no rows, and why in `why_not`, if it could not.
Figures read_figures(const std::string& command);

/// The table; `peer` may be without rows. Rows that only the peer has come last.
void print_table(const Rows& rows, const Figures& ours, const Figures& peer);

/// Processor, compiler, date, commit and how busy the machine was: a figure is worth nothing without them.
void print_machine(const std::string& isa);

}  // namespace bench
