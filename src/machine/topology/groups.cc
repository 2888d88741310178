// SPDX-License-Identifier: Apache-2.0
/// Dragonfly and the hybrid cube mesh of DGX-1.
#include <array>

#include "machine/topology/maker_fields.h"

namespace orrery::topology {
namespace {

struct Dragonfly {
  std::int32_t hosts = 0;    ///< per router
  std::int32_t routers = 0;  ///< per group
  std::int32_t globals = 0;  ///< per router
  std::int32_t groups = 0;
  Wire wire;
  Wire host_wire;
  Wire global_wire;
};

/// Global port q of group i (router q / globals) goes to group i + 1 + q mod (groups - 1), and as
/// many ports lead to each group: what is left over stays empty.
LinkGraph dragonfly(const Dragonfly& fly) {
  LinkGraph graph;
  const std::int32_t all = fly.routers * fly.groups;
  add_hosts(graph, std::int64_t{all} * fly.hosts);
  const std::int32_t router = add_switches(graph, all, "router", 1);
  for (std::int32_t h = 0; h < graph.hosts; ++h) {
    graph.connect(h, router + h / fly.hosts, fly.host_wire.bandwidth, fly.host_wire.latency);
  }
  for (std::int32_t g = 0; g < fly.groups; ++g) {
    for (std::int32_t a = 0; a < fly.routers; ++a) {
      for (std::int32_t b = a + 1; b < fly.routers; ++b) {
        graph.connect(router + g * fly.routers + a, router + g * fly.routers + b,
                      fly.wire.bandwidth, fly.wire.latency);
      }
    }
  }
  const std::int32_t others = fly.groups - 1;
  const std::int32_t rounds = others > 0 ? fly.routers * fly.globals / others : 0;
  for (std::int32_t g = 0; g < fly.groups; ++g) {
    for (std::int32_t q = 0; q < rounds * others; ++q) {
      const std::int32_t to = (g + 1 + q % others) % fly.groups;
      const std::int32_t back = q / others * others + (g - to - 1 + fly.groups) % fly.groups;
      if (g < to) {
        graph.connect(router + g * fly.routers + q / fly.globals,
                      router + to * fly.routers + back / fly.globals, fly.global_wire.bandwidth,
                      fly.global_wire.latency);
      }
    }
  }
  graph.layout.family = Layout::Family::dragonfly;
  graph.layout.shape = {fly.hosts, fly.routers, fly.globals, fly.groups};
  graph.layout.first_router = router;
  graph.layout.concentration = fly.hosts;
  return graph;
}

struct NvLinks {
  std::int32_t a;
  std::int32_t b;
  std::int32_t count;
};

// nvidia-smi topo -m of a DGX-1 (V100): 6 NVLinks per GPU.
constexpr std::array kVolta{NvLinks{0, 1, 1}, NvLinks{0, 2, 1}, NvLinks{0, 3, 2}, NvLinks{0, 4, 2},
                            NvLinks{1, 2, 2}, NvLinks{1, 3, 1}, NvLinks{1, 5, 2}, NvLinks{2, 3, 2},
                            NvLinks{2, 6, 1}, NvLinks{3, 7, 1}, NvLinks{4, 5, 1}, NvLinks{4, 6, 1},
                            NvLinks{4, 7, 2}, NvLinks{5, 6, 2}, NvLinks{5, 7, 1}, NvLinks{6, 7, 2}};

}  // namespace

Result<LinkGraph> make_dragonfly(const ConfigNode& map) {
  Reader read(map);
  Dragonfly fly;
  fly.hosts = read_count(read, "hosts", 0);
  fly.routers = read_count(read, "routers", 0, 1, 10'000);
  fly.globals = read_count(read, "globals", 0, 1, 10'000);
  fly.groups = read_count(read, "groups", fly.routers * fly.globals + 1, 1);
  fly.wire = read_wire(read);
  fly.host_wire = read_wire(read, "host_", fly.wire);
  fly.global_wire = read_wire(read, "global_", fly.wire);
  read.require(fly.groups <= fly.routers * fly.globals + 1, "groups",
               "at most routers*globals+1, so that every pair of groups has a link");
  const double routers = 1.0 * fly.groups * fly.routers;
  check_size(read, "routers", routers * (1 + fly.hosts),
             routers * (2.0 * fly.hosts + fly.routers + fly.globals));
  return finished(read, [&] { return dragonfly(fly); });
}

Result<LinkGraph> make_cube_mesh(const ConfigNode& map) {
  Reader read(map);
  const std::int32_t links = read_count(read, "links", 6, 4, 6);
  read.require(links != 5, "links", "6 (V100) or 4 (P100)");
  const Wire wire = read_wire(read, "", {Bandwidth(links == 6 ? 25e9 : 20e9), 700_ns});
  return finished(read, [&] {
    LinkGraph graph;
    add_hosts(graph, 8);
    graph.hosts_forward = true;
    for (const NvLinks& pair : kVolta) {  // P100 has one link where V100 has one or two
      for (std::int32_t i = 0; i < (links == 6 ? pair.count : 1); ++i) {
        graph.connect(pair.a, pair.b, wire.bandwidth, wire.latency);
      }
    }
    return graph;
  });
}

}  // namespace orrery::topology
