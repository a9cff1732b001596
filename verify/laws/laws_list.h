// Every list of laws, once: the families of verify/laws_*.cpp, in the order in which laws of one number are
// asked. A new file of laws is a line here; law.cpp alone reads it.
#pragma once

#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct Law;

// clang-format off
#define LAMELLA_LAW_FAMILIES(F) \
  F(value)             /* laws_value.cpp: 1 2 13 */ \
  F(type)              /* laws_types.cpp: 11 */ \
  F(layout)            /* laws_layout.cpp: 3 5 12 19 */ \
  F(form)              /* laws_forms.cpp: 6 7 8 55 */ \
  F(derivative)        /* laws_derivative.cpp: 21 22 23 25 26 28 32 33 */ \
  F(rule)              /* laws_rules.cpp: 25 28 32 33 */ \
  F(second_order)      /* laws_second_order.cpp: 26 */ \
  F(vmap)              /* laws_vmap.cpp: 37 38 39 40 41 42, functor laws */ \
  F(compose)           /* laws_compose.cpp: 43 46 48, perturbation confusion */ \
  F(state)             /* laws_state.cpp: 49 52 56 57 */ \
  F(memory)            /* laws_memory.cpp: 4 53 */ \
  F(repeat)            /* laws_repeat.cpp: 10 16 64 */ \
  F(linear)            /* laws_linear.cpp: 24 29 34 47 69 70 */ \
  F(direction)         /* laws_directions.cpp: 24 */ \
  F(hidden)            /* laws_hidden.cpp: 31 */ \
  F(write)             /* laws_writes.cpp: 8 59 */ \
  F(chain)             /* laws_chains.cpp: 23 37 43, of programs */ \
  F(program)           /* laws_programs.cpp: 74 75 76 */ \
  F(program_lane)      /* laws_programs_lanes.cpp: 75 */ \
  F(program_time)      /* laws_programs_times.cpp: 77 78 79 */ \
  F(graph)             /* laws_graphs.cpp: 86 */ \
  F(hook)              /* laws_graphs_hooks.cpp: 87 */ \
  F(scope)             /* laws_graphs_scopes.cpp: 88 */ \
  F(argnum)            /* laws_graphs_argnums.cpp: 89 */ \
  F(anomaly)           /* laws_anomaly.cpp: 95 */ \
  F(graph_rule)        /* laws_graphs_rules.cpp: 90 */ \
  F(thread)            /* laws_graphs_threads.cpp: 91 93 */ \
  F(size)              /* laws_graphs_sizes.cpp: 92 */ \
  F(overlap)           /* laws_overlap.cpp: 94 */ \
  F(transpose)         /* laws_transpose.cpp: 24 35 */ \
  F(map_dim)           /* laws_map_dims.cpp: 15 17 */ \
  F(identity)          /* laws_identities.cpp: 18 20 */ \
  F(jet)               /* laws_jet.cpp: 27 */ \
  F(kink)              /* laws_kinks.cpp: 30 */ \
  F(random)            /* laws_random.cpp: 50 */ \
  F(jacobian)          /* laws_jacobians.cpp: 80 81 82 */ \
  F(registry)          /* laws_registry.cpp: 54 */ \
  F(refusal)           /* laws_refusals.cpp: 62 */ \
  F(transform_refusal) /* laws_refused_transforms.cpp: 110 */ \
  F(boxed_refusal)     /* laws_refused_boxed.cpp: 111 */ \
  F(memory_refusal)    /* laws_refused_memory.cpp: 112 113 */ \
  F(captured)          /* laws_captured.cpp: 96 */ \
  F(tape)              /* laws_tapes.cpp: 97 */ \
  F(threshold)         /* laws_thresholds.cpp: 98 153 173 */ \
  F(listed)            /* laws_listed.cpp: 141 142 */ \
  F(mapped)            /* laws_mapped.cpp: 140 143 144 */ \
  F(replaced)          /* laws_replaced.cpp: 145 */ \
  F(nonfinite)         /* laws_nonfinite.cpp: 14 */ \
  F(promise)           /* laws_promises.cpp: 99 to 104 */ \
  F(attribute)         /* laws_attributes.cpp: 105 */ \
  F(schedule)          /* laws_schedules.cpp: 120 */ \
  F(captured_state)    /* laws_captured_state.cpp: 121 */ \
  F(schedule_view)     /* laws_schedules_views.cpp: 122 */ \
  F(setting)           /* laws_settings.cpp: 123 124 */ \
  F(number)            /* laws_numbers.cpp: 128 147 152 */ \
  F(cast)              /* laws_casts.cpp: 128 */ \
  F(flat)              /* laws_flat.cpp: 151 */ \
  F(schema)            /* laws_schemas.cpp: 148 */ \
  F(map_form)          /* laws_map_forms.cpp: 134 174 */ \
  F(conversion)        /* laws_converted.cpp: 83 */ \
  F(edge)              /* laws_edges.cpp: 84 85 */ \
  F(half)              /* laws_halves.cpp: 107 */ \
  F(neighbour)         /* laws_neighbours.cpp: 63 */ \
  F(end)               /* laws_ends.cpp: 175 */ \
  F(thread_end)        /* laws_thread_ends.cpp: 125 */ \
  F(function)          /* laws_functions.cpp: 126 */ \
  F(trace)             /* laws_traces.cpp: 127 */ \
  F(at_once)           /* laws_at_once.cpp: 129 */ \
  F(registration)      /* laws_registrations.cpp: 149 */ \
  F(device)            /* laws_devices.cpp: 170 171 172 */
// clang-format on

#define LAMELLA_DECLARE_LAWS(family) void add_##family##_laws(std::vector<Law>&);
LAMELLA_LAW_FAMILIES(LAMELLA_DECLARE_LAWS)
#undef LAMELLA_DECLARE_LAWS

}  // namespace lamella::verify
LAMELLA_API_END
