// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_states.h"

#include <algorithm>

namespace orrery::spmd {

void MeshStates::add(const MeshLabel& label) {
  if (label.cost > most_) {
    return pass(label);
  }
  const auto [entry, is_new] = known_.try_emplace(label.state, labels_.size());
  if (is_new) {
    labels_.push_back(label);
    limit();
    return;
  }
  MeshLabel& same = labels_[entry->second];
  same = label.cost < same.cost ? label : same;
}

/// Lets the cheaper half of very many states stay, and none come that costs more than they do.
void MeshStates::limit() {
  constexpr std::int64_t kSpare = 8;  // labels for each that may stay, as some are dominated
  if (std::ssize(labels_) < kSpare * rule_.most) {
    return;
  }
  std::ranges::stable_sort(labels_, {}, &MeshLabel::cost);
  const auto middle = labels_.begin() + std::ssize(labels_) / 2;
  most_ = std::prev(middle)->cost;
  std::for_each(middle, labels_.end(), [this](const MeshLabel& label) { pass(label); });
  labels_.erase(middle, labels_.end());
  known_.clear();
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    known_.emplace(labels_[i].state, i);
  }
}

/// Drops a label, or joins it with those of the same forms of what is used once.
void MeshStates::pass(const MeshLabel& label) {
  ++dropped_;
  if (rule_.beyond == Beyond::dropped) {
    return;
  }
  Joined& joined = beyond_.try_emplace(unconverted(label.state), Joined{label, {}}).first->second;
  joined.label.cost = std::min(joined.label.cost, label.cost);
  for (std::size_t slot = 0; slot < label.state.size(); ++slot) {
    for (const int code : sets_.codes(label.state[slot])) {
      joined.forms[slot].set(static_cast<std::size_t>(code));
    }
  }
}

std::vector<MeshLabel> MeshStates::keep() {
  std::ranges::stable_sort(labels_, {}, &MeshLabel::cost);
  std::vector<MeshLabel> kept;
  std::unordered_map<MeshState, std::vector<std::size_t>, MeshStateHash> rivals;
  for (const MeshLabel& label : labels_) {
    if (std::ssize(kept) >= rule_.most) {
      pass(label);
      continue;
    }
    std::vector<std::size_t>& own = rivals[unconverted(label.state)];
    const auto stands_for = [&](std::size_t other) { return dominates(kept[other], label); };
    if (!rule_.dominance || std::ranges::none_of(own, stands_for)) {
      own.push_back(kept.size());
      kept.push_back(label);
    }
  }
  for (auto& [rest, joined] : beyond_) {
    for (std::size_t slot = 0; slot < rest.size(); ++slot) {
      joined.label.state[slot] = sets_.of(joined.forms[slot]);
    }
    kept.push_back(joined.label);
  }
  return kept;
}

/// Forms that nothing converts: states of which they differ do not dominate each other.
MeshState MeshStates::unconverted(MeshState state) const {
  for (std::size_t slot = 0; slot < state.size(); ++slot) {
    state[slot] = node_.chains[slot] < 0 ? state[slot] : 0;
  }
  return state;
}

/// Requires that `other` is no cheaper.
bool MeshStates::dominates(const MeshLabel& one, const MeshLabel& other) const {
  Time left = other.cost - one.cost;
  for (std::size_t slot = 0; slot < one.state.size(); ++slot) {
    if (other.state[slot] == one.state[slot]) {
      continue;
    }
    const MeshChains& chains = graph_.chains[static_cast<std::size_t>(node_.chains[slot])];
    left -= chains.to_have(sets_.codes(one.state[slot]), sets_.codes(other.state[slot]), left);
    if (left < Time(0)) {
      return false;
    }
  }
  return true;
}

}  // namespace orrery::spmd
