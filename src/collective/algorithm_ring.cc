// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

std::optional<StepCount> ring_counts(graph::CollectiveKind kind, std::int64_t members,
                                     const Fabric& fabric) {
  if (exchanges(kind)) {
    return std::nullopt;
  }
  const auto p = static_cast<double>(members);
  const double passes = passes_of(kind);
  const bool chain =
      kind == graph::CollectiveKind::broadcast;  // pipelined, never comes back to the root
  const double share = chain ? 1 : (p - 1) / p;
  const double links =
      chain ? (p - 1) * fabric.hops : (p - 2) * fabric.hops + fabric.wrap_hops;  // slowest chunk
  return StepCount{.steps = passes * (p - 1),
                   .further_hops = passes * (links - (p - 1)),
                   .load = passes * share * fabric.ring_load};
}

std::optional<StepCount> ring_part(graph::CollectiveKind kind, const Place& at,
                                   const Fabric& fabric) {
  if (exchanges(kind)) {
    return std::nullopt;
  }
  const double passes = passes_of(kind);
  const double share = kind == graph::CollectiveKind::broadcast ? 1 : (at.members - 1) / at.members;
  const double blocks = at.members / at.inside;
  const double edges = at.outermost ? blocks : (at.count - 1) * blocks / at.count + at.closes;
  const double steps = edges - (at.innermost ? 1 : 0);
  const double wrap = at.outermost ? fabric.wrap_hops - fabric.hops : 0;
  return StepCount{.steps = passes * steps,
                   .further_hops = passes * (steps * (fabric.hops - 1) + wrap),
                   .load = passes * share * edges / at.members * fabric.ring_load};
}

/// Rank r passes on in step s what it received in step s-1. Reducing starts one block ahead, so
/// that after p-1 steps rank r owns block r; gathering starts with it.
MessageSchedule one_ring(graph::CollectiveKind kind, int ranks) {
  MessageSchedule schedule = MessageSchedule::sharded(kind, ranks);
  const int passes = (reduces(kind) ? 1 : 0) + (gathers(kind) ? 1 : 0);
  schedule.messages.reserve(static_cast<std::size_t>(passes) * static_cast<std::size_t>(ranks) *
                            static_cast<std::size_t>(ranks - 1));
  std::vector<int> arrived(static_cast<std::size_t>(ranks), -1);
  int step = 0;
  const auto pass = [&](bool reduce) {
    for (int s = 0; s < ranks - 1; ++s, ++step) {
      std::vector<int> arriving(arrived.size(), -1);
      for (int r = 0; r < ranks; ++r) {
        const int block = (r - s - (reduce ? 1 : 0) + 2 * ranks) % ranks;
        const int before = arrived[static_cast<std::size_t>(r)];
        const int next = (r + 1) % ranks;
        arriving[static_cast<std::size_t>(next)] =
            schedule.add({.sender = r,
                          .receiver = next,
                          .step = step,
                          .reduce = reduce,
                          .blocks = {block},
                          .after = before < 0 ? std::vector<int>{} : std::vector<int>{before}});
      }
      arrived = arriving;
    }
  };
  if (reduces(kind)) {
    pass(true);
  }
  if (gathers(kind)) {
    pass(false);
  }
  return schedule;
}

/// Chunk after chunk along the line of ranks.
MessageSchedule chain_broadcast(int ranks, int chunks) {
  MessageSchedule schedule{.kind = graph::CollectiveKind::broadcast,
                           .ranks = ranks,
                           .blocks = chunks,
                           .block_share = 1.0 / chunks,
                           .messages = {},
                           .lanes = 1};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    int before = -1;
    for (int r = 0; r + 1 < ranks; ++r) {
      before = schedule.add({.sender = r,
                             .receiver = r + 1,
                             .step = chunk + r,
                             .blocks = {chunk},
                             .after = r == 0 ? std::vector<int>{} : std::vector<int>{before}});
    }
  }
  return schedule;
}

std::optional<MessageSchedule> ring_messages(graph::CollectiveKind kind,
                                             std::span<const int> counts, int chunks) {
  if (exchanges(kind)) {
    return std::nullopt;
  }
  const int ranks = ranks_of(counts);
  return kind == graph::CollectiveKind::broadcast ? chain_broadcast(ranks, chunks)
                                                  : one_ring(kind, ranks);
}

Gap ring_load(graph::CollectiveKind kind, std::int64_t /*members*/, std::int64_t /*gap*/) {
  return kind == graph::CollectiveKind::broadcast ? Gap{1, 0} : Gap{};
}

}  // namespace

AlgorithmRow ring_row() {
  return {.value = CollectiveAlgorithm::ring,
          .name = "ring",
          .sentence = "2(p-1) steps of S/p, one ring through all dimensions",
          .counts = ring_counts,
          .part = ring_part,
          .lockstep = true,
          .messages = ring_messages,
          .rings = true,
          .load = ring_load};
}

}  // namespace orrery::collective
