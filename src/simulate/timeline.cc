// SPDX-License-Identifier: Apache-2.0
#include "simulate/timeline.h"

namespace orrery::simulate {

TimeCategories::TimeCategories(const graph::Workload& workload) : phases_(workload.phases.size()) {
  for (const graph::Phase& phase : workload.phases) {
    rows_.push_back({phase.name, phase.meaning});
  }
  rows_.push_back({"host", "compute stream empty because the host issues too slowly"});
  rows_.insert(rows_.end(), workload.categories.begin(), workload.categories.end());
  rows_.push_back({"bubble", "waiting for other ranks"});
}

Time Timeline::time(std::string_view category) const {
  for (std::size_t row = 0; row < categories.size(); ++row) {
    if (categories.name(row) == category) {
      return breakdown.time[row];
    }
  }
  return Time(0);
}

}  // namespace orrery::simulate
