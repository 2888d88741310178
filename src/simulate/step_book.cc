// SPDX-License-Identifier: Apache-2.0
#include "simulate/step_book.h"

#include <algorithm>

namespace orrery::simulate {

bool StepBook::note(std::vector<RankState>& ranks, RankIndex index, std::int64_t instance,
                    Time now) {
  RankState& rank = ranks[index];
  const InstanceSlot& slot = rank.window[instance];
  const std::int64_t next = instance + 1;  // the loop has issued it, if there is one
  const bool goes_on =
      rank.stream(graph::kComputeStream).position <
          slot.shape->by_stream[*graph::kComputeStream].size() ||
      (next < rank.window.issued() && rank.window[next].instance.step == slot.instance.step);
  if (goes_on || slot.instance.step >= count || rank.steps_ended++ != std::ssize(ends) ||
      --behind > 0 || std::ssize(ends) == count) {
    return false;
  }
  ends.push_back(now);
  const std::int64_t ended = std::ssize(ends);
  behind = static_cast<std::size_t>(
      std::count_if(ranks.begin(), ranks.end(),
                    [&](const RankState& other) { return other.steps_ended == ended; }));
  return ended == warm || ended == count;
}

void StepBook::book(std::vector<RankState>& ranks, Time now) {
  std::vector<Breakdown>& books = std::ssize(ends) == count ? booked : booked_warm;
  for (RankState& rank : ranks) {
    rank.ledger.book(now);
    books.push_back(rank.ledger.breakdown());
  }
}

}  // namespace orrery::simulate
