// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/senders.h"

namespace orrery::astra {
namespace {

void add_tree_senders(const Phase& phase, std::uint32_t position, std::vector<Sender>& senders) {
  for (std::uint32_t i = phase.tree.first_child[position];
       phase.up && i < phase.tree.first_child[position + 1]; ++i) {
    senders.push_back({0, static_cast<std::uint32_t>(phase.tree.children[i])});
  }
  if (phase.down && phase.tree.parent[position] >= 0) {
    senders.push_back({1, static_cast<std::uint32_t>(phase.tree.parent[position])});
  }
}

}  // namespace

std::vector<Sender> senders_of(const Phase& phase, std::uint32_t position) {
  const auto size = static_cast<std::uint32_t>(phase.axis.size);
  const auto behind = [&](std::int64_t distance) {
    return (position + size - static_cast<std::uint32_t>(distance) % size) % size;
  };
  std::vector<Sender> senders;
  switch (phase.pattern) {
    case Pattern::chain:
      senders.push_back({0, behind(phase.share == QueueShare::second_half ? size - 1 : 1)});
      break;
    case Pattern::direct:
      for (std::uint32_t distance = 1; distance < size; ++distance) {
        senders.push_back({distance - 1, behind(distance)});
      }
      break;
    case Pattern::halving:
      for (std::uint32_t i = 0; i < phase.messages; ++i) {
        senders.push_back(
            {i, partner(position, static_cast<std::uint32_t>(phase.steps[i].distance))});
      }
      break;
    case Pattern::cyclic:
      for (std::uint32_t i = 0; i < phase.messages; ++i) {
        senders.push_back({i, behind(phase.steps[i].distance)});
      }
      break;
    case Pattern::tree:
      add_tree_senders(phase, position, senders);
      break;
  }
  return senders;
}

}  // namespace orrery::astra
