// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spmd/fixed.h"
#include "planner/spmd/program.h"
#include "planner/spmd/search.h"
#include "simulate/simulate.h"

namespace orrery::spmd {
namespace {

OperatorGraph decoder(const std::string& name, const DecoderSize& size) {
  return decoder_graph(zoo::load_model(name).value(), size).value();
}

TEST(Decoder, HasTheModelsParametersAndFlops) {
  // Untied and without biases: every one. Forward: 2 flops a parameter and token but for the
  // embedding table, and the square of the scores; a copied element counts as a third.
  const zoo::Model llama = zoo::load_model("llama-3-8b").value();
  const OperatorGraph graph = decoder("llama-3-8b", {8, 16, 1024, 0});
  EXPECT_TRUE(verify(graph));
  EXPECT_EQ(graph.parameters(), zoo::count_parameters(llama).total);
  Flops flops(0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    flops += MachinePrices::flops_of(graph, static_cast<int>(i));
  }
  const auto norms = static_cast<double>((2 * llama.layers + 1) * llama.hidden);
  const auto table = static_cast<double>(llama.vocab * llama.hidden);
  const double matrices = static_cast<double>(graph.parameters()) - table - norms;
  const double scores = 32.0 * 2 * 1024 * 4096;  // causal, of a token
  EXPECT_NEAR(flops.value(), 16.0 * 1024 * (2 * matrices + scores), 1e-9 * flops.value());
}

TEST(Decoder, SlicesHeadsOnlyWhereTheyAreWhole) {
  const auto slices_heads = [](std::int64_t devices) {
    for (const Node& node : decoder("llama-3-8b", {devices, 0, 512, 1}).nodes) {
      if (node.op == "causal_attention") {
        return node.signatures.size() == 3;
      }
    }
    return false;
  };
  EXPECT_TRUE(slices_heads(8));  // 8 key-value heads
  EXPECT_FALSE(slices_heads(16));
}

TEST(Decoder, SlicesSamplesOnlyWhereAHalfBatchHasOneForEveryDevice) {
  const auto slices_samples = [](std::int64_t batch) {
    const OperatorGraph graph = decoder("llama-3-8b", {8, batch, 512, 1});
    EXPECT_TRUE(verify(graph));
    bool found = false;
    for (const Node& node : graph.nodes) {
      for (const Signature& signature : node.signatures) {
        found = found || (!node.is_load() && !signature.outputs.empty() &&
                          signature.outputs.front() == Form::gather(0));
      }
    }
    return found;
  };
  EXPECT_TRUE(slices_samples(16));
  EXPECT_FALSE(slices_samples(8));
  EXPECT_FALSE(slices_samples(24));
}

TEST(Decoder, SearchIsNoSlowerThanDataParallelismOnTheSimulatorToo) {
  const OperatorGraph graph = decoder("llama-3-8b", {8, 16, 2048, 4});
  machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  machine.device.overlap_units = 0;
  machine.device.overlap_memory = 0;
  const MachinePrices prices =
      MachinePrices::make(machine, 8, Overlap::both, graph.element).value();
  const auto time = [&](const SearchOptions& options) {
    const Solution best = search(graph, prices, options).value();
    const Time simulated =
        simulate::simulate(program_of(graph, best.strategy, prices).value(), prices.machine())
            .value()
            .step_time;
    // More by the backward of attention alone, which the search takes as twice the forward.
    EXPECT_GT(simulated, best.total);
    EXPECT_LT(simulated, best.total * 1.1);
    return simulated;
  };
  const Time best = time({});
  EXPECT_LE(best, time({.allowed = restriction(FixedStrategy::data_parallel)}));
  EXPECT_LE(best, time({.allowed = restriction(FixedStrategy::fsdp)}));
}

TEST(Decoder, RefusesWhatItHasNoOperatorsFor) {
  for (const char* name : {"mixtral-8x7b", "deepseek-v3", "bert-large"}) {
    const auto model = zoo::load_model(name);
    ASSERT_TRUE(model) << name;
    const auto graph = decoder_graph(*model, {});
    ASSERT_FALSE(graph) << name;
    EXPECT_THAT(graph.error().to_string(), ::testing::HasSubstr("pre-norm")) << name;
  }
  EXPECT_FALSE(decoder_graph(zoo::load_model("llama-3-8b").value(), {8, -1, 0, 0}));
}

}  // namespace
}  // namespace orrery::spmd
