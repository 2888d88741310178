// SPDX-License-Identifier: Apache-2.0
/// Fat trees, leaf and spine, rails, PCIe trees.
#include <algorithm>

#include "machine/topology/maker_fields.h"

namespace orrery::topology {
namespace {

/// Describes a tree by level, from the hosts up.
struct Clos {
  std::vector<std::int32_t> down;
  std::vector<std::int32_t> up;
  std::vector<std::int32_t> parallel;
  std::vector<Wire> wires;  ///< between level l and l+1

  /// Vertices of a level.
  double size(std::size_t level) const {
    double count = 1;
    for (std::size_t l = 0; l < down.size(); ++l) {
      count *= l < level ? up[l] : down[l];
    }
    return count;
  }
};

const std::vector<std::string>& level_names(std::size_t levels) {
  static const std::vector<std::string> two{"leaf", "spine"};
  static const std::vector<std::string> three{"edge", "aggregation", "core"};
  static const std::vector<std::string> others;
  return levels == 2 ? two : levels == 3 ? three : others;
}

/// The cables of vertex v of level l. `first` of every level; `below`: values of the digits before
/// the one in which both ends differ.
void connect_up(LinkGraph& graph, const Clos& tree, std::size_t l, std::int32_t v,
                const std::vector<std::int32_t>& first, std::int32_t below) {
  const std::int32_t low = v % below;
  const std::int32_t high = v / below / tree.down[l];
  for (std::int32_t copy = 0; copy < tree.parallel[l]; ++copy) {
    for (std::int32_t p = 0; p < tree.up[l]; ++p) {
      graph.connect(first[l] + v, first[l + 1] + low + below * (p + tree.up[l] * high),
                    tree.wires[l].bandwidth, tree.wires[l].latency);
    }
  }
}

LinkGraph clos(const Clos& tree) {
  LinkGraph graph;
  const std::size_t levels = tree.down.size();
  std::vector<std::int32_t> first{0};
  add_hosts(graph, static_cast<std::int64_t>(tree.size(0)));
  for (std::size_t l = 1; l <= levels; ++l) {
    const auto& names = level_names(levels);
    first.push_back(add_switches(graph, static_cast<std::int64_t>(tree.size(l)),
                                 names.empty() ? "switch" + std::to_string(l) + "." : names[l - 1],
                                 static_cast<std::int32_t>(l)));
  }
  std::int32_t below = 1;  // values of the digits before the one in which they differ
  for (std::size_t l = 0; l < levels; ++l) {
    const auto count = static_cast<std::int32_t>(tree.size(l));
    for (std::int32_t v = 0; v < count; ++v) {
      connect_up(graph, tree, l, v, first, below);
    }
    below *= tree.up[l];
  }
  graph.layout.family = Layout::Family::clos;
  graph.layout.shape = tree.down;
  graph.layout.up = tree.up;
  graph.layout.parallel = tree.parallel;
  return graph;
}

void check_clos(Reader& read, const std::string& name, const Clos& tree) {
  double vertices = 0;
  double links = 0;
  for (std::size_t l = 0; l <= tree.down.size(); ++l) {
    vertices += tree.size(l);
    links += l == tree.down.size() ? 0 : 2.0 * tree.size(l) * tree.up[l] * tree.parallel[l];
  }
  check_size(read, name, vertices, links);
}

struct Rails {
  std::int32_t servers = 0;
  std::int32_t gpus = 0;
  std::int32_t group = 0;
  std::int32_t spines = 0;
  Wire nvlink;
  Wire nic;
  Wire uplink;
};

LinkGraph rail(const Rails& rails) {
  LinkGraph graph;
  add_hosts(graph, std::int64_t{rails.servers} * rails.gpus);
  graph.hosts_forward = rails.spines == 0;
  const std::int32_t groups = (rails.servers + rails.group - 1) / rails.group;
  const std::int32_t nvswitch = add_switches(graph, rails.servers, "nvswitch", 1);
  const std::int32_t leaf = add_switches(graph, std::int64_t{groups} * rails.gpus, "leaf", 1);
  const std::int32_t spine = add_switches(graph, rails.spines, "spine", 2);
  for (std::int32_t h = 0; h < graph.hosts; ++h) {
    const std::int32_t server = h / rails.gpus;
    graph.connect(h, nvswitch + server, rails.nvlink.bandwidth, rails.nvlink.latency);
    graph.connect(h, leaf + server / rails.group * rails.gpus + h % rails.gpus, rails.nic.bandwidth,
                  rails.nic.latency);
  }
  for (std::int32_t l = 0; l < groups * rails.gpus; ++l) {
    for (std::int32_t s = 0; s < rails.spines; ++s) {
      graph.connect(leaf + l, spine + s, rails.uplink.bandwidth, rails.uplink.latency);
    }
  }
  return graph;
}

}  // namespace

Result<LinkGraph> make_clos(const ConfigNode& map) {
  constexpr std::size_t kMostLevels = 6;
  Reader read(map);
  Clos tree;
  tree.down = read_extents(read, "down", 1, kMostLevels);
  tree.up = read_extents(read, "up", 1, kMostLevels);
  tree.parallel = map.find("parallel") == nullptr ? std::vector<std::int32_t>(tree.down.size(), 1)
                                                  : read_extents(read, "parallel", 1, kMostLevels);
  tree.wires.assign(tree.down.size(), read_wire(read));
  if (read.ok()) {
    read.require(tree.up.size() == tree.down.size(), "up", "as many numbers as `down` has");
    read.require(tree.parallel.size() == tree.down.size(), "parallel",
                 "as many numbers as `down` has");
  }
  if (read.ok()) {
    check_clos(read, "down", tree);
  }
  return finished(read, [&] { return clos(tree); });
}

Result<LinkGraph> make_fat_tree(const ConfigNode& map) {
  Reader read(map);
  const std::int32_t k = read_count(read, "k", 0, 2, 4096);
  const std::int32_t levels = read_count(read, "levels", 3, 2, 3);
  const auto over = read.optional<double>("oversubscription", 1);
  const Wire wire = read_wire(read);
  read.require(k % 2 == 0, "k", "an even number of ports");
  const double hosts = over * (k / 2.0);
  const auto leaf_hosts = static_cast<std::int32_t>(std::clamp(hosts, 1.0, 1e6));
  if (k % 2 == 0) {
    read.require(over > 0 && hosts == leaf_hosts, "oversubscription",
                 "a ratio that makes k/2 times it a whole number of hosts per leaf");
  }
  Clos tree;
  tree.down = levels == 2 ? std::vector{leaf_hosts, k} : std::vector{leaf_hosts, k / 2, k};
  tree.up = levels == 2 ? std::vector{1, k / 2} : std::vector{1, k / 2, k / 2};
  tree.parallel.assign(tree.down.size(), 1);
  tree.wires.assign(tree.down.size(), wire);
  check_clos(read, "k", tree);
  return finished(read, [&] { return clos(tree); });
}

Result<LinkGraph> make_leaf_spine(const ConfigNode& map) {
  Reader read(map);
  const std::int32_t leaves = read_count(read, "leaves", 0);
  const std::int32_t spines = read_count(read, "spines", 0);
  const std::int32_t hosts = read_count(read, "hosts", 0);
  const std::int32_t parallel = read_count(read, "parallel", 1);
  const Wire wire = read_wire(read);
  const Wire uplink = read_wire(read, "uplink_", wire);
  const Clos tree{{hosts, leaves}, {1, spines}, {1, parallel}, {wire, uplink}};
  check_clos(read, "leaves", tree);
  return finished(read, [&] { return clos(tree); });
}

Result<LinkGraph> make_rail(const ConfigNode& map) {
  Reader read(map);
  Rails rails;
  rails.servers = read_count(read, "servers", 0);
  rails.gpus = read_count(read, "gpus", 8);
  rails.group = read_count(read, "group", rails.servers);
  rails.spines = read_count(read, "spines", 0, 0);
  rails.nic = read_wire(read);
  rails.nvlink = read_wire(read, "nvlink_", {Bandwidth(450e9), 500_ns});
  rails.uplink = read_wire(read, "uplink_", rails.nic);
  const double hosts = 1.0 * rails.servers * rails.gpus;
  const double leaves = (1.0 * rails.servers / rails.group + 1) * rails.gpus;
  check_size(read, "servers", hosts + rails.servers + leaves + rails.spines,
             4 * hosts + 2 * leaves * rails.spines);
  return finished(read, [&] { return rail(rails); });
}

Result<LinkGraph> make_pcie(const ConfigNode& map) {
  Reader read(map);
  const std::int32_t sockets = read_count(read, "sockets", 2, 1, 64);
  const std::int32_t switches = read_count(read, "switches", 2, 0, 1024);
  const std::int32_t gpus = read_count(read, "gpus", 2, 1, 1024);
  const Wire wire = read_wire(read, "", {Bandwidth(32e9), 500_ns});  // PCIe 4.0 x16
  const Wire socket_wire = read_wire(read, "socket_", wire);
  return finished(read, [&] {
    LinkGraph graph;
    const std::int32_t parents = std::max(switches, 1);  // per socket; 0 switches: its bridge
    add_hosts(graph, std::int64_t{sockets} * parents * gpus);
    const std::int32_t hub = add_switches(graph, std::int64_t{sockets} * switches, "pcie", 1);
    const std::int32_t bridge = add_switches(graph, sockets, "bridge", switches > 0 ? 2 : 1);
    for (std::int32_t h = 0; h < graph.hosts; ++h) {
      graph.connect(h, hub + h / gpus, wire.bandwidth, wire.latency);
    }
    for (std::int32_t s = 0; s < sockets * switches; ++s) {
      graph.connect(hub + s, bridge + s / switches, wire.bandwidth, wire.latency);
    }
    for (std::int32_t s = 0; s < sockets && sockets > 1; ++s) {
      if (s + 1 < sockets || sockets > 2) {
        graph.connect(bridge + s, bridge + (s + 1) % sockets, socket_wire.bandwidth,
                      socket_wire.latency);
      }
    }
    return graph;
  });
}

}  // namespace orrery::topology
