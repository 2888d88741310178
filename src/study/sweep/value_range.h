// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"

namespace orrery::sweep {

/// Numbers of one unit from one to another: `{from: 100 GB/s, to: 800 GB/s, factor: 2}`.
struct ValueRange {
  double from = 0;
  double to = 0;
  double step = 0;     ///< 0 = none
  double factor = 0;   ///< 0 = none
  bool log = false;    ///< drawn by ratio
  bool whole = false;  ///< whole numbers only
  std::string unit;    ///< " GB/s", or ""

  /// Returns from, from + step ... or from, from * factor ..., up to `to` and a rounding error.
  std::vector<std::string> values() const;
  /// One between the ends, both included, of a range without steps. The same draws give the same
  /// text everywhere.
  std::string draw(std::mt19937_64& random) const;
};

/// Parses a range. `drawn`: of a random sample, which needs no step. Mistakes as in read_space().
Result<ValueRange> parse_range(const ConfigNode& node, bool drawn);

/// Draws a number in [0, 1) of 53 random bits; the library's distributions differ between
/// libraries.
double unit_draw(std::mt19937_64& random);

}  // namespace orrery::sweep
