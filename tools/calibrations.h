// Calibrations of the program itself: questions with known answers about its files, texts, options and pages.
#pragma once

#include "lamella/mutate/calibration.h"

namespace lamella::tools {

/// Adds those of all topics below to the harness's; once, however often it is called. They touch nothing but
/// folders of their own, which they remove, and leave signals, limits and output as they were.
void add_program_calibrations();

using Calibrations = std::vector<verify::Calibration>;
Calibrations calibrations_of_files();
Calibrations calibrations_of_output();
Calibrations calibrations_of_command_line();
Calibrations calibrations_of_archives();
Calibrations calibrations_of_safetensors();
Calibrations calibrations_of_markup();
Calibrations calibrations_of_reports();
Calibrations calibrations_of_sorting();
Calibrations calibrations_of_merging();
Calibrations calibrations_of_corpora();
Calibrations calibrations_of_inline_texts();
Calibrations calibrations_of_references();
Calibrations calibrations_of_expressions();
Calibrations calibrations_of_plugins();

}  // namespace lamella::tools
