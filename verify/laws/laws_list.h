// Every list of laws, once: the families of verify/laws/laws_*.cpp, in the order in which laws of one number
// are asked. A new file of laws is a line here; law.cpp alone reads it. Numbers stand in those files alone.
#pragma once

#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct Law;

// clang-format off
#define LAMELLA_LAW_FAMILIES(F) \
  F(value) \
  F(type) \
  F(layout) \
  F(form) \
  F(derivative) \
  F(rule) \
  F(second_order) \
  F(vmap) \
  F(compose) \
  F(state) \
  F(memory) \
  F(repeat) \
  F(varying) \
  F(box) \
  F(linear) \
  F(direction) \
  F(hidden) \
  F(write) \
  F(chain) \
  F(program) \
  F(program_lane) \
  F(program_time) \
  F(graph) \
  F(hook) \
  F(scope) \
  F(argnum) \
  F(anomaly) \
  F(graph_rule) \
  F(thread) \
  F(size) \
  F(overlap) \
  F(transpose) \
  F(map_dim) \
  F(identity) \
  F(jet) \
  F(kink) \
  F(random) \
  F(jacobian) \
  F(registry) \
  F(refusal) \
  F(transform_refusal) \
  F(boxed_refusal) \
  F(memory_refusal) \
  F(captured) \
  F(tape) \
  F(threshold) \
  F(listed) \
  F(mapped) \
  F(replaced) \
  F(nonfinite) \
  F(promise) \
  F(attribute) \
  F(schedule) \
  F(captured_state) \
  F(schedule_view) \
  F(setting) \
  F(number) \
  F(cast) \
  F(flat) \
  F(schema) \
  F(map_form) \
  F(conversion) \
  F(edge) \
  F(wide_rule) \
  F(half) \
  F(neighbour) \
  F(end) \
  F(thread_end) \
  F(function) \
  F(trace) \
  F(carried) \
  F(at_once) \
  F(registration) \
  F(device)
// clang-format on

#define LAMELLA_DECLARE_LAWS(family) void add_##family##_laws(std::vector<Law>&);
LAMELLA_LAW_FAMILIES(LAMELLA_DECLARE_LAWS)
#undef LAMELLA_DECLARE_LAWS

}  // namespace lamella::verify
LAMELLA_API_END
