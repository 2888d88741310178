// SPDX-License-Identifier: Apache-2.0
/// Messages on the ports of the stage that they come to, and the order in which stages are looked
/// at.
///
///   A message that comes in beside others, or beside the stage's collectives, shares their port:
///   those that nobody has taken yet arrive later, and with them ends the wait of a sender that has
///   not gone on.
#pragma once

#include <cstddef>
#include <vector>

#include "estimate/stage_state.h"

namespace orrery::estimate {

/// Stages that may go on.
class StageQueue {
 public:
  bool empty() const { return first_ == stages_.size(); }
  void put(std::size_t s, std::vector<Stage>& stages);
  /// The first that was put; or that whose compute is free first.
  std::size_t take(std::vector<Stage>& stages, bool by_time);

 private:
  std::vector<std::size_t> stages_;
  std::size_t first_ = 0;
};

/// Of the next message of a flow, among all that ever came to a stage.
std::size_t number_of(const Inbox& inbox, int flow);

struct Departure {
  int flow = 0;
  Time when{0};
};
/// Of messages in the ports of a stage: one that comes in, or the last that it has sent, is there
/// later.
void put_off(std::vector<Stage>& stages, std::size_t s, const Ports::Moved& moved,
             int message_lane);

/// When a message to stage `target` is there.
Time receive_on_ports(std::vector<Stage>& stages, std::size_t target, const Departure& message,
                      const TimedWorkload& timed, int transfer);

}  // namespace orrery::estimate
