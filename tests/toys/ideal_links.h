// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "machine/network/analytical.h"

namespace orrery::network {

/// Network model "ideal": every message has all of its links to itself.
///
///   arrival = start + bytes / least bandwidth of its links + the sum of their latencies
class IdealLinks {
 public:
  static constexpr LinksTraits kTraits{};
  static constexpr std::uint32_t kFirstEvent = 160;
  static constexpr std::uint32_t kArrive = kFirstEvent;

  explicit IdealLinks(std::size_t /*links*/) {}

  TransferId start(Bytes bytes, std::span<const topology::Hop> route, engine::EventQueue& queue) {
    Time latency{0};
    Time longest{0};
    for (const topology::Hop& hop : route) {
      latency += hop.latency;
      longest = std::max(longest, bytes / hop.bandwidth);
    }
    queue.push(queue.now() + longest + latency, kArrive, ids_);
    return ids_++;
  }
  bool handle(const engine::EventQueue::Event& event, engine::EventQueue& /*queue*/) {
    return event.kind == kArrive;
  }
  void settle(engine::EventQueue& /*queue*/) {}

 private:
  TransferId ids_ = 0;
};

}  // namespace orrery::network
