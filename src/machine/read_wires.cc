// SPDX-License-Identifier: Apache-2.0
#include "machine/read_wires.h"

#include <fmt/format.h>

#include "base/names.h"
#include "base/reader.h"
#include "machine/topology/read.h"
#include "machine/topology/routing.h"

namespace orrery::machine {
namespace {

std::string of_single_messages() {
  std::string names;
  for (const auto& routing : kNames<topology::Routing>) {
    if (routing.value < topology::Routing::adaptive) {
      names += (names.empty() ? "" : ", ") + std::string(routing.name);
    }
  }
  return names;
}

}  // namespace

Result<topology::Wires> read_wires(const ConfigNode& node, std::int64_t devices) {
  topology::Wires wires;
  if (node.kind == ConfigNode::Kind::scalar) {
    wires.spec = node.text;
  } else {
    Reader read(node);
    wires.spec = read.required<std::string>("links");
    wires.routing = read.optional("routing", wires.routing);
    wires.seed = read.optional("seed", wires.seed);
    if (auto good = read.finish(0); !good) {
      return fail(std::move(good.error()));
    }
  }
  return with_graph(std::move(wires), node, devices);
}

Result<topology::Wires> with_graph(topology::Wires wires, const ConfigNode& node,
                                   std::int64_t devices) {
  Error mistakes;
  const auto mistake = [&](std::string expected) {
    mistakes.add({node.where(), node.path, wires.spec, std::move(expected)});
  };
  Result<topology::LinkGraph> graph = topology::load_topology(wires.spec, node.where());
  if (!graph) {
    return fail(std::move(graph.error()));
  }
  if (graph->hosts < devices) {
    mistake(
        fmt::format("a network of at least {} hosts, as many as `network` has devices (it has {})",
                    devices, graph->hosts));
  }
  if (wires.routing >= topology::Routing::adaptive) {
    mistakes.add({node.where(), node.path + ".routing", std::string(name_of(wires.routing)),
                  "a routing of single messages: one of " + of_single_messages()});
  } else if (const auto suits = topology::check_routing(*graph, wires.routing); !suits) {
    mistakes.add({node.where(), node.path + ".routing", std::string(name_of(wires.routing)),
                  suits.error().mistakes.front().expected});
  } else if (!topology::all_reachable(*graph, wires.routing)) {
    mistake("a network in which every host reaches every other");
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  wires.graph = std::make_shared<const topology::LinkGraph>(std::move(*graph));
  return wires;
}

}  // namespace orrery::machine
