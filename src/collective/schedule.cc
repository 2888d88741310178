// SPDX-License-Identifier: Apache-2.0
#include "collective/schedule.h"

#include <functional>
#include <numeric>

#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

/// Returns the rank i further on in every dimension, with i as coordinates: all ranks then use the
/// same dimensions at one time, and no receiver is a target of two senders.
int shifted(int rank, int i, std::span<const int> counts) {
  int to = 0;
  int inside = 1;
  for (const int count : counts) {
    to += (rank / inside % count + i / inside % count) % count * inside;
    inside *= count;
  }
  return to;
}

}  // namespace

int ranks_of(std::span<const int> counts) {
  return std::accumulate(counts.begin(), counts.end(), 1, std::multiplies<>());
}

/// Direct: all in step 0. Pairwise: rank r serves the one i further on in step i-1, after it has
/// received the message of step i-2.
MessageSchedule exchange_schedule(std::span<const int> counts, bool stepwise) {
  const int ranks = ranks_of(counts);
  MessageSchedule schedule{.kind = graph::CollectiveKind::all_to_all,
                           .ranks = ranks,
                           .blocks = ranks * ranks,
                           .block_share = 1.0 / ranks,
                           .messages = {}};
  std::vector<int> arrived(static_cast<std::size_t>(ranks), -1);
  for (int i = 1; i < ranks; ++i) {
    std::vector<int> arriving(arrived.size(), -1);
    for (int r = 0; r < ranks; ++r) {
      const int to = shifted(r, i, counts);
      const int before = arrived[static_cast<std::size_t>(r)];
      const bool waits = stepwise && before >= 0;
      arriving[static_cast<std::size_t>(to)] =
          schedule.add({.sender = r,
                        .receiver = to,
                        .step = stepwise ? i - 1 : 0,
                        .blocks = {r * ranks + to},
                        .after = waits ? std::vector<int>{before} : std::vector<int>{}});
    }
    arrived = arriving;
  }
  return schedule;
}

std::optional<MessageSchedule> schedule_of(graph::CollectiveKind kind,
                                           CollectiveAlgorithm algorithm, int ranks, int chunks) {
  const auto messages = row_of(algorithm).messages;
  auto schedule = messages ? messages(kind, std::span(&ranks, 1), chunks) : std::nullopt;
  return schedule && schedule->has_blocks ? std::move(schedule) : std::nullopt;
}

}  // namespace orrery::collective
