// SPDX-License-Identifier: Apache-2.0
/// A network as a graph: hosts and switches (or routers), and the directed links between them.
/// Flow, packet and flit models all run on it; makers of topologies and readers of files return
/// one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace orrery::topology {

enum class VertexKind : std::uint8_t { host, switch_ };

struct Vertex {
  VertexKind kind = VertexKind::host;
  std::string name;        ///< "host3", "leaf0": unique
  std::int32_t level = 0;  ///< 0 = hosts, 1 = the switches they hang on, ...
};

/// One direction of a cable. Parallel cables are separate links.
struct GraphLink {
  std::int32_t source = 0;  ///< vertices
  std::int32_t target = 0;
  Bandwidth bandwidth{0};
  Time latency{0};     ///< first byte in to first byte out
  bool joint = false;  ///< both directions have this bandwidth together: it counts as one link
};

/// What of a regular network its routing needs to know; vertices are numbered as it says.
struct Layout {
  enum class Family : std::uint8_t {
    irregular,
    /// Router r has coordinate (r / product of the extents before) mod extent in each dimension of
    /// `shape`; in one dimension mesh routers reach the next and previous, torus routers these
    /// around, butterfly routers every other.
    mesh,
    torus,
    butterfly,
    /// An extended generalised fat tree of shape.size() levels: a switch of level l has shape[l-1]
    /// children, a vertex of level l has up[l] parents, each over parallel[l] cables. The label of
    /// a vertex of level l is mixed radix, first digit fastest: digits below l count to up[digit],
    /// those from l on to shape[digit]; children and parents differ in one digit.
    clos,
    /// shape = {hosts per router, routers per group, global links per router, groups}.
    dragonfly,
  };
  Family family = Family::irregular;
  std::vector<std::int32_t> shape;
  std::vector<std::int32_t> up;
  std::vector<std::int32_t> parallel;
  std::int32_t first_router = 0;   ///< vertex; 0: hosts are the routers
  std::int32_t concentration = 0;  ///< hosts on each router; host h is on router h / concentration
};

/// Vertices and links are known by their position. Hosts come first: host h is vertex h.
struct LinkGraph {
  std::string name;  ///< "fat_tree:k=8"
  std::vector<Vertex> vertices;
  std::vector<GraphLink> links;
  std::int32_t hosts = 0;
  bool hosts_forward = false;  ///< messages may pass hosts that they are not for
  Layout layout;

  /// The vertex; its name is unique by the caller's care.
  std::int32_t add(VertexKind kind, std::string vertex_name, std::int32_t level) {
    vertices.push_back({kind, std::move(vertex_name), level});
    hosts += kind == VertexKind::host ? 1 : 0;
    return static_cast<std::int32_t>(vertices.size()) - 1;
  }
  /// A cable: a link there and one back.
  void connect(std::int32_t a, std::int32_t b, Bandwidth bandwidth, Time latency) {
    links.push_back({a, b, bandwidth, latency});
    links.push_back({b, a, bandwidth, latency});
  }
};

/// The links out of each vertex, in the order of their numbers.
class Adjacency {
 public:
  explicit Adjacency(const LinkGraph& graph);
  std::span<const std::int32_t> out(std::int32_t vertex) const {
    const auto v = static_cast<std::size_t>(vertex);
    return {order_.data() + first_[v], first_[v + 1] - first_[v]};
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::int32_t> order_;
};

/// What a description of a network wants to say besides its parts.
struct GraphFigures {
  std::int32_t hosts = 0;
  std::int32_t switches = 0;
  std::int64_t cables = 0;    ///< pairs of links there and back; a link without partner counts one
  std::int32_t diameter = 0;  ///< links on the longest of the shortest ways between hosts
  double mean_distance = 0;   ///< over ordered pairs of different hosts
  Time farthest{0};           ///< latency of the slowest of the shortest (in links) ways
  /// Least cut (maximal flow) between the halves of the hosts, of the halvings tried: first against
  /// second half, and of grids every dimension's. One direction.
  Bandwidth bisection{0};
  Bandwidth injection{0};  ///< what half of the hosts can send: a full bisection equals it
  bool connected = true;   ///< every host reaches every other
};

/// Takes a search per switch that has hosts, and a maximal flow per halving.
GraphFigures figures(const LinkGraph& graph);

}  // namespace orrery::topology
