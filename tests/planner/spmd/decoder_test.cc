// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spmd/fixed.h"
#include "planner/spmd/graph_builder.h"
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

TEST(Decoder, HasTheModelsExpertsAndLatents) {
  // Untied and without biases: every parameter but DeepSeek-V2-Lite's none. Forward flops of the
  // routed experts: 2 a parameter and token of the top_k of E.
  for (const char* name : {"mixtral-8x7b", "deepseek-v2-lite", "qwen3-30b-a3b"}) {
    const zoo::Model model = zoo::load_model(name).value();
    const OperatorGraph graph = decoder(name, {8, 16, 1024, 0});
    EXPECT_TRUE(verify(graph)) << name;
    const std::int64_t norms_of_heads =
        model.query_key_norm == zoo::QueryKeyNorm::none ? 0 : 2 * model.head_dim * model.layers;
    EXPECT_EQ(graph.parameters() + norms_of_heads, zoo::count_parameters(model).total) << name;
    double flops = 0;
    double routed = 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const bool is_expert = graph.nodes[i].op.starts_with("einsum");
      flops += is_expert ? MachinePrices::flops_of(graph, static_cast<int>(i)).value() : 0;
      for (const int tensor : graph.nodes[i].inputs) {
        const Tensor& t = graph.tensors[static_cast<std::size_t>(tensor)];
        const bool weight = is_expert && t.shape.size() == 3;
        routed += weight ? elements(t.shape) : 0;
      }
    }
    const double share = static_cast<double>(model.top_k) / static_cast<double>(model.experts);
    EXPECT_NEAR(flops, 2 * 16.0 * 1024 * routed * share, 1e-9 * flops) << name;
  }
}

TEST(Decoder, ExpertsOfASlowNetworkAreNotGatheredForEveryDevice) {
  // 45 G parameters of experts against rows of two sequences: rows go to the experts, as HiDup's
  // search finds for its own models.
  const OperatorGraph graph = decoder("mixtral-8x7b", {8, 16, 1024, 4});
  const MachinePrices prices =
      MachinePrices::make(machine::load_machine("dgx-h100").value(), 8, Overlap::both, 2).value();
  const Solution best = search(graph, prices).value();
  int exchanges = 0;
  for (const Stage& stage : best.strategy.stages) {
    for (const Communication& moved : stage.communications) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(moved.tensor)];
      EXPECT_FALSE(tensor.shape.size() == 3 && tensor.shape[0] == 8 && tensor.shape[1] > 1024)
          << "a whole expert's weight";
      exchanges += tensor.shape.size() == 4 ? 1 : 0;
    }
  }
  EXPECT_GE(exchanges, 8);  // to the experts and back, in 4 layers
  for (const auto& row : kNames<FixedStrategy>) {
    const auto other = search(graph, prices, {.allowed = restriction(row.value)});
    ASSERT_TRUE(other) << row.name;
    EXPECT_LE(best.total, other->total) << row.name;
  }
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
  for (const char* name : {"deepseek-v3", "bert-large", "gpt-oss-20b"}) {
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
