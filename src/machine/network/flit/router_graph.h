// SPDX-License-Identifier: Apache-2.0
/// A network of routers as the flit engine sees it: one-way channels between routers, and nodes
/// that inject at one router and are reached at one (a k-ary n-fly has different ones).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "machine/network/flit/settings.h"
#include "machine/topology/link_graph.h"

namespace orrery::flit {

/// Shape says what the numbering of routers and channels means to routing functions.
enum class Shape : std::uint8_t {
  mesh,
  torus,
  cmesh,
  fat_tree,
  tree,
  fly,
  flattened_butterfly,
  dragonfly,
  switch_clusters,
  graph
};
constexpr auto named_values(Shape) {
  return std::to_array<Named<Shape>>({
      {Shape::mesh, "mesh", "mesh:8x8; lines along each extent, one node per router"},
      {Shape::torus, "torus", "torus:8x8; rings along each extent, one node per router"},
      {Shape::cmesh, "cmesh",
       "cmesh:4x4,c=4[,express=1]; a mesh of routers with a tile of c nodes each"},
      {Shape::fat_tree, "fat_tree", "fat_tree:k=4,n=3; k-ary n-tree of k^n nodes"},
      {Shape::tree, "tree",
       "qtree:k=4,n=3, n levels of routers with one parent each; tree4:k=4, three levels of k, "
       "k k / 2 and k k routers"},
      {Shape::fly, "fly", "fly:k=4,n=3; k-ary n-fly, one-way stages; n=1 is a crossbar"},
      {Shape::flattened_butterfly, "flattened_butterfly",
       "flattened_butterfly:4x4,c=4; routers of a row are linked to each other, c nodes each"},
      {Shape::dragonfly, "dragonfly",
       "dragonfly:p=2,a=4,h=2; a h + 1 groups of a routers with p nodes and h global links each"},
      {Shape::switch_clusters, "switch_clusters",
       "switch_clusters:n=2,p=8,links=8; n switches of p nodes, each pair joined by parallel "
       "links"},
      {Shape::graph, "graph", "any routers and channels, from a file"},
  });
}

constexpr bool is_grid(Shape shape) {
  return shape == Shape::mesh || shape == Shape::torus || shape == Shape::cmesh;
}

struct Channel {
  std::int32_t source = 0;  ///< routers
  std::int32_t target = 0;
  Cycle latency = 1;
  std::int32_t place = 0;  ///< among the inputs of its target; of equal ones the lower number first
};

struct Node {
  std::int32_t inject = 0;  ///< the router that its flits enter
  std::int32_t eject = 0;   ///< the router that hands flits to it
  Cycle latency = 1;        ///< of both its links
};

struct RouterGraph {
  std::string name;  ///< "mesh:8x8"
  Shape shape = Shape::graph;
  std::int32_t routers = 0;
  std::vector<Channel> channels;
  std::vector<Node> nodes;
  /// Extents: of mesh, torus and flattened butterfly by dimension (router = sum of x_d times the
  /// product of the extents before); of fat tree and fly n times k; of a dragonfly {a, h}; of
  /// switch clusters {switches, links}.
  std::vector<std::int32_t> extents;
  /// Says whether ports of nodes come before those of channels in a router's turns, or after them.
  bool nodes_first = true;
  std::vector<std::string> router_names;  ///< of a graph read from a file; else empty

  /// Returns a router's name, or its number where it has none.
  std::string router_name(std::int32_t router) const {
    return router_names.empty() ? std::to_string(router)
                                : router_names[static_cast<std::size_t>(router)];
  }
};

/// Digits of nodes and routers are counted from the lowest weight. Channels are numbered by source,
/// then by port, as each maker says.
///
///   mesh, torus   port 2d to the next along dimension d, 2d+1 to the previous (where there is one)
///   cmesh         as mesh; the nodes of a router are an s x s tile of the grid of nodes, c = s s.
///                 express: the ports that lead off an edge of length k join routers of that edge
///                 k / 2 apart (Balfour & Dally 2006, BookSim's numbering)
///   fat tree      n levels of k^(n-1) routers, level 0 on top; node j on router j / k of level
///                 n-1; routers of two levels are linked that differ in one digit of weight
///                 k^(n-1-level)
///   qtree         levels of 1, k, k^2 ... routers, level 0 on top; router j of a level hangs on
///                 router j / k of the one above
///   tree4         leaf j hangs on the k / 2 routers of its quad j / k, each of these on all k
///                 roots
///   fly           n stages of k^(n-1) routers; node j enters stage 0 at router j / k and leaves
///                 stage n-1 at router j / k
///   flattened butterfly   c nodes per router; in two dimensions with c = s*s the nodes of router
///                 (x, y) are an s x s tile of the grid of nodes (BookSim's numbering)
///   dragonfly     group g's router i has global links i*h .. i*h+h-1; link l goes to group l, from
///                 l = g on to l + 1 (Kim et al. 2008; BookSim's numbering)
RouterGraph make_grid(Shape shape, std::vector<std::int32_t> extents);
/// Express channels: two equal and even extents.
RouterGraph make_concentrated_mesh(std::vector<std::int32_t> extents, std::int32_t per_router,
                                   bool express);
RouterGraph make_fat_tree(std::int32_t k, std::int32_t n);
RouterGraph make_qtree(std::int32_t k, std::int32_t n);
RouterGraph make_tree4(std::int32_t k);
RouterGraph make_fly(std::int32_t k, std::int32_t n);
RouterGraph make_flattened_butterfly(std::vector<std::int32_t> extents, std::int32_t per_router);
RouterGraph make_dragonfly(std::int32_t p, std::int32_t a, std::int32_t h);
RouterGraph make_switch_clusters(std::int32_t switches, std::int32_t per_switch,
                                 std::int32_t links);

/// Switches become routers; hosts become nodes of the switch that they hang on. Where hosts are
/// linked to each other every host is a router with itself as node. Latencies of links in whole
/// cycles of `cycle`, at least one. Mistakes: a host with no switch or with several.
Result<RouterGraph> from_link_graph(const topology::LinkGraph& graph, Time cycle);

/// Parses BookSim's list of links ("anynet"): lines such as
///
///   router 0 node 0 node 1 router 1 15 router 2
///
/// A number after a node or a router is that link's latency. A link named on one line goes both
/// routes; its latency holds for the route it is named, the return route has one cycle unless it is
/// named too. Mistakes by line.
Result<RouterGraph> parse_link_list(std::string_view text, const std::string& file);

/// Parses "mesh:8x8", "fat_tree:k=4,n=3" and so on, see Shape; "graph:FILE" (a link list, or by its
/// ending a file of topology/read.h) or "graph:SPEC" of `topology::kTopologies`, one cycle per
/// link. Mistakes: an unknown name or field, sizes out of range.
Result<RouterGraph> parse_network(std::string_view text);

inline constexpr std::int64_t kMostRouters = 1 << 20;
inline constexpr std::int64_t kMostChannels = 1 << 24;

}  // namespace orrery::flit
