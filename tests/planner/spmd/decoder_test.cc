// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/decoder.h"

#include <fmt/format.h>
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
  // Every one. Forward: 2 flops a parameter and token but for the embedding table and norms, and
  // the square of the scores.
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
  // Every parameter. Forward flops of the routed experts: 2 a parameter and token of the top_k of
  // E.
  for (const char* name : {"mixtral-8x7b", "deepseek-v2-lite", "qwen3-30b-a3b"}) {
    const zoo::Model model = zoo::load_model(name).value();
    const OperatorGraph graph = decoder(name, {8, 16, 1024, 0});
    EXPECT_TRUE(verify(graph)) << name;
    EXPECT_EQ(graph.parameters(), zoo::count_parameters(model).total) << name;
    double flops = 0;
    double routed = 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const bool is_expert = graph.nodes[i].experts && graph.weight_of(graph.nodes[i]) >= 0;
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
      if (node.op == "flash_attention") {
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

TEST(Decoder, HasEveryParameterOfTheModel) {
  // A tied table once; biases, norms of heads, gates and delta nets too.
  for (const char* name :
       {"deepseek-v3", "gpt-oss-20b", "nemotron-h-8b", "nemotron-3-nano", "nemotron-3-super",
        "gemma-2-9b", "gpt-neox-20b", "mistral-7b", "qwen3-next-80b-a3b", "olmo-2-7b",
        "qwen1.5-moe-a2.7b", "gpt2", "falcon-40b", "bloom-7b1"}) {
    const zoo::Model model = zoo::load_model(name).value();
    const OperatorGraph graph = decoder(name, {8, 16, 512, 0});
    EXPECT_TRUE(verify(graph)) << name;
    EXPECT_EQ(graph.parameters(), zoo::count_parameters(model).total) << name;
  }
}

TEST(Decoder, ComputesThePairsThatAWindowOrChunkLeaves) {
  // Of 1,024 tokens, heads of 64 for queries and values, two flops for each of both: 1,024 x 128 -
  // 128^2 / 2 pairs of a window of 128; half the square without. Sequences of 16.
  const OperatorGraph graph = decoder("gpt-oss-20b", {8, 16, 1024, 2});
  std::vector<double> flops;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op == "flash_attention") {
      flops.push_back(MachinePrices::flops_of(graph, static_cast<int>(i)).value());
      EXPECT_EQ(graph.nodes[i].inputs.size(), 4U) << "a sink beside q, k and what v is a part of";
    }
  }
  constexpr double kWidth = 16.0 * 64 * (64 + 64) * 2;
  EXPECT_EQ(flops, (std::vector{kWidth * (1024 * 128 - 128 * 64), kWidth * 1024 * 512}));
  // Chunks of 8,192: 10,000 tokens are one and 1,808 of the next.
  const OperatorGraph chunks = decoder("llama-4-scout", {8, 16, 10000, 1});
  for (std::size_t i = 0; i < chunks.nodes.size(); ++i) {
    if (chunks.nodes[i].op == "flash_attention") {
      EXPECT_DOUBLE_EQ(MachinePrices::flops_of(chunks, static_cast<int>(i)).value(),
                       16.0 * 40 * 256 * (8192.0 * 8192 + 1808 * 1808));
    }
  }
}

