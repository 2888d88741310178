// SPDX-License-Identifier: Apache-2.0
/// A Fabric is what a machine's network is made of at the level of flits, and messages on it.
#pragma once

#include <cstdint>

#include "base/names.h"
#include "base/units.h"
#include "machine/network/flit/settings.h"

namespace orrery::flit {

enum class Ports : std::uint8_t { link, node };
constexpr auto named_values(Ports) {
  return std::to_array<Named<Ports>>({
      {Ports::link, "link",
       "a device injects into each of its links, and takes from each, beside the others"},
      {Ports::node, "node",
       "a device injects one flit per cycle, its messages one after the other, and takes one"},
  });
}

struct FabricSettings {
  Bytes flit{64};  ///< that the fastest link passes in a cycle
  /// A message goes in packets of this size, behind a head flit each: the largest MTU of InfiniBand
  /// and RoCE v2 (InfiniBand Architecture Specification, volume 1: 256 to 4096 bytes).
  Bytes packet{4096};
  Time cycle{0};  ///< 0: flit / the fastest link's bandwidth
  Ports ports = Ports::link;
  int vcs = 4;  ///< of every class (network.h)
  int buffer =
      0;  ///< flits of a virtual channel; 0: a round trip of the longest link and 4 packets
  int routing_delay = 0;  ///< cycles
  int credit_delay = 2;   ///< cycles, beside the link's
  Allocator vc_allocator = Allocator::separable_input_first;
  Allocator sw_allocator = Allocator::separable_input_first;
  FlowControl flow_control = FlowControl::cut_through;

  template <class V>
  static void fields(V&& visit) {
    using F = FabricSettings;
    visit("flit", &F::flit, "bytes that the fastest link passes in a cycle");
    visit("packet", &F::packet, "bytes of a message in one packet, behind a head flit");
    visit("cycle", &F::cycle, "0 ps: flit / the fastest link's bandwidth");
    visit("ports", &F::ports, "what a device injects and takes at once");
    visit("vcs", &F::vcs, "virtual channels of every class");
    visit("buffer", &F::buffer, "flits of a virtual channel; 0: a round trip of the longest link");
    visit("routing_delay", &F::routing_delay, "cycles of route computation");
    visit("credit_delay", &F::credit_delay, "cycles from a credit's arrival to its use");
    visit("vc_allocator", &F::vc_allocator, "of output VCs to heads");
    visit("sw_allocator", &F::sw_allocator, "of output ports to input ports");
    visit("flow_control", &F::flow_control, "what room a head needs");
  }

  friend bool operator==(const FabricSettings&, const FabricSettings&) = default;
};

/// Flits of `bytes` of payload in one packet: ceil(bytes / flit), and a head.
constexpr std::int64_t packet_flits(Bytes bytes, Bytes flit) {
  return (bytes.value() + flit.value() - 1) / flit.value() + 1;
}

/// Flits of a message: whole packets and one with the rest. A message of nothing is a head.
///
///   F(B) = floor(B/P) (ceil(P/f) + 1) + (r > 0 ? ceil(r/f) + 1 : 0),  r = B mod P
constexpr std::int64_t message_flits(Bytes bytes, Bytes packet, Bytes flit) {
  const std::int64_t whole = bytes.value() / packet.value();
  const Bytes rest(bytes.value() % packet.value());
  const std::int64_t flits =
      whole * packet_flits(packet, flit) + (rest > Bytes(0) ? packet_flits(rest, flit) : 0);
  return flits > 0 ? flits : 1;
}

/// Cycles from a message's start to its completion, if it meets no other: its successors start
/// then.
///
///   F(B) - 1 + 1 (link of the sender) + H (routing + VC + switch allocation + traversal)
///            + sum of link latencies + 1 (its arrival is seen a cycle later)
///
/// with the sender's and receiver's links in the sum, H routers of the route, and floor((F-1) I) in
/// place of F - 1 where flits follow each other every I cycles; links that take a flit for several
/// cycles count so much more latency. With the delays of RouterSettings,
/// links of 1 at the ends and one of 100 between: F + 109; two of 100 around a router with a
/// routing delay of 1: F + 205 (docs/models/flit.md).
/// Requires sw_alloc_delay = 1, two VCs for the message on every link, buffers of a round trip.
constexpr Cycle alone(std::int64_t flits, Interval interval, std::int64_t routers, Cycle links,
                      const RouterSettings& router) {
  const Cycle stages =
      router.routing_delay + router.vc_alloc_delay + router.sw_alloc_delay + router.st_final_delay;
  return (((flits - 1) * interval) >> kIntervalBits) + 2 + routers * stages + links;
}

}  // namespace orrery::flit
