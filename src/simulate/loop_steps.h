// SPDX-License-Identifier: Apache-2.0
/// How the loop tells the steps of a run apart (members of Loop; loop_events.h includes it).
///
/// A rank has ended a step when the last node of its instances on the compute stream is done: what
/// another stream still moves runs beside the next step.
#pragma once

#include <algorithm>
#include <vector>

#include "simulate/loop.h"

namespace orrery::simulate {

/// A node of the instance on the compute stream is done.
template <class Transport>
void Loop<Transport>::note_step(RankIndex index, std::int64_t instance) {
  RankState& rank = ranks_[index];
  const InstanceSlot& slot = rank.window[instance];
  const std::int64_t next = instance + 1;  // issue_ahead() has issued it
  const bool goes_on =
      rank.stream(graph::kComputeStream).position <
          slot.shape->by_stream[*graph::kComputeStream].size() ||
      (next < rank.window.issued() && rank.window[next].instance.step == slot.instance.step);
  if (goes_on || slot.instance.step >= steps_) {
    return;
  }
  if (rank.steps_ended++ == std::ssize(step_ends_)) {
    --behind_;
  }
  while (behind_ == 0 && std::ssize(step_ends_) < steps_) {
    end_step();
  }
}

/// Every rank has ended the step.
template <class Transport>
void Loop<Transport>::end_step() {
  step_ends_.push_back(queue_.now());
  const std::int64_t ended = std::ssize(step_ends_);
  behind_ = static_cast<std::size_t>(
      std::count_if(ranks_.begin(), ranks_.end(),
                    [&](const RankState& rank) { return rank.steps_ended == ended; }));
  if (ended == warm_steps_) {
    booked_warm_ = book_all();
  }
  if (ended == steps_) {
    booked_steps_ = book_all();
  }
}

/// Returns what every rank has booked up to this instant.
template <class Transport>
std::vector<Breakdown> Loop<Transport>::book_all() {
  std::vector<Breakdown> booked;
  for (RankIndex index = 0; index < ranks_.size(); ++index) {
    RankState& rank = ranks_[index];
    if (rank.chain.chain != nullptr) {
      walk_chain(index, queue_.now());
    }
    rank.ledger.book(queue_.now());
    booked.push_back(rank.ledger.breakdown());
  }
  return booked;
}

}  // namespace orrery::simulate
