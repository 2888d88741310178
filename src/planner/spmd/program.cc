// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace orrery::spmd {
namespace {

constexpr graph::StreamIndex kCommunication(std::size_t{1});
constexpr graph::GroupIndex kDevices(std::size_t{0});

enum class Pass : std::uint8_t { forward, backward, optimizer };
constexpr graph::PhaseRow row_of(Pass) {
  return {};
}

constexpr const char* name_of(Pass pass) {
  return pass == Pass::forward ? "forward" : pass == Pass::backward ? "backward" : "optimizer";
}

class Writer {
 public:
  Writer(const OperatorGraph& graph, const Strategy& strategy, const MachinePrices& prices)
      : graph_(graph), stages_(strategy.stages), prices_(prices) {}

  std::vector<graph::Node> write() {
    forward();
    backward();
    optimizer();
    return std::move(nodes_);
  }

 private:
  void forward() {
    in_turn_ = prices_.rule().overlap == Overlap::none;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      communicate(Pass::forward, i, 0);
      if (i > 0) {
        compute(Pass::forward, i - 1, 1);
      }
      compute(Pass::forward, i, 0);
      communicate(Pass::forward, i, 1);
    }
    compute(Pass::forward, stages_.size() - 1, 1);
  }

  void backward() {
    in_turn_ = prices_.rule().overlap != Overlap::both;
    compute(Pass::backward, stages_.size() - 1, 1);
    for (std::size_t i = stages_.size(); i-- > 0;) {
      compute(Pass::backward, i, 0);
      communicate(Pass::backward, i, 1);
      communicate(Pass::backward, i, 0);
      if (i > 0) {
        compute(Pass::backward, i - 1, 1);
      }
    }
  }

  void optimizer() {
    graph::Node node;
    node.phase = Pass::optimizer;
    node.name = "optimizer";
    for (const Stage& stage : stages_) {
      for (const Computation& computation : stage.computations) {
        const Node& load = node_of(computation);
        if (load.kind == NodeKind::parameter) {
          node.operators.push_back(prices_.update(graph_, load.outputs.front(),
                                                  signature_of(computation).outputs.front()));
        }
      }
    }
    node.kind = node.operators.empty() ? graph::Node::Kind::wait : graph::Node::Kind::compute;
    in_turn_ = true;
    add(std::move(node), {last_[0], last_[1]});
  }

  /// The kernels of a stage, of one half.
  void compute(Pass pass, std::size_t stage, std::size_t half) {
    graph::Node node;
    node.phase = pass;
    node.name = fmt::format("stage {} half {} {}", stage, half + 1, name_of(pass));
    for (const Computation& computation : stages_[stage].computations) {
      if (node_of(computation).kind != NodeKind::op) {
        continue;
      }
      graph::Operator kernel = prices_.kernel(graph_, computation.node, signature_of(computation));
      if (pass == Pass::backward) {
        if (auto own = own_backward(kernel)) {
          kernel = std::move(*own);
        } else {  // of the input and of the weight
          node.operators.push_back(kernel);
        }
      }
      node.operators.push_back(std::move(kernel));
    }
    node.kind = node.operators.empty() ? graph::Node::Kind::wait : graph::Node::Kind::compute;
    last_[half] = add(std::move(node), {last_[half]});
  }

  /// The conversions of a stage, of one half.
  void communicate(Pass pass, std::size_t stage, std::size_t half) {
    const int before = last_[half];
    for (const Communication& conversion : stages_[stage].communications) {
      const Transfers moved =
          prices_.transfers(graph_, conversion.tensor, conversion.from, conversion.to);
      const std::optional<Transfer>& transfer =
          pass == Pass::forward ? moved.forward : moved.backward;
      if (!transfer || (moved.once && half == 1)) {
        continue;
      }
      const int producer = graph_.tensors[static_cast<std::size_t>(conversion.tensor)].producer;
      graph::Node node;
      node.kind = graph::Node::Kind::collective;
      node.stream = kCommunication;
      node.phase = pass;
      node.name = fmt::format("{} {} -> {}", graph_.nodes[static_cast<std::size_t>(producer)].name,
                              to_string(conversion.from), to_string(conversion.to));
      node.group = kDevices;
      node.collective = transfer->kind;
      node.bytes = transfer->buffer;
      last_[half] = add(std::move(node), {before});
    }
  }

