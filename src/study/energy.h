// SPDX-License-Identifier: Apache-2.0
/// A step costs energy and money.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "study/run.h"

namespace orrery::study {

/// Energy of one step, all N devices together. With T the step time, P0 a device's idle power and x
/// the clock of the step (compute/clock.h):
///
///   idle           = N P0 T
///   kernels        = sum over devices of what kernels draw above idle power, by kind and load
///                    (compute::energy_above_idle), with all bytes of the first memory tier
///   communication  = sum over devices of busy_power x^a times the time in which only
///                    communication runs
///   lower_memory   = bytes through memory tiers below the first * their energy_per_byte
///   links          = bytes sent over each network dimension * its energy_per_byte
///
/// Where kernels and communication come out above what the cap leaves, they are the cap's: hence
/// N P0 T <= idle + kernels + communication <= N cap T. Of a device without a power model kernels
/// draw its design power P and communication P0 + (P - P0) overlap_units. `device_memory` is a part
/// of the first three, at most all of them.
///
/// Ignores: what hosts, switches that state no energy, cooling and power supplies draw (PUE). An
/// energy that the machine does not state counts as 0.
struct StepEnergy {
  Energy idle{0};
  Energy kernels{0};
  Energy communication{0};
  Energy lower_memory{0};
  std::vector<Energy> links;  ///< by network dimension
  Energy device_memory{0};    ///< part of the first three

  Energy device() const { return idle + kernels + communication; }
  Energy total() const;
  /// Returns the power of one device alone, without links and lower memory tiers.
  Power average_power(const Run& run) const;
};

/// Returns the energy of a step; nothing when the machine does not state its power.
std::optional<StepEnergy> energy_of(const Run& run);

/// per_step = devices * T * price_per_hour.
struct StepCost {
  Money price_per_hour{0};  ///< of one device
  Money per_step{0};
  Money per_million_tokens{0};
};

/// Returns the price of a step; nothing when the machine does not state its price.
std::optional<StepCost> cost_of(const Run& run);

/// Returns the number of tokens of one step.
double tokens_of(const Run& run);

}  // namespace orrery::study
