// SPDX-License-Identifier: Apache-2.0
/// Packets on a network of links: store-and-forward queues and what senders and receivers do about
/// them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "machine/network/flows.h"
#include "machine/topology/routing.h"

namespace orrery::network {

enum class Protocol : std::uint8_t { eqds, roce };
constexpr auto named_values(Protocol) {
  return std::to_array<Named<Protocol>>({
      {Protocol::eqds, "eqds",
       "receiver credits: a first window at line rate, then what the receiver pulls; full queues "
       "trim packets, which are sent again"},
      {Protocol::roce, "roce",
       "senders at line rate; full ingress buffers pause the link before them (PFC), nothing is "
       "lost"},
  });
}

/// Constants of a protocol. Counts of packets scale with the links' rate from those of 100 Gbit/s.
struct PacketOptions {
  Protocol protocol = Protocol::eqds;
  Bytes wire{0};             ///< of a full packet; 0: eqds 4150, roce 9064
  Bytes header{64};          ///< of it, and of control packets
  std::int64_t queue = 0;    ///< packets that an output queue of eqds holds; 0: 35 at 100 Gbit/s
  std::int64_t window = 0;   ///< packets sent before credit; 0: 50 at 100 Gbit/s
  std::int64_t paths = 0;    ///< that a flow's packets take in turn; 0: 64 of eqds, 1 of roce
  std::int64_t pause = 15;   ///< packets' payload from one link at which it is paused (Xoff) ...
  std::int64_t resume = 12;  ///< ... and below which it goes on (Xon)
  Time switch_delay{0};      ///< of every switch passed
  std::uint64_t seed = 0;
};

struct PacketRun {
  std::vector<Time> finish;  ///< by flow: the sender has the last acknowledgement
  std::vector<double> load;  ///< bytes on the wire, by link, without control packets
  Time end{0};
  std::uint64_t packets = 0;  ///< sent, those sent again included
  std::uint64_t resent = 0;
  std::uint64_t pauses = 0;
  std::uint64_t events = 0;
};

/// Runs flows packet by packet.
///
///   packets   N = ceil(bytes / payload), payload = wire - header; a packet leaves a port wire /
///   rate
///             after it has begun to, and is at the next node the link's latency later
///   queues    first in, first out at every port; eqds: one that would hold more than `queue`
///   packets
///             trims the arriving one to its header
///   ways      packet i of a flow takes path id i-th of a permutation of `paths` ids, new in every
///             round; an id is a choice by hash at every fork (Router, ecmp)
///   control   acknowledgements, credits and headers of trimmed packets have priority: they take
///             links * (header / rate + latency), wait for nobody, and delay what is in a busy port
///             by header / rate
///   eqds      first `window` packets at line rate; then per host one pull every
///             0.99 (wire + 38 B) / rate, in turn over the flows that it wants something of
///             (trimmed packets first), each for 4,096 bytes
///   roce      line rate; a switch pauses the link that more than `pause` packets in it have come
///             over until fewer than `resume` are left; pause and go take the link's latency; the
///             acknowledgement that ends a flow queues among packets on its way back
///   hosts     several flows of a host send in turn
///
/// Closed forms that hold exactly: one flow over H links, last packet l: finish = (H-1) s + ((N-1)
/// w
/// + l) / C + H d + H (a/C + d) for N <= window, s = w / C (roce pads the last packet).
///
/// Ignores: loss by errors and time-outs; ECN; cut-through; queues of control packets.
///
/// Source: csg-htsim's protocols EQDS and RoCE as its runs show them (docs/models/flow.md); EQDS:
/// Olteanu et al., NSDI 2022; trimming: NDP, Handley et al., SIGCOMM 2017; PFC: IEEE 802.1Qbb.
///
/// Mistakes: a routing other than ecmp, spray or auto; ways that do not exist.
Result<PacketRun> run_packets(topology::Router& router, const std::vector<FlowRequest>& flows,
                              const PacketOptions& options);

/// The same with one given way per flow.
PacketRun run_packets(const topology::LinkGraph& graph, const std::vector<FlowRequest>& flows,
                      const std::vector<std::vector<std::int32_t>>& ways,
                      const PacketOptions& options);

}  // namespace orrery::network
