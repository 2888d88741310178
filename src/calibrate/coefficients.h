// SPDX-License-Identifier: Apache-2.0
/// The members of KernelCoefficients that a kind of measurement tells, as a vector that a search
/// moves.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/minimize.h"
#include "machine/compute/device.h"

namespace orrery::calibrate {

/// A coefficient that a fit may change, and its bounds. Times are in seconds.
struct Coefficient {
  std::string_view name;  ///< as KernelCoefficients::fields has it
  Bounds bounds;          ///< the range that a device can plausibly have
};

/// Absolute relative errors of predictions.
struct FitError {
  std::size_t shapes = 0;
  double median = 0;
  double mean = 0;
};
FitError fit_error(std::span<const double> predicted_over_measured);

/// Returns one value for each of `fitted`. Requires: names of fields.
std::vector<double> values_of(const compute::KernelCoefficients& kernels,
                              std::span<const Coefficient> fitted);
/// Returns `kernels` with those values; all other members stay.
compute::KernelCoefficients with_values(compute::KernelCoefficients kernels,
                                        std::span<const Coefficient> fitted,
                                        std::span<const double> values);

/// Returns FNV-1a over the numbers of a shape: what is held out does not depend on the order of
/// rows.
std::uint64_t shape_hash(std::span<const std::int64_t> numbers);

/// Where there are at least so many shapes, a quarter of them, chosen by the hash, is held out.
inline constexpr std::size_t kLeastShapesToHoldOut = 40;
constexpr bool is_held_out(std::uint64_t hash, std::size_t shapes) {
  return shapes >= kLeastShapesToHoldOut && hash % 4 == 0;
}

}  // namespace orrery::calibrate
