// SPDX-License-Identifier: Apache-2.0
/// Prices that clouds charge for an hour of a machine (configs/prices/clouds.yaml).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "base/units.h"

namespace orrery::serving {

/// The on-demand list price of one instance.
struct CloudPrice {
  std::string cloud;
  std::string instance;
  std::vector<std::string> machines;  ///< that have its devices, by name
  std::int64_t devices = 1;
  double usd_per_hour = 0;  ///< of all of them
  std::string region;
  std::string date;
  std::string source;

  Money per_device() const { return Money(usd_per_hour / static_cast<double>(devices)); }
  /// Returns "p5.48xlarge of aws, us-east-1, 2026-11-09".
  std::string name() const;
};

Result<std::vector<CloudPrice>> parse_cloud_prices(const ConfigNode& node);
/// Returns the shipped ones.
Result<std::vector<CloudPrice>> load_cloud_prices();

}  // namespace orrery::serving
