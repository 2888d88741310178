// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/dram.h"

#include <algorithm>
#include <vector>

namespace orrery::compute {
namespace {

constexpr std::size_t kWindow = 4;  // activates in t_faw

}  // namespace

Time activate_spread(const PimDevice& device) {
  if (!device.banks_in_turn) {
    return Time(0);
  }
  std::vector<Time> at;
  for (std::int64_t bank = 0; bank < device.banks; ++bank) {
    Time from = at.empty() ? Time(0) : at.back() + device.t_rrd;
    if (at.size() >= kWindow) {
      from = std::max(from, at[at.size() - kWindow] + device.t_faw);
    }
    at.push_back(from);
  }
  return at.back();
}

Time row_time(const PimDevice& device, Time column, std::int64_t columns) {
  return activate_spread(device) + std::max(device.t_ras, device.t_rcd + column * columns) +
         device.t_rp;
}

}  // namespace orrery::compute
