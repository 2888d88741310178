// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/link_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/collect.h"
#include "base/file.h"
#include "base/reader.h"
#include "compat/astra/parse.h"
#include "machine/topology/read.h"
#include "machine/topology/routing.h"

namespace orrery::astra {
namespace {

/// ns-3's front-end reads texts.
Result<std::vector<std::int64_t>> parse_sizes(const ConfigNode& node) {
  Reader read(node);
  std::vector<std::int64_t> sizes;
  std::int64_t npus = 1;
  for (const std::string& text : read.list<std::string>("logical-dims", true)) {
    const std::int64_t size = parse_integer(text).value_or(0);
    if (size < 1 || npus > kMostNpus / size) {
      read.reject("logical-dims",
                  fmt::format("sizes such as \"8\", {} NPUs at most, not '{}'", kMostNpus, text));
      break;
    }
    npus *= size;
    sizes.push_back(size);
  }
  read.require(!read.ok() || !sizes.empty(), "logical-dims", "at least one size");
  return read.finish(sizes);
}

/// Returns the topology that ns-3's configuration names; nothing where the text is none.
std::optional<std::string> named_topology(const std::string& text, const std::string& file) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::string value;
    if (words >> key >> value && key == "TOPOLOGY_FILE") {
      const std::filesystem::path path(value);
      return path.is_absolute() ? value
                                : (std::filesystem::path(file).parent_path() / path).string();
    }
  }
  return std::nullopt;
}

/// Returns a switch that sends what the slowest host can, with the latency to the farthest from
/// host 0.
Dimension as_switch(const topology::LinkGraph& graph) {
  std::vector<Bandwidth> sends(static_cast<std::size_t>(graph.hosts), Bandwidth(0));
  for (const topology::GraphLink& link : graph.links) {
    if (link.source >= 0 && link.source < graph.hosts) {
      sends[static_cast<std::size_t>(link.source)] += link.bandwidth;
    }
  }
  topology::Router router(graph, topology::Routing::shortest);
  Time farthest{0};
  std::vector<topology::Hop> hops;
  for (std::int32_t host = 1; host < graph.hosts; ++host) {
    hops.clear();
    Time latency{0};
    if (router.route(0, host, 0, hops)) {
      for (const topology::Hop& hop : hops) {
        latency += hop.latency;
      }
    }
    farthest = std::max(farthest, latency);
  }
  constexpr std::int64_t kHopsOfNanoseconds = 2000;  // there and back of a switch, in ps
  return {.building = Building::switched,
          .size = graph.hosts,
          .bandwidth = *std::ranges::min_element(sends),
          .latency = 1_ns * ((farthest.value() + kHopsOfNanoseconds - 1) / kHopsOfNanoseconds)};
}

}  // namespace

Result<LinkNetwork> load_link_network(const std::string& logical, const std::string& physical,
                                      std::vector<std::string>& warnings) {
  Error mistakes;
  const auto sizes = collect(read_file(logical)
                                 .and_then([&](const std::string& text) {
                                   return parse_config(text, logical, ConfigSyntax::json);
                                 })
                                 .and_then(parse_sizes),
                             mistakes);
  LinkNetwork network{.dimensions = {}, .topology = physical};
  if (const auto text = read_file(physical)) {
    if (auto named = named_topology(*text, physical)) {
      network.topology = std::move(*named);
      warnings.push_back(physical +
                         ": only TOPOLOGY_FILE is read; what it says of congestion "
                         "control and buffers has no effect");
    }
  }
  const auto graph =
      kept(topology::load_topology(network.topology, "--network-configuration"), mistakes);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  Dimension dimension = as_switch(*graph);
  for (const std::int64_t size : sizes) {
    dimension.size = size;
    network.dimensions.push_back(dimension);
  }
  return network;
}

}  // namespace orrery::astra
