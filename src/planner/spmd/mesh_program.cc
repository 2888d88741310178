// SPDX-License-Identifier: Apache-2.0
// A program on a mesh as a workload.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "planner/spmd/mesh_strategy.h"

namespace orrery::spmd {
namespace {

enum class MeshPass : std::uint8_t { forward, backward, optimizer };
constexpr graph::PhaseRow row_of(MeshPass) {
  return {};
}

class MeshWriter {
 public:
  MeshWriter(const OperatorGraph& graph, const MeshStrategy& strategy, const MeshPrices& prices)
      : graph_(graph), computations_(strategy.computations), prices_(prices) {}

  std::vector<graph::Node> write() {
    for (const MeshComputation& computation : computations_) {
      for (const MeshConversion& conversion : computation.conversions) {
        convert(conversion, false);
      }
      compute(computation, false);
    }
    for (std::size_t i = computations_.size(); i-- > 0;) {
      compute(computations_[i], true);
      for (std::size_t k = computations_[i].conversions.size(); k-- > 0;) {
        convert(computations_[i].conversions[k], true);
      }
    }
    optimizer();
    return std::move(nodes_);
  }

 private:
  void compute(const MeshComputation& computation, bool backward) {
    if (graph_.node(computation.node).kind != NodeKind::op) {
      return;
    }
    const graph::Operator kernel =
        prices_.kernel(graph_, computation.node, signature_of(graph_, computation));
    graph::Node node;
    node.phase = backward ? MeshPass::backward : MeshPass::forward;
    node.name = kernel.name;
    node.operators =
        backward ? MeshPrices::backward(graph_, computation.node, kernel) : std::vector{kernel};
    node.kind = node.operators.empty() ? graph::Node::Kind::wait : graph::Node::Kind::compute;
    add(std::move(node));
  }

  void convert(const MeshConversion& conversion, bool backward) {
    std::vector<std::pair<MeshForm, MeshStep>> chain;
    MeshForm form = conversion.from;
    for (const MeshStep& step : conversion.steps) {
      chain.emplace_back(form, step);
      form = after(form, step);
    }
    if (backward) {
      std::ranges::reverse(chain);
    }
    for (const auto& [before, step] : chain) {
      const MeshTransfers moved = prices_.transfers(graph_, conversion.tensor, before, step);
      const std::optional<Transfer>& transfer = backward ? moved.backward : moved.forward;
      if (!transfer) {
        continue;
      }
      graph::Node node;
      node.kind = graph::Node::Kind::collective;
      node.stream = graph::StreamIndex(std::size_t{1});
      node.phase = backward ? MeshPass::backward : MeshPass::forward;
      node.name = fmt::format("{} {} -> {}", graph_.producer(conversion.tensor).name,
                              to_string(step.from), to_string(step.to));
      node.group = graph::GroupIndex(static_cast<std::size_t>(step.group));
      node.collective = transfer->kind;
      node.bytes = transfer->buffer;
      add(std::move(node));
    }
  }

  void optimizer() {
    graph::Node node;
    node.phase = MeshPass::optimizer;
    node.name = "optimizer";
    for (const MeshComputation& computation : computations_) {
      const Node& load = graph_.node(computation.node);
      if (load.kind == NodeKind::parameter) {
        node.operators.push_back(prices_.update(graph_, load.outputs.front(),
                                                {signature_of(graph_, computation)[0].outputs[0],
                                                 signature_of(graph_, computation)[1].outputs[0]}));
      }
    }
    node.kind = node.operators.empty() ? graph::Node::Kind::wait : graph::Node::Kind::compute;
    add(std::move(node));
  }

  void add(graph::Node node) {
    if (!nodes_.empty()) {
      node.after.push_back(static_cast<int>(nodes_.size()) - 1);
    }
    nodes_.push_back(std::move(node));
  }

  const OperatorGraph& graph_;
  const std::vector<MeshComputation>& computations_;
  const MeshPrices& prices_;
  std::vector<graph::Node> nodes_;
};

graph::Members axis_members(std::int64_t count, std::int64_t stride) {
  graph::Members found;
  if (count > 1) {
    found.digits = {{count, stride}};
  }
  return found;
}

}  // namespace

Result<graph::Workload> program_of(const OperatorGraph& graph, const MeshStrategy& strategy,
                                   const MeshPrices& prices) {
  if (const auto cost = replay(graph, strategy, prices); !cost) {
    return fail(cost.error());
  }
  const Mesh& mesh = prices.mesh();
  graph::Workload workload;
  workload.ranks = devices_of(mesh);
  workload.programs = {{.templates = {{"step", MeshWriter(graph, strategy, prices).write()}}}};
  workload.roles = {{"device", 0}};
  workload.source = std::make_shared<graph::InstanceLists>(
      std::vector<std::vector<graph::Instance>>{{graph::Instance{}}});
  workload.phases = {{"forward", "forward kernels"},
                     {"backward", "backward kernels"},
                     {"optimizer", "update of the parameters"}};
  workload.streams = {{"compute", "kernels", graph::Order::issue},
                      {"communication", "conversions", graph::Order::issue}};
  for (const auto& [group, name, meaning] : kNames<MeshGroup>) {
    const std::int64_t stride = group == MeshGroup::outer ? mesh[0] : 1;
    workload.categories.push_back({std::string(name), "conversions of " + std::string(meaning)});
    workload.groups.push_back({.name = std::string(name),
                               .meaning = std::string(meaning),
                               .members = axis_members(members_of(group, mesh), stride),
                               .category = graph::CategoryIndex(workload.groups.size())});
  }
  return workload;
}

}  // namespace orrery::spmd