TEST(Decoder, KernelsAreTheZoosForTheSameWork) {
  // Whole, one of two sequences is what a plan's operators of one sequence are: flops, bytes and
  // shape; of products m is that of one sequence.
  const zoo::Model model = zoo::load_model("nemotron-h-8b").value();
  const OperatorGraph graph = decoder("nemotron-h-8b", {1, 2, 2048, 0});
  const zoo::ShapeOptions options{
      .microbatch = 1, .sequence = 2048, .attention = zoo::AttentionKernel::flash};
  int compared = 0;
  for (int layer = 0; layer < 8; ++layer) {
    for (const zoo::ModelOperator& op :
         zoo::layer_operators(model, options, zoo::layer_kind(model, layer))) {
      const auto node =
          std::ranges::find(graph.nodes, fmt::format("layers_{}_{}", layer, op.name), &Node::name);
      if (node == graph.nodes.end()) {
        EXPECT_EQ(op.forward_kernels, 0) << op.name;
        continue;
      }
      const Signature whole = node->signatures.back();
      const graph::Operator kernel =
          MachinePrices::kernel_of(graph, static_cast<int>(node - graph.nodes.begin()),
                                   {{&whole, 1}}, 2, graph::DataType::bf16);
      EXPECT_EQ(kernel.kind, op.kind) << op.name;
      EXPECT_EQ(kernel.gemm, op.gemm) << op.name;
      EXPECT_EQ(kernel.kernels, op.forward_kernels) << op.name;
      EXPECT_DOUBLE_EQ(kernel.flops.value(), op.forward_flops.value()) << op.name;
      EXPECT_EQ(kernel.bytes, op.forward_bytes) << op.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 40);
}

TEST(Decoder, CutsKernelsAsTheirWeightsOrHeadsAre) {
  // On 8 devices, half of 16 sequences: an eighth of the rows, of n or of k of a product; of heads
  // and of experts.
  const OperatorGraph graph = decoder("qwen3-30b-a3b", {8, 16, 1024, 1});
  const auto gemm = [&](const char* name, Form input, std::size_t place) {
    const auto node = std::ranges::find(graph.nodes, name, &Node::op);
    for (const Signature& signature : node->signatures) {
      if (signature.inputs[place] == input) {
        return MachinePrices::kernel_of(graph, static_cast<int>(node - graph.nodes.begin()),
                                        {{&signature, 8}}, 2, graph::DataType::bf16)
            .gemm;
      }
    }
    return graph::GemmShape{};
  };
  // H = 2048, 32 heads of 128, 4 of keys and values; 128 experts of 768, 8 for a token.
  EXPECT_EQ(gemm("proj_gemm", Form::gather(0), 0), (graph::GemmShape{1, 1024, 2048, 4096}));
  EXPECT_EQ(gemm("proj_gemm", Form::gather(0), 1), (graph::GemmShape{1, 8192, 256, 4096}));
  EXPECT_EQ(gemm("proj_gemm", Form::gather(1), 1), (graph::GemmShape{1, 8192, 2048, 512}));
  EXPECT_EQ(gemm("flash_attention", Form::gather(0), 0), (graph::GemmShape{32, 1024, 1024, 128}));
  EXPECT_EQ(gemm("expert_fc2_gemm", Form::gather(0), 0), (graph::GemmShape{16, 512, 2048, 768}));
  EXPECT_EQ(gemm("expert_fc2_gemm", Form::gather(1), 0), (graph::GemmShape{128, 512, 2048, 96}));
}

TEST(Decoder, SlicesMambaOnlyWhereGroupsAreWhole) {
  const auto signatures = [](std::int64_t devices) {
    std::size_t count = 0;
    for (const Node& node : decoder("nemotron-h-8b", {devices, 0, 512, 1}).nodes) {
      count +=
          node.op == "state_space_scan" || node.op == "gated_norm" ? node.signatures.size() : 0;
    }
    return count;
  };
  EXPECT_EQ(signatures(8), 3U + 4U);  // 8 groups
  EXPECT_EQ(signatures(16), 2U + 3U);
}

TEST(Decoder, PredictionsAfterTheFirstUseTheSameTableAndHead) {
  const OperatorGraph graph = decoder("deepseek-v3", {8, 16, 512, 1});
  for (const char* name : {"token_embedding_weight", "logits_gemm_weight"}) {
    const auto load = std::ranges::find(graph.nodes, name, &Node::name);
    ASSERT_NE(load, graph.nodes.end());
    const auto uses = std::ranges::count_if(graph.nodes, [&](const Node& node) {
      return std::ranges::count(node.inputs, load->outputs.front()) > 0;
    });
    EXPECT_EQ(uses, 2) << name;
  }
  const MachinePrices prices =
      MachinePrices::make(machine::load_machine("dgx-h100").value(), 8, Overlap::both, 2).value();
  const Solution best = search(graph, prices).value();
  const auto program = program_of(graph, best.strategy, prices);
  ASSERT_TRUE(program);
  EXPECT_GE(simulate::simulate(*program, prices.machine()).value().step_time, best.total);
}

TEST(Decoder, RefusesWhatItHasNoOperatorsFor) {
  for (const char* name :
       {"deepseek-v4-flash", "deepseek-v3.2", "bert-large", "t5-base", "vit-base-16"}) {
    const auto model = zoo::load_model(name);
    ASSERT_TRUE(model) << name;
    const auto graph = decoder_graph(*model, {});
    ASSERT_FALSE(graph) << name;
    EXPECT_THAT(graph.error().to_string(), ::testing::HasSubstr("one residual stream")) << name;
  }
  EXPECT_FALSE(decoder_graph(zoo::load_model("llama-3-8b").value(), {8, -1, 0, 0}));
}

}  // namespace
}  // namespace orrery::spmd
