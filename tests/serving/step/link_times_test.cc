// SPDX-License-Identifier: Apache-2.0
#include "serving/step/link_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/topology/read.h"
#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

StepCost step_cost_on(const machine::Machine& machine, const StepOptions& options,
                      const char* model = "llama-3.1-8b") {
  return StepCost::make(zoo::load_model(model).value(), machine, options).value();
}

StepShape prompt(const StepCost& cost, std::int64_t tokens) {
  return {.tokens = tokens,
          .samples = 1,
          .prompts = {{.queries = tokens, .context = 0}},
          .decodes = 0,
          .visible = std::vector<double>(cost.windows().size(), 0)};
}

/// A switch of 16 devices of the shipped machine, laid on two leaves of 8.
machine::Machine on_leaves(const std::string& uplinks) {
  machine::Machine machine = machine::load_machine("dgx-h100").value();
  topology::NetworkDimension fabric;
  fabric.name = "fabric";
  fabric.kind = topology::DimensionKind::switched;
  fabric.size = 16;
  fabric.bandwidth = Bandwidth(50e9);
  fabric.latency = 4_us;
  machine.network = {fabric};
  const std::string spec =
      "leaf_spine:leaves=2,hosts=8,spines=1,bandwidth=50 GB/s,uplink_bandwidth=" + uplinks;
  machine.wires = {
      .spec = spec,
      .routing = topology::Routing::shortest,
      .graph = std::make_shared<const topology::LinkGraph>(*topology::load_topology(spec, "test"))};
  return machine;
}

TEST(LinkTimes, OnATopologySharedLinksAreNotFree) {
  StepOptions options;
  options.degrees = {.tp = 4, .pp = 4};
  options.all_reduce = collective::CollectiveAlgorithm::ring;
  machine::Machine plain = on_leaves("400 GB/s");
  plain.wires = {};
  StepCost closed = step_cost_on(plain, options);
  StepCost roomy = step_cost_on(on_leaves("400 GB/s"), options);
  StepCost tapered = step_cost_on(on_leaves("50 GB/s"), options);
  // Uplinks of 8 hosts' rate: the switch, which the closed form prices.
  const StepShape shape = prompt(closed, 4096);
  EXPECT_NEAR(roomy.time(shape) / closed.time(shape), 1, 1e-9);
  // All-reduces of 4 stay inside leaves. Stages 1 to 2 and 3 to 0 are on different leaves: 4 ranks
  // of each send over one trunk, a hop takes four times as long, and there are three.
  const Time hop = Bytes(2) * 4096 * 4096 / Bandwidth(50e9);
  EXPECT_NEAR((tapered.time(shape) - roomy.time(shape)) / (hop * 9), 1, 1e-6);
  // Rings of 16 (llama's 8 key-value heads are copied) pass the trunk once each way: no slower.
  options.degrees = {.tp = 16};
  EXPECT_NEAR(step_cost_on(on_leaves("50 GB/s"), options).time(shape) /
                  step_cost_on(on_leaves("400 GB/s"), options).time(shape),
              1, 1e-9);
}

TEST(LinkTimes, NetworksThatShareNothingTakeAsLongAsClosedForms) {
  // One group of eight has the switch for itself: serving kernels, rings, gathers and exchanges.
  const auto steps = [](const std::optional<simulate::NetworkModel>& network, const char* model,
                        const StepOptions& set) {
    StepOptions options = set;
    options.network = network;
    StepCost cost = step_cost_on(machine::load_machine("dgx-h100").value(), options, model);
    std::vector<Time> times;
    for (const std::int64_t tokens : {1, 64, 1000, 8192}) {
      times.push_back(cost.time(prompt(cost, tokens)));
    }
    return times;
  };
  StepOptions split;
  split.degrees = {.tp = 8};
  StepOptions gathers;
  gathers.degrees = {.dp = 8, .ep = 8};
  StepOptions exchanges = gathers;
  exchanges.dispatch = plan::MoeDispatch::all_to_all;
  for (const auto& [model, options] : {std::pair("llama-3-70b", &split),
                                       {"qwen3-30b-a3b", &gathers},
                                       {"qwen3-30b-a3b", &exchanges}}) {
    const std::vector<Time> closed = steps({}, model, *options);
    EXPECT_EQ(steps(simulate::NetworkModel::ports, model, *options), closed);
    for (const auto network : {simulate::NetworkModel::fifo, simulate::NetworkModel::flow}) {
      const std::vector<Time> simulated = steps(network, model, *options);
      for (std::size_t i = 0; i < closed.size(); ++i) {
        EXPECT_NEAR(simulated[i] / closed[i], 1, 1e-6) << model << " " << name_of(network);
      }
    }
    // Packets have headers and wait at every switch.
    EXPECT_GT(steps(simulate::NetworkModel::packet, model, *options).back(), closed.back());
  }
}

TEST(LinkTimes, EveryNetworkSharesTheTrunkOfATopology) {
  // As above: hops of 4 ranks over one trunk take four times as long, whoever shares it out.
  StepOptions options;
  options.degrees = {.tp = 4, .pp = 4};
  options.all_reduce = collective::CollectiveAlgorithm::ring;
  const Time hop = Bytes(2) * 4096 * 4096 / Bandwidth(50e9);
  for (const auto network : {simulate::NetworkModel::ports, simulate::NetworkModel::fifo,
                             simulate::NetworkModel::flow, simulate::NetworkModel::packet}) {
    options.network = network;
    StepCost roomy = step_cost_on(on_leaves("400 GB/s"), options);
    StepCost tapered = step_cost_on(on_leaves("50 GB/s"), options);
    const StepShape shape = prompt(roomy, 4096);
    const double more = (tapered.time(shape) - roomy.time(shape)) / (hop * 9);
    // In turn the last of four begins 3/8 of a hop later on the roomy trunk, too.
    const double expected = network == simulate::NetworkModel::fifo ? 1 - 3.0 / 8 / 3 : 1;
    if (network == simulate::NetworkModel::packet) {  // with headers, and what is trimmed again
      EXPECT_GT(more, 1);
      EXPECT_LT(more, 1.5);
    } else {
      EXPECT_NEAR(more, expected, 1e-6) << name_of(network);
    }
  }
}

TEST(LinkTimes, OnATopologyAlgorithmsWithoutMessagesAreRefused) {
  machine::Machine machine = on_leaves("400 GB/s");
  machine.network.front().size = 8;
  machine.network.push_back(machine.network.front());
  machine.network.back().name = "outer";
  machine.network.back().size = 2;
  StepOptions options;
  options.degrees = {.tp = 16};
  options.all_reduce = collective::CollectiveAlgorithm::themis;
  const auto refused = StepCost::make(zoo::load_model("llama-3.1-8b").value(), machine, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(),
              testing::AllOf(testing::HasSubstr("all_reduce on the topology"),
                             testing::HasSubstr("themis")));
  options.all_reduce = collective::CollectiveAlgorithm::custom;  // whatever it takes has messages
  EXPECT_TRUE(StepCost::make(zoo::load_model("llama-3.1-8b").value(), machine, options));
}

}  // namespace
}  // namespace orrery::step
