// SPDX-License-Identifier: Apache-2.0
/// Peak memory by software: measured figures of one H200 (PyTorch 2.11) and laws.
#include "workload/memory/autograd_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "workload/memory/footprint.h"

namespace orrery::footprint {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;

zoo::Model llama_1b() {
  return *zoo::load_model("llama-3.2-1b");
}

plan::Plan eager(std::int64_t microbatch, std::int64_t sequence) {
  return {.microbatch = microbatch,
          .global_batch = microbatch,
          .sequence = sequence,
          .autograd = plan::Autograd::pytorch,
          .attention = zoo::AttentionKernel::flash,
          .fused_kernels = false,
          .vocab_multiple = 1};
}
plan::Plan compiled(plan::Plan plan) {
  plan.fused_kernels = true;
  plan.fused_cross_entropy = true;
  return plan;
}
/// fp32 weights and moments under autocast.
plan::Plan autocast(plan::Plan plan) {
  plan.free_gradients = plan.master_params = plan.autocast = true;
  return plan;
}
/// Everything in bf16.
plan::Plan narrow(plan::Plan plan) {
  plan.free_gradients = true;
  plan.grad_type = plan.grad_reduce_type = graph::DataType::bf16;
  plan.master_type = plan.moment_type = graph::DataType::bf16;
  return plan;
}
plan::Plan again(plan::Plan plan) {
  plan.recompute = plan::Recompute::full;
  return plan;
}

Bytes allocated(const zoo::Model& model, const plan::Plan& plan) {
  const auto stages = memory_footprint(model, plan);
  EXPECT_TRUE(stages) << (stages ? "" : stages.error().to_string());
  Bytes most{0};
  for (const StageMemory& stage : stages.value_or(std::vector<StageMemory>{})) {
    most = std::max(most, stage.total());
  }
  return most;
}

struct Measured {
  const char* what;
  plan::Plan plan;
  double gib;  ///< torch.cuda.max_memory_allocated
};

TEST(AutogradMemory, IsThatOfRunsOnAnH200) {
  // configs/validation/h200_pytorch_training.csv; Llama 3.2 1B, within 0.5 %.
  const std::vector<Measured> runs{
      {"eager, 4 x 2048", eager(4, 2048), 44.4774},
      {"eager, 1 x 2048", eager(1, 2048), 26.7061},
      {"eager, 8 x 2048", eager(8, 2048), 68.1748},
      {"compiled, 4 x 2048", compiled(eager(4, 2048)), 33.1825},
      {"compiled, 1 x 2048", compiled(eager(1, 2048)), 24.251},
      {"eager, recomputed", again(eager(4, 2048)), 33.0858},
      {"compiled, recomputed", again(compiled(eager(4, 2048))), 23.7909},
      {"eager, recomputed, 4 x 8192", again(eager(4, 8192)), 70.0028},
      {"eager autocast", autocast(eager(4, 2048)), 40.9058},
      {"compiled autocast", autocast(compiled(eager(4, 2048))), 29.1108},
      {"eager, all bf16", narrow(eager(4, 2048)), 30.6661},
      {"compiled, all bf16", narrow(compiled(eager(4, 2048))), 19.3712},
      {"eager, all bf16, 1 x 1024", narrow(eager(1, 1024)), 10.2537},
  };
  for (const Measured& run : runs) {
    const double gib = static_cast<double>(allocated(llama_1b(), run.plan).value()) / kGibibyte;
    EXPECT_NEAR(gib / run.gib, 1, 0.005) << run.what;
  }
}

TEST(AutogradMemory, EagerBytesPerTokenDoNotDependOnTheTokens) {
  // 16 layers x (47.5 h + 4 a + 8), head 4 h + 4, logits 12 V: h 2048, a 32, V 128256.
  const std::int64_t token = 16 * (47 * 2048 + 1024 + 4 * 32 + 8) + 4 * 2048 + 4 + 12 * 128256;
  const Bytes few = allocated(llama_1b(), eager(1, 2048));
  const Bytes many = allocated(llama_1b(), eager(4, 4096));
  EXPECT_EQ((many - few).value(), token * (4 * 4096 - 2048));
}

TEST(AutogradMemory, TorchtitanKeepsAKeyAndAValueForEveryHead) {
  // A token and layer of Llama 3.2 1B, q = h = 2,048 and k = 512: 2q of values and 4q rotated in
  // place of 2(q + 2k) and 2(q + k): 6 x 2,048 - 2 x 3,072 - 2 x 2,560 = 1,024 bytes more.
  plan::Plan titan = eager(4, 2048);
  titan.framework = "torchtitan@2024-12";
  EXPECT_EQ((allocated(llama_1b(), titan) - allocated(llama_1b(), eager(4, 2048))).value(),
            16 * 1024 * 4 * 2048);
}

TEST(AutogradMemory, FullRecomputeKeepsALayersInput) {
  // 12 V + 2 h L + 4 h + 4 (statistics of the last norm) a token.
  const std::int64_t token = 12 * 128256 + 2 * 2048 * 16 + 4 * 2048 + 4;
  const Bytes few = allocated(llama_1b(), again(eager(1, 4096)));
  const Bytes many = allocated(llama_1b(), again(eager(4, 4096)));
  EXPECT_EQ((many - few).value(), token * 3 * 4096);
}

TEST(AutogradMemory, AutocastKeepsWiderResidualsAndCopiesOfWeights) {
  // (4 L + 2) h T for wider norms' inputs, one of them the head's, and 2 bytes a weight; states are
  // 6 bytes a parameter less: 12 against 18.
  const zoo::Model model = llama_1b();
  const Bytes plain = allocated(model, eager(4, 2048));
  const Bytes cast = allocated(model, autocast(eager(4, 2048)));
  const std::int64_t norms = (2 * 16 + 1) * 2048;
  const std::int64_t parameters = zoo::count_parameters(model).total;
  EXPECT_EQ((cast - plain).value(),
            (4 * 16 + 2) * std::int64_t{2048} * 8192 + 2 * (parameters - norms) - 6 * parameters);
}

TEST(AutogradMemory, TensorParallelismDividesWhatIsNotGathered) {
  // Megatron with Transformer Engine, fused loss: what grows with the vocabulary are parameters,
  // the logits (2 T / t) and the head's gradient (2 h / t).
  zoo::Model model = *zoo::load_model("llama-3-70b");
  model.layers = 4;
  plan::Plan plan{.tp = 4,
                  .sequence_parallel = true,
                  .sequence = 4096,
                  .autograd = plan::Autograd::transformer_engine,
                  .fused_grad_accumulation = true,
                  .attention = zoo::AttentionKernel::flash,
                  .fused_cross_entropy = true,
                  .vocab_multiple = 128};
  const Bytes before = allocated(model, plan);
  const std::int64_t more = 128 * 4 * 8;
  model.vocab += more;
  const std::int64_t tables = 2 * 18 * more * model.hidden / 4;
  EXPECT_EQ((allocated(model, plan) - before).value(),
            tables + 2 * 4096 * more / 4 + 2 * model.hidden * more / 4);
}

TEST(AutogradMemory, WorkspacesOfTransformerEngineDependOnShapesNotOnLayers) {
  zoo::Model model = *zoo::load_model("llama-3-70b");
  const plan::Plan plan{.autograd = plan::Autograd::transformer_engine};
  const Bytes all = block_memories(model, plan).workspaces;
  model.layers = 2;
  EXPECT_EQ(block_memories(model, plan).workspaces, all);
  // qkv, proj, fc1, fc2 of 8192 x (10240, 8192, 57344, 28672), and three times 32 MiB.
  EXPECT_EQ(all, Bytes(2 * 8192 * std::int64_t{10240 + 8192 + 57344 + 28672} + 96 * 1024 * 1024));
}

TEST(AutogradMemory, GradientsThatComeAndGoAreThereAtTheUpdate) {
  // Of several microbatches they add up in a buffer.
  const zoo::Model model = llama_1b();
  const plan::Plan one = narrow(eager(1, 16));
  plan::Plan two = one;
  two.global_batch = 2;
  EXPECT_LE(allocated(model, one), allocated(model, two));
  // Nothing but states and gradients counts at 16 tokens: 8 bytes a parameter, the tied table's
  // gradient twice more, workspaces.
  const std::int64_t table = 2 * 128256 * std::int64_t{2048};
  const std::int64_t parameters = zoo::count_parameters(model).total;
  EXPECT_NEAR(static_cast<double>(allocated(model, one).value()),
              static_cast<double>(8 * parameters + 2 * table + 64 * 1024 * 1024), 0.02e9);
}

TEST(AutogradMemory, MegatronsOwnLossTakesSixBytesALogit) {
  // Llama 3.2 1B, T = 8,192 tokens, V = 128,256 words, H = 2,048: PyTorch's eager loss takes 12 T V
  // bytes before there is a gradient of the table. Megatron's takes 6 T V beside that gradient, 2 V
  // H, and the one of the head's input, 2 T H.
  const plan::Plan torch = eager(4, 2048);
  plan::Plan own = torch;
  own.framework = "megatron";
  const std::int64_t tokens = 4 * 2048;
  EXPECT_EQ((allocated(llama_1b(), torch) - allocated(llama_1b(), own)).value(),
            6 * tokens * 128256 - 2 * 128256 * 2048 - 2 * tokens * 2048);
}

}  // namespace
}  // namespace orrery::footprint
