// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

/// Every member reads the buffers of all others, and adds them up itself.
std::optional<StepCount> one_shot_counts(graph::CollectiveKind kind, std::int64_t members,
                                         const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_reduce) {
    return std::nullopt;
  }
  const auto p = static_cast<double>(members);
  return StepCount{.steps = 1,
                   .further_messages = p - 2,
                   .further_hops = fabric.diameter - 1,
                   .load = p * exchange_load(members, fabric)};
}

/// Every rank sends its whole buffer to every other, which adds them up by itself, out of place.
/// Blocks as of all_to_all, each a whole buffer.
std::optional<MessageSchedule> one_shot_messages(graph::CollectiveKind /*kind*/,
                                                 std::span<const int> counts, int /*chunks*/) {
  MessageSchedule schedule = exchange_schedule(counts, false);
  schedule.block_share = 1;
  schedule.has_blocks = false;
  return schedule;
}

}  // namespace

AlgorithmRow one_shot_row() {
  return {.value = CollectiveAlgorithm::one_shot,
          .name = "one_shot",
          .sentence = "serving kernel: every rank reads all others' buffers, S(p-1)",
          .counts = one_shot_counts,
          .at_once = true,
          .protocols = &topology::NetworkDimension::one_shot,
          .launch = "graph",
          .messages = one_shot_messages,
          .load = exchange_gap,
          .sent = [](double members) { return members - 1; },
          .left_out = serving_kernel};
}

}  // namespace orrery::collective
