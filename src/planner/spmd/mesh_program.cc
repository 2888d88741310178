// SPDX-License-Identifier: Apache-2.0
// A program on a mesh as a workload.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "planner/spmd/mesh_strategy.h"

namespace orrery::spmd {
namespace {

enum class MeshPass : std::uint8_t { forward, backward, optimizer };
constexpr graph::PhaseRow row_of(MeshPass) {
  return {};
}

/// Numbers of nodes that have to be done.
using Waits = std::vector<int>;

class MeshWriter {
 public:
  MeshWriter(const OperatorGraph& graph, const MeshStrategy& strategy, const MeshPrices& prices,
             Overlap overlap)
      : graph_(graph),
        computations_(strategy.computations),
        prices_(prices),
        groups_(groups_on(prices.mesh())),
        overlap_(overlap) {}

  std::vector<graph::Node> write() {
    for (const MeshComputation& computation : computations_) {
      for (const MeshConversion& conversion : computation.conversions) {
        convert(conversion, false);
      }
      compute(computation, false);
    }
    forward_end_ = static_cast<int>(nodes_.size()) - 1;
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
  using Place = std::pair<int, int>;  ///< tensor, code of its form

  bool hides(MeshPass pass) const {
    return overlap_ == Overlap::both || (overlap_ == Overlap::forward && pass == MeshPass::forward);
  }
  static void join(Waits& waits, const Waits& more) {
    waits.insert(waits.end(), more.begin(), more.end());
  }

  void compute(const MeshComputation& computation, bool backward) {
    const Node& node = graph_.node(computation.node);
    const MeshSignature signature = signature_of(graph_, computation, prices_.mesh());
    std::map<Place, Waits>& known = backward ? gradients_ : values_;
    const std::vector<int>& reads = backward ? node.outputs : node.inputs;
    const std::vector<int>& writes = backward ? node.inputs : node.outputs;
    const auto place = [&](const std::vector<int>& tensors, std::size_t k) {
      const bool input = (&tensors == &node.inputs);
      return Place(tensors[k],
                   (input ? input_form(signature, k) : output_form(signature, k)).code());
    };
    Waits waits;
    for (std::size_t k = 0; k < reads.size(); ++k) {
      join(waits, known[place(reads, k)]);
    }
    if (node.kind == NodeKind::op) {
      const graph::Operator kernel = prices_.kernel(graph_, computation.node, signature);
      graph::Node made;
      made.phase = backward ? MeshPass::backward : MeshPass::forward;
      made.name = kernel.name;
      made.operators =
          backward ? MeshPrices::backward(graph_, computation.node, kernel) : std::vector{kernel};
      made.kind = made.operators.empty() ? graph::Node::Kind::wait : graph::Node::Kind::compute;
      waits = {add(std::move(made), std::move(waits), backward)};
    }
    for (std::size_t k = 0; k < writes.size(); ++k) {
      join(known[place(writes, k)], waits);
    }
  }

  void convert(const MeshConversion& conversion, bool backward) {
    const Mesh& mesh = prices_.mesh();
    std::vector<std::pair<MeshForm, MeshStep>> chain;
    MeshForm form = conversion.from;
    for (const MeshStep& step : conversion.steps) {
      chain.emplace_back(form, step);
      form = after(form, step, mesh);
    }
    const Place from(conversion.tensor, conversion.from.code());
    const Place to(conversion.tensor, form.code());
    Waits waits = backward ? gradients_[to] : values_[from];
    if (backward) {
      std::ranges::reverse(chain);
      if (waits.empty() && forward_end_ >= 0) {
        waits.push_back(forward_end_);  // of the loss
      }
    }
    for (const auto& [before, step] : chain) {
      const MeshTransfers moved = prices_.transfers(graph_, conversion.tensor, before, step);
      const std::optional<Transfer>& transfer = backward ? moved.backward : moved.forward;
      if (!transfer) {
        continue;
      }
      graph::Node node;
      node.kind = graph::Node::Kind::collective;
      node.stream = stream_of(step.group, graph_.producer(conversion.tensor).is_load());
      node.phase = backward ? MeshPass::backward : MeshPass::forward;
      node.name = fmt::format("{} {} -> {}", graph_.producer(conversion.tensor).name,
                              to_string(step.from), to_string(step.to));
      node.group = graph::GroupIndex(row_of_group(step.group));
      node.collective = transfer->kind;
      node.bytes = transfer->buffer;
      waits = {add(std::move(node), std::move(waits), backward)};
    }
    join(backward ? gradients_[from] : values_[to], waits);
  }

  std::size_t row_of_group(MeshGroup group) const {
    return static_cast<std::size_t>(std::ranges::find(groups_, group) - groups_.begin());
  }
  graph::StreamIndex stream_of(MeshGroup group, bool loads) const {
    return graph::StreamIndex(
        overlap_ == Overlap::none ? std::size_t{1} : 1 + 2 * row_of_group(group) + (loads ? 1 : 0));
  }

  void optimizer() {
    graph::Node node;
    node.phase = MeshPass::optimizer;
    node.name = "optimizer";
    Waits waits;
    for (const MeshComputation& computation : computations_) {
      const Node& load = graph_.node(computation.node);
      if (load.kind == NodeKind::parameter) {
        const MeshForm form = output_form(signature_of(graph_, computation, prices_.mesh()), 0);
        node.operators.push_back(prices_.update(graph_, load.outputs.front(), form));
        join(waits, gradients_[{load.outputs.front(), form.code()}]);
      }
    }
    node.kind = node.operators.empty() ? graph::Node::Kind::wait : graph::Node::Kind::compute;
    add(std::move(node), std::move(waits), true);
  }

  /// Adds a node after those it waits for; where nothing hides, after the one before.
  int add(graph::Node node, Waits waits, bool backward) {
    const int number = static_cast<int>(nodes_.size());
    if (!hides(backward ? MeshPass::backward : MeshPass::forward) && number > 0) {
      waits.push_back(number - 1);
    }
    std::ranges::sort(waits);
    const auto [first, last] = std::ranges::unique(waits);
    waits.erase(first, last);
    node.after = hides(MeshPass::forward) || waits.empty() ? std::move(waits) : Waits{waits.back()};
    nodes_.push_back(std::move(node));
    return number;
  }

  const OperatorGraph& graph_;
  const std::vector<MeshComputation>& computations_;
  const MeshPrices& prices_;
  std::vector<MeshGroup> groups_;
  Overlap overlap_;
  std::map<Place, Waits> values_;     ///< what makes them
  std::map<Place, Waits> gradients_;  ///< what adds to them
  std::vector<graph::Node> nodes_;
  int forward_end_ = -1;  ///< its last node
};

}  // namespace

Result<graph::Workload> program_of(const OperatorGraph& graph, const MeshStrategy& strategy,
                                   const MeshPrices& prices, Overlap overlap) {
  if (const auto cost = replay(graph, strategy, prices); !cost) {
    return fail(cost.error());
  }
  const Mesh& mesh = prices.mesh();
  graph::Workload workload;
  workload.ranks = devices_of(mesh);
  workload.programs = {
      {.templates = {{"step", MeshWriter(graph, strategy, prices, overlap).write()}}}};
  workload.roles = {{"device", 0}};
  workload.source = std::make_shared<graph::InstanceLists>(
      std::vector<std::vector<graph::Instance>>{{graph::Instance{}}});
  workload.phases = {{"forward", "forward kernels"},
                     {"backward", "backward kernels"},
                     {"optimizer", "update of the parameters"}};
  workload.streams = {{"compute", "kernels", graph::Order::issue}};
  if (overlap == Overlap::none) {
    workload.streams.push_back({"communication", "conversions", graph::Order::issue});
  }
  for (const MeshGroup group : groups_on(mesh)) {
    const std::string name(name_of(group));
    const std::string meaning(kNames<MeshGroup>[static_cast<std::size_t>(group)].meaning);
    if (overlap != Overlap::none) {
      workload.streams.push_back({name, "activations: " + meaning, graph::Order::issue});
      workload.streams.push_back(
          {name + "_parameters", "parameters: " + meaning, graph::Order::issue});
    }
    workload.categories.push_back({name, "conversions: " + meaning});
    workload.groups.push_back({.name = name,
                               .meaning = meaning,
                               .members = communicators(group, mesh),
                               .category = graph::CategoryIndex(workload.groups.size())});
  }
  return workload;
}

}  // namespace orrery::spmd
