// SPDX-License-Identifier: Apache-2.0
#include "graph/source.h"

#include <algorithm>
#include <limits>

namespace orrery::graph {

std::vector<Period> IssueList::periods(int role, std::int64_t from) const {
  const std::optional<Period> steady = period(role);
  return steady && steady->end > from ? std::vector{*steady} : std::vector<Period>();
}

Excerpt::Excerpt(const IssueList& list, std::size_t roles, std::int64_t kept)
    : list_(list), kept_(kept) {
  std::int64_t spare = std::numeric_limits<std::int64_t>::max();
  for (std::size_t role = 0; role < roles; ++role) {
    const std::optional<Period> period = list.period(static_cast<int>(role));
    periods_.push_back(period.value_or(Period{}));
    const bool alike = period && period->microbatches == periods_.front().microbatches &&
                       period->steps == periods_.front().steps;
    spare = alike ? std::min(spare, (period->end - period->first) / period->length) : 0;
  }
  left_out_ = roles > 0 ? std::max<std::int64_t>(0, spare - kept_) : 0;
}

}  // namespace orrery::graph
