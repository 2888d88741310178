// SPDX-License-Identifier: Apache-2.0
/// DeepSeek-V4: compressed attention, indexer, hyper-connections; by hand and against what is
/// published.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "operators_of.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {
namespace {

using testing::find;
using testing::names;

Model shipped(const std::string& name) {
  auto model = load_model(name);
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().to_string());
  return model.value_or(Model{});
}

/// The shipped file with one text replaced.
Result<Model> changed(const std::string& name, const std::string& from, const std::string& to) {
  std::string text = read_file(*find_config("models", name)).value_or("");
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto node = parse_config(text, name, ConfigSyntax::json);
  EXPECT_TRUE(node);
  return parse_model(*node, name);
}

std::string mistakes(const Result<Model>& model) {
  return model ? "" : model.error().to_string();
}

constexpr int kWindow = 0;
constexpr int kCsa = 1;
constexpr int kHca = 2;
constexpr std::int64_t kSequence = 4096;
constexpr ShapeOptions kFlash{.sequence = kSequence, .attention = AttentionKernel::flash};
constexpr Bytes kX = Bytes(2LL * kSequence * 4096);  // T x H of bf16

TEST(DeepseekV4, flash_parameters_add_up_by_hand) {
  // h = 4096, 64 heads of 512. Attention: h x 1024 + 1024 + 1024 x 32768 + h x 512 + 512 + 8 groups
  // of 4096 x 1024 + 8192 x h + 64 sinks. Experts 257 x 3 h x 2048 + 256 h. Two hyper-connections
  // of (4 h + 1) x 24 + 3, two norms.
  const ParameterCount count = count_parameters(shipped("deepseek-v4-flash"));
  const std::int64_t h = 4096;
  const std::int64_t attention =
      h * 1024 + 1024 + 1024LL * 32768 + h * 512 + 512 + 8LL * 4096 * 1024 + 8192LL * h + 64;
  EXPECT_EQ(attention, 106'956'352);
  const std::int64_t window =
      attention + 257LL * 3 * h * 2048 + 256 * h + 2 * ((4 * h + 1) * 24 + 3) + 2 * h;
  EXPECT_EQ(count.per_kind.at(kWindow), window);
  EXPECT_EQ(window, 6'576'416'374);
  // HCA: values and weights of 512, a bias of 128 x 512, a norm. CSA: twice as wide, a bias of 4
  // rows; the indexer the same of 128, with queries 1024 x 64 x 128 and head weights h x 64.
  EXPECT_EQ(count.per_kind.at(kHca), window + 2 * h * 512 + 128 * 512 + 512);
  EXPECT_EQ(count.per_kind.at(kCsa), window + 2 * h * 1024 + 4 * 1024 + 512 + 2 * h * 256 +
                                         4 * 256 + 128 + 1024LL * 64 * 128 + h * 64);
  // Sum of streams before the norm: 4 h x 4 + 4 + 1.
  EXPECT_EQ(count.head, 129'280 * h + 4 * h * 4 + 5);
  EXPECT_EQ(count.mtp, window + 2 * h * h + 3 * h + 4 * h * 4 + 5);
}

TEST(DeepseekV4, parameters_are_the_published_ones) {
  // 284.33B in all, 13.80B active: the checkpoint as transformers 5.14 builds it and as llama.cpp
  // counts it; "284B, 13B active" (model card), 284.44B and 13.90B in a drawing by others. Pro:
  // "1.6T, 49B active" (model card), 1598.84B with multi-token prediction.
  Model flash = shipped("deepseek-v4-flash");
  EXPECT_EQ(count_parameters(flash).mtp, 6'610'048'635);
  flash.mtp = 0;
  EXPECT_EQ(count_parameters(flash).total, 284'332'230'231);
  EXPECT_EQ(count_parameters(flash).active, 13'799'622'231);
  Model pro = shipped("deepseek-v4-pro");
  EXPECT_EQ(count_parameters(pro).total, 1'598'837'325'086);
  pro.mtp = 0;
  EXPECT_EQ(count_parameters(pro).active, 49'779'058'787);
}

TEST(DeepseekV4, layers_follow_the_ratios_and_the_predicted_one_is_a_window) {
  const Model flash = shipped("deepseek-v4-flash");
  EXPECT_EQ(layer_kinds(flash), (std::vector<std::string>{"window", "csa", "hca"}));
  EXPECT_EQ(std::count(flash.layout.begin(), flash.layout.end(), kWindow), 2);
  EXPECT_EQ(std::count(flash.layout.begin(), flash.layout.end(), kCsa), 21);
  EXPECT_EQ(std::count(flash.layout.begin(), flash.layout.end(), kHca), 20);
  EXPECT_EQ(flash.mtp_layout, std::vector<int>{kWindow});
  const Model pro = shipped("deepseek-v4-pro");  // no layer of the model is a window
  EXPECT_EQ(layer_kinds(pro), (std::vector<std::string>{"hca", "csa", "window"}));
  EXPECT_EQ(std::count(pro.layout.begin(), pro.layout.end(), 0), 31);
  EXPECT_EQ(std::count(pro.layout.begin(), pro.layout.end(), 1), 30);
  EXPECT_EQ(pro.mtp_layout, std::vector<int>{2});
}

TEST(DeepseekV4, a_query_sees_its_window_and_compressed_keys) {
  // S = 4096. Window 128: S 128 - 128^2 / 2 = 516,096 pairs. HCA: S^2 / 2 / 128 = 65,536 more. CSA:
  // at most 512 of S / 4 keys, so S 512 - 512^2 x 4 / 2 = 1,572,864 more. 64 heads, 2 x (512 +
  // 512).
  const Model flash = shipped("deepseek-v4-flash");
  const auto core = [&](int kind) {
    return find(layer_operators(flash, kFlash, kind), "flash_attention");
  };
  const double per_pair = 64 * 2 * 1024;
  EXPECT_DOUBLE_EQ(core(kWindow).forward_flops.value(), 516'096 * per_pair);
  EXPECT_DOUBLE_EQ(core(kHca).forward_flops.value(), (516'096 + 65'536) * per_pair);
  EXPECT_DOUBLE_EQ(core(kCsa).forward_flops.value(), (516'096 + 1'572'864) * per_pair);
  EXPECT_DOUBLE_EQ(core(kCsa).backward_flops.value(), 2.5 * core(kCsa).forward_flops.value());
  EXPECT_DOUBLE_EQ(core(kCsa).model_flops.value(), 2 * core(kCsa).forward_flops.value());
  // One head of keys that are the values: T rows of 512, T / 4 compressed ones.
  EXPECT_EQ(core(kWindow).key_value, Bytes(2LL * kSequence * 512));
  EXPECT_EQ(core(kCsa).key_value, Bytes(2LL * kSequence * 512 * 5 / 4));
  EXPECT_EQ(core(kCsa).parameters, 64) << "sinks";
}

TEST(DeepseekV4, fewer_keys_than_the_indexer_may_choose_are_all_seen) {
  // S = 1024: 256 keys of 4 tokens, 512 may be chosen: S^2 / 2 / 4.
  const Model flash = shipped("deepseek-v4-flash");
  const auto core =
      find(layer_operators(flash, {.sequence = 1024, .attention = AttentionKernel::flash}, kCsa),
           "flash_attention");
  EXPECT_DOUBLE_EQ(core.forward_flops.value(),
                   (1024.0 * 128 - 8192 + 1024.0 * 1024 / 8) * 64 * 2 * 1024);
}

TEST(DeepseekV4, unfused_attention_does_all_keys_of_every_layer) {
  const Model flash = shipped("deepseek-v4-flash");
  const auto layer = layer_operators(flash, {.sequence = 1024}, kCsa);
  EXPECT_EQ(find(layer, "score_gemm").gemm,
            (graph::GemmShape{.batch = 64, .m = 1024, .n = 1024 + 256, .k = 512}));
}

TEST(DeepseekV4, indexer_scores_every_compressed_key_before_a_query) {
  // 64 heads of 128 over S^2 / 2 / 4 = 2,097,152 pairs.
  const auto layer = layer_operators(shipped("deepseek-v4-flash"), kFlash, kCsa);
  EXPECT_DOUBLE_EQ(find(layer, "index_scores").forward_flops.value(), 2'097'152.0 * 64 * 2 * 128);
  EXPECT_EQ(find(layer, "index_q_gemm").gemm,
            (graph::GemmShape{.m = kSequence, .n = 64 * 128, .k = 1024}));
  EXPECT_EQ(find(layer, "index_compress_gemm").gemm,
            (graph::GemmShape{.m = kSequence, .n = 2 * 2 * 128, .k = 4096}));
  EXPECT_EQ(find(layer, "index_top_k").saved, Bytes(4LL * kSequence * 512));
  const auto other = layer_operators(shipped("deepseek-v4-flash"), kFlash, kHca);
  EXPECT_THAT(names(other), ::testing::Not(::testing::Contains("index_scores")));
}

TEST(DeepseekV4, projections_have_the_shapes_of_the_class) {
  const auto layer = layer_operators(shipped("deepseek-v4-flash"), kFlash, kHca);
  EXPECT_EQ(find(layer, "q_b_gemm").gemm,
            (graph::GemmShape{.m = kSequence, .n = 64 * 512, .k = 1024}));
  EXPECT_EQ(find(layer, "kv_gemm").gemm, (graph::GemmShape{.m = kSequence, .n = 512, .k = 4096}));
  EXPECT_EQ(find(layer, "compress_gemm").gemm,
            (graph::GemmShape{.m = kSequence, .n = 2 * 512, .k = 4096}));
  const ModelOperator grouped = find(layer, "proj_a_gemm");
  EXPECT_EQ(grouped.gemm,
            (graph::GemmShape{.batch = 8, .m = kSequence, .n = 1024, .k = 64 * 512 / 8}));
  EXPECT_EQ(grouped.saved, Bytes(2LL * kSequence * 64 * 512));
  EXPECT_DOUBLE_EQ(grouped.forward_flops.value(), 2.0 * kSequence * 1024 * 64 * 512);
  EXPECT_EQ(find(layer, "proj_gemm").gemm,
            (graph::GemmShape{.m = kSequence, .n = 4096, .k = 8 * 1024}));
}

TEST(Streams, stand_around_both_branches_instead_of_a_residual) {
  const auto layer = names(layer_operators(shipped("deepseek-v4-flash"), kFlash, kWindow));
  EXPECT_EQ(layer, (std::vector<std::string>{"attention_mix_gemm",
                                             "attention_mix_weights",
                                             "attention_collapse",
                                             "input_norm",
                                             "q_a_gemm",
                                             "q_a_norm",
                                             "q_b_gemm",
                                             "kv_gemm",
                                             "kv_norm",
                                             "query_norm",
                                             "query_rotary",
                                             "flash_attention",
                                             "output_rotary",
                                             "proj_a_gemm",
                                             "proj_gemm",
                                             "attention_expand",
                                             "mlp_mix_gemm",
                                             "mlp_mix_weights",
                                             "mlp_collapse",
                                             "mlp_norm",
                                             "router_gemm",
                                             "routing",
                                             "expert_fc1_gemm",
                                             "expert_silu_mul",
                                             "expert_fc2_gemm",
                                             "unpermute",
                                             "shared_fc1_gemm",
                                             "shared_silu_mul",
                                             "shared_fc2_gemm",
                                             "shared_sum",
                                             "mlp_expand"}));
}

TEST(Streams, traffic_by_hand) {
  // Four streams of X. Sum: reads 4, writes 1; back reads dx, X, two gradients of X and writes one.
  // Mix: reads 4 and the branch's result, writes 4; back reads both and 4 of the gradient, writes
  // 4 and 1. The product keeps the streams, the mix the result.
  const auto layer = layer_operators(shipped("deepseek-v4-flash"), kFlash, kWindow);
  EXPECT_EQ(find(layer, "mlp_mix_gemm").gemm,
            (graph::GemmShape{.m = kSequence, .n = 24, .k = 4 * 4096}));
  EXPECT_EQ(find(layer, "mlp_mix_gemm").saved, 4 * kX);
  EXPECT_EQ(find(layer, "mlp_collapse").forward_bytes, 5 * kX);
  EXPECT_EQ(find(layer, "mlp_collapse").backward_bytes, 17 * kX);
  EXPECT_EQ(find(layer, "mlp_expand").forward_bytes, 9 * kX);
  EXPECT_EQ(find(layer, "mlp_expand").backward_bytes, 14 * kX);
  EXPECT_EQ(find(layer, "mlp_expand").saved, kX);
  // 24 values in fp32, read and written; 20 steps of rows and columns in the same kernel.
  EXPECT_EQ(find(layer, "mlp_mix_weights").forward_bytes, Bytes(2LL * 4 * 24 * kSequence));
  const auto unfused = layer_operators(shipped("deepseek-v4-flash"),
                                       {.sequence = kSequence, .fused_kernels = false}, kWindow);
  EXPECT_EQ(find(unfused, "mlp_mix_weights").forward_kernels, 10 + 3 * 39);
}

TEST(Streams, begin_as_copies_and_end_in_one_sum) {
  const Model flash = shipped("deepseek-v4-flash");
  const auto embedding = embedding_operators(flash, kFlash);
  EXPECT_EQ(find(embedding, "stream_copies").forward_bytes, 5 * kX);
  const auto head = head_operators(flash, kFlash);
  EXPECT_EQ(head.at(0).name, "head_mix_gemm");
  EXPECT_EQ(head.at(2).name, "head_collapse");
  EXPECT_EQ(head.at(3).name, "final_norm");
  // Multi-token prediction projects every stream and, once, the embedding.
  EXPECT_EQ(find(head, "mtp_combine_gemm").gemm,
            (graph::GemmShape{.m = 4 * kSequence, .n = 4096, .k = 4096}));
  EXPECT_EQ(find(head, "mtp_embedding_combine_gemm").gemm,
            (graph::GemmShape{.m = kSequence, .n = 4096, .k = 4096}));
}

TEST(DeepseekV4, model_flops_are_those_of_the_published_throughput) {
  // Megatron-Bridge 26.08: 748 TFLOP/s at 8,224 tokens/s and 706 at 7,776 (MXFP8, S = 4096): 90.95
  // and 90.79 GFLOP per token. It counts visible pairs once, we count them twice.
  const Model flash = shipped("deepseek-v4-flash");
  double pairs = 0;  // of attention and the indexer, counted twice
  const std::vector<std::int64_t> layers{2 + 1, 21, 20};
  for (int kind = 0; kind < 3; ++kind) {
    for (const ModelOperator& op : layer_operators(flash, kFlash, kind)) {
      const bool core = op.kind == graph::OperatorKind::attention;
      pairs += core ? static_cast<double>(layers.at(static_cast<std::size_t>(kind))) *
                          op.model_flops.value()
                    : 0;
    }
  }
  const double step = model_flops_per_sequence(flash, kSequence).value() - 3 * pairs / 2;
  EXPECT_NEAR(step / kSequence / 1e9, 90.87, 0.005 * 90.87);
}

TEST(DeepseekV4, newer_files_name_the_types_of_layers) {
  const auto four = changed("deepseek-v4-flash", "\"num_hidden_layers\": 43",
                            "\"num_hidden_layers\": 4, \"layer_types\": [\"sliding_attention\", "
                            "\"compressed_sparse_attention\", \"heavily_compressed_attention\", "
                            "\"sliding_attention\"], \"mlp_layer_types\": [\"hash_moe\"]");
  ASSERT_TRUE(four) << mistakes(four);
  EXPECT_EQ(four->layout, (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(four->kinds.at(1).chosen, 512);
  EXPECT_EQ(four->mtp_layout, std::vector<int>{0});
}

TEST(DeepseekV4, mistakes_name_their_field) {
  EXPECT_THAT(
      mistakes(changed("deepseek-v4-flash", "\"hc_mult\"", "\"hc_multiple\": 4, \"hc_mult\"")),
      ::testing::HasSubstr("hc_mult"));
  EXPECT_THAT(mistakes(changed("deepseek-v4-flash", "0, 0, 4,", "0, 0, 8,")),
              ::testing::HasSubstr("compress_ratios"));
  EXPECT_THAT(mistakes(changed("deepseek-v4-flash", "0, 0, 4,", "0, 0, 4, 4, 4,")),
              ::testing::HasSubstr("found 46"));
  EXPECT_THAT(mistakes(changed("deepseek-v4-flash", "\"o_groups\": 8", "\"o_groups\": 7")),
              ::testing::HasSubstr("o_groups"));
  EXPECT_THAT(mistakes(changed("deepseek-v4-flash", "\"num_key_value_heads\": 1",
                               "\"num_key_value_heads\": 2")),
              ::testing::HasSubstr("num_key_value_heads"));
}

TEST(DeepseekV4, tensor_parallelism_divides_heads_and_groups) {
  std::vector<std::string> what;
  for (const TensorExtent& extent : tensor_extents(shipped("deepseek-v4-flash"))) {
    what.push_back(extent.what + " " + std::to_string(extent.extent));
  }
  EXPECT_THAT(what,
              ::testing::ElementsAre("attention heads 64", "groups of the output projection 8",
                                     "shared expert's width 2048"));
}

}  // namespace
}  // namespace orrery::zoo
