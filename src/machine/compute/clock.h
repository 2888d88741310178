// SPDX-License-Identifier: Apache-2.0
/// The power of kernels against a device's cap gives one clock for a step, its power and energy.
///
/// With x the clock over full clock, c = min(sustained_clock, x / table_clock) the rate that is
/// left of the kernel tables', c_a the same with attention_table_clock, and sums over the kernels
/// of a step:
///
///   C        seconds that get longer as the clock falls, at the tables' rate
///   A        those of them in attention
///   busy     seconds with a kernel running, launches left out
///   J        K (FLOPs / R) of products and attention: joules of the matrix units at full clock;
///            decode attention K_d (bytes / bandwidth)
///   M        bytes of the first memory tier
///   R        peak full_clock_rate, of the kernel's type
///   L(x)     (C - A) (1/c - 1) + A (1/c_a - 1)
///   T(x)     T + L(x)
///   E(x)     P0 T(x) + k_b x^a (busy + L(x)) + J x^(a-1) + k_m M
///   P(x)     E(x) / T(x)
///   x*       1 if P(1) <= regulated cap; else the largest of kClockSteps equal steps of the clock
///            with P(x) <= regulated cap, and the lowest step where none is
///
/// P0 is Device::idle_power, k_b busy_power, K gemm_power or attention_power, k_m memory_energy, a
/// power_exponent. P grows with x, so that x* falls with J, M and busy and grows with the cap, and
/// c <= 1: no kernel is faster than in its table.
///
/// Ignores:  leakage that grows with temperature; power of links and of spinning collectives
///           beyond k_b; that the regulator lags (a step shorter than its 10 to 100 ms sees its
///           mean).
/// Source:   form and constants: power of one H200 by kernel (docs/models/power.md), published
///           loops of MI300X and MI325X, two caps of one silicon.
#pragma once

#include "base/units.h"
#include "graph/operator.h"
#include "machine/compute/device.h"

namespace orrery::compute {

/// Clocks go in steps: those of NVIDIA's devices are 15 MHz of some 1,980.
inline constexpr int kClockSteps = 128;
/// No regulator goes below: 345 of 1,980 MHz is an idle H200's.
inline constexpr int kLowestClockStep = 22;

/// A load is what kernels ask of a device, as sums: of kernels one after the other, add.
struct Load {
  double seconds = 0;    ///< T, at the tables' rate
  double clocked = 0;    ///< C, seconds
  double attending = 0;  ///< A, seconds
  double busy = 0;       ///< seconds
  double joules = 0;     ///< J
  double bytes = 0;      ///< M

  Load& operator+=(const Load& other);
  friend Load operator+(Load a, const Load& b) { return a += b; }
  friend Load operator*(Load load, double times);
  /// Returns the load of a time in which nothing runs.
  static Load idle(Time time) { return {.seconds = to_seconds(time)}; }
};

/// Returns the load of one kernel alone on the device at the tables' rate. For a device without a
/// power model it has the time alone.
Load load_of(const graph::Operator& op, const Device& device);

/// Says how a device runs a load.
struct ClockPoint {
  double clock = 1;           ///< x
  double rate = 1;            ///< c
  double attention_rate = 1;  ///< c_a
  Time time{0};               ///< T(x)
  Power power{0};             ///< P(x); 0 without a power model
  Energy energy{0};           ///< E(x)
};

/// Returns how the load runs at a clock that is given. Requires 0 < clock <= 1.
ClockPoint at_clock(const Load& load, double clock, const Device& device);
/// Returns how the load runs at x*, the clock that the power cap allows. Without a power model the
/// clock is 1, and the load is at Device::clock already.
ClockPoint at_own_clock(const Load& load, const Device& device);

/// Returns the device's cap: power_cap, or its design power.
Power cap_of(const Device& device);

/// Returns L(x): how much longer the load's kernels take at a clock that is given.
double longer_by(const Load& load, double clock, const Device& device);

/// Joules that the load draws above idle power at a clock that is given.
Energy energy_above_idle(const Load& load, double clock, const Device& device);

/// Returns the power model of an H200 scaled to the design power of a device that states none:
/// inferred. Between chips watts per peak rate differ by a third; clocks of seven cards are 12 %
/// off so.
PowerModel inferred_power_model(const Device& device);

/// Sets Device::clock, attention_clock and full_clock to c, c_a and x where the device runs the
/// load; without a power model to sustained_clock and 1.
void set_clock(Device& device, const Load& load);
/// The same for what a large model's training step has on the mean, where nothing says what runs:
/// 0.65 of the time in GEMMs, 0.12 in attention, 0.20 in memory-bound kernels, 0.03 idle.
void set_usual_clock(Device& device);

}  // namespace orrery::compute
