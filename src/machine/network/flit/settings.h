// SPDX-License-Identifier: Apache-2.0
/// RouterSettings say what a router is made of, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/names.h"
#include "base/result.h"

namespace orrery::flit {

/// Instants and spans of simulated time, in cycles of the router's clock.
using Cycle = std::int64_t;

enum class Allocator : std::uint8_t {
  separable_input_first,
  separable_output_first,
  islip,
  select,
  wavefront,
  pim,
  loa,
  max_size
};
constexpr auto named_values(Allocator) {
  return std::to_array<Named<Allocator>>({
      {Allocator::separable_input_first, "separable_input_first",
       "each input chooses one of its requests, then each output one of the inputs"},
      {Allocator::separable_output_first, "separable_output_first",
       "each output chooses one of the inputs, then each input one of its grants"},
      {Allocator::islip, "islip",
       "as separable_output_first; an output's pointer moves only on a grant accepted in the "
       "first iteration (McKeown 1999)"},
      {Allocator::select, "select", "as islip, but the higher priority comes before turns"},
      {Allocator::wavefront, "wavefront",
       "diagonals of the matrix of a router's requests, from one that moves on by one with each "
       "allocation; leaves no request that could be granted (Tamir & Chi 1993)"},
      {Allocator::pim, "pim",
       "each output draws one of the inputs, then each input one of its grants (parallel "
       "iterative matching, Anderson et al. 1993)"},
      {Allocator::loa, "loa",
       "each input asks the output that fewest ask for, each output grants the one in turn "
       "(lonely output, Gupta & McKeown 1998)"},
      {Allocator::max_size, "max_size", "as many grants as there can be, by augmenting ways"},
  });
}

enum class FlowControl : std::uint8_t { wormhole, cut_through };
constexpr auto named_values(FlowControl) {
  return std::to_array<Named<FlowControl>>({
      {FlowControl::wormhole, "wormhole", "a head needs room for one flit in its virtual channel"},
      {FlowControl::cut_through, "cut_through", "a head needs room for its whole packet"},
  });
}

enum class Arbiter : std::uint8_t { round_robin, matrix };
constexpr auto named_values(Arbiter) {
  return std::to_array<Named<Arbiter>>({
      {Arbiter::round_robin, "round_robin", "the first from behind the last that was granted"},
      {Arbiter::matrix, "matrix", "the one whose last grant is longest ago; at first the highest"},
  });
}

enum class Speculation : std::uint8_t { none, priority, separate };
constexpr auto named_values(Speculation) {
  return std::to_array<Named<Speculation>>({
      {Speculation::none, "none", "a head asks for the switch after it has won its VC"},
      {Speculation::priority, "priority",
       "it asks for both at once; for the switch behind all that have their VC"},
      {Speculation::separate, "separate",
       "it asks for both at once; for the switch in an allocation of its own, of which holds what "
       "the other leaves (Peh & Dally 2001)"},
  });
}

/// Priority decides between packets that ask for one output: the highest comes first; of equal ones
/// the arbiter chooses.
enum class Priority : std::uint8_t {
  none,
  traffic_class,
  age,
  network_age,
  local_age,
  sequence,
  hop_count,
  queue_length
};
constexpr auto named_values(Priority) {
  return std::to_array<Named<Priority>>({
      {Priority::none, "none", "all are equal"},
      {Priority::traffic_class, "class", "that of its class"},
      {Priority::age, "age", "created earlier"},
      {Priority::network_age, "network_age", "left its node earlier"},
      {Priority::local_age, "local_age", "came to the router earlier"},
      {Priority::sequence, "sequence", "created by its node after fewer others"},
      {Priority::hop_count, "hop_count", "come through more routers"},
      {Priority::queue_length, "queue_length", "more flits in its VC"},
  });
}

/// Cycles between the flits of a packet over a port, in steps of 2^-16. kEveryCycle: one per cycle.
using Interval = std::int64_t;
inline constexpr int kIntervalBits = 16;
inline constexpr Interval kEveryCycle = Interval{1} << kIntervalBits;

inline constexpr int kMostVcs = 64;
inline constexpr int kMostBuffer = 1'000'000;
inline constexpr int kMostDelay = 100'000;

struct RouterSettings {
  int vcs = 4;             ///< virtual channels of a port
  int buffer = 8;          ///< flits of one virtual channel
  int routing_delay = 0;   ///< cycles
  int vc_alloc_delay = 1;  ///< cycles
  int sw_alloc_delay = 1;  ///< cycles
  int st_final_delay = 1;  ///< cycles of the switch's traversal
  int credit_delay = 2;    ///< cycles, beside the link's
  Allocator vc_allocator = Allocator::separable_input_first;
  Allocator sw_allocator = Allocator::separable_input_first;
  int alloc_iters = 1;
  Arbiter vc_arbiter = Arbiter::round_robin;  ///< of separable allocators
  Arbiter sw_arbiter = Arbiter::round_robin;
  Speculation speculation = Speculation::none;
  Allocator spec_allocator = Allocator::separable_input_first;  ///< of Speculation::separate
  bool spec_check_vc = true;                                    ///< only where a VC is free
  bool spec_check_credit = true;  ///< only where such a VC has a credit; needs spec_check_vc
  bool spec_mask_by_requests =
      false;                         ///< others' requests for an output forbid it, not only grants
  bool vc_busy_when_full = false;    ///< a VC without a credit is not given to a head
  bool vc_prioritize_empty = false;  ///< a head prefers VCs with an empty buffer
  Priority priority = Priority::none;
  int input_speedup = 1;   ///< switch inputs of a port; VC v uses that of v mod input_speedup
  int output_speedup = 1;  ///< switch outputs of a port; input i uses that of i mod output_speedup
  /// Allocations of a router in a cycle, at least 1; 1.5 is one and two in turn. What passes the
  /// switch faster than the link waits at the output.
  double internal_speedup = 1;
  /// Flits by which ugal favours the minimal way; none: BookSim's number for the topology.
  std::optional<std::int64_t> ugal_bias{};
  bool hold_switch_for_packet = false;  ///< a packet's flits that are there follow without asking
  bool wait_for_tail_credit = false;  ///< an output VC is free when its buffer downstream is empty
  FlowControl flow_control = FlowControl::wormhole;

