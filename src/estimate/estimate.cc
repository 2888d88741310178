// SPDX-License-Identifier: Apache-2.0
#include "estimate/estimate.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "estimate/answers.h"
#include "estimate/event_run.h"
#include "estimate/lower_bound.h"
#include "estimate/meanwhile.h"
#include "estimate/plan_memo.h"
#include "estimate/replay.h"
#include "estimate/shared_links.h"
#include "estimate/sites.h"
#include "estimate/template_tables.h"
#include "workload/memory/memory_tables.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/outline.h"
#include "workload/parallel/proportion.h"
#include "workload/plan/layout.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/shares.h"

namespace orrery::estimate {
namespace {

/// Steps of templates that are kept, some 25 MB: a sweep comes back to most of them soon.
constexpr std::size_t kMostSteps = 250'000;
/// Plans whose outlines are kept, of a MB each, and whose timed templates are.
constexpr std::size_t kMostOutlines = 8;
constexpr std::size_t kMostTimed = 32;

}  // namespace

class Estimator::Memo {
 public:
  Memo(zoo::Model model, machine::Machine machine)
      : model_(std::move(model)),
        sites_(std::move(machine)),
        crossing_(std::any_of(sites_.machine().network.begin(), sites_.machine().network.end(),
                              is_shared)) {}

  Result<Estimate> estimate(const plan::Plan& plan, Time limit) {
    Time at_least{0};
    if (plan.pp > 1) {
      const Estimate* maps = maps_of(plan);
      if (maps != nullptr && (!maps->rough || maps->is_far_beyond(limit))) {
        return within_range(*maps);
      }
      at_least = maps == nullptr ? Time(0) : maps->at_least;
    }
    if (const Answer* known = answers_.find(plan); known != nullptr && known->estimate) {
      return *known->estimate;
    }
    auto slowest = slowest_of(plan, true).and_then(within_range);
    if (slowest) {
      slowest->at_least = at_least;
      answers_.of(plan).estimate = *slowest;
    }
    return slowest;
  }

  Result<footprint::Fullest> memory(const plan::Plan& plan) {
    return answers_.memory(plan, [&]() -> Result<footprint::Fullest> {
      if (auto checked = check(plan); !checked) {
        return fail(std::move(checked.error()));
      }
      return memory_.fullest(plan, *sites_.of(plan)->machine);
    });
  }

  Result<Time> lower_bound(const plan::Plan& plan) {
    return each_class(plan, [&](const plan::Plan& one) { return least_of(one); });
  }

 private:
  /// Without events. Null: a mistake.
  const Estimate* maps_of(const plan::Plan& plan) {
    if (const Answer* known = answers_.find(plan); known != nullptr && known->maps) {
      return &*known->maps;
    }
    auto slowest = slowest_of(plan, false);
    if (!slowest) {
      return nullptr;
    }
    const double above = most_above_events(plan);
    slowest->rough = above > 0;
    slowest->at_least = slowest->rough ? slowest->step_time / above : Time(0);
    return &*(answers_.of(plan).maps = *slowest);
  }

  /// Of all classes of ranks.
  Result<Estimate> slowest_of(const plan::Plan& plan, bool may_run) {
    Estimate slowest;
    const auto classes = each_class(plan, [&](const plan::Plan& one) -> Result<Time> {
      const auto estimate = estimate_of(one, may_run);
      if (!estimate) {
        return fail(estimate.error());
      }
      if (estimate->step_time >= slowest.step_time) {
        slowest = *estimate;
      }
      return estimate->step_time;
    });
    if (!classes) {
      return fail(classes.error());
    }
    return slowest;
  }

  /// Of one class; `may_run`: by events.
  Result<Estimate> estimate_of(const plan::Plan& plan, bool may_run) {
    if (may_run && most_above_events(plan) > 0) {
      return run_by_events(model_, plan, *sites_.of(plan)->machine);
    }
    auto run = replayed(plan, short_of(plan));
    if (run && !run->whole) {
      run = replayed(plan, {plan, 0});
    }
    if (!run) {
      return fail(std::move(run.error()));
    }
    return parts_of(*run);
  }

  /// Of a checked plan: how far maps may be above events (event_run.h).
  double most_above_events(const plan::Plan& plan) {
    const auto site = sites_.of(plan);
    if (!site || !runs_by_events(plan, *site->machine)) {
      return 0;
    }
    if (plan.pp == 1 || has_lines(*site->machine)) {
      return most_above_on_lines(plan, *site->machine);
    }
    const auto prepared = prepare(plan, short_of(plan));
    if (!prepared) {
      return 0;
    }
    map_templates(*prepared->timed, Works::slowed);
    return estimate::most_above_events(plan, *prepared->timed);
  }

