// SPDX-License-Identifier: Apache-2.0
/// Says where heads go, asked of the routing when a router would know it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "machine/network/flit/packets.h"
#include "machine/network/flit/random.h"
#include "machine/network/flit/routers.h"

namespace orrery::flit {

/// Packets of a kind have VCs of their own: `routing` is made for so many, of which the first is
/// `first_vc` of a port.
struct PacketKind {
  const Routing* routing = nullptr;
  std::uint32_t first_vc = 0;
  std::uint32_t vcs = 0;
};

/// HeadRoutes draws from its numbers at random in the order in which it is asked.
class HeadRoutes {
 public:
  /// `kinds` empty: one, by `routing`, with all VCs.
  HeadRoutes(const Routing& routing, const std::vector<PacketKind>& kinds, Routers& routers,
             Packets& packets, std::uint64_t seed);

  /// Draws what a packet decides at its source, when it leaves it.
  void leave(Packet& packet);
  /// The head of a packet passes the switch: to VC `vc` of `router`, if it is known where it goes
  /// there.
  void pass(Packet& packet, std::uint32_t router, std::uint32_t vc) {
    if (depends_on_vc_) {
      enter(packet, vc);
    }
    if (looks_ahead_) {
      look_ahead(packet, router);
    }
  }
  /// Says where the front packet of an input VC goes next. `before`: with the queues as they were
  /// before the flits of this step left.
  void route(std::uint32_t vc, std::optional<Cycle> before = std::nullopt);
  /// Returns the output that a head asks for, with its open VCs; no VCs if it has to wait.
  Candidate open_output(std::uint32_t vc);
  /// Returns the escape that a head asks for behind its output, with its open VCs.
  Candidate open_escape(std::uint32_t vc) const {
    const Packet& packet = packets_[routers_.in_vcs[vc].front];
    return {packet.escape.port, routers_.open_vcs(packet.escape, packet.flits)};
  }
  /// Finds all outputs that a head may ask for. Draws nothing.
  void outputs_of(std::uint32_t vc, Candidates& into) const;
  /// Returns the kind of a packet.
  PacketKind kind_of(const Packet& packet) const {
    return kinds_.empty()
               ? PacketKind{&routing_, 0, static_cast<std::uint32_t>(routers_.settings.vcs)}
               : kinds_[packet.kind];
  }

  const Routing& routing() const { return routing_; }
  Random& random() { return random_; }
  /// A head's output is drawn where its routing_delay ends.
  bool draws_at_routers() const { return draws_at_routers_; }
  /// Returns whether the order in which heads pass the switch matters to what is drawn.
  bool draws_in_passing() const { return looks_ahead_ && routing_.traits().draws_en_route(); }

 private:
  static constexpr std::size_t kMostNextPorts = 1U << 14U;

  std::int64_t wait_ahead(RouteState route, std::uint32_t router);
  void start(Packet& packet);
  void enter(Packet& packet, std::uint32_t vc) {
    const PacketKind kind = kind_of(packet);
    kind.routing->enter(packet.route, vc - kind.first_vc);
  }
  void look_ahead(Packet& packet, std::uint32_t router);
  void next_hop(RouteState& route, const PacketKind& kind, std::uint32_t router);

  const Routing& routing_;
  std::vector<PacketKind> kinds_;
  Routers& routers_;
  Packets& packets_;
  Random random_;
  bool looks_ahead_;  ///< a head's output is known when it comes to a router
  bool depends_on_vc_;
  bool draws_at_routers_;
  std::vector<std::uint32_t> next_port_;  ///< of fixed routing, by router and node, once asked for
  Candidates candidates_;                 ///< of the head that is looked at
  std::optional<Cycle> before_;           ///< of route()
};

}  // namespace orrery::flit
