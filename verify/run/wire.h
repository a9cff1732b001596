// What processes of one program tell each other: reports and verdicts as text.
#pragma once

#include "lamella/verify/run/runner.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Appends a text with its length before it: "5:hello".
void put(std::string& out, const std::string& s);

std::string encode(const Report& r);
Report decode_report(const std::string& text);
std::string encode(const Verdict& v);
Verdict decode_verdict(const std::string& text);

}  // namespace lamella::verify
LAMELLA_API_END
