// SPDX-License-Identifier: Apache-2.0
#include "simulate/steady.h"

namespace orrery::simulate {

std::vector<graph::Period> steady_periods(const graph::Workload& workload,
                                          const std::vector<std::int64_t>& from, PeriodKind kind) {
  const graph::IssueList* list = workload.source->list();
  const bool in_order =
      std::all_of(workload.streams.begin(), workload.streams.end(),
                  [](const graph::Stream& stream) { return stream.order == graph::Order::issue; });
  if (list == nullptr || !in_order) {
    return {};
  }
  std::vector<graph::Period> periods;
  for (std::size_t role = 0; role < workload.roles.size(); ++role) {
    const std::vector<graph::Period> all = list->periods(static_cast<int>(role), from[role]);
    const auto found = std::ranges::find(all, kind == PeriodKind::steps,
                                         [](const graph::Period& p) { return p.steps > 0; });
    if (found == all.end() || (role > 0 && (found->microbatches != periods.front().microbatches ||
                                            found->steps != periods.front().steps))) {
      return {};
    }
    periods.push_back(*found);
  }
  return periods;
}

}  // namespace orrery::simulate
