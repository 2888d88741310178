// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

std::optional<StepCount> two_shot_counts(graph::CollectiveKind kind, std::int64_t members,
                                         const Fabric& fabric) {
  return kind == graph::CollectiveKind::all_reduce
             ? row_of(CollectiveAlgorithm::direct).counts(kind, members, fabric)
             : std::nullopt;
}

std::optional<MessageSchedule> two_shot_messages(graph::CollectiveKind kind,
                                                 std::span<const int> counts, int chunks) {
  return kind == graph::CollectiveKind::all_reduce
             ? row_of(CollectiveAlgorithm::direct).messages(kind, counts, chunks)
             : std::nullopt;
}

}  // namespace

AlgorithmRow two_shot_row() {
  return {.value = CollectiveAlgorithm::two_shot,
          .name = "two_shot",
          .sentence = "serving kernel: direct reduce-scatter and all-gather, 2S(p-1)/p",
          .counts = two_shot_counts,
          .at_once = true,
          .protocols = &topology::NetworkDimension::two_shot,
          .launch = "graph",
          .messages = two_shot_messages,
          .load = exchange_gap,
          .left_out = serving_kernel};
}

}  // namespace orrery::collective