  template <class V>
  static void fields(V&& visit) {
    using S = RouterSettings;
    visit("vcs", &S::vcs, "virtual channels of a port");
    visit("buffer", &S::buffer, "flits of one virtual channel");
    visit("routing_delay", &S::routing_delay, "cycles of route computation");
    visit("vc_alloc_delay", &S::vc_alloc_delay, "cycles of VC allocation");
    visit("sw_alloc_delay", &S::sw_alloc_delay, "cycles of switch allocation");
    visit("st_final_delay", &S::st_final_delay, "cycles of switch traversal");
    visit("credit_delay", &S::credit_delay, "cycles from a credit's arrival to its use");
    visit("vc_allocator", &S::vc_allocator, "of output VCs to heads");
    visit("sw_allocator", &S::sw_allocator, "of output ports to input ports");
    visit("alloc_iters", &S::alloc_iters, "iterations of both allocators");
    visit("vc_arbiter", &S::vc_arbiter, "of a separable vc_allocator");
    visit("sw_arbiter", &S::sw_arbiter, "of a separable sw_allocator");
    visit("speculation", &S::speculation, "whether heads ask for the switch before they have a VC");
    visit("spec_allocator", &S::spec_allocator, "of the separate allocation of speculation");
    visit("spec_check_vc", &S::spec_check_vc, "speculate only where a VC is free");
    visit("spec_check_credit", &S::spec_check_credit,
          "speculate only where a free VC has a credit");
    visit("spec_mask_by_requests", &S::spec_mask_by_requests,
          "speculate only on outputs that no other packet asks for");
    visit("vc_busy_when_full", &S::vc_busy_when_full, "heads do not take a VC without a credit");
    visit("vc_prioritize_empty", &S::vc_prioritize_empty, "heads prefer a VC that is empty");
    visit("priority", &S::priority, "what decides between packets before turns do");
    visit("input_speedup", &S::input_speedup, "switch inputs of an input port");
    visit("output_speedup", &S::output_speedup, "switch outputs of an output port");
    visit("internal_speedup", &S::internal_speedup, "allocations of a router in a cycle");
    visit("hold_switch_for_packet", &S::hold_switch_for_packet,
          "a packet keeps its way through the switch while its flits are there");
    visit("wait_for_tail_credit", &S::wait_for_tail_credit,
          "an output VC is free when its last packet has left the buffer downstream");
    visit("flow_control", &S::flow_control, "what room a head needs");
  }

  friend bool operator==(const RouterSettings&, const RouterSettings&) = default;
};

}  // namespace orrery::flit
