// SPDX-License-Identifier: Apache-2.0
/// Packets on a network of links: store-and-forward queues and what senders and receivers do about
/// them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "machine/network/flows.h"
#include "machine/network/packet_options.h"
#include "machine/topology/routing.h"

namespace orrery::packets {

struct PacketRun {
  std::vector<Time> finish;  ///< by flow: the sender has the last acknowledgement
  std::vector<double> load;  ///< bytes on the wire, by link, without control packets
  Time end{0};
  std::uint64_t packets = 0;  ///< sent, those sent again included
  std::uint64_t skipped = 0;  ///< of these
  std::uint64_t resent = 0;
  std::uint64_t pauses = 0;
  std::uint64_t marks = 0;  ///< packets that queues have marked (dcqcn)
  std::uint64_t events = 0;
};

/// Runs flows packet by packet.
///
///   packets   N = ceil(bytes / payload), payload = wire - header; a packet leaves a port wire /
///             rate after it has begun to, and is at the next node the link's latency later
///   queues    first in, first out at every port; one that would hold more than `queue` packets
///             trims one to its header: eqds the arriving one, ndp this or the newest, by chance
///   routes    of a flow that states one (its `via`) that; else packet i of a flow takes
///             path id i-th of a permutation of `paths` ids, new in every round; an id is a choice
///             by hash at every fork (Router, ecmp)
///   control   acknowledgements, credits, headers of trimmed packets: links * (header / rate +
///             latency) + what is left of what ports on the way are sending now (credits of ndp:
///             when they come there), and delay what is in a busy port by header / rate
///   eqds      first `window` packets at line rate; then per host one pull every
///             0.99 (wire + 38 B) / rate, in turn over the flows that it wants something of
///             (trimmed packets first), each for 4,096 bytes: a packet tells of what comes within a
///             window after it; a flow's first packet is
///             acknowledged, its last, those that its credit did not cover whole or that come
///             again, and others for every 16 KiB
///   ndp       first `window` packets at line rate; every packet that comes, whole or trimmed, asks
///             for one more of its flow; per host one pull every wire / (0.99 rate), in turn over
///             the flows
///   roce      line rate; a switch pauses the link that more than `pause` packets in it have come
///             over until fewer than `resume` are left; pause and go take the link's latency;
///             acknowledgements, of every packet, queue among packets, on a route by a hash of its
///             own
///   hpcc      roce whose flow keeps at most W bytes in flight and sends a packet every
///             wire T / W, T = 12 us, first W = T rate. For each acknowledgement: U = max over the
///             switch ports of its route of (bytes passed since the first acknowledgement's / time)
///             / rate + min(queues then and now) / (rate T), once that time is T, 0.95 before; W =
///             W 0.95 / U + payload where U >= 0.95 or after five times W = W + payload, which
///             counts once a window
///   dcqcn     roce whose flow sends a packet every wire / R. A switch port marks what leaves it
///             with probability 0 up to a queue of 400 kB, 0.2 at 1,600 kB, 1 above (of 100 Gbit/s,
///             scaled); a receiver tells of marks at most every 50 us: target = R, R *= 1 - a/2,
///             a = (1-g) a + g, g = 1/256; without for 55 us a *= 1-g. Every 55 us and every 10 MB:
///             the first five times R = (R + target) / 2, then target += 40 Mbit/s (400 where both
///             have come five times) as well
///   swift     a window W of bytes and acknowledgements of 40 B among packets, each with the time
///             since its packet left the host (D). D below the target: W += wire^2 / W for each
///             packet acknowledged; above, once a round trip: W *= 1 - 0.8 (D - target) / D, halved
///             at most. target = 20 us + 32.7 us (1 / sqrt(W / wire) - 1 / 10), the second term
///             from 0 to 100 us. W < wire: a packet every round trip * wire / W. A switch port
///             drops what it has no room for, and a tenth of what comes within three packets of
///             that; the third acknowledgement of nothing new sends the missing packet again (as
///             NewReno), time-outs are looked at every 10 ms. A flow has one packet more than its
///             bytes need
///   hosts     several flows of a host send in turn, each over all ports that its routes begin with
///   steady    the network falls into parts whose flows share no port. Of a part, windows of two
///             round trips and 32 packets of every flow at least; when in three windows on end no
///             flow's rate is off by more than `steady` from its first, nor its packets in flight
///             by more than that share of what has come, four times as long as has been steady is
///             skipped (earlier skips of the phase among it), at the mean rates: up to the next
///             start, and to two round trips and 32 packets before a flow's end. After it a window
///             more has to show the same rates. A window with others doubles the next: rates of
///             sprayed packets vary less over longer ones
///
/// Closed forms that hold exactly: one flow over H links, last packet l: finish = (H-1) s + ((N-1)
/// w
/// + l) / C + H d + H (a/C + d) for N <= window, s = w / C (roce pads the last packet).
///
/// Ignores: loss by errors; time-outs, but swift's; cut-through; queues of eqds' and ndp's control
/// packets.
///
/// Source: skipping as in Wormhole's summary, whose windows and bounds are not public; csg-htsim's
/// EQDS, NDP, RoCE, HPCC and Swift as its runs show them (docs/models/flow.md); EQDS: Olteanu et
/// al., NSDI 2022; NDP: Handley et al., SIGCOMM 2017; PFC: IEEE 802.1Qbb; HPCC: Li et al., SIGCOMM
/// 2019, of which htsim keeps the first report of every link instead of the last and changes W, not
/// its reference, with every acknowledgement; DCQCN: Zhu et al., SIGCOMM 2015; Swift: Kumar et al.,
/// SIGCOMM 2020, of which htsim leaves out the target's term for hops.
///
/// Mistakes: a routing other than ecmp, spray or auto; routes that do not exist; hpcc or swift over
/// a link whose cable does not lead back.
///
/// `progress` is called now and then with the share of the work done and the events so far.
using PacketProgress = std::function<void(double share, std::uint64_t events)>;
Result<PacketRun> run_packets(topology::Router& router,
                              const std::vector<network::FlowRequest>& flows,
                              const network::PacketOptions& options, PacketProgress progress = {});

/// Returns the same with one given route per flow; acknowledgements among packets go by hash of the
/// seed.
PacketRun run_packets(const topology::LinkGraph& graph,
                      const std::vector<network::FlowRequest>& flows,
                      const std::vector<std::vector<std::int32_t>>& routes,
                      const network::PacketOptions& options);

}  // namespace orrery::packets
