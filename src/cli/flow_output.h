// SPDX-License-Identifier: Apache-2.0
/// `orrery flow` runs flows and prints what they did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/network/flows.h"
#include "machine/network/link_faults.h"
#include "machine/network/packet_options.h"

namespace orrery::cli {

struct FlowJob {
  topology::LinkGraph graph;
  topology::Routing routing = topology::Routing::automatic;
  std::uint64_t seed = 0;
  std::vector<network::FlowRequest> flows;
  bool packets = false;
  network::PacketOptions options;
  faults::FaultPlan faults;
  network::FlowOptions congestion;
};

/// Returns one JSON object; seconds, bytes, bytes per second.
std::string flow_json(const FlowJob& job, const topology::Router& router,
                      const network::FlowRun& run);
/// Returns the finish of the flows and the busiest links.
std::string flow_table(const FlowJob& job, const topology::Router& router,
                       const network::FlowRun& run);

}  // namespace orrery::cli
