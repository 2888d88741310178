// SPDX-License-Identifier: Apache-2.0
#include "simulate/steady.h"

namespace orrery {

std::vector<Period> steady_periods(const Workload& workload) {
  const IssueList* list = workload.source->list();
  const bool in_order =
      std::all_of(workload.streams.begin(), workload.streams.end(),
                  [](const Stream& stream) { return stream.order == Order::issue; });
  if (list == nullptr || !in_order) {
    return {};
  }
  std::vector<Period> periods;
  for (std::size_t role = 0; role < workload.roles.size(); ++role) {
    const std::optional<Period> period = list->period(static_cast<int>(role));
    if (!period || (role > 0 && period->microbatches != periods.front().microbatches)) {
      return {};
    }
    periods.push_back(*period);
  }
  return periods;
}

}  // namespace orrery
