// SPDX-License-Identifier: Apache-2.0
/// Encoders of images: their parameters, their operators, and what processors make of images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/config_node.h"
#include "workload/zoo/builder.h"
#include "workload/zoo/image_tokens.h"

namespace orrery::zoo {
namespace {

Model seeing(const std::string& name) {
  auto model = load_model(name);
  EXPECT_TRUE(model) << name << (model ? "" : ": " + model.error().to_string());
  return model.value_or(Model{});
}

TEST(Vision, ParametersWithTheEncoderEqualThePublishedCounts) {
  // Hugging Face's counts of the whole models, as public repositories quote them (InternVL3's is
  // recalled); Gemma 4's without its scalar a layer (60 and 30),
  // which is not trained.
  constexpr auto kPublished = std::to_array<std::pair<const char*, std::int64_t>>({
      {"qwen2-vl-7b", 8'291'375'616},
      {"qwen2.5-vl-7b", 8'292'166'656},
      {"qwen3-vl-8b", 8'767'123'696},
      {"gemma-3-4b", 4'300'079'472},
      {"gemma-3-12b", 12'187'325'040},
      {"gemma-3-27b", 27'432'406'640},
      {"gemma-4-31b", 31'273'088'876 - 60},
      {"gemma-4-26b-a4b", 25'805'936'206 - 30},
      {"llama-4-scout", 108'641'793'536},
      {"llava-1.5-7b", 7'063'427'072},
      {"internvl3-8b", 7'944'373'760},
      {"mistral-small-3.1-24b", 24'011'361'280},
  });
  for (const auto& [name, parameters] : kPublished) {
    const ParameterCount count = count_parameters(seeing(name));
    EXPECT_EQ(count.total + count.vision, parameters) << name;
  }
}

TEST(Vision, OperatorsHaveTheParametersThatAreCounted) {
  for (const char* name :
       {"qwen2-vl-7b", "qwen2.5-vl-7b", "qwen3-vl-30b-a3b", "gemma-3-4b", "gemma-4-31b",
        "llama-4-scout", "llava-1.5-7b", "internvl3-8b", "mistral-small-3.1-24b"}) {
    const Model model = seeing(name);
    ASSERT_TRUE(model.vision) << name;
    const Model& encoder = model.vision->encoder;
    const ShapeOptions shape{.sequence = 1025, .attention = AttentionKernel::flash};
    const auto sum = [](const std::vector<ModelOperator>& operators) {
      std::int64_t parameters = 0;
      for (const ModelOperator& op : operators) {
        parameters += op.parameters;
      }
      return parameters;
    };
    const std::vector<std::int64_t> layers = layers_by_kind(encoder);
    std::int64_t all =
        sum(embedding_operators(encoder, shape)) + sum(head_operators(encoder, shape));
    for (std::size_t kind = 0; kind < layers.size(); ++kind) {
      all += layers[kind] * sum(layer_operators(encoder, shape, static_cast<int>(kind)));
    }
    EXPECT_EQ(all, count_parameters(encoder).total) << name;
  }
}

struct Seen {
  const char* model;
  ImageSize image;
  std::int64_t tiles;
  std::int64_t patches;  ///< of a tile
  std::int64_t tokens;
};

TEST(Vision, ImagesBecomeTheTokensThatProcessorsCount) {
  constexpr auto kSeen = std::to_array<Seen>({
      // 1280 / 28 = 45.7 -> 46, 720 / 28 = 25.7 -> 26; two marks.
      {"qwen2-vl-7b", {1280, 720}, 1, 4 * 46 * 26, 46 * 26 + 2},
      {"qwen2.5-vl-7b", {1280, 720}, 1, 4 * 46 * 26, 46 * 26 + 2},
      // 48 Mpixel scaled to 12.8: 4138.4 x 3103.8, whole squares of 28 in it.
      {"qwen2.5-vl-7b", {8000, 6000}, 1, 4 * 147 * 110, 147 * 110 + 2},
      {"qwen2.5-vl-7b", {28, 28}, 1, 4 * 2 * 2, 2 * 2 + 2},  // up to 56 x 56
      // 1280 / 32 = 40, 720 / 32 = 22.5 -> 22, the even one.
      {"qwen3-vl-8b", {1280, 720}, 1, 4 * 40 * 22, 40 * 22 + 2},
      {"gemma-3-27b", {1280, 720}, 1, 64 * 64, 256 + 4},
      // 280 squares of the image's ratio are 22.3 x 12.5; padded to 280 x 9 patches.
      {"gemma-4-31b", {1280, 720}, 1, 280 * 9, 22 * 12 + 2},
      // 4 x 2 tiles: as near to 16:9 as 2 x 1, and the image fills more than half of them.
      {"internvl3-8b", {1280, 720}, 8 + 1, 32 * 32 + 1, 9 * 256 + 2},
      {"internvl3-8b", {448, 448}, 1, 32 * 32 + 1, 256 + 2},
      // 4 x 3 tiles scale it up by 1.05, least of all that do; a separator behind each.
      {"llama-4-scout", {1280, 720}, 12 + 1, 24 * 24 + 1, 13 * 144 + 12 + 3},
      {"llama-4-scout", {300, 300}, 1, 24 * 24 + 1, 144 + 3},
      {"llava-1.5-7b", {1280, 720}, 1, 24 * 24 + 1, 576},
      // 45.7 -> 46 and 25.7 -> 26 squares, the end of every row.
      {"mistral-small-3.1-24b", {1280, 720}, 1, 4 * 46 * 26, 46 * 26 + 26},
      // Half as large: 1540 x 770 is 55 x 27.5.
      {"mistral-small-3.1-24b", {3080, 1540}, 1, 4 * 55 * 28, 55 * 28 + 28},
  });
  for (const Seen& row : kSeen) {
    const Model model = seeing(row.model);
    ASSERT_TRUE(model.vision) << row.model;
    const ImageTokens tokens = image_tokens(*model.vision, row.image);
    EXPECT_EQ(tokens.tiles, row.tiles) << row.model;
    EXPECT_EQ(tokens.patches, row.patches) << row.model;
    EXPECT_EQ(tokens.tokens, row.tokens) << row.model;
  }
}

TEST(Vision, AnEncoderThatIsNotReadIsANote) {
  ModelFile file = load_model_file("qwen3-vl-8b").value();
  for (ConfigField& field : file.node.fields) {
    for (ConfigField& inner : field.value.fields) {
      const bool is_type = field.name == "vision_config" && inner.name == "model_type";
      inner.value.text = is_type ? "moonvit" : inner.value.text;
    }
  }
  const auto model = parse_model(file.node, "seen");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_FALSE(model->vision);
  EXPECT_THAT(model->notes, ::testing::Contains(::testing::HasSubstr("'moonvit' is not read")));
}

TEST(Vision, MistakesOfAnEncoderAreTheFilesOwn) {
  ModelFile file = load_model_file("qwen2.5-vl-7b").value();
  for (ConfigField& field : file.node.fields) {
    for (ConfigField& inner : field.value.fields) {
      inner.value.text = inner.name == "num_heads" ? "17" : inner.value.text;
      inner.value.text = inner.name == "out_hidden_size" ? "4096" : inner.value.text;
    }
  }
  const auto refused = parse_model(file.node, "wrong");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("num_heads"));
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("out_hidden_size"));
}

TEST(Vision, AnImageHoldsASquareOfPatches) {
  // InternViT's patches of 14 pixels are merged two by two.
  const auto of_side = [](const std::string& side) {
    const std::string text =
        R"({"model_type": "internvl_chat", "llm_config": {"model_type": "llama", "hidden_size": 64,
            "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "vocab_size": 100, "max_position_embeddings": 64},
            "vision_config": {"image_size": )" +
        side + "}}";
    return parse_config(text, "config.json", ConfigSyntax::json).and_then([](const auto& node) {
      return parse_model(node, "small");
    });
  };
  EXPECT_TRUE(of_side("28"));
  const auto refused = of_side("27");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("at least 28 pixels"));
}

}  // namespace
}  // namespace orrery::zoo
