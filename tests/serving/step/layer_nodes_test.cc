// SPDX-License-Identifier: Apache-2.0
// A layer of a serving pass as nodes of the execution graph: it takes what a step takes of it, and
// rewrites of training steps apply to it.
#include <gtest/gtest.h>

#include <algorithm>

#include "machine/compute/compute_model.h"
#include "machine/machine.h"
#include "serving/step/step_cost.h"
#include "simulate/simulate.h"
#include "workload/parallel/template_builder.h"
#include "workload/parallel/tile_steps.h"

namespace orrery::step {
namespace {

constexpr std::int64_t kTokens = 8192;
constexpr std::int64_t kRanks = 8;

machine::Machine node_of_eight() {
  machine::Machine machine =
      machine::with_devices(machine::load_machine("dgx-h100").value(), kRanks).value();
  machine.device.overlap_units = machine.device.overlap_memory = 0;
  machine.device.overlap_send_units = 0;
  machine.device.power_model = {};  // else a step of more layers runs at another clock
  return machine;
}

StepOptions ring_of_eight() {
  StepOptions options;
  options.degrees.tp = kRanks;
  options.all_reduce = collective::CollectiveAlgorithm::ring;
  options.launch = Time(0);
  return options;
}

StepCost rings_cost(std::int64_t layers, plan::TensorOverlap overlap = plan::TensorOverlap::none) {
  zoo::Model model = zoo::load_model("llama-3-70b").value();
  model.layers = layers;
  StepOptions options = ring_of_eight();
  options.overlap_tensor = overlap;
  return StepCost::make(model, node_of_eight(), options).value();
}

std::vector<parallel::Step> steps_of(const std::vector<graph::Node>& nodes) {
  std::vector<parallel::Step> steps;
  for (const graph::Node& node : nodes) {
    steps.push_back(node.kind == graph::Node::Kind::collective
                        ? parallel::collective_step(plan::Axis::tp, node.collective, node.bytes,
                                                    plan::StepPhase::forward)
                        : parallel::compute_step(node.operators.front(), plan::StepPhase::forward));
  }
  return steps;
}

/// The steps as a workload of one pass forward.
Time time_of(const std::vector<parallel::Step>& steps) {
  parallel::StepList list{.name = "pass", .lanes = {{}}, .steps = {}};
  for (const parallel::Step& step : steps) {
    list.steps.push_back({.step = &step});
  }
  const plan::RankLayout layout{
      {{plan::Axis::tp, kRanks}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};
  graph::Workload workload = plan::step_workload(layout);
  workload.programs = {{.templates = {parallel::TemplateBuilder(list, layout).finish()}}};
  workload.source = std::make_shared<graph::InstanceLists>(
      std::vector<std::vector<graph::Instance>>{{graph::Instance{}}});
  const auto verified = graph::verify(workload);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().to_string());
  simulate::SimulateOptions options;
  options.algorithms.fill(plan::kAxisCount, collective::CollectiveAlgorithm::ring);
  return simulate::simulate(workload, node_of_eight(), options).value().step_time;
}

/// The time of a collective that nothing else runs beside.
Time alone(graph::CollectiveKind kind, Bytes bytes) {
  return time_of(
      {parallel::collective_step(plan::Axis::tp, kind, bytes, plan::StepPhase::forward)});
}

/// The time of a layer of which no request attends: what a pass over one more takes.
Time layer_time(plan::TensorOverlap overlap = plan::TensorOverlap::none,
                std::int64_t tokens = kTokens) {
  const StepShape rows{.tokens = tokens, .samples = 0, .prompts = {}, .visible = {}};
  StepCost one = rings_cost(1, overlap);
  StepCost two = rings_cost(2, overlap);
  return two.time(rows) - one.time(rows);
}

TEST(LayerNodes, TakeWhatTheStepTakesOfTheLayer) {
  const StepCost cost = rings_cost(1);
  const std::vector<graph::Node> nodes = cost.layer_nodes(0, kTokens).nodes;
  EXPECT_EQ(std::ranges::count(nodes, graph::Node::Kind::collective, &graph::Node::kind), 2);
  EXPECT_EQ(time_of(steps_of(nodes)), layer_time());
}

TEST(LayerNodes, RunInTilesAsTheRecurrenceSays) {
  // Two sums follow products, of G each; a message of a rank's eighth takes h. In tiles a product
  // and its reduce-scatter take, of 8 pieces of G/8,
  //   max over k = 0..6 of (k+1) G/8 + (7-k) h, but at least G;   then the ring all-gather.
  const StepCost cost = rings_cost(1);
  const std::vector<parallel::Step> steps = steps_of(cost.layer_nodes(0, kTokens).nodes);
  const machine::Machine machine = node_of_eight();
  Time expected{0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const graph::Node& node = steps[i].node;
    if (node.kind == graph::Node::Kind::compute) {
      expected += compute::kernel_time(node.operators.front(), machine.device).alone;
      continue;
    }
    const Time product =
        compute::kernel_time(steps[i - 1].node.operators.front(), machine.device).alone;
    const Time hop = alone(graph::CollectiveKind::send_recv, node.bytes / kRanks);
    Time fused = product;
    for (std::int64_t k = 0; k + 1 < kRanks; ++k) {
      fused = std::max(fused, Time(product.value() * (k + 1) / kRanks) + hop * (kRanks - 1 - k));
    }
    expected += fused - product + alone(graph::CollectiveKind::all_gather, node.bytes);
  }
  const Time tiled = time_of(parallel::in_tiles(steps, plan::TensorOverlap::tracked_mca, kRanks));
  EXPECT_EQ(tiled, expected);
  EXPECT_LT(tiled, time_of(steps));
}

TEST(LayerNodes, InTilesTakeWhatTheStepTakesOfTheLayer) {
  const StepCost cost = rings_cost(1);
  const std::vector<parallel::Step> steps = steps_of(cost.layer_nodes(0, kTokens).nodes);
  for (const auto how : {plan::TensorOverlap::cu_split, plan::TensorOverlap::tracked,
                         plan::TensorOverlap::tracked_mca}) {
    EXPECT_EQ(time_of(parallel::in_tiles(steps, how, kRanks)), layer_time(how)) << name_of(how);
  }
  // Contention costs a product that engines move tiles beside; memory that serves it first,
  // nothing.
  EXPECT_GT(layer_time(plan::TensorOverlap::tracked), layer_time(plan::TensorOverlap::tracked_mca));
}

TEST(LayerNodes, OfOneTokenKeepTheirSums) {
  // A ring of eight hops and a gather is slower than the product and an all-reduce of few bytes.
  EXPECT_EQ(layer_time(plan::TensorOverlap::tracked_mca, 1),
            layer_time(plan::TensorOverlap::none, 1));
}

TEST(LayerNodes, OverlapIsRefusedByFieldWhereNothingOverlaps) {
  const zoo::Model model = zoo::load_model("llama-3-70b").value();
  const auto message = [&](const StepOptions& options) {
    const auto cost = StepCost::make(model, node_of_eight(), options);
    return cost ? std::string() : cost.error().to_string();
  };
  StepOptions options = ring_of_eight();
  options.overlap_tensor = plan::TensorOverlap::tracked;
  EXPECT_EQ(message(options), "");
  options.fuse = true;
  EXPECT_NE(message(options).find("none with fuse"), std::string::npos);
  options.fuse = false;
  options.degrees.tp = 1;
  EXPECT_NE(message(options).find("overlap_tensor"), std::string::npos);
  EXPECT_NE(message(options).find("none with tp 1"), std::string::npos);
  options.overlap_tensor = plan::TensorOverlap::chunked;
  EXPECT_NE(message(options).find("those of a training step"), std::string::npos);
}

TEST(LayerNodes, NormsOverAllHeadsAreSummedOverRanks) {
  // MiniMax-M2, 62 layers: of 100 tokens a kernel that reads 100 x (48 + 8) / 4 x 128 x 2 bytes and
  // an all-reduce of 800 bytes come on top of norms of every head alone.
  zoo::Model model = zoo::load_model("minimax-m2").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  const auto time = [&](std::int64_t tp) {
    StepOptions options;
    options.degrees = {.tp = tp};
    StepCost cost = StepCost::make(model, machine, options).value();
    return cost.time({.tokens = 100,
                      .samples = 1,
                      .prompts = {{.queries = 100, .context = 0}},
                      .decodes = 0,
                      .visible = std::vector<double>(cost.windows().size(), 0)});
  };
  const Time whole = time(4);
  const Time alone = time(1);
  model.query_key_norm = zoo::QueryKeyNorm::scaled;
  const Time sum = collective::collective_time(graph::CollectiveKind::all_reduce, Bytes(800),
                                               collective::extents_of(1, 4, machine),
                                               collective::CollectiveAlgorithm::custom, machine);
  const double more = to_seconds(whole - time(4)) / 62;
  EXPECT_GT(more, to_seconds(sum));
  EXPECT_LT(more, to_seconds(sum) + 4e-6);  // the start of a streaming kernel, 2.5 us
  EXPECT_NEAR(alone / time(1), 1, 0.01);    // nothing is summed with one rank
}

TEST(LayerNodes, ExpertsRowsMoveByTheirOwnRank) {
  // Between tokens and rows 2 (T + R) H bytes twice a layer, R = 8 T with all experts on the ranks
  // of tp 8, T with a part of them on each: 2 x 2 x 7 T H = 2 x 2 x 7 x 8,192 x 4,096 bytes less.
  const zoo::Model model = zoo::load_model("qwen3-235b-a22b").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  StepOptions options;
  options.degrees = {.tp = 8};
  const StepCost whole = StepCost::make(model, machine, options).value();
  options.degrees.ep = 8;
  const StepCost parts = StepCost::make(model, machine, options).value();
  const auto moved = [](const StepCost& cost) {
    Bytes sum{0};
    for (const graph::Node& node : cost.layer_nodes(0, 8192).nodes) {
      for (const graph::Operator& op : node.operators) {
        sum += op.kind == graph::OperatorKind::permute ? op.bytes : Bytes(0);
      }
    }
    return sum;
  };
  EXPECT_EQ(moved(whole) - moved(parts), Bytes(std::int64_t{2} * 2 * 7 * 8192 * 4096));
}

}  // namespace
}  // namespace orrery::step
