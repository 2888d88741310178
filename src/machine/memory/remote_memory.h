// SPDX-License-Identifier: Apache-2.0
/// Memory beyond the devices and their hosts: of each device, of a node, one pool, or a
/// hierarchical pool. All D devices of a run access it together, as the ranks of one program do;
/// each loads or stores x bytes:
///
///   per_device     latency + x / bandwidth                 (its own: NVMe in ZeRO-Infinity)
///   per_node       latency + d x / bandwidth               (one server per d devices)
///   pool           latency + D x / bandwidth               (one server for all)
///   hierarchical   latency + the pipelined time (pipeline.h), in chunks, of
///                    group    D x / (m G)   at `bandwidth`                     of each of G groups
///                    uplink   d x / k       at switches * switch_bandwidth     of each node
///                    fabric   x             at fabric_bandwidth                of each device
///
///     memory groups        out-node switches           nodes
///     [group 0 ]---------- switch 0 ----------.     .- in-node fabric -- d devices
///     [  ...   ]---------- ...                 >----<
///     [group G-1] -------- switch S-1 --------'     '- in-node fabric -- d devices
///
/// Groups interleave the data, so that all of them serve every access evenly. m devices may want
/// the same bytes, k of them in each node that has any. Switches with in-switch collectives then
/// carry those bytes once per group link and once per node and multiply them on the way down; on
/// the way up they add up what the m devices store (x is the whole buffer in both cases). Otherwise
/// m = k = 1: each device moves its own share of the bytes and the devices' network does the rest.
///
/// Each direction has the bandwidths to itself. FIFO servers give accesses of equal size that
/// arrive together the same end: the last of n is done after n services.
///
/// Ignores:  devices that wait for one another inside an in-switch collective; the switches' own
///           time to add; banks and rows of the memory.
/// Source:   ASTRA-sim 2.0 (Won et al., ISPASS 2023, arXiv 2303.14006): remote memory per device,
///           per node and pool, hierarchical pool of groups, out-node switches and in-node fabrics
///           with in-switch collectives. ZeRO-Infinity: Rajbhandari et al. 2021.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/units.h"
#include "machine/memory/pipeline.h"

namespace orrery::memory {

enum class RemoteKind : std::uint8_t { none, per_device, per_node, pool, hierarchical };
constexpr auto named_values(RemoteKind) {
  return std::to_array<Named<RemoteKind>>({
      {RemoteKind::none, "none", "devices and hosts have all the memory"},
      {RemoteKind::per_device, "per_device", "each device has one of its own"},
      {RemoteKind::per_node, "per_node", "the devices of a node share one"},
      {RemoteKind::pool, "pool", "all devices share one"},
      {RemoteKind::hierarchical, "hierarchical",
       "memory groups behind out-node switches and in-node fabrics"},
  });
}

struct RemoteMemory {
  RemoteKind kind = RemoteKind::none;
  Bytes capacity{0};       ///< of one device's, one node's, the pool or one group
  Bandwidth bandwidth{0};  ///< of the same, one direction
  Time latency{0};         ///< of one access, all switches included
  std::int64_t node_devices = 1;
  std::int64_t groups = 1;
  std::int64_t switches = 1;      ///< out-node switches; every node has a link to each
  Bandwidth switch_bandwidth{0};  ///< of one such link, one direction
  Bandwidth fabric_bandwidth{0};  ///< of a device's link to its node's fabric, one direction
  bool in_switch = false;         ///< its switches multiply and add
  Bytes chunk{1 << 20};           ///< of a device's transfer

  bool exists() const { return kind != RemoteKind::none; }

  template <class V>
  static void fields(V&& visit) {
    using R = RemoteMemory;
    visit("kind", &R::kind, "who shares it");
    visit("capacity", &R::capacity, "of one device's, one node's, the pool or one group");
    visit("bandwidth", &R::bandwidth, "of the same, one direction");
    visit("latency", &R::latency, "of one access, all switches included");
    visit("node_devices", &R::node_devices, "devices of a node");
    visit("groups", &R::groups, "memory groups");
    visit("switches", &R::switches, "out-node switches; every node has a link to each");
    visit("switch_bandwidth", &R::switch_bandwidth, "of one such link, one direction");
    visit("fabric_bandwidth", &R::fabric_bandwidth, "of a device's link to its node's fabric");
    visit("in_switch", &R::in_switch, "its switches multiply and add");
    visit("chunk", &R::chunk, "of a device's transfer");
  }

  friend bool operator==(const RemoteMemory&, const RemoteMemory&) = default;
};

/// Returns whether a memory of this kind has that field.
bool has_field(RemoteKind kind, std::string_view field);

/// A RemoteAccess is what every device does at the same time.
struct RemoteAccess {
  Bytes bytes{0};            ///< x
  std::int64_t devices = 1;  ///< D
  std::int64_t sharers = 1;  ///< m; more than one only if in_switch
  std::int64_t in_node = 1;  ///< k
};

/// Returns the links that an access passes, each with what the busiest one of its kind moves.
/// Requires memory.exists(), devices >= sharers >= in_node >= 1.
std::vector<TransferStage> stages_of(const RemoteMemory& memory, const RemoteAccess& access);

/// Returns zero for zero bytes. Requires the same.
Time access_time(const RemoteMemory& memory, const RemoteAccess& access);

/// Returns a device's part of all the memory when `devices` share it evenly.
Bytes capacity_per_device(const RemoteMemory& memory, std::int64_t devices);

}  // namespace orrery::memory
