// SPDX-License-Identifier: Apache-2.0
#include "estimate/estimate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "estimate/cost_tables.h"
#include "estimate/round_interval.h"
#include "workload/parallel/proportion.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/shares.h"

namespace orrery::estimate {

class Estimator::Memo {
 public:
  Memo(const zoo::Model& model, const machine::Machine& machine)
      : alike_(machine.parts.empty()), tables_(model, machine) {}

  Result<Interval> interval(const plan::Plan& plan) {
    Interval longest;
    Time least{0};
    const auto found = each_class(plan, [&](const plan::Plan& one, const Parts& parts) {
      return least_of(one, parts).and_then([&](Time bound) -> Result<void> {
        least = std::max(least, bound);
        const auto costs = tables_.of(one, Sharing::together, parts);
        if (!costs) {
          return fail(costs.error());
        }
        const Interval interval = mean_interval(one, *costs, composed_interval(one, *costs));
        longest = interval.value >= longest.value ? interval : longest;
        return {};
      });
    });
    if (!found) {
      return fail(found.error());
    }
    if (longest.value >= kLongest) {
      return fail("the step takes longer than 53 days, beyond the range of estimated time");
    }
    longest.least = least;
    longest.value = std::max(longest.value, least);
    longest.most = std::max(longest.most, longest.value);
    longest.tail = longest.value - longest.compute - longest.exposed - longest.bubble;
    return longest;
  }

  Result<Time> lower_bound(const plan::Plan& plan) {
    Time least{0};
    const auto found = each_class(plan, [&](const plan::Plan& one, const Parts& parts) {
      return least_of(one, parts).map([&](Time bound) { least = std::max(least, bound); });
    });
    if (!found) {
      return fail(found.error());
    }
    return least;
  }

  Result<std::int64_t> hiding(const plan::Plan& plan) {
    return check(plan)
        .and_then([&] { return tables_.of(plan, Sharing::together); })
        .map([&](const PlanCosts& costs) {
          return hiding_steps(plan, costs, composed_interval(plan, costs));
        });
  }

  Result<footprint::Fullest> memory(const plan::Plan& plan) {
    if (auto checked = check(plan); !checked) {
      return fail(std::move(checked.error()));
    }
    return tables_.memory().fullest(plan, *tables_.site(plan)->machine);
  }

 private:
  /// Device groups of the machine, by stage; empty: all devices are alike.
  using Parts = std::vector<std::size_t>;

  /// Half of what Time can say.
  static constexpr Time kLongest = Time(Time::max().value() / 2);

  Result<Time> least_of(const plan::Plan& plan, const Parts& parts) {
    return tables_.of(plan, Sharing::alone, parts).map([&](const PlanCosts& costs) {
      return least_mean(plan, costs, least_interval(plan, costs));
    });
  }

  /// Checks that the machine can run the plan.
  Result<void> check(const plan::Plan& plan) {
    if (auto checked = plan::check(plan, tables_.model()); !checked) {
      return checked;
    }
    const auto site = tables_.site(plan);
    return site ? plan::check_machine(plan, *site->machine) : fail(site.error());
  }

  /// Asks of every class of ranks, each checked.
  template <class Ask>
  Result<void> each_class(const plan::Plan& plan, const Ask& ask) {
    if (plan.batch_shares.empty() && alike_) {
      return check(plan).and_then([&] { return ask(plan, Parts()); });
    }
    const auto machine = tables_.fitted(plan);
    if (!machine) {
      return fail(machine.error());
    }
    const plan::Plan own = parallel::in_proportion(plan, tables_.model(), **machine);
    if (auto checked = check(own); !checked) {
      return checked;
    }
    for (const plan::RankClass& ranks : plan::rank_classes(own, **machine)) {
      const plan::Plan one = plan::with_microbatches(own, ranks.microbatches);
      auto asked = check(one).and_then(
          [&] { return ask(one, (*machine)->parts.empty() ? Parts() : ranks.parts); });
      if (!asked) {
        return asked;
      }
    }
    return {};
  }

  bool alike_;
  CostTables tables_;
};

Estimator::Estimator(const zoo::Model& model, const machine::Machine& machine)
    : memo_(std::make_unique<Memo>(model, machine)) {}
Estimator::~Estimator() = default;
Estimator::Estimator(Estimator&&) noexcept = default;
Estimator& Estimator::operator=(Estimator&&) noexcept = default;

Result<Interval> Estimator::interval(const plan::Plan& plan) {
  return memo_->interval(plan);
}

Result<Time> Estimator::lower_bound(const plan::Plan& plan) {
  return memo_->lower_bound(plan);
}

Result<std::int64_t> Estimator::hiding_local_steps(const plan::Plan& plan) {
  return memo_->hiding(plan);
}

Result<footprint::Fullest> Estimator::memory(const plan::Plan& plan) {
  return memo_->memory(plan);
}

}  // namespace orrery::estimate
