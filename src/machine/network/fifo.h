// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "engine/event_queue.h"
#include "machine/network/analytical.h"
#include "machine/topology/link_map.h"

namespace orrery::network {

/// A link that serves one message at a time, in the order in which they ask for it.
struct FifoLink {
  Time free{0};

  /// Holds the link for `serialisation`, from `wanted` or when it is free; returns the start.
  Time take(Time wanted, Time serialisation) {
    const Time start = wanted < free ? free : wanted;
    free = start + serialisation;
    return start;
  }
};

/// Network model "fifo": every message on every link of its route, first come first served.
///
///   A link i is held for m_i = bytes / bandwidth_i from s_i = max(first byte there, free).
///   Cut-through: the first byte is at the next link at s_i + latency_i, the last at
///                max(s_i + m_i, last byte at link i) + latency_i
///   Alone, a message arrives after sum of latency_i + max of m_i.
///
/// A link faster than one before it is held for its own m_i only; what comes to it slowly is
/// charged when it begins, so that others pass in the gaps.
///
/// Messages that want a link at one instant get it in the order of their events. Nodes have room
/// for every message that waits. Ignores: packets and their headers, back-pressure.
///
/// Interface as AnalyticalNetwork: plain-data events, no virtual call per message.
class FifoNetwork {
 public:
  static constexpr LinksTraits kTraits{};  // what is alike does not come at the same place
  static constexpr std::uint32_t kFirstEvent = 110;
  static constexpr std::uint32_t kHop = kFirstEvent;
  static constexpr std::uint32_t kArrive = kFirstEvent + 1;

  explicit FifoNetwork(std::size_t links) : links_(links), busy_(links) {}

  /// Starts a message at queue.now(). `route` must stay valid until it arrives; empty: it arrives
  /// at once.
  TransferId start(Bytes bytes, std::span<const topology::Hop> route, engine::EventQueue& queue);
  /// True when the last byte of message event.subject has arrived; its id is then free again.
  bool handle(const engine::EventQueue::Event& event, engine::EventQueue& queue);
  /// Does nothing: starts and hops are served at once.
  void settle(engine::EventQueue& /*queue*/) {}

  /// Returns for how long the link was held.
  Time busy(topology::LinkId link) const { return busy_[link]; }

 private:
  struct Message {
    Bytes bytes{0};
    std::span<const topology::Hop> route;
    std::size_t hop = 0;
    Time last_byte{0};  ///< is at the present link
  };
  /// Takes the next link of its route.
  void step(TransferId id, engine::EventQueue& queue);

  std::vector<FifoLink> links_;
  std::vector<Time> busy_;
  std::vector<Message> messages_;
  std::vector<TransferId> free_;
};

}  // namespace orrery::network
