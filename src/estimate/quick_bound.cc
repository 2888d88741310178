// SPDX-License-Identifier: Apache-2.0
#include "estimate/quick_bound.h"

#include <utility>

#include "estimate/cost_tables.h"
#include "estimate/least_step.h"
#include "estimate/round_interval.h"
#include "workload/plan/schedule.h"

namespace orrery::estimate {

class QuickBound::Memo {
 public:
  Memo(const zoo::Model& model, const machine::Machine& machine) : tables_(model, machine) {}

  Result<Time> least_time(const plan::Plan& plan) {
    return tables_.of(plan).map(
        [&](const PlanCosts& costs) { return least_mean(plan, costs, least_step(plan, costs)); });
  }

  Result<Time> least_busy(const plan::Plan& plan) {
    return tables_.of(plan).map([&](const PlanCosts& costs) {
      Time busy{0};
      for (const StagePasses& load : costs.loads) {
        busy += load.kernels;
      }
      return busy * plan::pipeline_shape(plan).microbatches / std::ssize(costs.parts);
    });
  }

  Result<Time> least_kernels(const plan::Plan& plan) { return tables_.mean_kernels(plan); }

  Result<Time> mean_step(const plan::Plan& plan) { return tables_.mean_step(plan); }

  Result<Bytes> least_states(const plan::Plan& plan) {
    const StageParts* parts = tables_.parts_of(plan);
    if (parts == nullptr) {
      return fail("a plan that check() accepts");
    }
    return mean_states(tables_.model(), plan, tables_.parameters_of(plan), *parts);
  }

  Result<Energy> least_energy(const plan::Plan& plan) { return tables_.kernel_energy(plan); }

  Result<Bytes> least_memory(const plan::Plan& plan) {
    const auto machine = tables_.fitted(plan);  // memory knows no clocks
    if (!machine || tables_.parts_of(plan) == nullptr) {
      return fail(machine ? Error("a plan that check() accepts") : machine.error());
    }
    return tables_.memory().least(plan, **machine);
  }

 private:
  CostTables tables_;
};

QuickBound::QuickBound(const zoo::Model& model, const machine::Machine& machine)
    : memo_(std::make_unique<Memo>(model, machine)) {}
QuickBound::~QuickBound() = default;
QuickBound::QuickBound(QuickBound&&) noexcept = default;
QuickBound& QuickBound::operator=(QuickBound&&) noexcept = default;

Result<Time> QuickBound::least_time(const plan::Plan& plan) {
  return memo_->least_time(plan);
}

Result<Time> QuickBound::least_kernels(const plan::Plan& plan) {
  return memo_->least_kernels(plan);
}

Result<Time> QuickBound::mean_step(const plan::Plan& plan) {
  return memo_->mean_step(plan);
}

Result<Bytes> QuickBound::least_states(const plan::Plan& plan) {
  return memo_->least_states(plan);
}

Result<Time> QuickBound::least_busy(const plan::Plan& plan) {
  return memo_->least_busy(plan);
}

Result<Energy> QuickBound::least_energy(const plan::Plan& plan) {
  return memo_->least_energy(plan);
}

Result<Bytes> QuickBound::least_memory(const plan::Plan& plan) {
  return memo_->least_memory(plan);
}

}  // namespace orrery::estimate
