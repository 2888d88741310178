// SPDX-License-Identifier: Apache-2.0
/// Options of what senders, receivers and queues of a network of packets (packet.h) do, as values.
#pragma once

#include <array>
#include <cstdint>

#include "base/names.h"
#include "base/units.h"

namespace orrery::network {

enum class Protocol : std::uint8_t { eqds, ndp, roce, hpcc, dcqcn, swift };
constexpr auto named_values(Protocol) {
  return std::to_array<Named<Protocol>>({
      {Protocol::eqds, "eqds",
       "receiver credits: a first window at line rate, then what the receiver pulls; full queues "
       "trim packets, which are sent again"},
      {Protocol::ndp, "ndp",
       "receiver credits: a first window at line rate, then a packet for each that has come, "
       "whole or trimmed"},
      {Protocol::roce, "roce",
       "senders at line rate; full ingress buffers pause the link before them (PFC), nothing is "
       "lost"},
      {Protocol::hpcc, "hpcc",
       "roce with a window for each flow, after what every link of its way reports (INT)"},
      {Protocol::dcqcn, "dcqcn",
       "roce with a rate for each flow, cut when queues have marked its packets (ECN)"},
      {Protocol::swift, "swift",
       "a window for each flow, after the delay of its packets; full queues drop, what is lost is "
       "sent again"},
  });
}

/// Path ids of a flow.
inline constexpr std::int64_t kMostPaths = 4096;

/// Constants of a protocol. Counts of packets scale with the links' rate from those of 100 Gbit/s.
struct PacketOptions {
  Protocol protocol = Protocol::eqds;
  Bytes wire{0};            ///< of a full packet; 0: eqds 4150, swift 4000, others 9064
  Bytes header{64};         ///< of it, and of control packets; swift always 40, of the latter only
  std::int64_t queue = 0;   ///< packets (of ndp their payload) that a queue that trims or drops
                            ///< holds, the one being sent among them, two full packets at least;
                            ///< 0: eqds 35, ndp 15, swift 50
  std::int64_t window = 0;  ///< packets sent before credit, or at first; 0: eqds 50, ndp 20, swift
                            ///< 15
  std::int64_t paths =
      0;  ///< that a flow's packets take in turn; 0: 64 of eqds, ndp and spray, else 1
  std::int64_t pause = 0;   ///< packets' payload from one link at which it is paused (Xoff); 0: 15,
                            ///< dcqcn 200, beyond where queues mark (assumed)
  std::int64_t resume = 0;  ///< below which it goes on (Xon); 0: 12, dcqcn 180
  Time switch_delay{0};     ///< of every switch passed
  std::uint64_t seed = 0;
  double steady = 0;  ///< share by which rates may change in a phase that is skipped; 0: none is

  /// Visits the fields of a machine, whose topology has the seed.
  template <class V>
  static void fields(V&& visit) {
    using P = PacketOptions;
    visit("protocol", &P::protocol, "what senders, receivers and queues do");
    visit("wire", &P::wire, "bytes of a full packet; 0 B: the protocol's usual");
    visit("header", &P::header, "bytes of it, and of control packets");
    visit("queue", &P::queue, "packets that a queue that trims or drops holds; 0: the usual");
    visit("window", &P::window, "packets sent before credit, or at first; 0: the usual");
    visit("paths", &P::paths, "ways that a message's packets take in turn; 0: the usual");
    visit("pause", &P::pause, "packets from one link at which it is paused; 0: the usual");
    visit("resume", &P::resume, "below which it goes on");
    visit("switch_delay", &P::switch_delay, "of every switch passed");
  }

  friend bool operator==(const PacketOptions&, const PacketOptions&) = default;
};

}  // namespace orrery::network
