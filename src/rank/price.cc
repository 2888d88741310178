// SPDX-License-Identifier: Apache-2.0
#include "rank/price.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/format.h"
#include "graph/workload.h"
#include "study/energy.h"
#include "study/workload_run.h"

namespace orrery::rank {
namespace {

using neural::Layer;
using neural::LayerKind;

constexpr std::int64_t kBytesPerParameter = 16;
constexpr std::int64_t kBytesPerValue = 2;
constexpr std::int64_t kAdamBytes = 2 + 2 + 2 * 12;  // gradient and weight, states read and written
constexpr std::int64_t kAdamFlops = 12;

enum class StepPhase : std::uint8_t { forward, backward, optimizer };
constexpr graph::PhaseRow row_of(StepPhase) {
  return {};
}

bool is_free(LayerKind kind) {
  return kind == LayerKind::skip || kind == LayerKind::flatten || kind == LayerKind::zero;
}

/// Makes the kernels of a layer for the samples of one device.
class Kernels {
 public:
  Kernels(const neural::Network& network, std::int64_t samples)
      : network_(network), samples_(samples) {}

  std::vector<graph::Operator> forward(const Layer& layer) const {
    std::vector<graph::Operator> kernels;
    if (is_free(layer.kind)) {
      return kernels;
    }
    const std::int64_t positions = positions_of(layer);
    for (std::size_t i = 0; i < layer.parameters; ++i) {
      const neural::Parameter& p = network_.parameters[layer.first_parameter + i];
      if (p.matrix) {
        kernels.push_back(
            product(layer, {1, samples_ * positions, static_cast<std::int64_t>(p.rows),
                            static_cast<std::int64_t>(p.columns)}));
      }
    }
    if (layer.kind == LayerKind::attention) {
      kernels.push_back(attention(layer));
    } else if (kernels.empty()) {
      kernels.push_back(stream(layer, layer.inputs.size()));
    }
    return kernels;
  }

  /// Returns the products of the input and of the weights.
  std::vector<graph::Operator> backward(const Layer& layer) const {
    std::vector<graph::Operator> kernels;
    for (graph::Operator& op : forward(layer)) {
      if (op.kind == graph::OperatorKind::gemm) {
        const graph::GemmShape s = op.gemm;
        kernels.push_back(product(layer, {1, s.m, s.k, s.n}));
        kernels.push_back(product(layer, {1, s.n, s.k, s.m}));
        continue;
      }
      op.backward = op.kind == graph::OperatorKind::attention;
      op.flops = op.flops * (op.backward ? 2.5 : 2.0);
      op.bytes = op.bytes * 2;
      kernels.push_back(std::move(op));
    }
    return kernels;
  }

  graph::Operator update() const {
    const auto weights = static_cast<std::int64_t>(network_.weights);
    return {.name = "adam",
            .kind = graph::OperatorKind::optimizer,
            .flops = Flops(static_cast<double>(weights * kAdamFlops)),
            .bytes = Bytes(weights * kAdamBytes)};
  }

 private:
  static std::int64_t positions_of(const Layer& layer) {
    return layer.kind == LayerKind::convolution ? layer.out.extents[1] * layer.out.extents[2]
                                                : static_cast<std::int64_t>(layer.out.rows());
  }

  static graph::Operator product(const Layer& layer, const graph::GemmShape& shape) {
    return {.name = layer.name,
            .kind = graph::OperatorKind::gemm,
            .gemm = shape,
            .flops = graph::flops_of(shape),
            .bytes = Bytes(kBytesPerValue) *
                     (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n)};
  }

  graph::Operator attention(const Layer& layer) const {
    const std::int64_t tokens = layer.in.extents[0];
    const std::int64_t features = layer.in.extents[1];
    return {.name = layer.name,
            .kind = graph::OperatorKind::attention,
            .gemm = {samples_ * layer.heads, tokens, tokens, features / layer.heads},
            .flops = Flops(4.0 * static_cast<double>(samples_ * tokens * tokens * features)),
            .bytes = Bytes(kBytesPerValue) * (4 * samples_ * tokens * features)};
  }

  graph::Operator stream(const Layer& layer, std::size_t inputs) const {
    const bool norm = layer.kind == LayerKind::batch_norm || layer.kind == LayerKind::layer_norm;
    const auto values =
        samples_ * static_cast<std::int64_t>(inputs * layer.in.size() + layer.out.size());
    return {.name = layer.name,
            .kind = norm ? graph::OperatorKind::norm : graph::OperatorKind::elementwise,
            .gemm = {1, samples_, 1, static_cast<std::int64_t>(layer.in.last())},
            .flops = Flops(static_cast<double>(values)),
            .bytes = Bytes(kBytesPerValue) * values};
  }

