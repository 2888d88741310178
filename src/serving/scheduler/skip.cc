// SPDX-License-Identifier: Apache-2.0
/// Runs of ticks that are alike.
#include <algorithm>
#include <cassert>
#include <limits>

#include "serving/scheduler/scheduler.h"

namespace orrery::scheduler {

std::int64_t Scheduler::steady_ticks() const {
  if (running_.empty() || !(waiting_.empty() || (admission_blocked_ && queue_waits_for_blocks()))) {
    return 0;
  }
  if (std::ssize(running_) > limits_.max_num_batched_tokens) {
    return 0;
  }
  std::int64_t ticks = std::numeric_limits<std::int64_t>::max();
  // Requests by how many tokens their last block holds: n ticks later those that crossed its end
  // need another.
  const std::int64_t size = book_.block_size();
  fill_.assign(static_cast<std::size_t>(size), 0);
  std::int64_t spare = book_.free();
  for (const RequestIndex index : running_) {
    const RequestState& request = requests_[static_cast<std::size_t>(index)];
    if (ready_tokens(request) != 1 || request.placeholders != (limits_.lookahead ? 1 : 0)) {
      return 0;
    }
    ticks = std::min(ticks, request.spec.output - request.promised());
    const std::int64_t capacity = static_cast<std::int64_t>(request.blocks.size()) * size;
    const std::int64_t room = capacity - request.computed;
    if (room < size) {
      ++fill_[static_cast<std::size_t>(room)];
    } else {
      ticks = std::min(ticks, room);  // reserved ahead: looked at again then
    }
  }
  ticks = std::min(ticks - 1, most_steady());  // the last one finishes a request
  const std::int64_t per_round = std::ssize(running_);
  const std::int64_t rounds = per_round > 0 ? spare / per_round : 0;
  std::int64_t possible = rounds * size;
  spare -= rounds * per_round;
  for (std::int64_t room = 0; room < size; ++room) {  // the tick `room` from here needs them
    if (fill_[static_cast<std::size_t>(room)] > spare) {
      break;
    }
    spare -= fill_[static_cast<std::size_t>(room)];
    ++possible;
  }
  return std::max<std::int64_t>(0, std::min(ticks, possible));
}

void Scheduler::skip(std::int64_t ticks) {
  if (ticks == 0) {
    return;
  }
  // Blocks are given out tick by tick, and in a tick in the order of requests, as stepping does.
  const std::int64_t size = book_.block_size();
  by_room_.resize(static_cast<std::size_t>(size));
  for (std::vector<RequestIndex>& requests : by_room_) {
    requests.clear();
  }
  for (const RequestIndex index : running_) {
    const RequestState& request = state(index);
    const std::int64_t room =
        static_cast<std::int64_t>(request.blocks.size()) * size - request.computed;
    if (room < size) {
      by_room_[static_cast<std::size_t>(room)].push_back(index);
    }
  }
  for (std::int64_t tick = 0; tick < ticks; ++tick) {
    for (const RequestIndex index : by_room_[static_cast<std::size_t>(tick % size)]) {
      RequestState& request = state(index);
      const bool enough = book_.reserve(request, index, request.computed + tick + 1);
      assert(enough && "counted by steady_ticks()");
      static_cast<void>(enough);
    }
  }
  for (const RequestIndex index : running_) {
    RequestState& request = state(index);
    request.computed += ticks;
    request.known += ticks;
    book_.publish(request, std::min(request.computed, request.known));
  }
  if (limits_.lookahead) {
    for (Scheduled& entry : ticks_[(next_tick_ + ticks_.size() - 1) % ticks_.size()].entries) {
      entry.context += ticks;
    }
  }
  on_skip(ticks);
  totals_.scheduled_tokens += ticks * std::ssize(running_);
  totals_.ticks += ticks;
}

}  // namespace orrery::scheduler
