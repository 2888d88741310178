// SPDX-License-Identifier: Apache-2.0
/// The state of all routers: ports, virtual channels, buffers, credits.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/flit/allocator.h"
#include "machine/network/flit/bit_set.h"
#include "machine/network/flit/calendar.h"
#include "machine/network/flit/routing.h"

namespace orrery::flit {

inline constexpr std::uint32_t kNone = UINT32_MAX;

/// The order in which a router's grants of one cycle draw where they lead: what has won its VC
/// last first, of those what asked first; then what came to an empty buffer later.
struct Turn {
  Cycle since = 0;          ///< of the first kind, the allocation of the win, negative
  Cycle asked = 0;          ///< twice the allocation, and one more if behind a tail
  std::uint32_t place = 0;  ///< within it: port, or number of the grant
  friend auto operator<=>(const Turn&, const Turn&) = default;
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
  std::uint32_t best = kNone;  ///< of the output VCs that chose it in this cycle, the first in turn
  std::int64_t priority = 0;   ///< of the packet here
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
  std::uint32_t from = 0;  ///< output port that leads here
  std::uint32_t lane = 0;  ///< which of an output's switch outputs it uses
  Cycle last_credit = 0;   ///< with speed-up, when the last credit is back
  Cycle credit_step = -1;  ///< allocation that it is of
  Cycle credit_delay = 0;  ///< from a grant to the credit's use upstream
};

struct OutPort {
  VcMask free = 0;  ///< VCs
  std::uint32_t router = 0;
  std::uint32_t asking = 0;     ///< heads, in this cycle
  std::uint32_t to = 0;         ///< input port that it leads to, unless to a node
  Cycle delay = 0;              ///< from a grant to the arrival
  Cycle node_credit_delay = 0;  ///< from a grant to the return of a node's credit
  Interval next = kLongAgo;     ///< earliest time of a flit, in steps of an Interval
  bool closed = false;          ///< it is yet to come
  bool counts_credits = true;   ///< not of a node with room for a round trip
  Cycle next_arrival = 0;       ///< with speed-up, earliest arrival of the next flit
  std::uint64_t flits = 0;
  Cycle sent_step = -1;    ///< of the last flits, where heads draw by router
  std::uint32_t sent = 0;  ///< flits of that step
};

/// Output ports are channels, then ports to nodes, then ports from nodes; input ports go by router,
/// there in its own order: the places of channels, then nodes, or nodes first. A VC's number is its
/// port's times a power of two, and its number there.
struct Routers {
  Routers(const RouterGraph& graph, const RouterSettings& settings, VcMask all_vcs);

  std::uint32_t vc(std::uint32_t port, std::uint32_t vc) const { return (port << shift) + vc; }
  std::uint32_t port_of(std::uint32_t vc) const { return vc >> shift; }
  std::uint32_t vc_of(std::uint32_t vc) const { return vc & ((1U << shift) - 1); }
  std::uint32_t router_of(std::uint32_t in_vc) const { return in[port_of(in_vc)].router; }
  /// Returns the output VC before an input VC, and the one that follows an output VC.
  std::uint32_t upstream(std::uint32_t in_vc) const {
    return vc(in[port_of(in_vc)].from, vc_of(in_vc));
  }
  std::uint32_t downstream(std::uint32_t out_vc) const {
    return vc(out[port_of(out_vc)].to, vc_of(out_vc));
  }
  VcMask bit_of(std::uint32_t vc) const { return VcMask{1} << vc_of(vc); }

  /// Finds anew whether an input VC can send a flit; for callers that changed what decides it.
  void update_ready(std::uint32_t in_vc) {
    const InVc& of = in_vcs[in_vc];
    const std::uint32_t port = port_of(in_vc);
    if (of.count > 0 && of.out != kNone && !of.rests && out_vcs[of.out].credits > 0 &&
        !out[of.port].closed) {
      in[port].ready |= bit_of(in_vc);
      ready.add(port);
    } else {
      in[port].ready &= ~bit_of(in_vc);
      if (in[port].ready == 0) {
        ready.remove(port);
      }
    }
  }
  /// Returns the candidate's VCs that a packet may have now.
  VcMask open_vcs(const Candidate& candidate, std::uint32_t flits) const;
  std::int64_t priority_of(const InVc& of) const {
    return settings.priority == Priority::queue_length ? std::int64_t{of.count} : of.priority;
  }
  /// Returns whether allocators with these arbiters decide by round-robin turns alone, in one
  /// iteration.
  bool goes_by_turns(Arbiter arbiter) const {
    return settings.alloc_iters == 1 && arbiter == Arbiter::round_robin &&
           settings.priority == Priority::none;
  }
  /// Returns an allocator with so many inputs of an input port and outputs of an output port.
  SparseAllocator make_allocator(int inputs, int outputs, Arbiter arbiter) const;
  /// Returns an allocator of input VCs and output VCs.
  SparseAllocator make_vc_allocator() const;

  RouterSettings settings;
  std::uint32_t channels = 0;
  std::uint32_t ports = 0;  ///< channels and one per node
  unsigned shift = 0;
  bool has_speedup = false;  ///< outputs may get more than a flit a cycle
  bool needs_room = false;   ///< a head takes a VC only with credits
  Cycle longest_delay = 0;   ///< of all
  std::vector<InPort> in;
  std::vector<OutPort> out;
  std::vector<InVc> in_vcs;
  std::vector<OutVc> out_vcs;
  BitSet ready;                              ///< input ports with a ready VC
  std::vector<std::uint32_t> first_outputs;  ///< by router, the output port that is first in turn

 private:
  SparseAllocator begun(const std::vector<std::uint32_t>& of_inputs,
                        const std::vector<std::uint32_t>& of_outputs, std::uint32_t width,
                        Arbiter arbiter) const;
  void number_inputs(const RouterGraph& graph);
  void set_out(std::uint32_t port, std::int32_t router, Cycle latency);
};

}  // namespace orrery::flit
