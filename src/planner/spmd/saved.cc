// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/saved.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/reader.h"
#include "planner/spmd/graph_builder.h"
#include "planner/spmd/machine_prices.h"
#include "planner/spmd/program.h"
#include "planner/spmd/read_list.h"

namespace orrery::spmd {
namespace {

Result<MeshStep> read_mesh_step(const ConfigNode& node) {
  Reader read(node);
  const MeshStep step{read.required<MeshGroup>("group"), read_form(read, "from"),
                      read_form(read, "to")};
  return read.finish(step);
}

Result<MeshConversion> read_mesh_conversion(const ConfigNode& node, const Mesh& mesh) {
  Reader read(node);
  MeshConversion found;
  found.tensor = read.required<int>("tensor");
  const auto from = parse_mesh_form(read.required<std::string>("from"), mesh);
  read.require(from.has_value(), "from",
               "a form for each axis, such as " + to_string(MeshForm(), mesh));
  found.from = from.value_or(MeshForm());
  found.steps = read_list(read, "steps", read_mesh_step);
  return read.finish(std::move(found));
}

Result<MeshComputation> read_mesh_computation(const ConfigNode& node, const Mesh& mesh) {
  Reader read(node);
  MeshComputation found;
  found.node = read.required<int>("node");
  const std::vector<int> signatures = read.list<int>("signatures", true);
  const std::vector<std::size_t> axes = axes_of(mesh);
  const bool sound = signatures.size() == axes.size();
  read.require(sound, "signatures", fmt::format("an index for each of the {} axes", axes.size()));
  for (std::size_t i = 0; sound && i < axes.size(); ++i) {
    found.signatures[axes[i]] = signatures[i];
  }
  found.conversions = read_list(read, "conversions", [&](const ConfigNode& conversion) {
    return read_mesh_conversion(conversion, mesh);
  });
  return read.finish(std::move(found));
}

Result<SavedMesh> read_mesh_strategy(const ConfigNode& root) {
  Reader read(root);
  for (const char* fact : {"format", "graph", "n_devices", "profile", "cost", "total_seconds"}) {
    read.ignore(fact);
  }
  SavedMesh saved;
  const auto mesh = mesh_of(read.list<std::int64_t>("mesh", true));
  read.require(mesh.has_value(), "mesh",
               fmt::format("two or three numbers of at most {} devices", kMostDevices));
  saved.mesh = mesh.value_or(saved.mesh);
  saved.overlap = read.optional("overlap", Overlap::none);
  saved.strategy.computations = read_list(read, "computations", [&](const ConfigNode& node) {
    return read_mesh_computation(node, saved.mesh);
  });
  return read.finish(std::move(saved));
}

Result<SavedProgram> program_of(const OperatorGraph& graph, const SavedMesh& saved,
                                const machine::Machine& machine) {
  const auto prices = MeshPrices::make(machine, saved.mesh, graph.element);
  if (!prices) {
    return fail(prices.error());
  }
  const auto cost = replay(graph, saved.strategy, *prices);
  if (!cost) {
    return fail(cost.error());
  }
  return program_of(graph, saved.strategy, *prices, saved.overlap)
      .map([&](graph::Workload workload) {
        return SavedProgram{std::move(workload), cost->holdings};
      });
}

}  // namespace

Result<SavedStrategy> load_saved(const std::string& file) {
  const auto root = load_config(file);
  if (!root) {
    return fail(root.error());
  }
  const ConfigNode* const format = root->find("format");
  if (format != nullptr && format->text == kMeshStrategyFormat) {
    return read_mesh_strategy(*root).map(
        [](SavedMesh saved) { return SavedStrategy(std::move(saved)); });
  }
  return read_strategy(*root).map(
      [](Strategy strategy) { return SavedStrategy(std::move(strategy)); });
}

std::int64_t devices_of(const SavedStrategy& saved, std::int64_t otherwise) {
  const auto* const mesh = std::get_if<SavedMesh>(&saved);
  return mesh != nullptr ? devices_of(mesh->mesh) : otherwise;
}

Result<SavedProgram> program_of(const OperatorGraph& graph, const SavedStrategy& saved,
                                const machine::Machine& machine, std::int64_t devices,
                                Overlap overlap) {
  if (const auto* const mesh = std::get_if<SavedMesh>(&saved)) {
    return devices == devices_of(mesh->mesh)
               ? program_of(graph, *mesh, machine)
               : fail(Error(fmt::format("found {} devices, expected {}, those of its mesh {}",
                                        devices, devices_of(mesh->mesh), to_string(mesh->mesh))));
  }
  const Strategy& strategy = std::get<Strategy>(saved);
  const auto prices = MachinePrices::make(machine, devices, overlap, graph.element);
  if (!prices) {
    return fail(prices.error());
  }
  return program_of(graph, strategy, *prices).map([&](graph::Workload workload) {
    return SavedProgram{std::move(workload), holdings_of(graph, strategy, devices)};
  });
}

}  // namespace orrery::spmd
