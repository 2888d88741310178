// SPDX-License-Identifier: Apache-2.0
#include "estimate/estimate.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "estimate/lower_bound.h"
#include "estimate/meanwhile.h"
#include "estimate/plan_memo.h"
#include "estimate/replay.h"
#include "estimate/shared_links.h"
#include "estimate/sites.h"
#include "workload/parallel/lower.h"
#include "workload/plan/layout.h"
#include "workload/plan/machine_check.h"

namespace orrery::estimate {
namespace {

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
  Memo(zoo::Model model, machine::Machine machine)
      : model_(std::move(model)),
        sites_(std::move(machine)),
        crossing_(std::any_of(sites_.machine().network.begin(), sites_.machine().network.end(),
                              is_shared)) {}

  Result<Estimate> estimate(const plan::Plan& plan) {
    auto prepared = prepare(plan);
    if (!prepared) {
      return fail(std::move(prepared.error()));
    }
    TimedPlan& timed = *prepared->timed;
    if (timed.maps.empty()) {
      timed.maps = maps_of(timed.timed, Works::slowed);
    }
    const auto run = replay({timed.timed, timed.maps, timed.least, *prepared->lists});
    if (!run) {
      return fail(run.error());
    }
    if (run->step_time >= Time::max() / 4) {
      return fail("the step takes longer than 26 days, beyond the range of estimated time");
    }
    return parts_of(*run);
  }

  Result<Time> lower_bound(const plan::Plan& plan) {
    auto prepared = prepare(plan);
    if (!prepared) {
      return fail(std::move(prepared.error()));
    }
    TimedPlan& timed = *prepared->timed;
    if (timed.least.empty()) {
      timed.least = maps_of(timed.timed, Works::least);
    }
    return least_time({timed.timed, timed.maps, timed.least, *prepared->lists});
  }

 private:
  struct Lowered {
    graph::Workload workload;
    plan::Plan plan;                    ///< that it was lowered for
    std::optional<IssueRules> rules{};  ///< made when another plan asks
  };
  struct Prepared {
    TimedPlan* timed = nullptr;
    const IssueLists* lists = nullptr;
  };

  /// The same templates for every global batch, placement and algorithm.
  Result<Lowered*> lowered(const plan::Plan& plan, bool anew) {
    plan::Plan key = plan;
    key.global_batch = 0;
    key.order = {};
    key.tp_algorithm = key.dp_algorithm = collective::CollectiveAlgorithm::automatic;
    if (anew) {
      lowered_.forget(key);
    }
    return lowered_.get(key, [&]() -> Result<Lowered> {
      auto workload =
          parallel::lower(model_, plan, {.skip = {}, .observe = {}, .verify = false, .bare = true});
      if (!workload) {
        return fail(std::move(workload.error()));
      }
      return Lowered{std::move(*workload), plan};
    });
  }

  /// Of the plan that was lowered, or of one that differs in what does not shape templates.
  static std::optional<IssueLists> lists_of(const plan::Plan& plan, Lowered& lowered) {
    if (plan.global_batch == lowered.plan.global_batch) {
      return issue_lists(lowered.workload);
    }
    if (!lowered.rules) {
      lowered.rules.emplace(lowered.workload, lowered.plan);
    }
    return lowered.rules->lists(plan);
  }

  Result<Prepared> prepare(const plan::Plan& plan) {
    if (auto checked = plan::check(plan, model_); !checked) {
      return fail(std::move(checked.error()));
    }
    Result<Lowered*> source = lowered(plan, false);
    if (!source) {
      return fail(source.error());
    }
    if (auto lists = lists_of(plan, **source)) {
      lists_ = std::move(*lists);
    } else {  // more or fewer microbatches have other pieces of work
      source = lowered(plan, true);
      if (!source) {
        return fail(source.error());
      }
      lists_ = issue_lists((*source)->workload);
    }
    plan::Plan key = plan;
    key.global_batch = crossing_ ? plan.global_batch : 0;
    auto timed = timed_.get(key, [&] { return time(plan, (*source)->workload, lists_); });
    if (!timed) {
      return fail(std::move(timed.error()));
    }
    return Prepared{*timed, &lists_};
  }

  Result<TimedPlan> time(const plan::Plan& plan, const graph::Workload& workload,
                         const IssueLists& lists) {
    const auto site = sites_.of(plan);
    if (!site) {
      return fail(site.error());
    }
    if (auto has_all = plan::check_machine(plan, *site->machine); !has_all) {
      return fail(std::move(has_all.error()));
    }
    const Placing placing{plan::layout_of(plan, model_.experts > 0), plan::algorithms_of(plan)};
    TimedPlan timed{.timed = time_workload(workload, *site->machine, placing, *site->prices),
                    .maps = {},
                    .least = {}};
    if (timed.timed.crosses && workload.roles.size() > 1) {
      share_among_stages(placing, workload, *site, lists, timed);
    }
    return timed;
  }

  /// Longer transfers meet more often: a second round comes within what a third would change.
  void share_among_stages(const Placing& placing, const graph::Workload& workload, const Site& site,
                          const IssueLists& lists, TimedPlan& timed) {
    for (int round = 0; round < 2; ++round) {
      timed.maps = maps_of(timed.timed, Works::slowed);
      const PreparedPlan prepared{timed.timed, timed.maps, timed.least, lists};
      if (const auto run = replay(prepared)) {
        timed.timed = time_workload(workload, *site.machine, placing, *site.prices,
                                    meanwhile_of(prepared, *run));
      }
    }
    timed.maps.clear();
  }

  zoo::Model model_;
  Sites sites_;
  bool crossing_ = false;  ///< how often stages meet depends on the number of microbatches
  PlanMemo<Lowered> lowered_;
  PlanMemo<TimedPlan> timed_;
  IssueLists lists_;  // of the plan at hand
};

Estimator::Estimator(zoo::Model model, machine::Machine machine)
    : memo_(std::make_unique<Memo>(std::move(model), std::move(machine))) {}
Estimator::~Estimator() = default;
Estimator::Estimator(Estimator&&) noexcept = default;
Estimator& Estimator::operator=(Estimator&&) noexcept = default;

Result<Estimate> Estimator::estimate(const plan::Plan& plan) {
  return memo_->estimate(plan);
}

Result<Time> Estimator::lower_bound(const plan::Plan& plan) {
  return memo_->lower_bound(plan);
}

}  // namespace orrery::estimate
