// SPDX-License-Identifier: Apache-2.0
#include "cli/network_flag.h"

#include <array>
#include <utility>

#include "base/one_of.h"
#include "machine/read_wires.h"

namespace orrery::cli {
namespace {

/// Models also have these names, which other programs use.
constexpr std::array<Named<simulate::NetworkModel>, 5> kOtherNames{
    {{simulate::NetworkModel::ports, "analytical", {}},
     {simulate::NetworkModel::fifo, "message", {}},
     {simulate::NetworkModel::fifo, "messages", {}},
     {simulate::NetworkModel::flow, "fair", {}},
     {simulate::NetworkModel::flow, "max-min", {}}}};

std::string meant(const std::string& name) {
  for (const Named<simulate::NetworkModel>& other : kOtherNames) {
    if (other.name == name) {
      return " (did you mean '" + std::string(name_of(other.value)) + "'?)";
    }
  }
  return did_you_mean(name, names_of<simulate::NetworkModel>());
}

}  // namespace

void NetworkFlag::declare(Options& options, const std::string& otherwise) {
  options.value(
      "--network", name_, "MODEL",
      all_names<simulate::NetworkModel>() + " (`orrery list networks`); default " + otherwise);
}

simulate::NetworkModel NetworkFlag::read(Error& mistakes) const {
  return name_ ? network_named("--network", *name_, mistakes) : simulate::NetworkModel::ports;
}

void NetworkFlag::take(std::optional<simulate::NetworkModel>& model, Error& mistakes) const {
  if (name_) {
    model = read(mistakes);
  }
}

void TopologyFlag::declare(Options& options) {
  options.value("--topology", spec_, "SPEC|FILE",
                "collectives and messages pass this network of links (fat_tree:k=8; `orrery show "
                "topology --help`), device d being its host d");
  options.value("--routing", routing_, "NAME",
                "of messages on --topology: auto, stated, shortest, dimension_order, d_mod_k, "
                "minimal, ecmp or spray (`orrery flow --help`); default auto");
}

void TopologyFlag::lay(machine::Machine& machine, Error& mistakes) const {
  if (routing_ && !spec_) {
    mistakes.add({"--routing", {}, {}, "goes with --topology"});
  }
  const auto routing = value_of<topology::Routing>(routing_.value_or("auto"));
  if (!routing) {
    mistakes.add(wrong_value("--routing", *routing_, one_of<topology::Routing>(*routing_)));
  }
  if (!spec_ || !routing) {
    return;
  }
  const ConfigNode spec;
  topology::Wires asked;
  asked.spec = *spec_;
  asked.routing = *routing;
  auto wires = machine::with_graph(std::move(asked), spec, 1);
  if (wires) {
    machine.wires = std::move(*wires);
    return;
  }
  for (Mistake& mistake : wires.error().mistakes) {
    if (mistake.where == spec.where()) {
      mistake.where = mistake.field == ".routing" ? "--routing" : "--topology";
      mistake.field.clear();
    }
  }
  mistakes.add(std::move(wires.error()));
}

simulate::NetworkModel network_named(const std::string& flag, const std::string& name,
                                     Error& mistakes) {
  const auto model = value_of<simulate::NetworkModel>(name);
  if (!model) {
    mistakes.add(
        wrong_value(flag, name, "one of " + all_names<simulate::NetworkModel>() + meant(name)));
  }
  return model.value_or(simulate::NetworkModel::ports);
}

}  // namespace orrery::cli
