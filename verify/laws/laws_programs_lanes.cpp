// The law of mapped programs: vmap of a program of calls, views and writes is the loop over its lanes.
#include "lamella/ops/operators.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/script_lanes.h"

namespace lamella::verify {

namespace {

bool same_elements(const Tensor& a, const Tensor& b) {
  const Tensor x = plain_copy(a), y = plain_copy(b);
  const auto *const left = static_cast<const double*>(x.raw_data()), *const right =
                                                                         static_cast<const double*>(
                                                                             y.raw_data());
  return std::equal(left, left + part_count(x), right, right + part_count(y),
                    [](double p, double q) { return p == q || (p != p && q != q); });
}

/// What the program wrote has to be in the caller's memory: inputs and captures that the program still has at
/// its end are there what it returns for them. Empty when they are.
Finding wrong_memory(const Script& p, const ScriptLanes& lanes, const Tensors& captures, const Tensors& ys) {
  const std::vector<int> handles = p.result_handles();
  const size_t n = p.inputs().size();
  for (size_t k = 0; k < handles.size(); ++k) {
    const auto handle = size_t(handles[k]);
    if (handle >= n + captures.size()) break;
    const bool mapped = handle < n && lanes.dims[handle] != kNone;
    for (int64_t l = 0; l < lanes.size; ++l) {
      const Tensor got = mapped       ? lane(lanes.xs[handle], lanes.dim(handle), l)
                         : handle < n ? lanes.xs[handle]
                                      : captures[handle - n];
      if (!same_elements(got, lane(ys[k], 0, l)))
        return format("{} {} is not what the program sees in lane {}:", handle < n ? "input" : "capture",
                      handle < n ? handle : handle - n, l);
    }
  }
  return "";
}

Verdict under_vmap(Case& c) {
  const Script p(c);
  EngineCase s = engine_case(p, "", 1);
  s.saves = false, s.lanes_alone = true;
  const ScriptLanes lanes(c, p, s);
  s.engine =
      lanes.cpp("f") +
      "  const Tensors ys = mapped(batch);\n  for (int64_t l = 0; l < ys[0].size(0); ++l) {\n    Tensors "
      "in_lane;\n    for (const Tensor& y : ys) in_lane.push_back(select(y, 0, l));\n    std::cout << "
      "\"got      \" << weighted(in_lane) << '\\n';\n  }\n";
  EngineRun run;
  Finding memory;
  run.status = status_of([&] {
    const Tensors captures = p.fresh_captures();
    const Function mapped =
        vmap([&](const Tensors& in) { return p.run(in, captures, &run.seen); }, lanes.options());
    const Tensors ys = mapped(lanes.xs);
    for (int64_t l = 0; l < lanes.size; ++l) {
      Tensors in_lane;
      for (const Tensor& y : ys) in_lane.push_back(lane(y, 0, l));
      run.values.push_back(weighted_sum(in_lane, p.weights()).item<double>());
    }
    memory = wrong_memory(p, lanes, captures, ys);
  });
  if (!run.status.raised && !memory.empty()) return program_failure(s, memory);
  return judge(s, run);
}

}  // namespace

void add_program_lane_laws(std::vector<Law>& laws) {
  laws.push_back({75, "programs_under_vmap", "compose",
                  "vmap of a program is the loop over its lanes: in values, in what it writes to inputs and "
                  "captures, in strides seen, and in whether it raises.",
                  program_options(), false, has_programs, under_vmap});
}

}  // namespace lamella::verify
