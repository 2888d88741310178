// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "operators_of.h"
#include "workload/zoo/model.h"
#include "workload/zoo/visible_share.h"

namespace orrery::zoo {
namespace {

using testing::find;
using testing::names;
using testing::small_llama;

/// L layers, h = 12 x 64, s = 128, V = 1024.
Model small_gpt() {
  return gpt_model("small", 2, 768, 12, 128, 1024);
}

std::int64_t saved_by(const std::vector<ModelOperator>& operators, Split split) {
  std::int64_t total = 0;
  for (const ModelOperator& op : operators) {
    total += op.split == split ? op.saved.value() : 0;
  }
  return total;
}

std::int64_t selective(const std::vector<ModelOperator>& operators) {
  std::int64_t total = 0;
  for (const ModelOperator& op : operators) {
    total += op.recompute == RecomputeGroup::selective ? op.saved.value() : 0;
  }
  return total;
}

// Any GPT shape: head width 8 .. 128, up to 32 heads.
struct GptShape {
  std::int64_t batch, sequence, heads, hidden, layers, vocab;
};
GptShape any_gpt_shape() {
  const std::int64_t heads = *rc::gen::inRange<std::int64_t>(1, 33);
  return {*rc::gen::inRange<std::int64_t>(1, 9),
          *rc::gen::inRange<std::int64_t>(1, 4097),
          heads,
          heads * 8 * *rc::gen::inRange<std::int64_t>(1, 17),
          *rc::gen::inRange<std::int64_t>(1, 129),
          *rc::gen::inRange<std::int64_t>(1, 100'001)};
}

RC_GTEST_PROP(SavedActivations, of_a_gpt_layer_are_34_plus_5as_over_h_times_sbh, ()) {
  // Korthikanti et al. 2022, section 4.1: sbh (34 + 5 a s / h) bytes, of which with tensor
  // parallelism (eq. 2) 10 sbh are on every rank and 24 sbh + 5 a s^2 b are split. Selective
  // recompute (section 5) drops exactly 5 a s^2 b.
  const GptShape x = any_gpt_shape();
  const Model model = gpt_model("any", x.layers, x.hidden, x.heads, x.sequence, x.vocab);
  const auto layer = layer_operators(model, {.microbatch = x.batch, .sequence = x.sequence});
  const std::int64_t sbh = x.sequence * x.batch * x.hidden;
  const std::int64_t core = 5 * x.heads * x.sequence * x.sequence * x.batch;
  RC_ASSERT(saved_by(layer, Split::sequence) == 10 * sbh);
  RC_ASSERT(saved_by(layer, Split::tensor) == 24 * sbh + core);
  RC_ASSERT(saved_by(layer, Split::none) == 0);
  RC_ASSERT(selective(layer) == core);
}

TEST(SavedActivations, of_gpt3_equal_korthikanti_figure_1) {
  // 175B, b = 1, s = 2048, h = 12288, a = 96: 5 a s / h = 80, so sbh (34 + 80) = 25,165,824 x 114.
  const auto layer =
      layer_operators(gpt_model("175b", 96, 12288, 96, 2048, 51200), {.sequence = 2048});
  EXPECT_EQ(saved_by(layer, Split::sequence) + saved_by(layer, Split::tensor), 25'165'824LL * 114);
}

TEST(SavedActivations, flash_attention_keeps_one_fp32_per_row_instead_of_the_square) {
  // B = 2, S = 128, a = 12, h = 768: 34 sbh without the score dropout, plus 4 bytes x B a S.
  const auto layer = layer_operators(
      small_gpt(), {.microbatch = 2, .sequence = 128, .attention = AttentionKernel::flash});
  EXPECT_EQ(saved_by(layer, Split::sequence) + saved_by(layer, Split::tensor),
            34 * 2 * 128 * 768 + 4 * 2 * 12 * 128);
  EXPECT_EQ(selective(layer), 4 * 2 * 12 * 128);
}

TEST(SavedActivations, of_a_llama_layer_have_no_masks_and_narrow_keys) {
  // T = 128, two bytes. Replicated: two norm inputs, qkv input, fc1 input: 4 T h x 2 = 524,288.
  // Split: Q 512 + K 128 + V 128 columns, proj input 512, gate and up 2 x 1536, fc2 input 1536:
  // 5888 T x 2 = 1,507,328; softmax 2 a s^2 = 2 x 8 x 16384 = 262,144.
  const auto layer = layer_operators(small_llama(), {.sequence = 128});
  EXPECT_EQ(saved_by(layer, Split::sequence), 524'288);
  EXPECT_EQ(saved_by(layer, Split::tensor), 1'507'328 + 262'144);
  EXPECT_EQ(selective(layer), 262'144);
}

TEST(SavedActivations, outside_the_layers_are_the_mask_and_two_inputs_and_fp32_logits) {
  // Korthikanti et al. 2022, section 4.3: embedding dropout mask sbh; final norm and output layer
  // inputs 2 sbh each, fp32 logits 4 s b v (with sequence parallelism all over t).
  const ShapeOptions options{.microbatch = 2, .sequence = 128};
  const std::int64_t sbh = 196'608;  // 2 x 128 x 768
  const auto embedding = embedding_operators(small_gpt(), options);
  EXPECT_EQ(saved_by(embedding, Split::sequence), sbh);
  EXPECT_EQ(saved_by(embedding, Split::none) + saved_by(embedding, Split::tensor), 0);
  const auto head = head_operators(small_gpt(), options);
  EXPECT_EQ(saved_by(head, Split::sequence), 4 * sbh);
  EXPECT_EQ(saved_by(head, Split::tensor), 4 * 2 * 128 * 1024);
}

RC_GTEST_PROP(ModelFlops, of_a_gpt_follow_narayanan_2021, ()) {
  // 72 s L h^2 (1 + s/(6h) + V/(12 L h)) = 72 s L h^2 + 12 s^2 L h + 6 s V h: forward and backward
  // of one sequence; appendix of Narayanan et al. 2021 (there 96 with recompute).
  const GptShape x = any_gpt_shape();
  const Model model = gpt_model("any", x.layers, x.hidden, x.heads, x.sequence, x.vocab);
  const std::int64_t s = x.sequence;
  const std::int64_t h = x.hidden;
  const std::int64_t expected =
      72 * s * x.layers * h * h + 12 * s * s * x.layers * h + 6 * s * x.vocab * h;
  RC_PRE(expected < std::int64_t{1} << 53);
  RC_ASSERT(model_flops_per_sequence(model, s) == Flops(static_cast<double>(expected)));
}

TEST(ModelFlops, of_gpt3_per_sequence_by_hand) {
  // s = 2048, L = 96, h = 12288, V = 51200. 72 s L h^2 = 2,137,450,604,396,544 (72 x 2048 x 96 =
  // 14,155,776; h^2 = 150,994,944); 12 s^2 L h = 59,373,627,899,904; 6 s V h = 7,730,941,132,800.
  const Model model = gpt_model("175b", 96, 12288, 96, 2048, 50257);
  EXPECT_EQ(model_flops_per_sequence(model, 2048, 51200).value(),
            2'137'450'604'396'544.0 + 59'373'627'899'904.0 + 7'730'941'132'800.0);
}

TEST(ModelFlops, of_grouped_queries_shrink_the_projections_only) {
  // Per token of small_llama: qkv 2 x 512 x 768, proj 2 x 512 x 512, fc1 2 x 512 x 3072, fc2
  // 2 x 1536 x 512 = 6,029,312; attention 4 S x 512 = 262,144 (all 8 query heads); two layers;
  // logits 2 x 512 x 1000. 3 x 128 tokens x (2 x 6,291,456 + 1,024,000).
  EXPECT_EQ(model_flops_per_sequence(small_llama(), 128).value(),
            3.0 * 128 * (2 * 6'291'456 + 1'024'000));
}

TEST(ForwardFlops, unfused_attention_does_the_square_and_flash_half_of_it) {
  // B a S^2 d: 2 x 12 x 128^2 x 64 = 25,165,824; scores and context: 2 each.
  ShapeOptions options{.microbatch = 2, .sequence = 128};
  const auto unfused = layer_operators(small_gpt(), options);
  const ModelOperator score = find(unfused, "score_gemm");
  EXPECT_EQ(score.gemm, (graph::GemmShape{.batch = 24, .m = 128, .n = 128, .k = 64}));
  EXPECT_EQ(score.forward_flops, Flops(50'331'648));
  EXPECT_EQ(score.backward_flops, Flops(100'663'296));
  const ModelOperator context = find(unfused, "context_gemm");
  EXPECT_EQ(context.gemm, (graph::GemmShape{.batch = 24, .m = 128, .n = 64, .k = 128}));
  EXPECT_EQ(context.forward_flops, Flops(50'331'648));

  options.attention = AttentionKernel::flash;
  const auto fused = layer_operators(small_gpt(), options);
  const ModelOperator flash = find(fused, "flash_attention");
  EXPECT_EQ(flash.kind, graph::OperatorKind::attention);
  EXPECT_EQ(flash.model_flops, Flops(100'663'296));     // both products, the whole square
  EXPECT_EQ(flash.forward_flops, Flops(50'331'648));    // half
  EXPECT_EQ(flash.backward_flops, Flops(125'829'120));  // five products, half: 2.5 x forward
}

TEST(Layer, of_gpt_has_megatrons_operators_in_order) {
  const std::vector<std::string> expected{"input_norm",
                                          "qkv_gemm",
                                          "qkv_split",
                                          "score_gemm",
                                          "scale_mask_softmax",
                                          "attention_dropout",
                                          "context_gemm",
                                          "context_transpose",
                                          "proj_gemm",
                                          "attention_bias_dropout_residual",
                                          "mlp_norm",
                                          "fc1_gemm",
                                          "bias_gelu",
                                          "fc2_gemm",
                                          "mlp_bias_dropout_residual"};
  EXPECT_EQ(names(layer_operators(small_gpt(), {.sequence = 128})), expected);
}

TEST(Layer, of_llama_has_rotary_and_neither_bias_nor_dropout) {
  const std::vector<std::string> expected{
      "input_norm",         "qkv_gemm", "qkv_split", "rotary",   "flash_attention", "proj_gemm",
      "attention_residual", "mlp_norm", "fc1_gemm",  "silu_mul", "fc2_gemm",        "mlp_residual"};
  EXPECT_EQ(
      names(layer_operators(small_llama(), {.sequence = 128, .attention = AttentionKernel::flash})),
      expected);
}

TEST(Layer, gemm_shapes_of_llama_follow_its_widths) {
  // n of qkv: (8 + 2 x 2) x 64; n of fc1: gate and up, 2 x 1536.
  const auto layer = layer_operators(small_llama(), {.microbatch = 3, .sequence = 100});
  EXPECT_EQ(find(layer, "qkv_gemm").gemm,
            (graph::GemmShape{.batch = 1, .m = 300, .n = 768, .k = 512}));
  EXPECT_EQ(find(layer, "proj_gemm").gemm,
            (graph::GemmShape{.batch = 1, .m = 300, .n = 512, .k = 512}));
  EXPECT_EQ(find(layer, "fc1_gemm").gemm,
            (graph::GemmShape{.batch = 1, .m = 300, .n = 3072, .k = 512}));
  EXPECT_EQ(find(layer, "fc2_gemm").gemm,
            (graph::GemmShape{.batch = 1, .m = 300, .n = 512, .k = 1536}));
}

TEST(TensorParallel, cuts_matrices_by_columns_and_then_by_rows) {
  const ShapeOptions options{.sequence = 128};
  std::map<std::string, GemmSplit> weights;
  for (const auto& list :
       {embedding_operators(small_gpt(), options), layer_operators(small_gpt(), options),
        head_operators(small_gpt(), options)}) {
    for (const ModelOperator& op : list) {
      if (op.has_weight || op.gemm_split == GemmSplit::row) {
        weights[op.name] = op.gemm_split;
      }
    }
  }
  constexpr GemmSplit kColumn = GemmSplit::column;
  constexpr GemmSplit kRow = GemmSplit::row;
  const std::map<std::string, GemmSplit> expected{
      {"qkv_gemm", kColumn}, {"proj_gemm", kRow},       {"fc1_gemm", kColumn},
      {"fc2_gemm", kRow},    {"token_embedding", kRow}, {"logits_gemm", kColumn}};
  EXPECT_EQ(weights, expected);
}

TEST(TensorParallel, biases_after_a_sum_over_ranks_are_replicated) {
  // Megatron-LM adds the bias of row-parallel layers after the all-reduce.
  const auto layer = layer_operators(small_gpt(), {.sequence = 128});
  EXPECT_EQ(find(layer, "proj_gemm").parameters, 768 * 768);
  EXPECT_EQ(find(layer, "attention_bias_dropout_residual").parameters, 768);
  EXPECT_EQ(find(layer, "attention_bias_dropout_residual").gemm_split, GemmSplit::none);
  EXPECT_EQ(find(layer, "qkv_gemm").parameters, 768 * 2304 + 2304);
}

struct BytesCase {
  const char* name;
  std::int64_t forward;
  int forward_kernels;
  std::int64_t backward;
  int backward_kernels;
};

void expect_bytes(const std::vector<ModelOperator>& operators, const BytesCase& expected) {
  const ModelOperator op = find(operators, expected.name);
  EXPECT_EQ(op.forward_bytes.value(), expected.forward) << expected.name;
  EXPECT_EQ(op.forward_kernels, expected.forward_kernels) << expected.name;
  EXPECT_EQ(op.backward_bytes.value(), expected.backward) << expected.name;
  EXPECT_EQ(op.backward_kernels, expected.backward_kernels) << expected.name;
}

TEST(MemoryTraffic, of_fused_kernels_by_hand) {
  // x = T h = 128 x 768 elements = 98,304; A = a S^2 = 196,608 scores; two bytes each, one for
  // masks.
  const std::int64_t x = 98'304;
  const std::int64_t a = 196'608;
  const auto layer = layer_operators(small_gpt(), {.sequence = 128});
  for (const BytesCase& expected : std::to_array<BytesCase>({
           {"input_norm", 4 * x, 1, 16 * x, 4},
           {"qkv_split", 12 * x, 1, 18 * x, 2},         // bias: 2; 2 + 1 passes over 3 x
           {"scale_mask_softmax", 3 * a, 1, 4 * a, 1},  // 1/2 + 1 and 2 x 1/2 + 1 squares
           {"attention_dropout", 5 * a, 1, 5 * a, 1},
           {"context_transpose", 4 * x, 1, 0, 0},
           {"attention_bias_dropout_residual", 7 * x, 1, 7 * x, 2},
           {"bias_gelu", 16 * x, 1, 32 * x, 2},
       })) {
    expect_bytes(layer, expected);
  }
}

TEST(MemoryTraffic, of_kernels_that_are_not_fused_has_a_pass_for_each_step) {
  const std::int64_t x = 98'304;
  const std::int64_t a = 196'608;
  const auto layer = layer_operators(
      small_gpt(), {.sequence = 128, .fused_kernels = false, .fused_softmax = false});
  for (const BytesCase& expected : std::to_array<BytesCase>({
           // to fp32 and back 2 x 6, scale 8, mask 8 + 1, softmax 8; backward softmax 12
           {"scale_mask_softmax", 37 * a, 5, 41 * a, 5},
           {"attention_bias_dropout_residual", 15 * x, 3, 7 * x, 2},  // 2 + 2 + 3 passes, mask
           {"bias_gelu", 32 * x, 2, 32 * x, 2},
       })) {
    expect_bytes(layer, expected);
  }
}

TEST(MemoryTraffic, of_a_fused_loss_is_three_passes_over_the_logits) {
  // T V = 128 x 512 elements of 2 bytes; unfused: 2 + 4 x 9 = 38 an element forward, 14 backward.
  const std::int64_t logits = 128LL * small_gpt().vocab;
  const auto head = head_operators(small_gpt(), {.sequence = 128, .fused_cross_entropy = true});
  expect_bytes(head, {"cross_entropy", 6 * logits, 2, 4 * logits, 1});
  expect_bytes(head_operators(small_gpt(), {.sequence = 128}),
               {"cross_entropy", 38 * logits, 18, 14 * logits, 6});
}

TEST(MemoryTraffic, of_llama_by_hand) {
  // T = 128: x = T h = 65,536; F = T ffn = 196,608; rotated q and k: T x 640 = 81,920 elements.
  const auto fused = layer_operators(small_llama(), {.sequence = 128});
  expect_bytes(fused, {"rotary", 4 * 81'920LL, 1, 4 * 81'920LL, 1});
  expect_bytes(fused, {"silu_mul", 6 * 196'608LL, 1, 10 * 196'608LL, 1});
  expect_bytes(fused, {"attention_residual", 6 * 65'536LL, 1, 0, 0});
  expect_bytes(fused, {"qkv_split", 0, 0, 4 * 128LL * 768LL, 1});
  const auto unfused = layer_operators(small_llama(), {.sequence = 128, .fused_kernels = false});
  expect_bytes(unfused, {"rotary", 20 * 81'920LL, 10, 20 * 81'920LL, 10});
  expect_bytes(unfused, {"silu_mul", 10 * 196'608LL, 2, 26 * 196'608LL, 4});
}

TEST(MemoryTraffic, of_flash_attention_never_touches_the_square) {
  // T = 128, a d = 768: Q, K, V, O of 98,304 elements, one fp32 per row: 4 x 128 x 12 = 6,144
  // bytes. Backward reads Q, K, V, O, dO and the row sums, writes dQ, dK, dV.
  const auto layer =
      layer_operators(small_gpt(), {.sequence = 128, .attention = AttentionKernel::flash});
  expect_bytes(layer, {"flash_attention", 4 * 196'608LL + 6'144, 1, 8 * 196'608LL + 6'144, 3});
}

TEST(MemoryTraffic, outside_the_layers_by_hand) {
  // x = T h = 98,304; logits T V = 131,072; table V h = 786,432 elements.
  const ShapeOptions options{.sequence = 128};
  const auto embedding = embedding_operators(small_gpt(), options);
  expect_bytes(embedding, {"token_embedding", 4 * 98'304LL, 1, 6 * 98'304LL, 1});
  expect_bytes(embedding, {"embedding_gradient_zero", 0, 0, 2 * 786'432LL, 1});
  expect_bytes(embedding, {"position_embedding", 10 * 98'304LL, 2, 6 * 98'304LL, 1});
  expect_bytes(embedding, {"embedding_dropout", 5 * 98'304LL, 1, 5 * 98'304LL, 1});
  const auto head = head_operators(small_gpt(), options);
  expect_bytes(head, {"cross_entropy", 38 * 131'072LL, 18, 14 * 131'072LL, 6});
}

TEST(MemoryTraffic, of_a_gemm_is_its_operands_and_its_result) {
  // 2 bytes x (128 x 768 + 768 x 3072 + 128 x 3072).
  const auto layer = layer_operators(small_gpt(), {.sequence = 128});
  expect_bytes(layer, {"fc1_gemm", 2LL * (98'304 + 2'359'296 + 393'216), 1, 0, 0});
}

TEST(Head, pads_the_vocabulary_and_owns_parameters_only_when_untied) {
  ShapeOptions options{.sequence = 128, .padded_vocab = 1024};
  Model model = small_llama();
  EXPECT_EQ(find(head_operators(model, options), "logits_gemm").gemm.n, 1024);
  EXPECT_EQ(find(head_operators(model, options), "logits_gemm").parameters, 512 * 1024);
  EXPECT_EQ(find(embedding_operators(model, options), "token_embedding").parameters, 512 * 1024);
  model.tied_embedding = true;
  options.padded_vocab = 0;
  EXPECT_EQ(find(head_operators(model, options), "logits_gemm").gemm.n, 1000);
  EXPECT_EQ(find(head_operators(model, options), "logits_gemm").parameters, 0);
}

TEST(DataTypes, scale_bytes_but_not_masks_and_fp32_probabilities) {
  const Model model = small_gpt();
  const auto half = layer_operators(model, {.sequence = 128, .type = graph::DataType::bf16});
  const auto single = layer_operators(model, {.sequence = 128, .type = graph::DataType::fp32});
  EXPECT_EQ(find(single, "bias_gelu").saved, 2 * find(half, "bias_gelu").saved);
  EXPECT_EQ(find(single, "mlp_bias_dropout_residual").saved,
            find(half, "mlp_bias_dropout_residual").saved);
  const ShapeOptions options{.sequence = 128, .type = graph::DataType::fp32};
  EXPECT_EQ(find(head_operators(model, options), "cross_entropy").saved, Bytes(4LL * 128 * 1024));
}

TEST(Extremes, of_the_allowed_shapes_saturate_instead_of_wrapping) {
  // 2^27 positions and 128 heads: the scores need 2 x 128 x 2^54 bytes = 2^62, eight sequences
  // 2^65.
  Model model = gpt_model("huge", 1, 128, 128, kMaxPositions, 1000);
  const auto layer = layer_operators(model, {.microbatch = 8, .sequence = kMaxPositions});
  EXPECT_TRUE(find(layer, "scale_mask_softmax").saved.is_overflow());
  EXPECT_TRUE(find(layer, "attention_dropout").forward_bytes.is_overflow());
}

TEST(Roles, EveryOperatorOfEveryModelHasOne) {
  const auto expect_roles = [](const std::string& model, const std::vector<ModelOperator>& all) {
    for (const ModelOperator& op : all) {
      EXPECT_NE(op.role, graph::OperatorRole::none) << model << ": " << op.name;
      EXPECT_EQ(op.depth > 0, op.name.starts_with("mtp_")) << model << ": " << op.name;
    }
  };
  for (const std::string& name : list_configs("models")) {
    const Model model = load_model(name).value();
    for (const AttentionKernel kernel : {AttentionKernel::unfused, AttentionKernel::flash}) {
      const ShapeOptions options{.sequence = 64, .attention = kernel, .experts_apart = true};
      expect_roles(name, embedding_operators(model, options));
      expect_roles(name, head_operators(model, options));
      for (int kind = 0; kind < std::ssize(layer_kinds(model)); ++kind) {
        expect_roles(name, layer_operators(model, options, kind));
      }
    }
  }
}

// 128 tokens, H = 512: a layer has 100,663,296 (queries, keys, values) + 67,108,864 (output) +
// 603,979,776 (SwiGLU) + 33,554,432 (attention, whole square) FLOPs forward; two of them and the
// head's 131,072,000 are 1,741,684,736. The mask leaves half of both layers' attention.
TEST(VisibleShare, AMaskLeavesHalfOfTheSquare) {
  zoo::Model model = small_llama();
  EXPECT_DOUBLE_EQ(zoo::visible_share(model, 128), 1 - 33'554'432.0 / 1'741'684'736.0);
  model.kinds = {zoo::LayerKind{.causal = false}};
  EXPECT_EQ(zoo::visible_share(model, 128), 1);
}

}  // namespace
}  // namespace orrery::zoo
