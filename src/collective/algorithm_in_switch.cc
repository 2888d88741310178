// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

/// The switch reads a shard from every member, adds, and hands it to the shard's owner; then every
/// owner's sum goes out to all. A port carries S + S/p each way.
std::optional<StepCount> in_switch_counts(graph::CollectiveKind kind, std::int64_t members,
                                          const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_reduce || fabric.form != Fabric::Form::switched) {
    return std::nullopt;
  }
  return StepCount{.steps = 2, .load = 1 + 1 / static_cast<double>(members)};
}

/// In the switch inside, every member ends up with the sum of its shard; trees over the outer
/// coordinates add up the shards, and the switch hands the sums to all.
std::optional<StepCount> in_switch_part(graph::CollectiveKind kind, const Place& at,
                                        const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_reduce) {
    return std::nullopt;
  }
  if (at.innermost) {
    return in_switch_counts(kind, static_cast<std::int64_t>(at.count), fabric)
        .value_or(StepCount{});
  }
  Place outside = at;  // a chain through it alone
  outside.below = at.inside * at.count;
  return row_of(CollectiveAlgorithm::double_binary_tree).part(kind, outside, fabric);
}

/// (1 + 1/p) S up from every rank and down to every rank, half of it in each of two steps, the
/// second when all of the first has arrived. Messages go from rank r to r+1 only to name a port up
/// and one down.
std::optional<MessageSchedule> in_switch_messages(graph::CollectiveKind kind,
                                                  std::span<const int> counts, int /*chunks*/) {
  const int ranks = ranks_of(counts);
  MessageSchedule schedule{.kind = kind,
                           .ranks = ranks,
                           .blocks = 1,
                           .block_share = (1 + 1.0 / ranks) / 2,
                           .messages = {},
                           .has_blocks = false};
  std::vector<int> arrived;
  for (int step = 0; step < 2; ++step) {
    std::vector<int> arriving;
    arriving.reserve(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
      arriving.push_back(schedule.add({.sender = r,
                                       .receiver = (r + 1) % ranks,
                                       .step = step,
                                       .reduce = step == 0,
                                       .blocks = {0},
                                       .after = arrived}));
    }
    arrived = std::move(arriving);
  }
  return schedule;
}

/// NCCL leaves smaller groups to rings: all-reduces of 64 MiB over 4 of 8 H100 take a ring's time,
/// over 8 less (ai-dynamo/aiconfigurator@095f58a51c4c, NCCL 2.27.3).
constexpr std::int64_t kLeastInSwitch = 5;

}  // namespace

AlgorithmRow in_switch_row() {
  return {.value = CollectiveAlgorithm::in_switch,
          .name = "in_switch",
          .sentence = "the switch adds up (NVLS): 2 steps, S(1 + 1/p)",
          .alias = "nvls",
          .counts = in_switch_counts,
          .part = in_switch_part,
          .protocols = &topology::NetworkDimension::in_switch,
          .least = kLeastInSwitch,
          .messages = in_switch_messages,
          .sent = [](double members) { return 1 + 1 / members; },
          .left_out = [](graph::CollectiveKind kind,
                         const std::vector<Extent>& extents) -> std::string_view {
            return extents.size() > 1 ? tree_left_out(kind, extents) : "";
          }};
}

}  // namespace orrery::collective
