// The page that `lamella report` writes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lamella::tools {

/// One HTML page that needs nothing else. `run`: a report of `lamella verify`; `mutants`: one of `lamella
/// mutate`. Either may be null.
std::string report_page(const nlohmann::json& run, const nlohmann::json& mutants);

}  // namespace lamella::tools
