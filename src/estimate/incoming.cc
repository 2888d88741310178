// SPDX-License-Identifier: Apache-2.0
#include "estimate/incoming.h"

#include <algorithm>
#include <utility>

namespace orrery::estimate {
namespace {

constexpr std::size_t kStaleMessages = 16;  // received before those that are over are forgotten

/// Those that have gone on stay where they are.
void put_off_sender(std::vector<Stage>& stages, std::size_t target, const Ports::Moved& moved,
                    int message_lane) {
  for (Stage& stage : stages) {
    Sent& sent = stage.sent;
    if (sent.number != moved.node || sent.target != target || sent.next != stage.next ||
        stage.running || moved.end <= sent.there) {
      continue;
    }
    Time& lane = stage.clocks[static_cast<std::size_t>(clock_of(message_lane))];
    lane = std::max(lane, moved.end);
    if (sent.awaited) {
      stage.clocks[kCompute] = std::max(stage.clocks[kCompute], moved.end);
    }
    sent.there = moved.end;
  }
}

void forget_old(const std::vector<Stage>& stages, Stage& receiver) {
  Time now = Time::max();
  for (const Stage& stage : stages) {
    now = std::min(now, stage.clocks[kCompute]);
  }
  receiver.ports.forget(now);
}

}  // namespace

void StageQueue::put(std::size_t s, std::vector<Stage>& stages) {
  if (!stages[s].queued) {
    stages[s].queued = true;
    stages_.push_back(s);
  }
}

std::size_t StageQueue::take(std::vector<Stage>& stages, bool by_time) {
  const auto front = stages_.begin() + static_cast<std::ptrdiff_t>(first_);
  if (by_time) {
    std::iter_swap(front, std::min_element(front, stages_.end(), [&](std::size_t a, std::size_t b) {
                     return stages[a].clocks[kCompute] < stages[b].clocks[kCompute];
                   }));
  }
  const std::size_t s = *front;
  stages[s].queued = false;
  if (++first_ == stages_.size()) {
    stages_.clear();
    first_ = 0;
  }
  return s;
}

void put_off(std::vector<Stage>& stages, std::size_t s, const Ports::Moved& moved,
             int message_lane) {
  if (moved.lane == Ports::kIncoming && moved.node != kNoNode) {
    Inbox& inbox = stages[s].inbox[moved.node % plan::kChannelCount];
    inbox.put_off(moved.node / plan::kChannelCount, moved.end);
    put_off_sender(stages, s, moved, message_lane);
  }
  Sent& sent = stages[s].sent;
  if (moved.lane == message_lane && sent.number != kNoNode && moved.end > sent.there) {
    Inbox& inbox = stages[sent.target].inbox[sent.number % plan::kChannelCount];
    inbox.put_off(sent.number / plan::kChannelCount, moved.end);
    sent.there = moved.end;
  }
}

std::size_t number_of(const Inbox& inbox, int flow) {
  return inbox.number() * plan::kChannelCount + static_cast<std::size_t>(flow);
}

Time receive_on_ports(std::vector<Stage>& stages, std::size_t target, const Departure& message,
                      const TimedWorkload& timed, int transfer) {
  Stage& receiver = stages[target];
  const std::size_t number =
      number_of(receiver.inbox[static_cast<std::size_t>(message.flow)], message.flow);
  const Time there = receiver.ports.receive(
      message.when, (*timed.transfers)[static_cast<std::size_t>(transfer)], number);
  receiver.follow_moved();
  for (const Ports::Moved& moved : receiver.ports.moved_messages()) {
    put_off(stages, target, moved, timed.message_lane);
  }
  if (++receiver.received % kStaleMessages == 0) {
    forget_old(stages, receiver);
  }
  return there;
}

}  // namespace orrery::estimate
