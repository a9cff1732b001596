// The page that `lamella report` writes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "markup.h"

namespace lamella::tools {

/// One HTML page that needs nothing else. `run`: a report of `lamella verify`; `mutants`: one of `lamella
/// mutate`. Either may be null.
std::string report_page(const nlohmann::json& run, const nlohmann::json& mutants);

/// A page with the report's looks and title, open in its body behind the heading; and what sorts its tables,
/// which comes last.
Markup begun_page(const std::string& title);
std::string ended_page(Markup& page);
void write_heading(Markup& out, const std::string& id, const std::string& title);
/// A pair of a list <dl>.
void write_fact(Markup& out, const std::string& name, const std::string& value);

}  // namespace lamella::tools
