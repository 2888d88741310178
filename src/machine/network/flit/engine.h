// SPDX-License-Identifier: Apache-2.0
/// Cycle by cycle: flits in the virtual channels of input-queued routers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/network/flit/allocator.h"
#include "machine/network/flit/bit_set.h"
#include "machine/network/flit/calendar.h"
#include "machine/network/flit/random.h"
#include "machine/network/flit/routing.h"
#include "machine/network/flit/settings.h"

namespace orrery::flit {

/// A port that passed a flit at `now` passes the next at the first cycle not before this. A port
/// that was not idle keeps fractions, so that the mean is right.
inline Interval next_time(Interval before, Cycle now, Interval interval) {
  return std::max(before, ((now - 1) << kIntervalBits) + 1) + interval;
}

inline Cycle cycle_of(Interval time) {
  return (time + kEveryCycle - 1) >> kIntervalBits;
}

/// Packets of a kind have VCs of their own: `routing` is made for so many, of which the first is
/// `first_vc` of a port.
struct PacketKind {
  const Routing* routing = nullptr;
  std::uint32_t first_vc = 0;
  std::uint32_t vcs = 0;
};

/// Classes are what nodes send in: each class has a packet of its own at a node, whose flits may go
/// between those of others.
struct Classes {
  std::uint32_t count = 1;
  bool counts_flit_latency = false;
  std::vector<PacketKind> kinds = {};  ///< empty: one, with all VCs
};

/// FlitCounts counts the flits of one class.
struct FlitCounts {
  std::uint64_t injected = 0;
  std::uint64_t arrived = 0;
  /// Over the packets in flight (offered, not arrived): flits, and flits times created.
  std::int64_t in_flight = 0;
  Cycle created_in_flight = 0;
  Cycle flit_latency = 0;  ///< sum of leaving to arrival, where that is counted
};

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
/// routing_delay when that ends, by router.
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

  Cycle now() const { return now_; }
  Random& random() { return random_; }

  /// A source is a node and a class: node * classes + class. Hands `source` its next packet, to
  /// leave from now() on. Requires is_free(source).
  void offer(std::uint32_t source, const Offer& offer);
  bool is_free(std::uint32_t source) const { return sources_[source].left == 0; }

  /// Simulates cycle now() and moves to the next.
  void step();
  /// The first cycle from now() on in which anything happens, `limit` at most.
  Cycle quiet_until(Cycle limit) const;
  /// Moves there.
  void skip(Cycle limit) { now_ = quiet_until(limit); }
  /// Returns what the last step brought: packets that have arrived, sources that have sent a tail.
  const std::vector<Arrived>& arrived() const { return arrived_; }
  const std::vector<std::uint32_t>& freed_sources() const { return freed_sources_; }

  /// No flit or credit is to come and no allocation to do.
  bool is_stuck() const { return !is_busy() && calendar_.empty(); }
  std::uint64_t packets_in_flight() const { return in_flight_; }
  const FlitCounts& counts(std::uint32_t traffic_class) const { return counts_[traffic_class]; }

  /// Flits that have passed a switch, all together and by output port (channels, then nodes).
  std::uint64_t flit_hops() const { return flit_hops_; }
  std::uint64_t flits_over(std::uint32_t port) const { return out_[port].flits; }

  /// Input VCs that hold a flit and cannot go on now, each with what it waits for (deadlock.h).
  std::vector<Waiting> waiting() const;
  /// "router 3 from router 2, VC 1".
  std::string name_of_vc(std::uint32_t in_vc) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr Interval kLongAgo = -(Interval{1} << 40U);
  static constexpr std::size_t kMostNextPorts = 1U << 14U;
  static constexpr std::uint32_t kHead = 1U << 31U;  // of an arrival's packet: it begins here

