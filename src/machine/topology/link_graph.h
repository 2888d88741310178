// SPDX-License-Identifier: Apache-2.0
/// A network as a graph: hosts and switches (or routers), and the directed links between them.
/// Flow, packet and flit models all run on it; makers of topologies and readers of files return
/// one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/names.h"
#include "base/units.h"

namespace orrery::topology {

enum class VertexKind : std::uint8_t { host, switch_ };

struct Vertex {
  VertexKind kind = VertexKind::host;
  std::string name;        ///< "host3", "leaf0": unique
  std::int32_t level = 0;  ///< 0 = hosts, 1 = the switches they hang on, ...
};

/// Says how messages find their route (routing.h).
enum class Routing : std::uint8_t {
  automatic,
  stated,
  shortest,
  dimension_order,
  d_mod_k,
  minimal,
  ecmp,
  spray,
  adaptive,
  greedy,
  source_rule,
  pair_split,
  colour,
};
constexpr auto named_values(Routing) {
  return std::to_array<Named<Routing>>({
      {Routing::automatic, "auto",
       "what suits the network: what its file states, else dimension "
       "order in grids, ecmp elsewhere"},
      {Routing::stated, "stated", "the routes that the file states"},
      {Routing::shortest, "shortest", "the first of the nearest ways"},
      {Routing::dimension_order, "dimension_order", "grids: one dimension after the other"},
      {Routing::d_mod_k, "d_mod_k", "fat trees: the parent is the target's number modulo parents"},
      {Routing::minimal, "minimal", "SimGrid's dragonfly: by the router that has the global link"},
      {Routing::ecmp, "ecmp", "one of the nearest ways, by a seeded hash of the flow"},
      {Routing::spray, "spray",
       "all nearest ways, at every fork in parts as their bandwidths (equal where these are)"},
      {Routing::adaptive, "adaptive", "flow by flow, at every fork the link with the least load"},
      {Routing::greedy, "greedy", "fat trees: flow by flow, the way whose busiest link has least"},
      {Routing::source_rule, "source_rule",
       "two levels: n flows of a source leaf in turn on its uplinks, the rest cut (Ethereal)"},
      {Routing::pair_split, "pair_split", "the same for every pair of leaves"},
      {Routing::colour, "colour",
       "fat trees: edge colouring of all flows, cut evenly where that is needed"},
  });
}

/// One direction of a cable. Parallel cables are separate links. Platform files may leave open what
/// a link joins and state routes over it only: then both ends are -1.
struct GraphLink {
  std::int32_t source = 0;  ///< vertices
  std::int32_t target = 0;
  Bandwidth bandwidth{0};
  Time latency{0};  ///< first byte in to first byte out
  /// A joint link and the link whose number differs in the last bit have this bandwidth together:
  /// messages count on the even one.
  bool joint = false;
  bool pipe = false;  ///< nobody shares it: every flow has the bandwidth
  /// Length that the link adds to a route when the nearest is looked for: 1 or more. Files whose
  /// programs prefer kinds of links (NVLink before PCIe before the network) say so here.
  std::int16_t length = 1;
  /// `bandwidth` over that of the wire, where the file's program counts what messages reach: a
  /// machine's efficiency counts from the wire's.
  float reached = 1;
};

/// Layout is what the routing of a regular network needs to know of it; vertices are numbered as it
/// says.
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
    /// SimGrid's dragonfly: shape = {nodes per blade, blades per chassis, chassis per group,
    /// groups}; blades of a chassis are linked, and equal blades of a group's chassis; blade g of
    /// chassis 0 has the link to group g.
    cascade,
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
  Routing routing = Routing::ecmp;  ///< that `auto` means
  /// Links from host to host, where the file states them.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> routes;
  std::vector<std::string> link_names;  ///< of files that name them; else empty

  /// Adds a vertex and returns it; its name is unique by the caller's care.
  std::int32_t add(VertexKind kind, std::string vertex_name, std::int32_t level) {
    vertices.push_back({kind, std::move(vertex_name), level});
    hosts += kind == VertexKind::host ? 1 : 0;
    return static_cast<std::int32_t>(vertices.size()) - 1;
  }
  /// Returns "host0->leaf0", or the name that the file gives.
  std::string link_name(std::size_t link) const {
    return !link_names.empty()
               ? link_names[link]
               : vertices[static_cast<std::size_t>(links[link].source)].name + "->" +
                     vertices[static_cast<std::size_t>(links[link].target)].name;
  }
  /// Adds a cable: a link there and one back.
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

/// GraphFigures are what a description of a network says besides its parts.
struct GraphFigures {
  std::int32_t hosts = 0;
  std::int32_t switches = 0;
  std::int64_t cables = 0;    ///< pairs of links there and back; a link without partner counts one
  std::int32_t diameter = 0;  ///< links on the longest of the shortest routes between hosts
  double mean_distance = 0;   ///< over ordered pairs of hosts that reach each other
  Time farthest{0};           ///< latency of the slowest of the shortest (in links) routes
  /// The least cut (maximal flow) between the halves of the hosts, of the halvings tried: first
  /// against second half, and of grids every dimension's. It counts one direction.
  Bandwidth bisection{0};
  Bandwidth injection{0};  ///< what half of the hosts can send: a full bisection equals it
  bool connected = true;   ///< every host reaches every other
};

/// Takes a search per switch that has hosts, and a maximal flow per halving.
GraphFigures figures(const LinkGraph& graph);

}  // namespace orrery::topology
