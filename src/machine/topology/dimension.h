// SPDX-License-Identifier: Apache-2.0
/// The network as ordered dimensions, innermost first; device d has coordinate
/// (d / product of inner sizes) mod size in each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/names.h"
#include "base/units.h"

namespace orrery::topology {

enum class DimensionKind : std::uint8_t { ring, fully_connected, switched, torus, mesh };
constexpr auto named_values(DimensionKind) {
  return std::to_array<Named<DimensionKind>>({
      {DimensionKind::ring, "ring", "two neighbours each, closed"},
      {DimensionKind::fully_connected, "fully_connected", "a link to every other device"},
      {DimensionKind::switched, "switch", "one link up to and down from a non-blocking switch"},
      {DimensionKind::torus, "torus", "rings over each extent of `shape`"},
      {DimensionKind::mesh, "mesh", "lines over each extent of `shape`"},
  });
}

/// Dimensions of one machine at most.
inline constexpr int kMaxDimensions = 8;

/// Says how collectives of a message size range behave, as NCCL's LL, LL128 and Simple: the fastest
/// for the size is taken. With n steps, p ranks and `share` bytes through the busiest port:
///   launch + n step_latency + (share + local_copy * size/p) / (efficiency * bandwidth)
///   + buffer_copy * size / bandwidth of the device's memory, but no less than at_least
struct Protocol {
  std::string name;
  Time launch{0};          ///< once per collective: kernel start, first synchronisation
  Time step_latency{0};    ///< per algorithm step, software included
  double efficiency = 1;   ///< of the dimension's bandwidth
  double local_copy = 0;   ///< copies of the rank's own chunk; takes time, occupies no port
  double buffer_copy = 0;  ///< times that the memory reads or writes the whole buffer besides
  Time at_least{0};        ///< the host takes so long to issue one: none ends sooner

  template <class V>
  static void fields(V&& visit) {
    visit("name", &Protocol::name, "such as Simple");
    visit("launch", &Protocol::launch, "once per collective");
    visit("step_latency", &Protocol::step_latency, "per algorithm step, software included");
    visit("efficiency", &Protocol::efficiency, "share of the dimension's bandwidth");
    visit("local_copy", &Protocol::local_copy, "copies of the rank's own chunk");
    visit("buffer_copy", &Protocol::buffer_copy,
          "times that the device's memory reads or writes the whole buffer besides");
    visit("at_least", &Protocol::at_least, "no collective ends sooner: the host issues it");
  }

  friend bool operator==(const Protocol&, const Protocol&) = default;
};

/// A PeerShare is the share of its bandwidth that a port reaches while it exchanges with so many
/// peers at once.
struct PeerShare {
  std::int64_t peers = 2;
  double share = 1;

  template <class V>
  static void fields(V&& visit) {
    visit("peers", &PeerShare::peers, "of a port at once, 2 or more");
    visit("share", &PeerShare::share, "of what it reaches with one");
  }

  friend bool operator==(const PeerShare&, const PeerShare&) = default;
};

struct NetworkDimension {
  std::string name;  ///< "nvlink"
  DimensionKind kind = DimensionKind::switched;
  std::int64_t size = 1;  ///< devices in the dimension; 0 = as many as the plan needs
  /// A job larger than a switch's dimension may take any multiple of `granule` devices of each
  /// instance (64 of a rack of 72 in trays of 4); 0 = only whole instances.
  std::int64_t granule = 0;
  std::vector<std::int64_t> shape;   ///< of torus and mesh: extents whose product is size
  Bandwidth bandwidth{0};            ///< per device and direction, all its links of this dimension
  Time latency{0};                   ///< of one hop, first byte in to first byte out
  Time message_overhead{0};          ///< software cost of one message
  double send_efficiency = 1;        ///< share of bandwidth of point-to-point messages
  double background_share = 1;       ///< of the rate that collectives beside whole steps keep
  EnergyPerByte energy_per_byte{0};  ///< sent by a device over this dimension; 0 = not known
  std::vector<Protocol> protocols;   ///< of collectives; empty: {latency + overhead, 1}
  /// All-reduces that the switch adds up (NVLS, SHARP) run these; empty: it cannot.
  std::vector<Protocol> in_switch;
  /// All_to_all and send_recv, whose messages go straight from rank to rank, run these; empty:
  /// `protocols`.
  std::vector<Protocol> exchange;
  /// All-reduce kernels of serving engines run these, by how they are launched: "graph", "eager"
  /// (vLLM), "trtllm". one_shot: every rank reads all others' buffers; two_shot: a shard of each,
  /// then the sums. Empty: it has none.
  std::vector<Protocol> one_shot;
  std::vector<Protocol> two_shot;
  std::string nic;  ///< dimensions with the same non-empty nic share one port
  /// A switch names the switch inside whose port a device's traffic passes too, as that of a
  /// network adapter passes the PCIe link of its device; empty: none.
  std::string through;
  /// A switch states what all devices of one inner block have together, each direction; 0: as much
  /// as all their own bandwidths.
  Bandwidth node_bandwidth{0};
  /// Ports of a switch reach less with more peers at once, see share_with_peers. More peers, no
  /// larger share. Efficiencies are then those with one peer. Empty: all of it with any number.
  std::vector<PeerShare> bandwidth_by_peers;

  /// Visits all fields but granule, shape, node_bandwidth, bandwidth_by_peers and the lists of
  /// protocols.
  template <class V>
  static void fields(V&& visit) {
    using D = NetworkDimension;
    visit("name", &D::name, "such as nvlink");
    visit("kind", &D::kind, "how devices are linked");
    visit("size", &D::size, "devices; 0 = as many as the plan needs");
    visit("bandwidth", &D::bandwidth, "per device and direction, all links of this dimension");
    visit("latency", &D::latency, "of one hop");
    visit("message_overhead", &D::message_overhead, "software cost of one message");
    visit("send_efficiency", &D::send_efficiency, "share of bandwidth of messages");
    visit("background_share", &D::background_share,
          "of the rate that collectives beside whole steps keep");
    visit("energy_per_byte", &D::energy_per_byte, "sent by a device; 0 = not known");
    visit("nic", &D::nic, "dimensions with the same name share one port");
    visit("through", &D::through, "a switch inside whose ports its traffic passes too");
  }

  friend bool operator==(const NetworkDimension&, const NetworkDimension&) = default;
};

/// Returns the share of its bandwidth that a port reaches with so many peers at once: 1 with one,
/// between two stated numbers in proportion, after the last as there.
inline double share_with_peers(const NetworkDimension& dimension, std::int64_t peers) {
  PeerShare before{.peers = 1, .share = 1};
  for (const PeerShare& at : dimension.bandwidth_by_peers) {
    if (peers < at.peers) {
      const auto part = static_cast<double>(std::max<std::int64_t>(0, peers - before.peers)) /
                        static_cast<double>(at.peers - before.peers);
      return before.share + part * (at.share - before.share);
    }
    before = at;
  }
  return before.share;
}

/// The lists of protocols of a dimension, as machine files call them.
using ProtocolList = std::vector<Protocol> NetworkDimension::*;
inline constexpr std::array<std::pair<std::string_view, ProtocolList>, 5> kProtocolLists{
    {{"protocols", &NetworkDimension::protocols},
     {"in_switch", &NetworkDimension::in_switch},
     {"exchange", &NetworkDimension::exchange},
     {"one_shot", &NetworkDimension::one_shot},
     {"two_shot", &NetworkDimension::two_shot}}};

}  // namespace orrery::topology
