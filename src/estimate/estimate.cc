// SPDX-License-Identifier: Apache-2.0
#include "estimate/estimate.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimate/lower_bound.h"
#include "estimate/meanwhile.h"
#include "estimate/plan_memo.h"
#include "estimate/replay.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/machine_check.h"

namespace orrery {
namespace {

using namespace estimation;  // NOLINT(google-build-using-namespace): this folder's own

Estimate parts_of(const ReplayResult& run) {
  const auto busiest =
      std::max_element(run.stages.begin(), run.stages.end(),
                       [](const StageTime& a, const StageTime& b) { return a.busy < b.busy; });
  return {.step_time = run.step_time,
          .compute = busiest->kernels,
          .exposed = busiest->busy - busiest->kernels,
          .bubble = busiest->end - busiest->busy,
          .tail = run.step_time - busiest->end};
}

std::vector<PassMap> maps_of(const TimedWorkload& timed, Works works) {
  std::vector<PassMap> maps;
  maps.reserve(timed.templates.size());
  for (const TimedTemplate& nodes : timed.templates) {
    maps.push_back(map_of(nodes, timed.transfers, works));
  }
  return maps;
}

}  // namespace

class Estimator::Memo {
 public:
  Memo(Model model, Machine machine) : model_(std::move(model)), machine_(std::move(machine)) {}

  Result<Estimate> estimate(const Plan& plan) {
    const auto prepared = prepare(plan);
    if (!prepared) {
      return fail(prepared.error());
    }
    if ((*prepared)->maps.empty()) {
      (*prepared)->maps = maps_of((*prepared)->timed, Works::slowed);
    }
    const auto run = replay(**prepared);
    if (!run) {
      return fail(run.error());
    }
    if (run->step_time >= Time::max() / 4) {
      return fail("the step takes longer than 26 days, beyond the range of estimated time");
    }
    return parts_of(*run);
  }

  Result<Time> lower_bound(const Plan& plan) {
    const auto prepared = prepare(plan);
    if (!prepared) {
      return fail(prepared.error());
    }
    if ((*prepared)->least.empty()) {
      (*prepared)->least = maps_of((*prepared)->timed, Works::least);
    }
    return least_time(**prepared);
  }

 private:
  Result<const Machine*> machine_of(std::int64_t devices) {
    const auto found = machines_.find(devices);
    if (found != machines_.end()) {
      return &found->second;
    }
    auto fitted = with_devices(machine_, devices);
    if (!fitted) {
      return fail(std::move(fitted.error()));
    }
    return &machines_.emplace(devices, std::move(*fitted)).first->second;
  }

  Result<PreparedPlan*> prepare(const Plan& plan) {
    return prepared_.get(plan, [&]() -> Result<PreparedPlan> {
      const auto workload = lower(model_, plan);
      if (!workload) {
        return fail(workload.error());
      }
      const auto machine = machine_of(plan.devices());
      if (!machine) {
        return fail(machine.error());
      }
      if (auto has_all = check_machine(plan, **machine); !has_all) {
        return fail(std::move(has_all.error()));
      }
      PreparedPlan prepared{.timed = time_workload(*workload, **machine, plan, prices_),
                            .maps = {},
                            .least = {},
                            .lists = issue_lists(*workload)};
      if (prepared.timed.crosses && workload->programs.size() > 1) {
        share_among_stages(*workload, **machine, plan, prepared);
      }
      return prepared;
    });
  }

  /// Longer transfers meet more often: a second round comes within what a third would change.
  void share_among_stages(const Workload& workload, const Machine& machine, const Plan& plan,
                          PreparedPlan& prepared) {
    for (int round = 0; round < 2; ++round) {
      prepared.maps = maps_of(prepared.timed, Works::slowed);
      if (const auto run = replay(prepared)) {
        prepared.timed =
            time_workload(workload, machine, plan, prices_, meanwhile_of(prepared, *run));
      }
    }
    prepared.maps.clear();
  }

  Model model_;
  Machine machine_;
  std::unordered_map<std::int64_t, Machine> machines_;  // by devices
  Prices prices_;
  PlanMemo<PreparedPlan> prepared_;
};

Estimator::Estimator(Model model, Machine machine)
    : memo_(std::make_unique<Memo>(std::move(model), std::move(machine))) {}
Estimator::~Estimator() = default;
Estimator::Estimator(Estimator&&) noexcept = default;
Estimator& Estimator::operator=(Estimator&&) noexcept = default;

Result<Estimate> Estimator::estimate(const Plan& plan) {
  return memo_->estimate(plan);
}

Result<Time> Estimator::lower_bound(const Plan& plan) {
  return memo_->lower_bound(plan);
}

}  // namespace orrery
