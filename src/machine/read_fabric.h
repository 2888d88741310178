// SPDX-License-Identifier: Apache-2.0
/// A machine file's fields of flits and of packets are read here.
#pragma once

#include "base/reader.h"
#include "machine/network/flit/fabric.h"
#include "machine/network/packet_options.h"

namespace orrery::machine {

/// `machine` takes over the mistakes of `node`.
flit::FabricSettings read_flit(Reader& machine, const ConfigNode& node);
/// Reads the field `packet` of a machine.
Result<network::PacketOptions> parse_packet(const ConfigNode& node);

}  // namespace orrery::machine
