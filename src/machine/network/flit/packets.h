// SPDX-License-Identifier: Apache-2.0
/// The packets in flight, and what is counted of them.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/flit/routing.h"

namespace orrery::flit {

/// FlitCounts counts the flits of one class.
struct FlitCounts {
  std::uint64_t injected = 0;
  std::uint64_t arrived = 0;
  /// Sums over the packets in flight (offered, not arrived): flits, and flits times the cycle of
  /// creation.
  std::int64_t in_flight = 0;
  Cycle created_in_flight = 0;
  Cycle flit_latency = 0;  ///< sum of leaving to arrival, where that is counted
};

/// Earlier is higher, and all are above what speculates.
inline constexpr std::int64_t kHighestPriority = INT32_MAX;

/// A packet that a node wants to send.
struct Offer {
  std::uint32_t target = 0;  ///< node
  std::uint32_t flits = 1;
  std::uint32_t tag = 0;  ///< the caller's
  Cycle created = 0;
  std::uint32_t route = 0;          ///< where packets say theirs (routing.h)
  Interval interval = kEveryCycle;  ///< at which its flits leave the node
  std::int64_t priority = 0;        ///< of Priority::traffic_class, age and sequence
  std::uint32_t kind = 0;           ///< of Classes::kinds
  Cycle wire = 0;  ///< cycles that a flit takes on the node's link beside its latency
  Interval slowest = kEveryCycle;  ///< longest interval of its route
};

/// A packet whose tail has reached its node.
struct Arrived {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  std::uint32_t flits = 0;
  std::uint32_t tag = 0;
  std::uint32_t traffic_class = 0;
  std::uint32_t kind = 0;
  std::uint32_t hops = 0;  ///< routers visited
  Cycle created = 0;
  Cycle injected = 0;  ///< the head left the node
};

struct Packet : Arrived {
  RouteState route;
  std::uint32_t missing = 0;  ///< flits that have not arrived
  std::uint32_t behind = 0;   ///< the packet behind it, where it waits behind another
  std::int64_t priority = 0;
  std::vector<Cycle> left_at;  ///< its flits, where flit_latency is counted
  Candidate ahead;   ///< output of the router that it comes to next, where that is known before
  Candidate escape;  ///< that it asks for behind `ahead`; no VCs: none
};

/// Packets have numbers, which are given again.
class Packets {
 public:
  Packets(std::uint32_t classes, bool counts_flit_latency)
      : counts_(classes), counts_flit_latency_(counts_flit_latency) {}

  Packet& operator[](std::uint32_t id) { return packets_[id]; }
  const Packet& operator[](std::uint32_t id) const { return packets_[id]; }

  std::uint32_t add(std::uint32_t source, std::uint32_t traffic_class, const Offer& offer) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(packets_.size()));
      packets_.emplace_back();
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    Packet& packet = packets_[id];
    static_cast<Arrived&>(packet) = {source,        offer.target, offer.flits, offer.tag,
                                     traffic_class, offer.kind,   0,           offer.created};
    packet.route = {.target = offer.target, .via = offer.route};
    packet.missing = offer.flits;
    packet.priority = offer.priority;
    packet.left_at.clear();
    ++in_flight_;
    FlitCounts& counts = counts_[traffic_class];
    counts.in_flight += offer.flits;
    counts.created_in_flight += offer.created * offer.flits;
    return id;
  }

  /// A flit leaves its node.
  void send_flit(Packet& packet, Cycle now) {
    ++counts_[packet.traffic_class].injected;
    if (counts_flit_latency_) {
      packet.left_at.push_back(now);
    }
  }

  /// A flit has reached its node.
  void take_flit(std::uint32_t id, Cycle now) {
    Packet& packet = packets_[id];
    FlitCounts& counts = counts_[packet.traffic_class];
    ++counts.arrived;
    if (counts_flit_latency_) {
      counts.flit_latency += now - packet.left_at[packet.flits - packet.missing];
    }
    if (--packet.missing > 0) {
      return;
    }
    arrived_.push_back(packet);
    --in_flight_;
    counts.in_flight -= packet.flits;
    counts.created_in_flight -= packet.created * packet.flits;
    free_.push_back(id);
  }

  std::vector<Arrived>& arrived() { return arrived_; }
  const std::vector<Arrived>& arrived() const { return arrived_; }
  std::uint64_t in_flight() const { return in_flight_; }
  const FlitCounts& counts(std::uint32_t traffic_class) const { return counts_[traffic_class]; }

 private:
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_;
  std::vector<Arrived> arrived_;
  std::uint64_t in_flight_ = 0;
  std::vector<FlitCounts> counts_;  ///< by class
  bool counts_flit_latency_ = false;
};

}  // namespace orrery::flit
