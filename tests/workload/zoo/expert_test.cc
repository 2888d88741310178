// SPDX-License-Identifier: Apache-2.0
/// Mixtures of experts, latent attention, windows: operators and parameters by hand.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "operators_of.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {
namespace {

using testing::find;
using testing::names;
using testing::small_llama;

/// 16 experts of width 256, 4 per token.
Model expert_model() {
  Model m = small_llama();
  m.experts = 16;
  m.top_k = 4;
  m.expert.ffn = 256;
  m.kinds = {{.name = "moe", .feed_forward = FeedForwardKind::experts}};
  return m;
}

Flops sum_of(const std::vector<ModelOperator>& operators, Flops ModelOperator::*field) {
  Flops sum{0};
  for (const ModelOperator& op : operators) {
    sum += op.*field;
  }
  return sum;
}

TEST(Experts, order_is_router_dispatch_experts_combine_shared_residual) {
  Model m = expert_model();
  m.expert.shared_ffn = 256;
  const std::vector<std::string> expected = {
      "input_norm",      "qkv_gemm",           "qkv_split",       "rotary",      "flash_attention",
      "proj_gemm",       "attention_residual", "mlp_norm",        "router_gemm", "routing",
      "expert_fc1_gemm", "expert_silu_mul",    "expert_fc2_gemm", "unpermute",   "shared_fc1_gemm",
      "shared_silu_mul", "shared_fc2_gemm",    "shared_sum",      "mlp_residual"};
  EXPECT_EQ(names(layer_operators(m, {.sequence = 128, .attention = AttentionKernel::flash})),
            expected);
}

TEST(Experts, grouped_gemms_have_e_groups_of_the_mean_number_of_rows) {
  // T = 100, top_k = 4, E = 16: 400 rows, 25 for each expert; T = 3: ceil(12 / 16) = 1.
  const auto layer = layer_operators(expert_model(), {.sequence = 100});
  const ModelOperator fc1 = find(layer, "expert_fc1_gemm");
  EXPECT_EQ(fc1.kind, graph::OperatorKind::grouped_gemm);
  EXPECT_EQ(fc1.gemm, (graph::GemmShape{.batch = 16, .m = 25, .n = 2 * 256, .k = 512}));
  EXPECT_EQ(fc1.routed, Bytes(2LL * 400 * 512));
  EXPECT_EQ(fc1.gemm_split, GemmSplit::column);
  EXPECT_EQ(fc1.parameters, 16LL * 512 * 512);
  EXPECT_EQ(fc1.saved, Bytes(2LL * 400 * 512));
  const ModelOperator fc2 = find(layer, "expert_fc2_gemm");
  EXPECT_EQ(fc2.gemm, (graph::GemmShape{.batch = 16, .m = 25, .n = 512, .k = 256}));
  EXPECT_EQ(fc2.routed, Bytes(0)) << "its rows come from the other expert's matrix";
  EXPECT_TRUE(fc1.expert && fc2.expert && find(layer, "expert_silu_mul").expert);
  EXPECT_FALSE(find(layer, "routing").expert || find(layer, "unpermute").expert);
  EXPECT_EQ(find(layer_operators(expert_model(), {.sequence = 3}), "expert_fc1_gemm").gemm.m, 1);
}

RC_GTEST_PROP(Experts, flops_of_a_layer_are_top_k_dense_experts_and_the_router, ()) {
  Model m = expert_model();
  m.experts = *rc::gen::inRange<std::int64_t>(1, 200);
  m.top_k = *rc::gen::inRange<std::int64_t>(1, m.experts + 1);
  m.expert.ffn = 8 * *rc::gen::inRange<std::int64_t>(1, 100);
  const ShapeOptions options{.microbatch = *rc::gen::inRange<std::int64_t>(1, 5),
                             .sequence = *rc::gen::inRange<std::int64_t>(1, 3000)};
  Model dense = small_llama();
  dense.ffn = m.expert.ffn;
  const auto layer = layer_operators(dense, options);
  const Flops mlp = find(layer, "fc1_gemm").forward_flops + find(layer, "fc2_gemm").forward_flops;
  const auto router = Flops(2.0 * static_cast<double>(options.microbatch * options.sequence) *
                            static_cast<double>(m.hidden * m.experts));
  const Flops expected =
      sum_of(layer, &ModelOperator::forward_flops) - mlp + mlp * m.top_k + router;
  const auto experts = layer_operators(m, options);
  RC_ASSERT(sum_of(experts, &ModelOperator::forward_flops) == expected);
  RC_ASSERT(sum_of(experts, &ModelOperator::backward_flops) == 2 * expected);
}

TEST(Experts, saved_activations_are_those_of_the_routed_rows) {
  // T = 128, 512 routed rows, 2 bytes. Split over experts: fc1 input 512 x 512, gate and up
  // 512 x 512, fc2 input 512 x 256: 1280 x 512 x 2. Beside them: router input 128 x 512 x 2 and
  // scores 128 x 16 x 4.
  const auto layer = layer_operators(expert_model(), {.sequence = 128});
  Bytes expert{0};
  for (const ModelOperator& op : layer) {
    expert += op.expert ? op.saved : Bytes(0);
    EXPECT_TRUE(!op.expert || op.split == Split::tensor) << op.name;
  }
  EXPECT_EQ(expert, Bytes(1280LL * 512 * 2));
  EXPECT_EQ(find(layer, "router_gemm").saved, Bytes(128LL * 512 * 2));
  EXPECT_EQ(find(layer, "routing").saved, Bytes(128LL * 16 * 4));
  EXPECT_EQ(find(layer, "unpermute").saved, Bytes(0));
}

TEST(Experts, moves_of_the_rows_are_counted_in_both_directions) {
  // T = 128, 512 rows of 512 x 2 bytes = 524,288; T rows 131,072: once gathered, once sorted.
  const auto layer = layer_operators(expert_model(), {.sequence = 128});
  const std::int64_t moves = 131'072 + 3 * 524'288;
  const std::int64_t scores = 128 * 16 * 4;
  EXPECT_EQ(find(layer, "routing").forward_bytes, Bytes(2 * scores + moves));
  EXPECT_EQ(find(layer, "unpermute").forward_bytes, Bytes(moves));
  EXPECT_EQ(find(layer, "unpermute").backward_bytes, Bytes(moves));
}

TEST(Experts, exchanges_that_merge_copies_leave_one_move_of_what_arrives) {
  // T = 128 tokens of 131,072 bytes reach 2.5 ranks each: 327,680 read, 512 rows (524,288) written.
  const auto layer = layer_operators(expert_model(), {.sequence = 128, .token_copies = 2.5});
  const std::int64_t scores = 128 * 16 * 4;
  EXPECT_EQ(find(layer, "routing").forward_bytes, Bytes(2 * scores + 327'680 + 524'288));
  EXPECT_EQ(find(layer, "unpermute").forward_bytes, Bytes(327'680 + 524'288));
  EXPECT_EQ(find(layer, "unpermute").forward_kernels, 1);
}

TEST(Experts, padding_copies_all_rows_once_more) {
  const auto plain = layer_operators(expert_model(), {.sequence = 128});
  const auto padded = layer_operators(expert_model(), {.sequence = 128, .pads_experts = true});
  for (const char* name : {"routing", "unpermute"}) {
    EXPECT_EQ(find(padded, name).forward_bytes,
              find(plain, name).forward_bytes + Bytes(2 * 524'288));
    EXPECT_EQ(find(padded, name).backward_kernels, find(plain, name).backward_kernels + 1);
  }
}

TEST(Experts, apart_they_are_plain_gemms_and_their_output_bias_is_added_in_fp32) {
  // 512 rows of 512: 262,144 elements; forward 28 bytes of each, backward 40.
  Model m = expert_model();
  const ShapeOptions apart{.sequence = 128, .experts_apart = true};
  EXPECT_EQ(find(layer_operators(m, apart), "expert_fc1_gemm").kind, graph::OperatorKind::gemm);
  m.expert.bias = true;
  const auto layer = layer_operators(m, apart);
  const ModelOperator bias = find(layer, "expert_bias");
  EXPECT_EQ(bias.forward_bytes, Bytes(28LL * 262'144));
  EXPECT_EQ(bias.backward_bytes, Bytes(40LL * 262'144));
}

TEST(Experts, clamped_gates_are_clamped_and_put_together_by_kernels_before_the_activation) {
  // 512 rows of 2 x ffn elements of 2 bytes: 8 bytes of each forward, 15 backward.
  Model m = expert_model();
  const ShapeOptions apart{.sequence = 128, .experts_apart = true};
  const ModelOperator plain = find(layer_operators(m, apart), "expert_silu_mul");
  m.expert.clamped = true;
  const ModelOperator clamped = find(layer_operators(m, apart), "expert_silu_mul");
  const std::int64_t elements = 512 * 2 * m.expert.ffn;
  EXPECT_EQ(clamped.forward_bytes - plain.forward_bytes, Bytes(8 * elements));
  EXPECT_EQ(clamped.backward_bytes - plain.backward_bytes, Bytes(15 * elements));
  EXPECT_EQ(clamped.saved - plain.saved, Bytes(2 * elements));
  EXPECT_EQ(find(layer_operators(m, {.sequence = 128}), "expert_silu_mul").forward_bytes,
            plain.forward_bytes)
      << "grouped kernels clamp on their way";
}

TEST(Experts, gemms_that_fuse_activation_and_bias_leave_no_kernel_of_them) {
  Model m = expert_model();
  m.expert.bias = m.expert.clamped = true;
  const ShapeOptions fused{.sequence = 128, .experts_apart = true, .experts_fused = true};
  const auto layer = layer_operators(m, fused);
  const ModelOperator activation = find(layer, "expert_silu_mul");
  EXPECT_EQ(activation.forward_kernels + activation.backward_kernels, 0);
  EXPECT_EQ(activation.forward_bytes + activation.backward_bytes, Bytes(0));
  EXPECT_TRUE(std::none_of(layer.begin(), layer.end(),
                           [](const ModelOperator& op) { return op.name == "expert_bias"; }));
}

TEST(Experts, latent_experts_route_narrow_rows_between_two_projections) {
  Model m = expert_model();
  m.expert.latent = 128;
  const auto layer = layer_operators(m, {.sequence = 128});
  EXPECT_EQ(find(layer, "latent_down_gemm").gemm, (graph::GemmShape{.m = 128, .n = 128, .k = 512}));
  EXPECT_EQ(find(layer, "latent_up_gemm").gemm, (graph::GemmShape{.m = 128, .n = 512, .k = 128}));
  EXPECT_EQ(find(layer, "expert_fc1_gemm").gemm.k, 128);
  EXPECT_EQ(find(layer, "expert_fc1_gemm").routed, Bytes(2LL * 128 * 4 * 128));
}

TEST(Experts, a_gate_of_the_shared_expert_has_h_parameters) {
  Model m = expert_model();
  m.expert.shared_ffn = 512;
  const auto plain = layer_operators(m, {.sequence = 128});
  m.expert.shared_gate = true;
  const auto gated = layer_operators(m, {.sequence = 128});
  EXPECT_EQ(find(plain, "shared_sum").parameters, 0);
  EXPECT_EQ(find(gated, "shared_gate_sum").parameters, 512);
  EXPECT_EQ(find(gated, "shared_fc1_gemm").gemm_split, GemmSplit::column);
  EXPECT_EQ(find(gated, "shared_fc2_gemm").gemm_split, GemmSplit::row);
  EXPECT_EQ(find(gated, "shared_fc1_gemm").saved, Bytes(0)) << "the router's input is the same";
}

TEST(Experts, extents_are_what_tensor_parallelism_must_divide) {
  Model m = expert_model();
  m.expert.shared_ffn = 320;
  m.kinds.push_back({.name = "dense", .ffn = 2048});
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const TensorExtent& e : tensor_extents(m)) {
    found.emplace_back(e.what, e.extent);
  }
  const std::vector<std::pair<std::string, std::int64_t>> expected = {
      {"attention heads", 8},
      {"key-value heads", 2},
      {"shared expert's width", 320},
      {"MLP's width", 2048}};
  EXPECT_EQ(found, expected);
  ASSERT_EQ(expert_extents(m).size(), 1U);
  EXPECT_EQ(expert_extents(m)[0].extent, 256);
  EXPECT_TRUE(expert_extents(small_llama()).empty());
}

/// H = 512, 8 heads: queries and keys of 96 + 32 rotated, values of 64; ranks 192 and 80.
Model latent_model() {
  Model m = small_llama();
  m.kv_heads = 8;
  m.head_dim = 128;
  m.value_dim = 64;
  m.latent = {.query_rank = 192, .key_value_rank = 80, .rotary = 32};
  m.kinds = {{.name = "dense", .mixer = MixerKind::latent_attention}};
  return m;
}

TEST(LatentAttention, projections_have_the_shapes_of_the_paper) {
  const auto layer =
      layer_operators(latent_model(), {.sequence = 128, .attention = AttentionKernel::flash});
  EXPECT_EQ(find(layer, "q_a_gemm").gemm, (graph::GemmShape{.m = 128, .n = 192, .k = 512}));
  EXPECT_EQ(find(layer, "q_b_gemm").gemm, (graph::GemmShape{.m = 128, .n = 8 * 128, .k = 192}));
  EXPECT_EQ(find(layer, "kv_a_gemm").gemm, (graph::GemmShape{.m = 128, .n = 80 + 32, .k = 512}));
  EXPECT_EQ(find(layer, "kv_b_gemm").gemm,
            (graph::GemmShape{.m = 128, .n = 8 * (96 + 64), .k = 80}));
  EXPECT_EQ(find(layer, "proj_gemm").gemm, (graph::GemmShape{.m = 128, .n = 512, .k = 8 * 64}));
  for (const char* down : {"q_a_gemm", "kv_a_gemm"}) {  // on every rank
    EXPECT_EQ(find(layer, down).gemm_split, GemmSplit::none);
    EXPECT_EQ(find(layer, down).split, Split::sequence);
  }
  for (const char* up : {"q_b_gemm", "kv_b_gemm"}) {
    EXPECT_EQ(find(layer, up).gemm_split, GemmSplit::column);
  }
  EXPECT_EQ(find(layer, "q_a_norm").parameters, 192);
  EXPECT_EQ(find(layer, "kv_a_norm").parameters, 80);
}

TEST(LatentAttention, without_a_query_rank_queries_come_from_h_at_once) {
  Model m = latent_model();
  m.latent.query_rank = 0;
  const auto layer = layer_operators(m, {.sequence = 128});
  EXPECT_EQ(find(layer, "q_gemm").gemm, (graph::GemmShape{.m = 128, .n = 1024, .k = 512}));
  EXPECT_EQ(find(layer, "q_gemm").saved, Bytes(2LL * 128 * 512));
  EXPECT_EQ(find(layer, "kv_a_gemm").saved, Bytes(0));
}

TEST(LatentAttention, core_has_wide_scores_and_narrow_values) {
  // S = 256, B = 3, 8 heads: forward (128 + 64) x 2 FLOPs per pair, half of the pairs; backward
  // three products of 128 and two of 64. K and V: 8 x (128 + 64) columns.
  const auto layer = layer_operators(
      latent_model(), {.microbatch = 3, .sequence = 256, .attention = AttentionKernel::flash});
  const ModelOperator core = find(layer, "flash_attention");
  const double pairs = 3.0 * 8 * 256 * 256 / 2;
  EXPECT_EQ(core.forward_flops.value(), pairs * 2 * (128 + 64));
  EXPECT_EQ(core.backward_flops.value(), pairs * 2 * (3 * 128 + 2 * 64));
  EXPECT_EQ(core.model_flops.value(), 2 * pairs * 2 * (128 + 64));
  EXPECT_EQ(core.query, Bytes(2LL * 3 * 256 * 8 * 128));
  EXPECT_EQ(core.key_value, Bytes(2LL * 3 * 256 * 8 * (128 + 64)));
  const auto unfused = layer_operators(latent_model(), {.sequence = 256});
  EXPECT_EQ(find(unfused, "score_gemm").gemm.k, 128);
  EXPECT_EQ(find(unfused, "context_gemm").gemm.n, 64);
}

std::int64_t saved(const std::vector<ModelOperator>& operators, Split split) {
  std::int64_t total = 0;
  for (const ModelOperator& op : operators) {
    total += op.split == split ? op.saved.value() : 0;
  }
  return total;
}

TEST(LatentAttention, saves_the_latents_beside_queries_keys_and_values) {
  // T = 128, two bytes. Before the split: input of the norm, of q_a (kv_a shares it), of q_a_norm
  // and q_b (192 each), of kv_a_norm and kv_b (80 each), of mlp_norm and fc1: 4 x 512 + 544. Split:
  // Q, K of 8 x 128, V of 8 x 64, input of proj 512, gate and up and fc2's input 3 x 1536; one
  // fp32 per row and head.
  const auto layer =
      layer_operators(latent_model(), {.sequence = 128, .attention = AttentionKernel::flash});
  EXPECT_EQ(saved(layer, Split::sequence), 2 * 128 * (4 * 512 + 2 * 192 + 2 * 80));
  EXPECT_EQ(saved(layer, Split::tensor), 2 * 128 * (2 * 1024 + 512 + 512 + 3 * 1536) + 4 * 128 * 8);
}

TEST(Mamba, saves_projection_convolution_and_gate) {
  // d = 4 x 64 = 256, 2 groups of 16 states: x, B, C 320 columns, dt 4. T = 128: norm's input and
  // in_proj's 512 each; then x, B, C before and after the convolution, dt, y and z, out_proj's
  // input.
  Model m = small_llama();
  m.mamba = {.heads = 4, .head_dim = 64, .groups = 2, .state = 16, .kernel = 4, .chunk = 32};
  m.kinds = {{.name = "mamba", .mixer = MixerKind::mamba, .feed_forward = FeedForwardKind::none}};
  const auto layer = layer_operators(m, {.sequence = 128});
  EXPECT_EQ(saved(layer, Split::sequence), 2 * 128 * 2 * 512);
  EXPECT_EQ(saved(layer, Split::tensor), 2 * 128 * (320 + 324 + 2 * 256 + 256));
  std::vector<std::string> divided;
  for (const TensorExtent& extent : tensor_extents(m)) {
    divided.push_back(extent.what + " " + std::to_string(extent.extent));
  }
  EXPECT_EQ(divided, (std::vector<std::string>{"Mamba heads 4", "Mamba groups 2"}));
}

Flops attention_flops(const LayerKind& kind, const ShapeOptions& options) {
  Model m = small_llama();
  m.kinds = {kind};
  return find(layer_operators(m, options), "flash_attention").forward_flops;
}

TEST(Window, flops_are_those_of_the_pairs_inside) {
  // S = 1000, 8 heads of 64: 2 x 2 x 64 = 256 FLOPs per pair. Window 100: 1000 x 100 - 100^2 / 2 =
  // 95,000 pairs; chunk 400: 2 x 400^2 / 2 + 200^2 / 2 = 180,000; causal: 500,000.
  const ShapeOptions options{.sequence = 1000, .attention = AttentionKernel::flash};
  const double per_pair = 8 * 256;
  EXPECT_EQ(attention_flops({}, options).value(), per_pair * 500'000);
  EXPECT_EQ(attention_flops({.window = 100}, options).value(), per_pair * 95'000);
  EXPECT_EQ(attention_flops({.window = 5000}, options).value(), per_pair * 500'000);
  EXPECT_EQ(attention_flops({.chunk = 400}, options).value(), per_pair * 180'000);
  EXPECT_EQ(attention_flops({.chunk = 5000}, options).value(), per_pair * 500'000);
  EXPECT_EQ(attention_flops({.causal = false}, options).value(), per_pair * 1'000'000);
}

TEST(Window, model_flops_do_not_depend_on_the_kernel) {
  for (const LayerKind& kind : {LayerKind{}, LayerKind{.window = 100}, LayerKind{.chunk = 300},
                                LayerKind{.causal = false}}) {
    Model m = small_llama();
    m.kinds = {kind};
    const auto flash = layer_operators(m, {.sequence = 1000, .attention = AttentionKernel::flash});
    const auto unfused = layer_operators(m, {.sequence = 1000});
    EXPECT_EQ(sum_of(flash, &ModelOperator::model_flops),
              sum_of(unfused, &ModelOperator::model_flops));
  }
}

RC_GTEST_PROP(Context, ranks_share_tokens_and_pairs_equally, ()) {
  const std::int64_t c = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  const std::int64_t sequence = c * 16 * *rc::gen::inRange<std::int64_t>(1, 50);
  Model m = expert_model();
  ShapeOptions whole{.sequence = sequence, .attention = AttentionKernel::flash};
  ShapeOptions part = whole;
  part.context = c;
  const auto all = layer_operators(m, whole);
  const auto share = layer_operators(m, part);
  RC_ASSERT(sum_of(share, &ModelOperator::forward_flops) * static_cast<double>(c) ==
            sum_of(all, &ModelOperator::forward_flops));
  RC_ASSERT(find(share, "flash_attention").gemm.m * c == sequence);
  RC_ASSERT(find(share, "flash_attention").gemm.n == sequence);
}

TEST(Prediction, of_one_more_token_repeats_layer_norm_and_logits) {
  // DeepSeek-V3's module: two norms, a 2H x H projection, one layer, a norm, shared output.
  Model m = expert_model();
  m.layout = {};
  const ParameterCount without = count_parameters(m);
  const Flops flops = model_flops_per_sequence(m, 128);
  m.mtp = 1;
  const ParameterCount with = count_parameters(m);
  EXPECT_EQ(with.mtp, without.per_kind[0] + 2 * 512 * 512 + 3 * 512);
  EXPECT_EQ(with.total, without.total + with.mtp);
  const auto head = head_operators(m, {.sequence = 128});
  EXPECT_EQ(find(head, "mtp_combine_gemm").gemm, (graph::GemmShape{.m = 128, .n = 512, .k = 1024}));
  EXPECT_EQ(find(head, "mtp_logits_gemm").parameters, 0);
  EXPECT_EQ(find(head, "mtp_expert_fc1_gemm").routed, Bytes(2LL * 128 * m.top_k * 512));
  // 3 x (layer + 2 T 2H H + 2 T H V).
  const double layer =
      sum_of(layer_operators(m, {.sequence = 128}), &ModelOperator::model_flops).value();
  EXPECT_DOUBLE_EQ((model_flops_per_sequence(m, 128) - flops).value(),
                   3 * (layer + 2.0 * 128 * 1024 * 512 + 2.0 * 128 * 512 * 1000));
}

}  // namespace
}  // namespace orrery::zoo
