// SPDX-License-Identifier: Apache-2.0
/// A Space is what a study varies, and its points in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/reader.h"

namespace orrery::sweep {

/// A varied field by its dotted name ("plan.tp") and the values that it takes, scalars with their
/// places.
struct Axis {
  std::string name;
  std::vector<ConfigNode> values;
};

inline constexpr std::size_t kMostPoints = 1'000'000;

/// Points 0 ... count - 1; each has a value, or none, on every axis.
struct Space {
  std::vector<Axis> axes;
  std::size_t count = 0;
  std::vector<std::int32_t> choices;  ///< point by point: index into axes[i].values; -1 = none

  /// Returns the point's value; null where it has none: what the study says besides stays.
  const ConfigNode* value(std::size_t point, std::size_t axis) const {
    const std::int32_t choice = choices[point * axes.size() + axis];
    return choice < 0 ? nullptr : &axes[axis].values[static_cast<std::size_t>(choice)];
  }
};

/// Reads of a study
///
///   vary: {NAME: VALUES, ...}      all combinations, the last name fastest
///   random: {samples, seed}        instead of all combinations so many of them, drawn with
///                                  repetition, each name on its own
///   list: [{NAME: VALUE, ...}, ...]  points as they stand; with `vary` each of them with all of it
///
/// VALUES is a list, one value, or a range of numbers with or without a unit: {from, to, step} or
/// {from, to, factor}, both ends included where they are met; with `random` also {from, to} (log:
/// true for equal chances of equal ratios), where whole numbers give whole ones. Without any of
/// them the study is one point. Mistakes: values that are no scalars, empty lists, ranges that do
/// not end or mix units, more than kMostPoints.
Space read_space(Reader& study);

}  // namespace orrery::sweep
