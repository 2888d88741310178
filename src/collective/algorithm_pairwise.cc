// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

std::optional<StepCount> pairwise_counts(graph::CollectiveKind kind, std::int64_t members,
                                         const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_to_all) {
    return std::nullopt;
  }
  const auto p = static_cast<double>(members);
  const double cut = across_the_middle(fabric.longest);
  StepCount count{.steps = p - 1, .load = (p - 1) / p};
  if (fabric.form == Fabric::Form::complete) {  // one partner, hence one link, at a time
    count.load *= fabric.links;
  }
  if (fabric.is_grid()) {  // all go the same way round in one step
    count.load = fabric.links * cut / static_cast<double>(fabric.longest);
    const double one_axis = fabric.form == Fabric::Form::cycle ? cut : p * (p - 1) - cut;
    const double links =
        fabric.longest == members ? one_axis * fabric.hops : (p - 1) * fabric.diameter;
    count.further_hops = links - (p - 1);
  }
  return count;
}

std::optional<StepCount> pairwise_part(graph::CollectiveKind kind, const Place& at,
                                       const Fabric& fabric) {
  auto count = pairwise_counts(kind, static_cast<std::int64_t>(at.count), fabric);
  if (count) {
    count->load *= at.exchanged();
    count->steps *= at.inside;
    count->further_hops *= at.inside;
  }
  return count;
}

std::optional<MessageSchedule> pairwise_messages(graph::CollectiveKind kind,
                                                 std::span<const int> counts, int /*chunks*/) {
  return kind == graph::CollectiveKind::all_to_all ? std::optional(exchange_schedule(counts, true))
                                                   : std::nullopt;
}

}  // namespace

AlgorithmRow pairwise_row() {
  return {.value = CollectiveAlgorithm::pairwise,
          .name = "pairwise",
          .sentence = "all-to-all: p-1 exchanges",
          .counts = pairwise_counts,
          .part = pairwise_part,
          .in_turn = true,
          .messages = pairwise_messages,
          .load = exchange_gap};
}

}  // namespace orrery::collective
