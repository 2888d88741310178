// SPDX-License-Identifier: Apache-2.0
#include "simulate/steady.h"

namespace orrery::simulate {

std::vector<graph::Period> steady_periods(const graph::Workload& workload) {
  const graph::IssueList* list = workload.source->list();
  const bool in_order =
      std::all_of(workload.streams.begin(), workload.streams.end(),
                  [](const graph::Stream& stream) { return stream.order == graph::Order::issue; });
  if (list == nullptr || !in_order) {
    return {};
  }
  std::vector<graph::Period> periods;
  for (std::size_t role = 0; role < workload.roles.size(); ++role) {
    const std::optional<graph::Period> period = list->period(static_cast<int>(role));
    if (!period || (role > 0 && period->microbatches != periods.front().microbatches)) {
      return {};
    }
    periods.push_back(*period);
  }
  return periods;
}

}  // namespace orrery::simulate
