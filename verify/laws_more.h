// Further lists of laws, and what laws of several files ask of a case.
#pragma once

#include <map>
#include <mutex>

#include "lamella/verify/law.h"

namespace lamella::verify {

void add_linear_laws(std::vector<Law>& laws);             ///< laws_linear.cpp: 24 29 34 47 69 70
void add_transpose_laws(std::vector<Law>& laws);          ///< laws_transpose.cpp: 24 35
void add_direction_laws(std::vector<Law>& laws);          ///< laws_directions.cpp: 24
void add_map_dim_laws(std::vector<Law>& laws);            ///< laws_map_dims.cpp: 15 17
void add_identity_laws(std::vector<Law>& laws);           ///< laws_identities.cpp: 18 20
void add_jet_laws(std::vector<Law>& laws);                ///< laws_jet.cpp: 27
void add_kink_laws(std::vector<Law>& laws);               ///< laws_kinks.cpp: 30
void add_graph_laws(std::vector<Law>& laws);              ///< laws_graphs.cpp: 86
void add_hook_laws(std::vector<Law>& laws);               ///< laws_graphs_hooks.cpp: 87
void add_scope_laws(std::vector<Law>& laws);              ///< laws_graphs_scopes.cpp: 88
void add_captured_laws(std::vector<Law>& laws);           ///< laws_captured.cpp: 96
void add_tape_laws(std::vector<Law>& laws);               ///< laws_tapes.cpp: 97
void add_threshold_laws(std::vector<Law>& laws);          ///< laws_thresholds.cpp: 98 153 173
void add_argnum_laws(std::vector<Law>& laws);             ///< laws_graphs_argnums.cpp: 89
void add_graph_rule_laws(std::vector<Law>& laws);         ///< laws_graphs_rules.cpp: 90
void add_thread_laws(std::vector<Law>& laws);             ///< laws_graphs_threads.cpp: 91 93
void add_size_laws(std::vector<Law>& laws);               ///< laws_graphs_sizes.cpp: 92
void add_overlap_laws(std::vector<Law>& laws);            ///< laws_overlap.cpp: 94
void add_anomaly_laws(std::vector<Law>& laws);            ///< laws_anomaly.cpp: 95
void add_hidden_laws(std::vector<Law>& laws);             ///< laws_hidden.cpp: 31
void add_jacobian_laws(std::vector<Law>& laws);           ///< laws_jacobians.cpp: 80 81 82
void add_random_laws(std::vector<Law>& laws);             ///< laws_random.cpp: 50
void add_registry_laws(std::vector<Law>& laws);           ///< laws_registry.cpp: 54
void add_program_laws(std::vector<Law>& laws);            ///< laws_programs.cpp: 74 75 76
void add_program_lane_laws(std::vector<Law>& laws);       ///< laws_programs_lanes.cpp: 75
void add_program_time_laws(std::vector<Law>& laws);       ///< laws_programs_more.cpp: 77 78 79
void add_refusal_laws(std::vector<Law>& laws);            ///< laws_refusals.cpp: 62
void add_listed_laws(std::vector<Law>& laws);             ///< laws_listed.cpp: 141 142
void add_mapped_laws(std::vector<Law>& laws);             ///< laws_mapped.cpp: 140 143 144
void add_replaced_laws(std::vector<Law>& laws);           ///< laws_replaced.cpp: 145
void add_transform_refusal_laws(std::vector<Law>& laws);  ///< laws_refused_transforms.cpp: 110
void add_boxed_refusal_laws(std::vector<Law>& laws);      ///< laws_refused_boxed.cpp: 111
void add_memory_refusal_laws(std::vector<Law>& laws);     ///< laws_refused_memory.cpp: 112 113
void add_repeat_laws(std::vector<Law>& laws);             ///< laws_repeat.cpp: 10 16 64
void add_nonfinite_laws(std::vector<Law>& laws);          ///< laws_nonfinite.cpp: 14
void add_promise_laws(std::vector<Law>& laws);            ///< laws_promises.cpp: 99 to 104
void add_attribute_laws(std::vector<Law>& laws);          ///< laws_attributes.cpp: 105
void add_schedule_laws(std::vector<Law>& laws);           ///< laws_schedules.cpp: 120
void add_captured_state_laws(std::vector<Law>&);          ///< laws_captured_state.cpp: 121
void add_schedule_view_laws(std::vector<Law>&);           ///< laws_schedules_views.cpp: 122
void add_setting_laws(std::vector<Law>&);                 ///< laws_settings.cpp: 123 124
void add_number_laws(std::vector<Law>&);                  ///< laws_numbers.cpp: 128 147 152
void add_cast_laws(std::vector<Law>&);                    ///< laws_casts.cpp: 128
void add_flat_laws(std::vector<Law>&);                    ///< laws_flat.cpp: 151
void add_schema_laws(std::vector<Law>&);                  ///< laws_schemas.cpp: 148
void add_map_form_laws(std::vector<Law>&);                ///< laws_map_forms.cpp: 134 174
void add_conversion_laws(std::vector<Law>&);              ///< laws_converted.cpp: 83
void add_edge_laws(std::vector<Law>&);                    ///< laws_edges.cpp: 84 85
void add_thread_end_laws(std::vector<Law>&);              ///< laws_thread_ends.cpp: 125
void add_function_laws(std::vector<Law>&);                ///< laws_functions.cpp: 126
void add_trace_laws(std::vector<Law>&);                   ///< laws_traces.cpp: 127
void add_at_once_laws(std::vector<Law>&);                 ///< laws_at_once.cpp: 129
void add_registration_laws(std::vector<Law>&);            ///< laws_registrations.cpp: 149
void add_device_laws(std::vector<Law>&);                  ///< laws_devices.cpp: 170 171 172

/// Whether one of the first `tries` cases of a fixed series is so: what laws ask to know whom they are about.
bool some_case(const Op& op, const DrawOptions& options, uint32_t tries,
               const std::function<bool(Case&)>& is_so);
/// Answers of one question, kept by the operator's name: laws ask often.
class AskedOnce {
 public:
  bool operator()(const Op& op, const std::function<bool()>& question) {
    const std::lock_guard lock(guard_);
    const auto [it, fresh] = known_.try_emplace(op.name, false);
    if (fresh) it->second = question();
    return it->second;
  }

 private:
  std::mutex guard_;
  std::map<std::string, bool> known_;
};
/// One argument changed into something the operator may have to refuse: sizes, dtypes, numbers at and beyond
/// the ends of what they may be. `anything`: also another device, or an undefined tensor.
void spoil(Case& c, bool anything = false);
/// One element changed: an index that is none, a divisor 0, a matrix that has no factor.
void spoil_values(Case& c);
/// Law 1 for one case, whatever its arguments: results against the Reference column's.
Verdict agrees_with_reference(Case& c);
/// Law 1 for results that come from elsewhere: a discard where an infinity may come up on the way.
Verdict within_reference(Case& c, const Tensors& got);
/// Law 14 likewise: NaN and infinities are where the reference's are.
Verdict classes_as_reference(Case& c, const Tensors& got);
/// `wide` in the dtype of `got`, with got's own entries where the exact result needs rounding.
Tensor exact_parts(const Tensor& wide, const Tensor& got);
/// A random operator that is given no key: another call gives other numbers.
bool draws_anew(const Case& c);
/// Of an operator that takes its dims by `Dim` parameters: whether each of the `rank` dims is among them. A
/// reduction without dims reduces all; along-dim operators then touch none.
std::vector<bool> named_dims(const Case& c, int rank);

}  // namespace lamella::verify
