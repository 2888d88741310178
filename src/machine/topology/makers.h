// SPDX-License-Identifier: Apache-2.0
/// Regular networks from a few numbers: "fat_tree:k=8", or a map of a YAML file.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "machine/topology/link_graph.h"

namespace orrery::topology {

/// Vertices and links of one network at most.
inline constexpr std::int64_t kMostVertices = 1'000'000;
inline constexpr std::int64_t kMostLinks = 4'000'000;

/// A maker reads its fields from a map (unknown fields are mistakes) and returns the network
/// without a name. All take `bandwidth` (of a link, one direction; default 100 Gbit/s) and
/// `latency` (of a link; default 1 us).
struct TopologyMaker {
  std::string_view name;
  std::string_view sentence;
  std::string_view example;
  Result<LinkGraph> (*make)(const ConfigNode& map);
};

Result<LinkGraph> make_mesh(const ConfigNode& map);
Result<LinkGraph> make_torus(const ConfigNode& map);
Result<LinkGraph> make_flattened_butterfly(const ConfigNode& map);
Result<LinkGraph> make_hamming_mesh(const ConfigNode& map);
Result<LinkGraph> make_clos(const ConfigNode& map);
Result<LinkGraph> make_fat_tree(const ConfigNode& map);
Result<LinkGraph> make_leaf_spine(const ConfigNode& map);
Result<LinkGraph> make_rail(const ConfigNode& map);
Result<LinkGraph> make_dragonfly(const ConfigNode& map);
Result<LinkGraph> make_cube_mesh(const ConfigNode& map);
Result<LinkGraph> make_pcie(const ConfigNode& map);

inline constexpr std::array kTopologies{
    TopologyMaker{"mesh",
                  "lines of routers in 1 to 6 dimensions; hosts=0: the hosts are the routers, else "
                  "so many hang on each",
                  "mesh:shape=4x4,hosts=1", make_mesh},
    TopologyMaker{"torus", "the same with closed lines", "torus:shape=4x4x4", make_torus},
    TopologyMaker{"flattened_butterfly",
                  "routers linked to every other of each dimension, with hosts on each (Kim, Dally "
                  "and Abts, ISCA 2007)",
                  "flattened_butterfly:shape=4x4,hosts=4", make_flattened_butterfly},
    TopologyMaker{
        "hammingmesh",
        "boards of accelerators in a mesh; every row and column of accelerators joined by "
        "a switch (Hoefler et al., SC 2022)",
        "hammingmesh:board=2x2,shape=4x4", make_hamming_mesh},
    TopologyMaker{
        "clos",
        "extended generalised fat tree: children, parents and cables by level (Oehring et "
        "al., IPPS 1995)",
        "clos:down=4x4x4,up=1x4x4,parallel=1x1x1", make_clos},
    TopologyMaker{"fat_tree",
                  "k-ary fat tree of 2 or 3 levels of k-port switches; oversubscription: so many "
                  "times the hosts per leaf (Al-Fares et al., SIGCOMM 2008)",
                  "fat_tree:k=8,levels=3,oversubscription=1", make_fat_tree},
    TopologyMaker{"leaf_spine", "every leaf to every spine over `parallel` cables",
                  "leaf_spine:leaves=16,spines=16,hosts=16", make_leaf_spine},
    TopologyMaker{"rail",
                  "servers of GPUs on an NVSwitch; GPU i of every server of a group on the group's "
                  "leaf of rail i; leaves on spines; spines=0: rails meet inside servers only",
                  "rail:servers=32,gpus=8,group=32,spines=8", make_rail},
    TopologyMaker{"dragonfly",
                  "groups of fully linked routers, every pair of groups linked (Kim et al., ISCA "
                  "2008); groups: routers*globals+1 unless given",
                  "dragonfly:hosts=2,routers=4,globals=2", make_dragonfly},
    TopologyMaker{"cube_mesh", "8 GPUs as in DGX-1: 6 NVLinks each (V100) or 4 (P100)",
                  "cube_mesh:links=6", make_cube_mesh},
    TopologyMaker{
        "pcie",
        "GPUs on PCIe switches, these on the host bridges of sockets, which are linked in "
        "a ring or pair",
        "pcie:sockets=2,switches=2,gpus=2", make_pcie},
};

/// Returns the network of a map whose field `kind` names a maker.
Result<LinkGraph> make_topology(const ConfigNode& map);

/// Returns the network of "kind:field=value,field=value". Mistakes name `where` ("--topology").
Result<LinkGraph> parse_topology(std::string_view spec, std::string_view where);

/// Returns whether the text is such a description rather than the name of a file: it begins with a
/// maker's name, alone or with a colon after it.
bool is_topology_spec(std::string_view text);

}  // namespace orrery::topology
