// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

/// An exchange inside the innermost dimension brings every message to the member on its receiver's
/// rail; what goes on is bundled, one message per rail peer.
std::optional<StepCount> rail_part(graph::CollectiveKind kind, const Place& at,
                                   const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_to_all) {
    return std::nullopt;
  }
  const AlgorithmRow& direct = row_of(CollectiveAlgorithm::direct);
  if (at.innermost) {
    return direct.counts(kind, static_cast<std::int64_t>(at.count), fabric);
  }
  StepCount count = direct.part(kind, at, fabric).value_or(StepCount{});
  count.further_messages = at.inside / at.first * (at.count - 1) - count.steps;
  return count;
}

std::int64_t rail_peers(std::span<const Extent> extents, std::size_t i) {
  const std::int64_t inside = members_of(extents.first(i));
  return (i == 0 ? 1 : inside / extents.front().count) * (extents[i].count - 1);
}

}  // namespace

AlgorithmRow rail_row() {
  return {
      .value = CollectiveAlgorithm::rail,
      .name = "rail",
      .sentence =
          "all-to-all over nodes: to the receiver's rail inside, then one message per rail peer "
          "(PXN)",
      .alias = "pxn",
      .part = rail_part,
      .peers = rail_peers};
}

}  // namespace orrery::collective
