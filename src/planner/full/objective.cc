// SPDX-License-Identifier: Apache-2.0
#include "planner/full/objective.h"

#include <algorithm>

#include "machine/compute/clock.h"
#include "machine/device_groups.h"
#include "study/energy.h"

namespace orrery::full {

Result<void> check_objective(Objective objective, const machine::Machine& machine) {
  const std::string name(name_of(objective));
  if (objective == Objective::tokens_per_joule) {
    if (auto alike = machine::check_alike(machine, "--objective " + name); !alike) {
      return alike;
    }
  }
  if (objective == Objective::tokens_per_joule && compute::is_unknown(machine.device.power)) {
    return fail(Error(Mistake{"--objective", {}, name, "a machine that states its device.power"}));
  }
  if (objective == Objective::cost && compute::is_unknown(machine.device.price_per_hour)) {
    return fail(
        Error(Mistake{"--objective", {}, name, "a machine that states its device.price_per_hour"}));
  }
  return {};
}

Score::Score(Objective objective, const machine::Machine& machine, estimate::QuickBound& bounds)
    : bounds_(bounds) {
  if (objective == Objective::tokens_per_joule) {
    const compute::Device& device = machine.device;
    idle_ = std::clamp(device.idle_power / device.power, 0.0, 1.0);
    cap_ = compute::cap_of(device) / device.power;
    power_ = device.power_model.known() ? device.power : Power(0);
  }
}

Time Score::of(const plan::Plan& plan, Time step) const {
  if (idle_ >= 1) {
    return step;
  }
  if (power_ > Power(0)) {
    const auto kernels = bounds_.least_energy(plan);
    const double drawn = kernels ? kernels->value() / power_.value() : 0;
    return std::min(step * idle_ + from_seconds(drawn), step * cap_);
  }
  const auto busy = bounds_.least_busy(plan);
  return step * idle_ + (busy ? *busy : Time(0)) * (1 - idle_);
}

Result<Time> Score::least(const plan::Plan& plan) const {
  return bounds_.least_time(plan).map([&](Time least) { return of(plan, least); });
}

Time Score::of(const study::Run& run) const {
  const auto energy = idle_ >= 1 ? std::nullopt : study::energy_of(run);
  return energy ? from_seconds(energy->total().value() / (run.machine.device.power.value() *
                                                          static_cast<double>(run.devices)))
                : run.timeline.step_time;
}

}  // namespace orrery::full
