// SPDX-License-Identifier: Apache-2.0
#include "planner/full/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "study/run.h"
#include "workload/plan/recompute.h"

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

/// A search whose answer is slower than the published plan has missed something.
Options patient(Options options) {
  options.most_estimates *= kPatience;
  options.most_simulations *= kPatience;
  return options;
}

/// Lists of modules to try where the published plan has one that space.h does not: what the model
/// can do of the usual ones, each with the published one's and without.
std::vector<std::string> modules_again(const study::PublishedRun& run) {
  const std::string& published = run.plan.recompute_modules;
  if (std::ranges::find(kModulesAgain, published) != kModulesAgain.end()) {
    return {};
  }
  std::vector<std::string> lists;
  const auto add = [&](std::string list) {
    plan::Plan trial;
    trial.recompute_modules = std::move(list);
    if (plan::check_recompute(trial, run.model)) {
      lists.push_back(std::move(trial.recompute_modules));
    }
  };
  for (const std::string_view usual : kModulesAgain) {
    add(std::string(usual));
    add(usual.empty() ? published : fmt::format("{},{}", usual, published));
  }
  return lists;
}

/// Returns the step where transfers share links and the kernels of the last node are slow.
Result<Time> hard_step(const Task& task, plan::Plan plan) {
  const std::int64_t devices = plan.devices();
  const auto& network = task.machine.network;
  const std::int64_t node = network.size() < 2 ? 1 : std::min(network.front().size, devices);
  study::RunOptions options;
  options.allow_oom = true;
  options.network = simulate::NetworkModel::flow;
  options.faults.faults.push_back({.kind = faults::FaultKind::straggler,
                                   .places = {fmt::format("{}-{}", devices - node, devices - 1)},
                                   .value = kStragglerFactor,
                                   .where = "a straggler"});
  plan.fuse_communication = false;
  return study::run_step(task.model, task.machine, plan, devices, options)
      .transform([](const study::Run& run) { return run.timeline.step_time; });
}

void simulate_again(const Task& task, PublishedComparison& result) {
  const auto published = hard_step(task, result.plan);
  const auto best = hard_step(task, result.answer.top.front().plan);
  if (published && best) {
    result.again = PublishedAgain{*published, *best};
  } else {
    result.again_problem = (published ? best : published).error().to_string();
  }
}

/// Says why a search that may choose nothing does not answer with the plan of the task.
std::string refusal_of(const Task& task, const Options& options, Time published) {
  const auto same = search(task, options);
  if (!same || same->top.empty()) {
    return same ? "nothing found" : same.error().to_string();
  }
  const Found& first = same->top.front();
  return first.unfused.value_or(first.step_time) == published ? ""
                                                              : "its plan is taken for another one";
}

/// Names what is searched for: runs of one name have one answer.
std::string name_of_work(const study::PublishedRun& run, const Task& task) {
  return fmt::format("{} {} {} {} {} {} {}\n{}{}", run.machine, run.model.name, task.devices,
                     zoo::count_parameters(run.model).total, run.model.layers, run.model.hidden,
                     run.model.heads, plan::to_yaml(task.fixed.plan),
                     task.only.empty() ? "" : run.plan.recompute_modules);
}

}  // namespace

PublishedComparison PublishedPlans::compare(const study::PublishedRun& run) {
  PublishedComparison result;
  result.key = run.key;
  result.machine = run.machine;
  result.plan = run.plan;
  result.problem = run.problem;
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
    result.refused = refusal_of(task, options_, result.published);
    if (!result.refused.empty()) {
      return result;
    }
  }
  task.fixed = work_of(run.plan);
  if (auto lists = modules_again(run); !lists.empty()) {
    task.only["recompute_modules"] = std::move(lists);
  }
  const std::string work = name_of_work(run, task);
  auto known = known_.find(work);
  if (known == known_.end()) {
    known = known_.emplace(work, search(task, options_)).first;
  }
  if (result.fits && known->second && !known->second->top.empty() &&
      known->second->top.front().step_time > result.published) {
    known->second = search(task, patient(options_));
  }
  if (known->second) {
    result.answer = *known->second;
  } else {
    result.refused = known->second.error().to_string();
  }
  if (simulate_suspects_ && result.gain() > kSuspect) {
    simulate_again(task, result);
  }
  return result;
}

}  // namespace orrery::full