  /// Whether its machine can run the plan.
  Result<void> check(const plan::Plan& plan) {
    if (auto checked = plan::check(plan, model_); !checked) {
      return checked;
    }
    const auto site = sites_.of(plan);
    return site ? plan::check_machine(plan, *site->machine) : fail(site.error());
  }

  /// The longest time of any class of ranks, each checked: all meet at the end of the step.
  template <class TimeOf>
  Result<Time> each_class(const plan::Plan& plan, const TimeOf& time_of) {
    devices_.clear();
    if (plan.batch_shares.empty() && sites_.machine().parts.empty()) {
      auto checked = check(plan);
      return checked ? time_of(plan) : fail(std::move(checked.error()));
    }
    const auto site = sites_.of(plan);
    if (!site) {
      return fail(site.error());
    }
    const plan::Plan own = parallel::in_proportion(plan, model_, *site->machine);
    if (auto checked = check(own); !checked) {
      return fail(std::move(checked.error()));
    }
    Time longest{0};
    for (plan::RankClass& ranks : plan::rank_classes(own, *site->machine)) {
      devices_ = site->machine->parts.empty() ? std::vector<std::size_t>() : std::move(ranks.parts);
      const plan::Plan one = plan::with_microbatches(own, ranks.microbatches);
      if (auto checked = check(one); !checked) {
        return fail(std::move(checked.error()));
      }
      const auto time = time_of(one);
      if (!time) {
        return fail(time.error());
      }
      longest = std::max(longest, *time);
    }
    return longest;
  }

  Result<Time> least_of(const plan::Plan& plan) {
    const ShortPlan listed = short_of(plan);
    auto prepared = prepare(plan, listed);
    if (prepared && listed.omitted > 0 && prepared->lists->repetition.length == 0) {
      prepared = prepare(plan, {plan, 0});
    }
    if (!prepared) {
      return fail(std::move(prepared.error()));
    }
    map_templates(*prepared->timed, Works::least);
    return least_time({*prepared->timed, *prepared->lists});
  }

