// SPDX-License-Identifier: Apache-2.0
/// What a router is made of, as plain values.
#pragma once

#include <cstdint>
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
  int input_speedup = 1;  ///< switch inputs of a port; VC v uses that of v mod input_speedup
  /// Allocations of a router in a cycle, at least 1; 1.5 is one and two in turn. What passes the
  /// switch faster than the link waits at the output.
  double internal_speedup = 1;
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
    visit("input_speedup", &S::input_speedup, "switch inputs of an input port");
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
