// SPDX-License-Identifier: Apache-2.0
/// Networks of the native semantics: ASTRA-sim's dimensions as Orrery's, and the other way round.
#pragma once

#include <vector>

#include "base/names.h"
#include "compat/astra/config.h"
#include "machine/machine.h"
#include "machine/network/fifo.h"
#include "machine/topology/link_map.h"

namespace orrery::astra {

/// How messages share a link.
enum class Sharing : std::uint8_t { fifo, fair };
}  // namespace orrery::astra
namespace orrery {
template <>
inline constexpr auto kNames<astra::Sharing> = std::to_array<Named<astra::Sharing>>({
    {astra::Sharing::fifo, "fifo", "one after the other, in the order in which they come"},
    {astra::Sharing::fair, "fair", "all at once, max-min fair shares"},
});
}  // namespace orrery
namespace orrery::astra {

struct NativeNetworkOptions {
  std::vector<NetworkDimension> dimensions;
  SwitchReach reach = SwitchReach::own_dimension;
  Forwarding forwarding = Forwarding::cut_through;  ///< of fifo
  Sharing sharing = Sharing::fifo;
};

/// What the network file says in terms of links: a device's bandwidth is that of all its links
/// (ring of more than two: 2, FullyConnected: n-1, Switch: 1), a switch's latency is that of its
/// two hops.
std::vector<NetworkDimension> native_dimensions(const std::vector<Dimension>& network);

/// A machine as algorithms and closed forms see it, the inverse of native_dimensions; a mesh counts
/// as a ring. The machine has the devices it is to have (with_devices).
std::vector<Dimension> astra_dimensions(const std::vector<NetworkDimension>& dimensions);

/// The machine's dimensions as links of messages. Where collectives have protocols the one of the
/// greatest efficiency holds: link bandwidth = efficiency * bandwidth, and behind a switch or fully
/// connected its step latency instead of the hop's. Launches and copies are left out; what a
/// message costs at its ends is the system file's endpoint-delay.
std::vector<NetworkDimension> message_dimensions(const Machine& machine);

}  // namespace orrery::astra