  const neural::Network& network_;
  std::int64_t samples_;
};

graph::Node compute(StepPhase phase, std::string name, std::vector<graph::Operator> operators) {
  graph::Node node;
  node.phase = phase;
  node.name = std::move(name);
  node.operators = std::move(operators);
  return node;
}

graph::Workload workload_of(const neural::Network& network, const Step& step) {
  const Kernels kernels(network, step.batch / step.devices);
  std::vector<graph::Operator> forward;
  std::vector<graph::Operator> backward;
  for (const Layer& layer : network.layers) {
    for (graph::Operator& op : kernels.forward(layer)) {
      forward.push_back(std::move(op));
    }
  }
  for (std::size_t i = network.layers.size(); i-- > 0;) {
    for (graph::Operator& op : kernels.backward(network.layers[i])) {
      backward.push_back(std::move(op));
    }
  }
  std::vector<graph::Node> nodes;
  nodes.push_back(compute(StepPhase::forward, "forward", std::move(forward)));
  nodes.push_back(compute(StepPhase::backward, "backward", std::move(backward)));
  nodes.back().after = {0};
  if (step.devices > 1) {
    graph::Node sum;
    sum.kind = graph::Node::Kind::collective;
    sum.stream = graph::StreamIndex(std::size_t{1});
    sum.phase = StepPhase::backward;
    sum.name = "gradients";
    sum.group = graph::GroupIndex(std::size_t{0});
    sum.bytes = Bytes(kBytesPerValue * static_cast<std::int64_t>(network.weights));
    sum.after = {1};
    nodes.push_back(std::move(sum));
  }
  nodes.push_back(compute(StepPhase::optimizer, "optimizer", {kernels.update()}));
  nodes.back().after = {static_cast<int>(nodes.size()) - 2};
  graph::Workload workload;
  workload.ranks = step.devices;
  workload.programs = {{.templates = {{"step", std::move(nodes)}}}};
  workload.roles = {{"device", 0}};
  workload.source = std::make_shared<graph::InstanceLists>(
      std::vector<std::vector<graph::Instance>>{{graph::Instance{}}});
  workload.phases = {{"forward", "forward kernels"},
                     {"backward", "backward kernels"},
                     {"optimizer", "update of the parameters"}};
  workload.categories = {{"dp_exposed", "gradients that nothing hides"}};
  workload.streams = {{"compute", "kernels", graph::Order::issue},
                      {"dp", "all-reduce of gradients", graph::Order::issue}};
  graph::Members all;
  if (step.devices > 1) {
    all.digits = {{step.devices, 1}};
  }
  workload.groups = {{.name = "dp",
                      .meaning = "all devices",
                      .members = std::move(all),
                      .category = graph::CategoryIndex(std::size_t{0})}};
  return workload;
}

Bytes memory_of(const neural::Network& network, std::int64_t samples) {
  Bytes values{0};
  for (const Layer& layer : network.layers) {
    values += Bytes(is_free(layer.kind) ? 0 : static_cast<std::int64_t>(layer.out.size()));
  }
  return Bytes(static_cast<std::int64_t>(network.weights)) * kBytesPerParameter +
         values * kBytesPerValue * samples;
}

}  // namespace

Result<Price> price_of(const neural::Network& network, const machine::Machine& machine,
                       const Step& step) {
  if (step.batch < 1 || step.devices < 1 || step.batch % step.devices != 0) {
    return fail(Error(Mistake{{},
                              "batch",
                              std::to_string(step.batch),
                              fmt::format("a multiple of the {} devices", step.devices)}));
  }
  Price price{.memory = memory_of(network, step.batch / step.devices)};
  const Bytes capacity = machine.device.memory.front().capacity;
  if (price.memory > capacity) {
    return fail(fmt::format("{} needs {} for {} samples, more than the {} of a device",
                            network.name, to_string(price.memory), step.batch / step.devices,
                            to_string(capacity)));
  }
  graph::Workload workload = workload_of(network, step);
  if (auto well = graph::verify(workload); !well) {
    return fail(std::move(well.error()));
  }
  auto simulated = study::run_workload(network.name, std::move(workload), machine, {});
  if (!simulated) {
    return fail(std::move(simulated.error()));
  }
  study::Run run;  // of no plan: energy asks for none
  static_cast<study::WorkloadRun&>(run) = std::move(*simulated);
  price.step_time = run.timeline.step_time;
  if (const auto energy = study::energy_of(run)) {
    price.energy = energy->total();
  }
  return price;
}

}  // namespace orrery::rank