  /// The order in which a router's grants of one cycle draw where they lead: what has won its VC
  /// last first, of those what asked first; then what came to an empty buffer later.
  struct Turn {
    Cycle since = 0;          ///< of the first kind, the allocation of the win, negative
    Cycle asked = 0;          ///< twice the allocation, and one more if behind a tail
    std::uint32_t place = 0;  ///< within it: port, or number of the grant
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  struct Packet {
    RouteState route;
    std::uint32_t source = 0;  ///< node
    std::uint32_t flits = 0;
    std::uint32_t tag = 0;
    std::uint32_t traffic_class = 0;
    std::uint32_t kind = 0;
    std::uint32_t hops = 0;
    std::uint32_t missing = 0;     ///< flits that have not arrived
    std::uint32_t behind = kNone;  ///< the packet behind it, where it waits behind another
    Cycle created = 0;
    Cycle injected = 0;
    std::vector<Cycle> left_at{};  ///< its flits, where flit_latency is counted
    std::int64_t priority = 0;
    Candidate ahead;  ///< output of the router that it comes to next, where that is known before
  };
  struct InVc {
    std::uint32_t out = kNone;     ///< VC that its front packet has won
    std::uint32_t port = kNone;    ///< of it; before, the one that its route says
    std::uint32_t front = kNone;   ///< packet
    std::uint32_t left = 0;        ///< flits of it, not yet sent
    std::uint32_t count = 0;       ///< flits in the buffer
    std::uint32_t second = kNone;  ///< packet whose head is behind it in the buffer
    std::uint32_t last = kNone;    ///< of those behind
    std::uint32_t pointer = 0;     ///< output VC that is first in turn
    VcMask vcs = 0;                ///< that its route says
    Turn turn;                     ///< where the order of grants matters
    bool rests = false;            ///< until vc_alloc_delay or sw_alloc_delay is over
    bool begins = false;           ///< the next flit is its head
    std::int64_t priority = 0;     ///< of the packet here
    Interval interval = kEveryCycle;
    Cycle wire = 0;  ///< ceil(interval) - 1 cycles
  };
  struct OutVc {
    std::int32_t credits = 0;
    std::uint32_t owner = kNone;  ///< input VC
    std::uint32_t pointer = 0;    ///< input VC that is first in turn
    std::uint32_t best = kNone;   ///< of those that ask in this cycle, the first in turn
    bool closing = false;         ///< free when all credits are back
  };
  struct InPort {
    VcMask ready = 0;  ///< VCs that could send a flit
    std::uint32_t router = 0;
    std::uint32_t from = 0;     ///< output port that leads here
    std::uint32_t pointer = 0;  ///< output port first in turn
    std::uint32_t vc = 0;       ///< VC first in turn
    std::uint32_t place = 0;    ///< number among its router's
    Cycle last_credit = 0;      ///< with speed-up, when the last credit is back
    Cycle credit_step = -1;     ///< allocation that it is of
    Cycle credit_delay = 0;     ///< from a grant to the credit's use upstream
  };
  struct OutPort {
    VcMask free = 0;              ///< VCs
    std::uint32_t pointer = 0;    ///< input VC first in turn
    std::uint32_t best = kNone;   ///< of those that ask in this cycle, the first in turn
    std::uint32_t to = 0;         ///< input port that it leads to, unless to a node
    Cycle delay = 0;              ///< from a grant to the arrival
    Cycle node_credit_delay = 0;  ///< from a grant to the return of a node's credit
    Interval next = kLongAgo;     ///< earliest time of a flit, in steps of an Interval
    bool closed = false;          ///< it is yet to come
    Cycle next_arrival = 0;       ///< with speed-up, earliest arrival of the next flit
    bool counts_credits = true;   ///< not of a node with room for a round trip
    std::uint64_t flits = 0;
  };
  struct SwitchInput {
    std::uint32_t vc = 0;        ///< first in turn
    std::uint32_t held = kNone;  ///< input VC that keeps the switch
  };
  /// A VC that could send a flit, or speculates that it can.
  struct Wish {
    std::uint32_t input = 0;  ///< of the switch
    std::uint32_t output = 0;
    std::int64_t priority = 0;
    std::uint32_t distance = 0;  ///< from the first in turn
    std::uint32_t vc = 0;
  };
  struct Source {
    std::uint32_t packet = kNone;
    std::uint32_t left = 0;
    std::uint32_t vc = kNone;  ///< of the packet, once chosen
    std::uint32_t last_vc = kNone;
    Cycle delay = 0;                  ///< from leaving to the router's buffer
    Interval interval = kEveryCycle;  ///< of the packet
    Cycle wire = 0;
    Interval next = kLongAgo;
  };

