// SPDX-License-Identifier: Apache-2.0
/// Configurations of models with latent attention as users have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/zoo/model.h"

namespace orrery::zoo {
namespace {

/// zai-org/GLM-4.7-Flash, whose files hold 31,221,488,576 parameters. A layer of experts: attention
/// 768 x 2048 + 768 + 5120 x 768 + 576 x 2048 + 512 + 8960 x 512 + 2048 x 5120 = 21,759,232, norms
/// 4,096, 65 experts of 3 x 1536 x 2048, the router 64 x 2048 + 64: 635,311,424. Its layer 47
/// predicts a second token: such a layer, 2048 x 4096 + 4,096, a table and a head of 154880 x 2048
/// and a norm. Apart from it there are 29,943,393,920, of which 46 x 64 correct the router's choice
/// and are not counted.
TEST(LatentFiles, Glm47FlashAsItIsPublishedAndAsTransformersWritesIt) {
  const std::string common = R"({"model_type": "glm4_moe_lite", "hidden_size": 2048,
      "architectures": ["Glm4MoeLiteForCausalLM"], "intermediate_size": 10240,
      "max_position_embeddings": 202752, "moe_intermediate_size": 1536, "topk_method": "noaux_tc",
      "norm_topk_prob": true, "num_attention_heads": 20, "n_group": 1, "topk_group": 1,
      "n_routed_experts": 64, "n_shared_experts": 1, "routed_scaling_factor": 1.8,
      "num_experts_per_tok": 4, "num_hidden_layers": 47, "num_key_value_heads": 20,
      "num_nextn_predict_layers": 1, "rms_norm_eps": 1e-05, "tie_word_embeddings": false,
      "dtype": "bfloat16", "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 192,
      "qk_rope_head_dim": 64, "v_head_dim": 256, "vocab_size": 154880, "attention_bias": false)";
  std::string types = R"("dense")";
  for (int layer = 1; layer < 47; ++layer) {
    types += R"(, "sparse")";
  }
  for (const std::string& rest :
       {std::string(R"(, "first_k_dense_replace": 1, "partial_rotary_factor": 1.0,
           "rope_scaling": null, "rope_theta": 1000000})"),
        R"(, "qk_head_dim": 256, "rope_interleave": true, "rope_parameters":
           {"partial_rotary_factor": 1.0, "rope_theta": 1000000, "rope_type": "default"},
           "mlp_layer_types": [)" +
            types + "]}"}) {
    const auto node = parse_config(common + rest, "config.json", ConfigSyntax::json);
    const auto model = parse_model(*node, "flash");
    ASSERT_TRUE(model) << model.error().to_string();
    const ParameterCount count = count_parameters(*model);
    EXPECT_EQ(count.total - count.mtp, 29'943'393'920 - 46 * 64) << rest;
  }
  const auto odd = parse_config(common + R"(, "mlp_layer_types": ["dense"]})", "config.json",
                                ConfigSyntax::json);
  EXPECT_FALSE(parse_model(*odd, "odd"));
}

/// zai-org/GLM-5.2: 21 of 78 layers have an indexer, the others see the keys that it chose.
TEST(LatentFiles, LayersThatShareAnIndexerAreNoted) {
  const auto notes = [](const std::string& types) {
    const auto node = parse_config(
        R"({"model_type": "glm_moe_dsa", "hidden_size": 64, "intermediate_size": 128,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
            "vocab_size": 100, "max_position_embeddings": 64, "moe_intermediate_size": 32,
            "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1,
            "first_k_dense_replace": 1, "q_lora_rank": 16, "kv_lora_rank": 8,
            "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
            "indexer_types": )" +
            types + "}",
        "config.json", ConfigSyntax::json);
    const auto model = parse_model(*node, "glm");
    EXPECT_TRUE(model) << model.error().to_string();
    return model->notes;
  };
  EXPECT_THAT(notes(R"(["full", "full"])"), ::testing::IsEmpty());
  EXPECT_THAT(notes(R"(["full", "shared"])"),
              ::testing::ElementsAre(::testing::HasSubstr("share an indexer")));
}

}  // namespace
}  // namespace orrery::zoo
