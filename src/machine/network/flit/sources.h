// SPDX-License-Identifier: Apache-2.0
/// Nodes send packets, flit by flit.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/flit/head_routes.h"

namespace orrery::flit {

/// Marks an event's packet that begins here.
inline constexpr std::uint32_t kHead = 1U << 31U;

/// A source is a node and a class: node * classes + class. It has one packet, of which a node sends
/// one flit a cycle; the packet takes the next VC with a credit, round robin.
class Sources {
 public:
  Sources(const RouterGraph& graph, std::uint32_t classes, Routers& routers, Packets& packets,
          HeadRoutes& routes, Calendar& calendar);

  void offer(std::uint32_t source, const Offer& offer);
  bool is_free(std::uint32_t source) const { return sources_[source].left == 0; }
  /// Sends a flit of every node that may send one.
  void send();
  bool any_may_send() const { return sending_.any(); }
  /// A credit has come back to a node's port.
  void take_credit(std::uint32_t out_vc);
  /// A source's link may be free.
  void wake(std::uint32_t source);
  /// Sources that have sent a tail, until they are cleared.
  std::vector<std::uint32_t>& freed() { return freed_; }
  const std::vector<std::uint32_t>& freed() const { return freed_; }

 private:
  struct Source {
    std::uint32_t packet = kNone;
    std::uint32_t left = 0;
    std::uint32_t vc = kNone;  ///< of the packet, once chosen
    std::uint32_t last_vc = kNone;
    Interval interval = kEveryCycle;  ///< of the packet
    Cycle wire = 0;
    Interval next = kLongAgo;
  };
  std::uint32_t node_of(std::uint32_t source) const {
    return classes_ == 1 ? source : source / classes_;
  }
  bool find_vc(std::uint32_t source);
  void send_from(std::uint32_t source);
  bool send_flit(std::uint32_t source);
  void send_of_classes(std::uint32_t node);

  std::uint32_t classes_;
  bool draws_first_vc_;  ///< a node draws the VC of each try
  Routers& routers_;
  Packets& packets_;
  HeadRoutes& routes_;
  Calendar& calendar_;
  std::vector<Source> sources_;
  std::vector<std::uint32_t> last_class_;  ///< by node, that has sent last
  std::vector<Cycle> delays_;              ///< by node, from leaving to the router's buffer
  BitSet sending_;                         ///< nodes that may send
  std::vector<std::uint32_t> freed_;
};

}  // namespace orrery::flit