  std::uint32_t in_vc(std::uint32_t port, std::uint32_t vc) const { return (port << shift_) + vc; }
  std::uint32_t port_of(std::uint32_t vc) const { return vc >> shift_; }
  /// The output VC before an input VC, and the one that follows an output VC.
  std::uint32_t upstream(std::uint32_t vc) const { return in_vc(in_[port_of(vc)].from, vc_of(vc)); }
  std::uint32_t downstream(std::uint32_t out) const {
    return in_vc(out_[port_of(out)].to, vc_of(out));
  }
  std::uint32_t vc_of(std::uint32_t vc) const { return vc & ((1U << shift_) - 1); }
  bool is_busy() const {
    return ready_.any() || heads_.any() || sending_.any() || !holding_.empty() ||
           !unrouted_.empty();
  }

  void take_events();
  void arrive(std::uint32_t vc, std::uint32_t packet);
  void eject(std::uint32_t packet);
  void take_credit(std::uint32_t vc);
  void unpark(std::uint32_t port);
  void close_port(std::uint32_t port);
  Cycle within_reach(Interval time) const;
  void open_port(std::uint32_t port);
  void free_vc(std::uint32_t vc);
  std::int64_t wait_ahead(RouteState route, std::uint32_t router);
  void choose_route(Packet& packet, std::uint32_t router);
  void show_head(std::uint32_t vc, Cycle when);
  void route_head(std::uint32_t vc);
  void route_heads();
  void start(Packet& packet);
  void look_ahead(Packet& packet, std::int32_t router);
  void order_grants();
  void update_ready(std::uint32_t vc);
  int steps_of_cycle() const;
  void allocate();
  Cycle arrival_after(OutPort& port) const;
  Cycle credit_after(InPort& port) const;
  void allocate_switch();
  void request_switch(std::uint32_t port, VcMask ready);
  void grant(std::uint32_t vc, std::uint32_t out_port);
  void send(std::uint32_t vc);
  void match_vcs();
  void ask_for_vcs(std::uint32_t vc, const Candidate& output);

  void allocate_in_general();
  void gather_wishes();
  void add_wish(std::uint32_t vc, std::vector<Wish>& wishes, std::int64_t less);
  bool may_speculate(std::uint32_t vc) const;
  std::int64_t priority_of(const InVc& in) const;
  std::uint32_t switch_input(std::uint32_t vc) const;
  std::uint32_t switch_output(std::uint32_t vc) const;
  static void ask(std::vector<Wish>& wishes, SparseAllocator& allocator);
  void take_matches();
  void take_match(const SparseAllocator::Request& match, const std::vector<Wish>& wishes);
  void drop_wrong_guesses();
  void pass_held();
  Candidate open_output(std::uint32_t vc);
  VcMask open_vcs(const Candidate& candidate, std::uint32_t flits) const;
  void ask_for_vc(std::uint32_t vc, const Candidate& output);
  void win(std::uint32_t vc, std::uint32_t out);
  void next_hop(Packet& packet, std::uint32_t router);
  void inject();
  bool inject_flit(std::uint32_t source);
  void send_from(std::uint32_t source);
  bool find_vc(std::uint32_t source);
  void inject_of_classes(std::uint32_t node);
  std::uint32_t node_of(std::uint32_t source) const {
    return class_count_ == 1 ? source : source / class_count_;
  }
  void end_step();
  void number_inputs();
  Cycle set_ports();
  void begin_with_nodes();
  void set_allocators();
  std::vector<std::uint32_t> routers_of_inputs(std::size_t each) const;
  std::vector<std::uint32_t> routers_of_outputs(std::size_t each) const;