  int add(graph::Node node, std::vector<int> after) {
    if (in_turn_) {
      after.push_back(static_cast<int>(nodes_.size()) - 1);
    }
    for (const int earlier : after) {
      if (earlier >= 0 && std::ranges::find(node.after, earlier) == node.after.end()) {
        node.after.push_back(earlier);
      }
    }
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  const Node& node_of(const Computation& computation) const {
    return graph_.nodes[static_cast<std::size_t>(computation.node)];
  }
  const Signature& signature_of(const Computation& computation) const {
    return node_of(computation).signatures[static_cast<std::size_t>(computation.signature)];
  }

  const OperatorGraph& graph_;
  const std::vector<Stage>& stages_;
  const MachinePrices& prices_;
  std::vector<graph::Node> nodes_;
  std::array<int, 2> last_{-1, -1};  ///< node of each half
  bool in_turn_ = false;             ///< nothing runs beside anything
};

Result<void> check_allowed(const OperatorGraph& graph, const Strategy& strategy,
                           const MachinePrices& prices) {
  Error mistakes;
  for (const Stage& stage : strategy.stages) {
    for (const Computation& computation : stage.computations) {
      const Node& node = graph.nodes[static_cast<std::size_t>(computation.node)];
      const Signature& signature = node.signatures[static_cast<std::size_t>(computation.signature)];
      if (!prices.allows(graph, computation.node, signature)) {
        mistakes.add(Error(fmt::format("node {} ({}): {} gives wrong results or uneven slices",
                                       computation.node, node.name, to_string(signature))));
      }
    }
  }
  return mistakes.empty() ? Result<void>() : fail(std::move(mistakes));
}

}  // namespace

std::optional<graph::Operator> own_backward(const graph::Operator& forward) {
  const bool attends = forward.kind == graph::OperatorKind::attention;
  if (!attends && forward.kind != graph::OperatorKind::scan) {
    return std::nullopt;
  }
  graph::Operator op = forward;
  op.backward = true;
  op.flops = attends ? forward.flops * 5 / 2 : forward.flops * 3;
  op.bytes = forward.bytes * 2;
  return op;
}

Result<graph::Workload> program_of(const OperatorGraph& graph, const Strategy& strategy,
                                   const MachinePrices& prices) {
  if (const auto cost = replay(graph, strategy, prices); !cost) {
    return fail(cost.error());
  }
  if (auto allowed = check_allowed(graph, strategy, prices); !allowed) {
    return fail(std::move(allowed.error()));
  }
  graph::Workload workload;
  workload.ranks = prices.devices();
  workload.programs = {{.templates = {{"step", Writer(graph, strategy, prices).write()}}}};
  workload.roles = {{"device", 0}};
  workload.source = std::make_shared<graph::InstanceLists>(
      std::vector<std::vector<graph::Instance>>{{graph::Instance{}}});
  workload.phases = {{name_of(Pass::forward), "forward kernels"},
                     {name_of(Pass::backward), "backward kernels"},
                     {name_of(Pass::optimizer), "update of the parameters"}};
  workload.categories = {{"exposed", "conversions that nothing hides"}};
  workload.streams = {{"compute", "kernels of both halves", graph::Order::issue},
                      {"communication", "conversions", graph::Order::issue}};
  graph::Members all;
  if (workload.ranks > 1) {
    all.digits = {{workload.ranks, 1}};
  }
  workload.groups = {{.name = "devices",
                      .meaning = "all",
                      .members = std::move(all),
                      .category = graph::CategoryIndex(std::size_t{0})}};
  return workload;
}

}  // namespace orrery::spmd
