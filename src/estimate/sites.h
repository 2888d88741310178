// SPDX-License-Identifier: Apache-2.0
/// One machine as plans of different sizes and clocks see it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "estimate/prices.h"
#include "machine/device_groups.h"
#include "machine/dimensions_only.h"
#include "machine/machine.h"
#include "workload/parallel/block_workload.h"
#include "workload/parallel/step_clock.h"
#include "workload/plan/plan.h"
#include "workload/plan/plan_key.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

struct Site {
  const machine::Machine* machine;
  Prices* prices;                              ///< of the plan's clocks
  const std::vector<machine::Machine>* parts;  ///< with the devices of each part alone
  std::vector<Prices>* part_prices;            ///< of kernels on them
};

class Sites {
 public:
  /// The machine may have an open outer dimension; it is cut to each plan's devices.
  Sites(zoo::Model model, machine::Machine machine)
      : model_(std::move(model)), machine_(std::move(machine)) {}

  /// Returns the machine as a checked plan sees it. Valid as long as this. Mistakes: devices that
  /// the machine cannot have.
  Result<Site> of(const plan::Plan& plan) {
    const auto clocks = clocks_of(plan);
    if (!clocks) {
      return fail(clocks.error());
    }
    AtClocks& site = sites_[(*clocks)->clocks];
    auto found = site.machines.find({plan.parts, plan.devices()});
    if (found == site.machines.end()) {
      const auto usual = fitted(plan);
      if (!usual) {
        return fail(usual.error());
      }
      machine::Machine machine = **usual;
      set_rates(machine, (*clocks)->clocks);
      std::vector<machine::Machine> parts = machine::by_device_group(machine);
      found = site.machines
                  .try_emplace({plan.parts, plan.devices()}, std::move(machine), std::move(parts))
                  .first;
    }
    Fitted& own = found->second;
    return Site{&own.whole, &site.prices, &own.parts, &own.part_prices};
  }

  /// Returns the machine with the plan's devices and the clocks of the usual mix of kernels. As
  /// of().
  Result<const machine::Machine*> fitted(const plan::Plan& plan) {
    const std::pair<std::string, std::int64_t> size{plan.parts, plan.devices()};
    auto found = usual_.find(size);
    if (found == usual_.end()) {
      if (auto known = machine::check_dimensions_only(machine_, "estimate"); !known) {
        return fail(std::move(known.error()));
      }
      auto fitted = machine::arranged(machine_, plan.parts);
      if (fitted) {
        fitted = machine::with_devices(std::move(*fitted), plan.devices());
      }
      if (!fitted) {
        return fail(std::move(fitted.error()));
      }
      found = usual_.emplace(size, std::move(*fitted)).first;
    }
    return &found->second;
  }

  /// Returns what a microbatch's kernels draw above idle power (parallel::set_clocks). As of().
  Result<Energy> energy(const plan::Plan& plan) {
    return clocks_of(plan).map([](const StepClocks* step) { return step->energy; });
  }

  const machine::Machine& machine() const { return machine_; }

 private:
  /// Rates that are left of the kernel tables' and of attention's, by device group.
  using Clocks = std::vector<std::pair<double, double>>;
  struct StepClocks {
    Clocks clocks{};
    Energy energy{0};
  };

  static constexpr std::size_t kMostPlans = 65'536;

  /// Returns the clocks of the step of a checked plan, found once for all that have its blocks.
  /// Valid until the next question.
  Result<const StepClocks*> clocks_of(const plan::Plan& plan) {
    plan::Plan key = parallel::block_key(plan);
    key.order.clear();  // kernels do not know where they run
    const auto known = clocks_.find(key);
    if (known != clocks_.end()) {
      return &known->second;
    }
    const auto usual = fitted(plan);
    if (!usual) {
      return fail(usual.error());
    }
    machine::Machine machine = **usual;
    if (plan.clocks == plan::Clocks::boost) {
      machine = machine::at_boost(std::move(machine));
    }
    StepClocks step{.energy = parallel::set_clocks(machine, model_, plan)};
    machine::change_devices(machine, [&](const compute::Device& device) {
      step.clocks.emplace_back(device.clock, device.attention_clock);
    });
    if (clocks_.size() == kMostPlans) {
      clocks_.clear();
    }
    return &clocks_.emplace(std::move(key), std::move(step)).first->second;
  }

  static void set_rates(machine::Machine& machine, const Clocks& clocks) {
    std::size_t part = 0;
    machine::change_devices(machine, [&](compute::Device& device) {
      std::tie(device.clock, device.attention_clock) = clocks[part++];
    });
  }

  struct Fitted {
    Fitted(machine::Machine machine, std::vector<machine::Machine> of_parts)
        : whole(std::move(machine)), parts(std::move(of_parts)), part_prices(parts.size()) {}

    machine::Machine whole;
    std::vector<machine::Machine> parts;
    std::vector<Prices> part_prices;
  };
  struct AtClocks {
    Prices prices;
    std::map<std::pair<std::string, std::int64_t>, Fitted> machines;  // by parts and devices
  };
  zoo::Model model_;
  machine::Machine machine_;
  std::map<std::pair<std::string, std::int64_t>, machine::Machine> usual_;  // by parts and devices
  std::map<Clocks, AtClocks> sites_;
  std::unordered_map<plan::Plan, StepClocks, plan::PlanHash> clocks_;  // never iterated over
};

}  // namespace orrery::estimate
