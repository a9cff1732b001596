// All topics, in order.
#include "calibrations.h"

namespace lamella::tools {

void add_program_calibrations() {
  static const bool added = [] {
    for (Calibrations (*topic)() :
         {calibrations_of_files, calibrations_of_output, calibrations_of_command_line,
          calibrations_of_archives, calibrations_of_safetensors, calibrations_of_markup,
          calibrations_of_reports, calibrations_of_sorting, calibrations_of_merging, calibrations_of_corpora,
          calibrations_of_inline_texts, calibrations_of_references, calibrations_of_expressions,
          calibrations_of_plugins})
      verify::add_calibrations(topic());
    return true;
  }();
  (void)added;
}

}  // namespace lamella::tools