  struct Lowered {
    parallel::Outline outline;
    plan::Plan plan;                    ///< that it was made for
    std::optional<IssueRules> rules{};  ///< made when another plan asks
    std::optional<IssueLists> lists{};  ///< asked for last
    std::int64_t listed_batch = 0;      ///< of the plan that they are for
  };
  struct Prepared {
    TimedWorkload* timed = nullptr;
    const IssueLists* lists = nullptr;
  };
  /// A plan whose nodes a pass over its workload changes.
  struct Whole {
    TimedWorkload timed;
    IssueLists lists;
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
      auto outline = parallel::outline(model_, plan);
      if (!outline) {
        return fail(std::move(outline.error()));
      }
      return Lowered{std::move(*outline), plan};
    });
  }

  /// Whole where what a plan's replay finds is kept for its times (share_among_stages).
  ShortPlan short_of(const plan::Plan& plan) const {
    return crossing_ ? ShortPlan{plan, 0} : shortened(plan);
  }

  Result<ReplayResult> replayed(const plan::Plan& plan, const ShortPlan& listed) {
    auto prepared = prepare(plan, listed);
    if (!prepared) {
      return fail(std::move(prepared.error()));
    }
    map_templates(*prepared->timed, Works::slowed);
    return replay({*prepared->timed, *prepared->lists});
  }

  /// Of the plan that was lowered, or of one that differs in what does not shape templates.
  /// Null: that has other templates.
  static const IssueLists* list(const ShortPlan& listed, Lowered& lowered) {
    const plan::Plan& plan = listed.plan;
    if (!lowered.lists || lowered.listed_batch != plan.global_batch) {
      if (plan.global_batch == lowered.plan.global_batch) {
        const parallel::StepLists& lists = lowered.outline.lists;
        lowered.lists = issue_lists(*lists.source, lists.program_of.size());
      } else {
        if (!lowered.rules) {
          lowered.rules.emplace(*lowered.outline.lists.source, lowered.plan);
        }
        lowered.lists = lowered.rules->lists(plan);
      }
      lowered.listed_batch = plan.global_batch;
    }
    if (!lowered.lists) {
      return nullptr;
    }
    lowered.lists->repetition.omitted = listed.omitted;
    return &*lowered.lists;
  }

  /// Of a checked plan, with lists that may lack rounds.
  Result<Prepared> prepare(const plan::Plan& plan, const ShortPlan& listed) {
    if (plan.fuse_communication) {
      auto whole = wholes_[devices_].get(listed.plan, [&] { return lowered_whole(listed.plan); });
      if (!whole) {
        return fail(std::move(whole.error()));
      }
      (*whole)->lists.repetition.omitted = listed.omitted;
      return Prepared{&(*whole)->timed, &(*whole)->lists};
    }
    Result<Lowered*> source = lowered(listed.plan, false);
    if (!source) {
      return fail(source.error());
    }
    const IssueLists* lists = list(listed, **source);
    if (lists == nullptr) {  // more or fewer microbatches have other pieces of work
      source = lowered(listed.plan, true);
      if (!source) {
        return fail(source.error());
      }
      timed_.clear();  // their templates have other numbers
      lists = list(listed, **source);
    }
    plan::Plan key = plan;
    key.global_batch = crossing_ ? plan.global_batch : 0;
    auto timed = timed_[devices_].get(key, [&] { return time(plan, (*source)->outline, *lists); });
    if (!timed) {
      return fail(std::move(timed.error()));
    }
    return Prepared{*timed, lists};
  }

  Result<TimedWorkload> time(const plan::Plan& plan, const parallel::Outline& outline,
                             const IssueLists& lists) {
    if (tables_->size() > kMostSteps) {
      tables_ = std::make_unique<TemplateTables>();
    }
    return with_timing(plan, [&](Timing& timing) {
      TimedWorkload timed = time_outline(outline, timing, *tables_);
      if (timed.crosses && timed.roles.size() > 1) {
        share_among_stages(outline, lists, timing, timed);
      }
      return timed;
    });
  }

  Result<Whole> lowered_whole(const plan::Plan& plan) {
    const auto site = sites_.of(plan);
    if (!site) {
      return fail(site.error());
    }
    const auto workload = parallel::lower(
        model_, plan,
        {.skip = {}, .observe = {}, .machine = site->machine, .fuse_communication = false});
    if (!workload) {
      return fail(workload.error());
    }
    auto timed =
        with_timing(plan, [&](const Timing& timing) { return time_workload(*workload, timing); });
    if (!timed) {
      return fail(std::move(timed.error()));
    }
    return Whole{std::move(*timed), issue_lists(*workload->source->list(), workload->roles.size())};
  }

  template <class TimeWith>
  Result<TimedWorkload> with_timing(const plan::Plan& plan, const TimeWith& time_with) {
    const auto site = sites_.of(plan);
    if (!site) {
      return fail(site.error());
    }
    const collective::AlgorithmChoice algorithms = plan::algorithms_of(plan);
    const StageDevices devices{*site->parts, *site->part_prices, devices_};
    Timing timing{
        .placement = placements_.of(plan::layout_of(plan, model_.experts > 0), *site->machine),
        .algorithms = algorithms,
        .prices = *site->prices,
        .devices = devices_.empty() ? nullptr : &devices};
    return time_with(timing);
  }

  /// Longer transfers meet more often: a second round comes within what a third would change.
  void share_among_stages(const parallel::Outline& outline, const IssueLists& lists, Timing& timing,
                          TimedWorkload& timed) {
    for (int round = 0; round < 2; ++round) {
      map_templates(timed, Works::slowed);
      const PreparedPlan prepared{timed, lists};
      if (const auto run = replay(prepared)) {
        timing.meanwhile = meanwhile_of(*run);
        timed = time_outline(outline, timing, *tables_);
      }
    }
  }

  zoo::Model model_;
  Sites sites_;
  bool crossing_ = false;  ///< how often stages meet depends on the number of microbatches
  PlanMemo<Lowered, kMostOutlines> lowered_;
  std::map<std::vector<std::size_t>, PlanMemo<Whole, kMostOutlines>> wholes_;  ///< by devices
  std::vector<std::size_t> devices_;  ///< by stage: parts of the machine; empty: all alike
  std::map<std::vector<std::size_t>, PlanMemo<TimedWorkload, kMostTimed>> timed_;  ///< by devices
  Placements placements_;
  std::unique_ptr<TemplateTables> tables_ = std::make_unique<TemplateTables>();
  footprint::MemoryTables memory_{model_};
  Answers answers_;
};

Estimator::Estimator(zoo::Model model, machine::Machine machine)
    : memo_(std::make_unique<Memo>(std::move(model), std::move(machine))) {}
Estimator::~Estimator() = default;
Estimator::Estimator(Estimator&&) noexcept = default;
Estimator& Estimator::operator=(Estimator&&) noexcept = default;

Result<Estimate> Estimator::estimate(const plan::Plan& plan, Time limit) {
  return memo_->estimate(plan, limit);
}

Result<footprint::Fullest> Estimator::memory(const plan::Plan& plan) {
  return memo_->memory(plan);
}

Result<Time> Estimator::lower_bound(const plan::Plan& plan) {
  return memo_->lower_bound(plan);
}

}  // namespace orrery::estimate
