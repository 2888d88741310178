// SPDX-License-Identifier: Apache-2.0
/// Cycle by cycle: flits in the virtual channels of input-queued routers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "machine/network/flit/general_switch.h"
#include "machine/network/flit/sources.h"
#include "machine/network/flit/turn_switch.h"

namespace orrery::flit {

/// Classes are what nodes send in: each class has a packet of its own at a node, whose flits may go
/// between those of others.
struct Classes {
  std::uint32_t count = 1;
  bool counts_flit_latency = false;
  std::vector<PacketKind> kinds = {};  ///< empty: one, with all VCs
};

/// Waiting is what a virtual channel waits for; for messages about deadlocks.
struct Waiting {
  std::uint32_t in_vc = 0;          ///< index of an input VC
  std::vector<std::uint32_t> for_;  ///< input VCs, any of which would let it go on; never empty
};

/// An input-queued virtual-channel router in every vertex of a graph.
///
///   injected at i      in the first router's buffer at i + 1 + node latency
///   head in buffer t   VC allocation from t + routing_delay, won at v; switch allocation from
///                      v + vc_alloc_delay
///   granted at g       next buffer or node at g + sw_alloc_delay + st_final_delay + link latency;
///                      its credit usable upstream at g + 1 + link latency + credit_delay
///   tail granted at g  the next head of its input VC allocates from g + 1 + routing_delay; its
///                      output VC can be asked for from g + 1
///
/// A packet's route may say that a port passes one of its flits every I cycles: the port is taken
/// for so long, and the flit arrives ceil(I) - 1 cycles later.
///
/// Each input port sends one flit per cycle, each output port passes one. A head asks for every
/// free VC that its route allows, from a pointer of its input VC over all outputs of the network,
/// which moves past what it won; of those who ask for one VC a pointer of the output chooses, and
/// so for the switch. At the source a packet takes the next VC with a credit, round robin. Nodes
/// take what arrives at once and return its credit. What is at random is drawn where a packet
/// leaves its node, by node, then as heads pass the switch, by router: at each for the next; with
/// routing_delay when that ends, by router. Where a cycle has two allocations a router draws for
/// both before the next router does; with more, all draw for one after the other.
///
/// Sources: Dally & Towles, Principles and Practices of Interconnection Networks (2004), ch. 16-20;
/// the cycle rules are those of BookSim 2 (Jiang et al., ISPASS 2013; docs/models/flit.md).
///
/// State is flat and indexed; ports and virtual channels with something to do are bits, what is to
/// come is in a calendar, so a cycle costs what happens in it and idle spans cost nothing.
class Engine {
 public:
  /// `graph` and `routing` must outlive the engine. Requires settings in range (experiment.h).
  Engine(const RouterGraph& graph, const Routing& routing, const RouterSettings& settings,
         std::uint64_t seed, const Classes& classes = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Cycle now() const { return calendar_.now(); }
  Random& random() { return routes_.random(); }

  /// A source is a node and a class: node * classes + class. Hands `source` its next packet, to
  /// leave from now() on. Requires is_free(source).
  void offer(std::uint32_t source, const Offer& offer) { sources_.offer(source, offer); }
  bool is_free(std::uint32_t source) const { return sources_.is_free(source); }

  /// Simulates cycle now() and moves to the next.
  void step();
  /// Returns the first cycle from now() on in which anything happens, `limit` at most.
  Cycle quiet_until(Cycle limit) const;
  /// Moves there.
  void skip(Cycle limit) { calendar_.move_to(quiet_until(limit)); }
  /// Returns what the last step brought: packets that have arrived, sources that have sent a tail.
  const std::vector<Arrived>& arrived() const { return packets_.arrived(); }
  const std::vector<std::uint32_t>& freed_sources() const { return sources_.freed(); }

  /// No flit or credit is to come and no allocation to do.
  bool is_stuck() const { return !is_busy() && calendar_.empty(); }
  std::uint64_t packets_in_flight() const { return packets_.in_flight(); }
  const FlitCounts& counts(std::uint32_t traffic_class) const {
    return packets_.counts(traffic_class);
  }

  /// Flits that have passed a switch, all together and by output port (channels, then nodes).
  std::uint64_t flit_hops() const { return flit_hops_; }
  std::uint64_t flits_over(std::uint32_t port) const { return routers_.out[port].flits; }

  /// Returns the input VCs that hold a flit and cannot go on now, each with what it waits for
  /// (deadlock.h).
  std::vector<Waiting> waiting() const;
  /// Returns "router 3 from router 2, VC 1".
  std::string name_of_vc(std::uint32_t in_vc) const;

 private:
  bool is_busy() const {
    return routers_.ready.any() || vcs_.heads().any() || sources_.any_may_send() ||
           switch_.keeps_any() || !unrouted_.empty() || !next_heads_.empty();
  }

  void take_events();
  void take_credit(std::uint32_t vc);
  void arrive(std::uint32_t vc, std::uint32_t packet);
  void show_head(std::uint32_t vc, bool behind);
  void route_heads();
  void pass_by_router();
  void close_or_open(std::uint32_t port);
  void allocate();
  void allocate_switch();
  void allocate_in_general();
  void order_grants(std::vector<std::uint32_t>& granted) const;
  void send(std::uint32_t vc);
  void leave(InVc& in, std::uint32_t vc);
  void win(const VcAllocation::Win& win);
  Cycle arrival_after(OutPort& port) const;
  Cycle credit_after(InPort& port) const;
  std::vector<std::uint32_t> head_waits_for(std::uint32_t vc) const;

  const RouterGraph& graph_;
  Calendar calendar_;
  Routers routers_;
  Packets packets_;
  HeadRoutes routes_;
  Sources sources_;
  VcAllocation vcs_;
  bool by_turns_;  ///< by `turns_`, else by `switch_`
  TurnSwitch turns_;
  GeneralSwitch switch_;
  bool is_last_step_ = true;  ///< of this cycle's allocations
  bool orders_grants_;        ///< the order in which heads draw theirs matters
  Cycle step_ = 0;            ///< allocations so far
  std::uint32_t grants_ = 0;  ///< of this cycle that show the next head
  std::uint64_t flit_hops_ = 0;
  bool by_router_ = false;  ///< draws of both allocations of this cycle go router by router
  /// A head and the end of its routing_delay, from which step on it may be routed.
  struct Unrouted {
    Cycle end;
    Cycle step;
    std::uint32_t vc;
  };
  std::vector<Unrouted> unrouted_;
  /// A head that has passed the switch of `router`, to `vc` of the router `to`.
  struct Passed {
    std::uint32_t router;
    std::uint32_t packet;
    std::uint32_t to;
    std::uint32_t vc;
  };
  std::vector<Passed> passed_;              ///< whose next hop is not drawn yet
  std::vector<std::uint32_t> freed_vcs_;    ///< from the next allocation on
  std::vector<std::uint32_t> next_heads_;   ///< ask from the next allocation on
  std::vector<std::uint32_t> later_heads_;  ///< from the one after that on
};

}  // namespace orrery::flit