  struct InFlight {
    std::vector<bool> credits;
    std::vector<bool> flits;
  };
  InFlight on_their_way() const;
  std::vector<std::uint32_t> head_waits_for(std::uint32_t vc) const;

  const RouterGraph& graph_;
  const Routing& routing_;
  RouterSettings settings_;
  Random random_;
  std::vector<std::uint32_t> next_port_;  ///< of fixed routing, by router and node, once asked for
  std::vector<PacketKind> kinds_;         ///< empty: one, by routing_
  std::uint32_t class_count_ = 1;
  bool counts_flit_latency_ = false;
  std::vector<std::uint32_t> last_class_;  ///< by node, that has sent last
  std::uint32_t channels_ = 0;
  std::uint32_t ports_ = 0;  ///< channels and one per node
  unsigned shift_ = 0;
  bool plain_vc_ = true;           ///< separable input first, one iteration, no priorities
  bool plain_switch_ = true;       ///< so, one switch input and output of a port, nothing held
  bool has_speedup_ = false;       ///< outputs may get more than a flit a cycle
  bool is_last_step_ = true;       ///< of this cycle's allocations
  bool looks_ahead_ = true;        ///< a head's output is known when it comes to a router
  bool needs_room_ = false;        ///< a head takes a VC only with credits
  bool parks_ = true;              ///< heads that find no VC rest until one is free
  bool orders_grants_ = false;     ///< the order in which heads draw theirs matters
  bool draws_first_vc_ = false;    ///< a node draws the VC of each try
  bool draws_at_routers_ = false;  ///< with routing_delay, where it ends
  Cycle hop_delay_ = 0;
  Cycle longest_delay_ = 0;
  Cycle now_ = 0;

  std::vector<InPort> in_;    ///< by router, there in its own order
  std::vector<OutPort> out_;  ///< channels, then to nodes, then from nodes
  std::vector<InVc> in_vcs_;
  std::vector<OutVc> out_vcs_;
  std::vector<Source> sources_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_packets_;
  std::vector<std::vector<std::uint32_t>> parked_;  ///< by output port: heads that wait for a VC

  std::vector<std::pair<Cycle, std::uint32_t>> unrouted_;  ///< ends of routing_delay and heads' VCs

  BitSet ready_;    ///< input ports with a ready VC
  BitSet heads_;    ///< input VCs whose head asks for an output VC
  BitSet sending_;  ///< nodes that may inject
  Calendar calendar_;
  SparseAllocator slow_vc_;
  SparseAllocator slow_switch_;
  SparseAllocator spec_switch_;
  std::vector<SwitchInput> switch_inputs_;  ///< where the switch is not plain
  std::vector<std::uint32_t> holding_;      ///< inputs that are kept, the longest first
  std::vector<bool> held_outputs_;          ///< of the switch
  std::vector<Wish> wishes_;
  std::vector<Wish> spec_wishes_;               ///< of the separate allocation
  std::vector<std::uint32_t> granted_;          ///< input VCs
  std::vector<std::uint32_t> guessed_;          ///< granted though they had no output VC
  std::vector<SparseAllocator::Request> wins_;  ///< input VCs, output VCs
  Cycle step_ = 0;                              ///< allocations so far
  Candidates candidates_;                       ///< of the head that is looked at
  std::vector<Arrived> arrived_;
  std::vector<std::uint32_t> freed_sources_;
  std::vector<std::uint32_t> touched_;     ///< outputs asked for in this cycle
  std::vector<std::uint32_t> freed_vcs_;   ///< from the next cycle on
  std::vector<std::uint32_t> next_heads_;  ///< ask from the next cycle on
  std::uint32_t grants_ = 0;               ///< of this cycle that show the next head
  std::uint64_t in_flight_ = 0;
  std::uint64_t flit_hops_ = 0;
  std::vector<FlitCounts> counts_;  ///< by class
};

}  // namespace orrery::flit
