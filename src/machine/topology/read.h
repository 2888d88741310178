// SPDX-License-Identifier: Apache-2.0
/// Networks of links from files.
#pragma once

#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/result.h"
#include "machine/topology/link_graph.h"

namespace orrery::topology {

/// Loads a description (makers.h) or a file, whose kind its content tells:
///
///   YAML or JSON      `kind:` and the fields of a maker, or `hosts`, `switches` and `links`
///   <platform ...>    SimGrid's platform: hosts, routers, links; nested zones with routing Full,
///                     Floyd, Dijkstra or Cluster; FLAT clusters with backbone and limiters; alone
///                     also clusters of FAT_TREE, TORUS and DRAGONFLY with SimGrid's routing.
///                     Profiles over time and coordinates (Vivaldi) are mistakes
///   <system ...>      NCCL's and RCCL's topology (NCCL_TOPO_DUMP_FILE): GPUs are the hosts
///   Nodes N ...       htsim's fat trees (.topo)
///   N S L             ns-3 with HPCC's numbers: nodes, switches and links, the switches' numbers,
///                     then a line per link: source, target, rate, delay, error rate; with SimAI's
///                     head its NVSwitches are nearer than the network
///
/// Where hosts have links to several switches that are alike (planes), `auto` sprays over them.
///
/// `where` names the flag or field that the text comes from, for mistakes of a description.
Result<LinkGraph> load_topology(const std::string& spec_or_file, std::string_view where);

/// Reads the same from a file's text.
Result<LinkGraph> read_topology(std::string_view text, const std::string& file);

/// Reads a map of a YAML file: of a maker, or with lists of links.
Result<LinkGraph> read_graph(const ConfigNode& map);

Result<LinkGraph> read_simgrid(std::string_view text, const std::string& file);
Result<LinkGraph> read_nccl(std::string_view text, const std::string& file);
Result<LinkGraph> read_htsim(std::string_view text, const std::string& file);
Result<LinkGraph> read_ns3(std::string_view text, const std::string& file);

}  // namespace orrery::topology
