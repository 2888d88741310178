// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

/// Counts the steps of a star on a switch. The port of member 0 takes in the buffers of the p-1
/// others, then sends as many.
std::optional<StepCount> star_counts(graph::CollectiveKind kind, std::int64_t members,
                                     const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_reduce || fabric.form != Fabric::Form::switched) {
    return std::nullopt;
  }
  const auto others = static_cast<double>(members - 1);
  return StepCount{.steps = 2, .further_messages = 2 * (others - 1), .load = 2 * others};
}

std::optional<MessageSchedule> star_messages(graph::CollectiveKind kind,
                                             std::span<const int> counts, int /*chunks*/) {
  const int ranks = ranks_of(counts);
  MessageSchedule schedule{.kind = kind, .ranks = ranks, .messages = {}};
  std::vector<int> arrived;
  for (int r = 1; r < ranks; ++r) {
    arrived.push_back(
        schedule.add({.sender = r, .receiver = 0, .reduce = true, .blocks = {0}, .after = {}}));
  }
  for (int r = 1; r < ranks; ++r) {
    schedule.add({.sender = 0, .receiver = r, .step = 1, .blocks = {0}, .after = arrived});
  }
  return schedule;
}

}  // namespace

/// All to member 0, which adds up and sends back, as a parameter server does (Li et al., OSDI
/// 2014).
AlgorithmRow star_row() {
  return {.name = "star",
          .sentence = "all to the first member, which adds up and sends back: 2S(p-1)",
          .counts = star_counts,
          .messages = star_messages,
          .alike = false,
          .left_out = [](graph::CollectiveKind, const std::vector<Extent>&) -> std::string_view {
            return "NCCL does not have it";
          }};
}

}  // namespace orrery::collective
