// SPDX-License-Identifier: Apache-2.0
/// This part of the loop applies faults (members of Loop).
#include <utility>
#include <vector>

#include "simulate/loop.h"

namespace orrery::simulate {

void Loop::push_fault() {
  if (options_.faults != nullptr && next_fault_ < options_.faults->changes.size()) {
    queue_.push(options_.faults->changes[next_fault_].at, kFault, 0);
  }
}

void Loop::strike_now() {
  const std::vector<faults::Change>& changes = options_.faults->changes;
  bool routes = false;
  for (; next_fault_ < changes.size() && changes[next_fault_].at == queue_.now(); ++next_fault_) {
    const faults::Change& change = changes[next_fault_];
    if (change.link) {
      routes |= transport_.change_link(static_cast<topology::LinkId>(change.place), change.value);
    } else {
      set_pace(static_cast<RankIndex>(change.place), change.value);
    }
  }
  if (routes) {
    queue_.push(queue_.now() + options_.faults->reroute_after, kReroute, 0);
  }
  push_fault();
}

/// Ranks are simulated each, so that a rank's index is its number.
void Loop::set_pace(RankIndex index, double pace) {
  RankState& rank = ranks_[index];
  const bool was_gone = is_gone(rank);
  if (rank.job.running) {
    const Time done = rank.job.change_pace(queue_.now(), pace);
    ++rank.job.generation;
    if (!is_gone(rank)) {
      queue_.push(done, kComputeDone, index, rank.job.generation);
    }
  }
  rank.job.pace = pace;
  if (!was_gone || is_gone(rank)) {
    return;
  }
  for (const Held& node : std::exchange(held_, {})) {
    if (running_[node.node].rank != index) {
      held_.push_back(node);
    } else if (node.arrives) {
      arrive(node.node);
    } else {
      start(node.node);
    }
  }
}

}  // namespace orrery::simulate
