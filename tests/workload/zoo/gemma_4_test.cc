// SPDX-License-Identifier: Apache-2.0
/// Gemma 4: heads of their own in full layers, experts with norms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "operators_of.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {
namespace {

constexpr ShapeOptions kGemmaTokens{.sequence = 128, .attention = AttentionKernel::flash};

Model shipped_gemma(const std::string& name) {
  return load_model(name).value();
}

TEST(GemmaFour, ParametersEqualThePublishedCounts) {
  // Hugging Face's of the whole models: 31,273,088,876 and 25,805,936,206. They have besides the
  // tower of images, 569,550,384 (published for 31B), its projection of 1,152 x H without a bias,
  // and a scalar a layer, no parameter that is trained. 12B, whose images have no tower: by hand,
  // 40 layers of 224,148,992, 8 of 241,844,224, the table and a norm; published with 52 million of
  // projections as 11,959,730,224.
  constexpr auto kPublished = std::to_array<std::pair<const char*, std::int64_t>>({
      {"gemma-4-31b", 31'273'088'876 - 569'550'384 - 1'152 * 5'376 - 60},
      {"gemma-4-26b-a4b", 25'805'936'206 - 569'550'384 - 1'152 * 2'816 - 30},
      {"gemma-4-12b", 11'907'350'272},
  });
  for (const auto& [name, parameters] : kPublished) {
    EXPECT_EQ(count_parameters(shipped_gemma(name)).total, parameters) << name;
  }
  EXPECT_NEAR(static_cast<double>(count_parameters(shipped_gemma("gemma-4-26b-a4b")).active), 3.8e9,
              0.05e9);  // "3.8B active"
}

TEST(GemmaFour, FullLayersHaveWiderHeads) {
  const Model m = shipped_gemma("gemma-4-31b");
  EXPECT_EQ(layer_kinds(m), (std::vector<std::string>{"window", "full"}));
  EXPECT_EQ(m.kinds.at(1).head_dim, 512);
  // Keys and values of one product of 4 heads of 512; both lie in the cache, so attention has them.
  const auto full = layer_operators(m, kGemmaTokens, 1);
  EXPECT_EQ(testing::find(full, "qkv_gemm").parameters, 5376 * (32 + 4) * 512);
  EXPECT_EQ(testing::find(full, "flash_attention").gemm.k, 512);
  EXPECT_EQ(testing::find(layer_operators(m, kGemmaTokens), "qkv_gemm").parameters,
            5376 * (32 + 2 * 16) * 256);
  EXPECT_EQ(layer_kind(m, 5), 1);
}

TEST(GemmaFour, ModelsWithAnEmbeddingInEveryLayerAreRefused) {
  // Gemma 4 E2B: 35 layers, each with an input of 256 of its own, the last 20 without keys.
  ModelFile file = load_model_file("gemma-4-31b").value();
  for (ConfigField& field : file.node.fields) {
    for (ConfigField& inner : field.value.fields) {
      inner.value.text = inner.name == "hidden_size_per_layer_input" ? "256" : inner.value.text;
      inner.value.text = inner.name == "num_kv_shared_layers" ? "20" : inner.value.text;
    }
  }
  const auto refused = parse_model(file.node, "gemma-4-e2b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().mistakes.size(), 2U);
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("hidden_size_per_layer_input"));
}

}  // namespace
}  // namespace orrery::zoo
