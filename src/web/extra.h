// SPDX-License-Identifier: Apache-2.0
/// These functions return Page::extra of each kind of result: figures need it, --json lacks it.
#pragma once

#include <string>
#include <vector>

#include "serving/search.h"
#include "study/nearest_rows.h"
#include "study/run.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::web {

/// Returns {"timeline"} of a run with record_spans (timeline.h); of a plan also what nearest_extra
/// returns.
std::string run_extra(const study::WorkloadRun& run, const zoo::Model* model = nullptr,
                      const plan::Plan* plan = nullptr);
std::string run_extra(const study::Run& run);

/// A PlannedRun is what a training step ran; model and machine outlive it.
struct PlannedRun {
  const zoo::Model* model = nullptr;
  const machine::Machine* machine = nullptr;
  plan::Plan plan;
};
/// Returns {"nearest", "nearest_memory"}: published runs, and published memory, beside their
/// predictions (study/nearest_rows.h); of several runs the nearest of each, each once.
std::string nearest_extra(const std::vector<PlannedRun>& runs);

/// Returns {"histograms": [{name, from, width, counts}]}: times to the first token, per further
/// token and to the last of all requests in 30 parts of equal width (seconds). Without requests
/// there are none. With points it also has {"curve": [{rate, ttft_p50, ttft_p99, e2e_p50,
/// e2e_p99}]}, in seconds. With the figures of published runs it also has {"nearest"}
/// (study/served/nearest.h).
std::string serving_extra(const serving::Run& run, const std::vector<serving::LoadPoint>& points,
                          const std::vector<study::NearestRow>& nearest = {});

}  // namespace orrery::web
