// SPDX-License-Identifier: Apache-2.0
/// One machine as plans of different sizes and clocks see it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "estimate/prices.h"
#include "machine/device_groups.h"
#include "machine/dimensions_only.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"

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
  explicit Sites(machine::Machine machine) : machine_(std::move(machine)) {}

  /// Valid as long as this. Mistakes: devices that the machine cannot have.
  Result<Site> of(const plan::Plan& plan) {
    AtClocks& site = sites_[static_cast<std::size_t>(plan.clocks)];
    auto found = site.machines.find({plan.parts, plan.devices()});
    if (found == site.machines.end()) {
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
      if (plan.clocks == plan::Clocks::boost) {
        *fitted = machine::at_boost(std::move(*fitted));
      }
      std::vector<machine::Machine> parts = machine::by_device_group(*fitted);
      found = site.machines
                  .try_emplace({plan.parts, plan.devices()}, std::move(*fitted), std::move(parts))
                  .first;
    }
    Fitted& own = found->second;
    return Site{&own.whole, &site.prices, &own.parts, &own.part_prices};
  }

  const machine::Machine& machine() const { return machine_; }

 private:
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
  machine::Machine machine_;
  std::array<AtClocks, kNames<plan::Clocks>.size()> sites_;
};

}  // namespace orrery::estimate
