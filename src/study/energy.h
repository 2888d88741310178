// SPDX-License-Identifier: Apache-2.0
/// A step costs energy and money.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "study/run.h"

namespace orrery::study {

/// Energy of one step, all N devices together. With T the step time, P the device's power (TDP) and
/// P0 its idle power:
///
///   idle           = N P0 T
///   kernels        = sum over devices of (P - P0) * time in which kernels run
///   communication  = sum over devices of (P - P0) * overlap_units * time in which only
///                    communication runs (overlap_units: the share of units that it takes)
///   lower_memory   = bytes through memory tiers below the first * their energy_per_byte
///   links          = bytes sent over each network dimension * its energy_per_byte
///
/// P includes the first memory tier (the power limit of an accelerator is that of its board), so
/// its bytes add nothing: `device_memory` is a part of the first three, at most all of them. Hence
/// N P0 T <= idle + kernels + communication <= N P T.
///
/// Ignores: kernels that draw less than P (memory-bound ones, small ones); what hosts, switches
/// that state no energy, cooling and power supplies draw (PUE). An energy that the machine does not
/// state counts as 0.
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

/// Nothing when the machine does not state its power.
std::optional<StepEnergy> energy_of(const WorkloadRun& run);

/// per_step = devices * T * price_per_hour.
struct StepCost {
  Money price_per_hour{0};  ///< of one device
  Money per_step{0};
  Money per_million_tokens{0};
};

/// Nothing when the machine does not state its price.
std::optional<StepCost> cost_of(const Run& run);

/// Tokens of one step.
double tokens_of(const Run& run);

}  // namespace orrery::study
