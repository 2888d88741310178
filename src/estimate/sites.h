// SPDX-License-Identifier: Apache-2.0
/// One machine as plans of different sizes and clocks see it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "base/result.h"
#include "estimate/prices.h"
#include "machine/dimensions_only.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"

namespace orrery::estimate {

struct Site {
  const machine::Machine* machine;
  Prices* prices;  ///< of the plan's clocks
};

class Sites {
 public:
  /// The machine may have an open outer dimension; it is cut to each plan's devices.
  explicit Sites(machine::Machine machine) : machine_(std::move(machine)) {}

  /// Valid as long as this. Mistakes: devices that the machine cannot have.
  Result<Site> of(const plan::Plan& plan) {
    AtClocks& site = sites_[static_cast<std::size_t>(plan.clocks)];
    auto found = site.machines.find(plan.devices());
    if (found == site.machines.end()) {
      if (auto known = machine::check_dimensions_only(machine_, "estimate"); !known) {
        return fail(std::move(known.error()));
      }
      auto fitted = machine::with_devices(machine_, plan.devices());
      if (!fitted) {
        return fail(std::move(fitted.error()));
      }
      if (plan.clocks == plan::Clocks::boost) {
        fitted->device = compute::at_boost(std::move(fitted->device));
      }
      found = site.machines.emplace(plan.devices(), std::move(*fitted)).first;
    }
    return Site{&found->second, &site.prices};
  }

  const machine::Machine& machine() const { return machine_; }

 private:
  struct AtClocks {
    Prices prices;
    std::map<std::int64_t, machine::Machine> machines;  // by devices
  };
  machine::Machine machine_;
  std::array<AtClocks, kNames<plan::Clocks>.size()> sites_;
};

}  // namespace orrery::estimate
