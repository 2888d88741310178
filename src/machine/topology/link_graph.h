// SPDX-License-Identifier: Apache-2.0
/// A network as a graph: hosts and switches (or routers), and the directed links between them. Flow,
/// packet and flit models all run on it; makers of topologies and readers of files return one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace orrery::topology {

enum class VertexKind : std::uint8_t { host, switch_ };

struct Vertex {
  VertexKind kind = VertexKind::host;
  std::string name;       ///< "host3", "leaf0": unique
  std::int32_t level = 0;  ///< 0 = hosts, 1 = the switches they hang on, ...
};

/// One direction of a cable. Parallel cables are separate links.
struct GraphLink {
  std::int32_t source = 0;  ///< vertices
  std::int32_t target = 0;
  Bandwidth bandwidth{0};
  Time latency{0};  ///< first byte in to first byte out
};

/// Vertices and links are known by their position. Hosts come first: host h is vertex h.
struct LinkGraph {
  std::string name;  ///< "fat_tree:k=8"
  std::vector<Vertex> vertices;
  std::vector<GraphLink> links;
  std::int32_t hosts = 0;
};

}  // namespace orrery::topology
