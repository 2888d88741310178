// SPDX-License-Identifier: Apache-2.0
#include "planner/full/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "study/run.h"

namespace orrery::full {
namespace {

constexpr auto kOpen = std::to_array<std::string_view>({"tp",
                                                        "cp",
                                                        "pp",
                                                        "dp",
                                                        "ep",
                                                        "etp",
                                                        "microbatch",
                                                        "schedule",
                                                        "chunks",
                                                        "order",
                                                        "zero",
                                                        "stage_layers",
                                                        "recompute",
                                                        "recompute_modules",
                                                        "recompute_layers",
                                                        "cp_exchange",
                                                        "cp_a2a",
                                                        "moe_dispatch",
                                                        "overlap_ep",
                                                        "offload_optimizer",
                                                        "offload_activations",
                                                        "sequence_parallel",
                                                        "overlap_p2p",
                                                        "overlap_grad_reduce",
                                                        "overlap_param_gather",
                                                        "pipeline_send",
                                                        "bucket",
                                                        "shard_params",
                                                        "shard_grads",
                                                        "shard_optimizer",
                                                        "reshard_after_forward"});

/// The run's plan with what is open as if nobody had said it.
plan::PlacedPlan work_of(const plan::Plan& published) {
  plan::PlacedPlan work;
  work.plan = published;
  const plan::Plan plain;
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    if (std::find(kOpen.begin(), kOpen.end(), name) != kOpen.end()) {
      work.plan.*member = plain.*member;
    } else {
      work.places[std::string(name)] = "the table";
    }
  });
  return work;
}

plan::PlacedPlan all_fixed(const plan::Plan& published) {
  plan::PlacedPlan fixed;
  fixed.plan = published;
  plan::Plan::fields([&](std::string_view name, auto, std::string_view) {
    fixed.places[std::string(name)] = "the table";
  });
  return fixed;
}

}  // namespace

PublishedComparison PublishedPlans::compare(const study::PublishedRun& run) {
  PublishedComparison result{.key = run.key,
                             .machine = run.machine,
                             .plan = run.plan,
                             .mfu = 0,
                             .fits = false,
                             .problem = run.problem,
                             .refused = {},
                             .answer = {}};
  const auto machine = machine::load_machine(run.machine);
  if (!result.problem.empty() || !machine) {
    result.problem = machine ? result.problem : machine.error().to_string();
    return result;
  }
  study::RunOptions anyway;
  anyway.allow_oom = true;
  const std::int64_t devices = run.plan.devices();
  const auto simulated = study::run_step(run.model, *machine, run.plan, devices, anyway);
  if (!simulated) {
    result.problem = simulated.error().to_string();
    return result;
  }
  result.published = simulated->timeline.step_time;
  result.mfu = simulated->mfu;
  result.fits = simulated->fits;
  Task task{.model = run.model,
            .machine = *machine,
            .devices = devices,
            .fixed = all_fixed(run.plan),
            .only = {}};
  if (result.fits) {
    const auto same = search(task, options_);
    if (!same || same->top.empty()) {
      result.refused = same ? "nothing found" : same.error().to_string();
      return result;
    }
    const Found& first = same->top.front();
    if (first.unfused.value_or(first.step_time) != result.published) {
      result.refused = "its plan is taken for another one";
    }
  }
  task.fixed = work_of(run.plan);
  const std::string work =
      fmt::format("{} {} {} {} {} {} {}\n{}", run.machine, run.model.name, devices,
                  zoo::count_parameters(run.model).total, run.model.layers, run.model.hidden,
                  run.model.heads, plan::to_yaml(task.fixed.plan));
  auto known = known_.find(work);
  if (known == known_.end()) {
    known = known_.emplace(work, search(task, options_)).first;
  }
  if (known->second) {
    result.answer = *known->second;
  } else {
    result.refused = known->second.error().to_string();
  }
  return result;
}

}  // namespace orrery::full
