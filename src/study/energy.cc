// SPDX-License-Identifier: Apache-2.0
#include "study/energy.h"

#include <algorithm>
#include <cmath>

#include "machine/compute/clock.h"
#include "study/traffic.h"

namespace orrery::study {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kMillion = 1e6;

/// Device-seconds that all devices spend in the categories. A simulated rank stands for as many
/// as any other: folding leaves out whole classes of one size.
template <class Includes>
double device_seconds(const simulate::Timeline& timeline, std::int64_t devices,
                      const Includes& includes) {
  double seconds = 0;
  for (const simulate::Breakdown& rank : timeline.by_rank) {
    for (std::size_t row = 0; row < rank.time.size(); ++row) {
      seconds += includes(row) ? to_seconds(rank.time[row]) : 0;
    }
  }
  return timeline.by_rank.empty() ? 0
                                  : seconds * static_cast<double>(devices) /
                                        static_cast<double>(timeline.by_rank.size());
}

Energy energy_of_bytes(EnergyPerByte cost, double bytes) {
  return Energy(cost.value() * bytes);
}

}  // namespace

Energy StepEnergy::total() const {
  Energy sum = device() + lower_memory;
  for (const Energy energy : links) {
    sum += energy;
  }
  return sum;
}

Power StepEnergy::average_power(const Run& run) const {
  const double device_seconds =
      static_cast<double>(run.devices) * to_seconds(run.timeline.step_time);
  return device_seconds > 0 ? Power(device().value() / device_seconds) : Power(0);
}

namespace {

/// Returns what the kernels of all devices draw, copies of the first memory tier included.
Energy energy_of_kernels(const Run& run, const Traffic& traffic) {
  Energy sum{0};
  double bytes = 0;
  for (std::size_t i = 0; i < traffic.kernels.size(); ++i) {
    const compute::Device& device =
        run.machine.parts.empty() ? run.machine.device : run.machine.parts[i].device;
    sum += compute::energy_above_idle(traffic.kernels[i], device.full_clock, device);
    bytes += traffic.kernels[i].bytes;
  }
  const EnergyPerByte memory = run.machine.device.power_model.memory_energy;
  return sum + energy_of_bytes(memory, std::max(0.0, traffic.tiers.front() - bytes));
}

}  // namespace

std::optional<StepEnergy> energy_of(const Run& run) {
  const compute::Device& device = run.machine.device;
  if (compute::is_unknown(device.power)) {
    return std::nullopt;
  }
  const compute::PowerModel& model = device.power_model;
  const double dynamic = device.power.value() - device.idle_power.value();
  const simulate::TimeCategories& categories = run.timeline.categories;
  const Traffic traffic = traffic_of(run.workload, run.machine, run.algorithms);
  StepEnergy energy;
  energy.idle = device.idle_power * run.timeline.step_time * run.devices;
  const double computing = device_seconds(
      run.timeline, run.devices, [&](std::size_t row) { return categories.is_phase(row); });
  const double waiting = device_seconds(
      run.timeline, run.devices, [&](std::size_t row) { return categories.is_exposed(row); });
  energy.kernels = model.known() ? energy_of_kernels(run, traffic) : Energy(dynamic * computing);
  energy.communication =
      Energy(waiting * (model.known() ? model.busy_power.value() *
                                            std::pow(device.full_clock, model.power_exponent)
                                      : dynamic * device.overlap_units));
  const Energy most = compute::cap_of(device) * run.timeline.step_time * run.devices - energy.idle;
  energy.kernels = std::min(energy.kernels, most);
  energy.communication = std::min(energy.communication, most - energy.kernels);
  for (std::size_t i = 0; i < traffic.tiers.size(); ++i) {
    const Energy moved = energy_of_bytes(device.memory[i].energy_per_byte, traffic.tiers[i]);
    (i == 0 ? energy.device_memory : energy.lower_memory) += moved;
  }
  energy.device_memory = std::min(energy.device_memory, energy.device());
  for (std::size_t i = 0; i < traffic.links.size(); ++i) {
    energy.links.push_back(
        energy_of_bytes(run.machine.network[i].energy_per_byte, traffic.links[i]));
  }
  return energy;
}

std::optional<StepCost> cost_of(const Run& run) {
  const Money price = run.machine.device.price_per_hour;
  if (compute::is_unknown(price)) {
    return std::nullopt;
  }
  const double hours = to_seconds(run.timeline.step_time) / kSecondsPerHour;
  StepCost cost{.price_per_hour = price};
  cost.per_step = price * (hours * static_cast<double>(run.devices));
  const double tokens = tokens_of(run);
  cost.per_million_tokens = tokens > 0 ? cost.per_step * (kMillion / tokens) : Money(0);
  return cost;
}

double tokens_of(const Run& run) {
  return run.tokens_per_s * to_seconds(run.timeline.step_time);
}

}  // namespace orrery::study
