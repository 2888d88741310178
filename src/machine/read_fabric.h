// SPDX-License-Identifier: Apache-2.0
/// What a machine file says of flits and of packets.
#pragma once

#include "base/reader.h"
#include "machine/network/flit/fabric.h"
#include "machine/network/packet.h"

namespace orrery::machine {

/// `machine` takes over the mistakes of `node`.
flit::FabricSettings read_flit(Reader& machine, const ConfigNode& node);
/// The field `packet` of a machine.
Result<network::PacketOptions> parse_packet(const ConfigNode& node);

}  // namespace orrery::machine
