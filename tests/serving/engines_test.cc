// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serving/requests/generate.h"
#include "serving/serve.h"

namespace orrery::serving {
namespace {

TEST(Engines, ACardWithoutBf16ServesInFp16UnlessTheFileAsksForIt) {
  const zoo::Model model = zoo::load_model("llama-3.2-1b").value();
  const machine::Machine t4 = machine::load_machine("t4").value();
  const std::vector<requests::Request> three = requests::generate({.rate = 20, .count = 3});
  Engine engine = load_engine("vllm@0.19").value();
  const auto run = serve(model, t4, engine, three);
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->engine.activations, graph::DataType::fp16);
  EXPECT_THAT(run->notes, ::testing::ElementsAre(::testing::HasSubstr("in fp16")));
  EXPECT_TRUE(
      serve(model, machine::load_machine("dgx-h100").value(), engine, three).value().notes.empty());
  engine.stated.emplace_back("precision.activations", "e.yaml:2");
  const auto asked = serve(model, t4, engine, three);
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().to_string(), ::testing::HasSubstr("a type that T4"));
}

TEST(Engines, EveryOneIsReadBackEqual) {
  for (const EngineDefaults& row : engines()) {
    const Engine engine = load_engine(std::string(row.name)).value();
    const auto again = parse_config(to_yaml(engine), "engine", ConfigSyntax::yaml)
                           .and_then([](const ConfigNode& node) { return parse_engine(node); });
    ASSERT_TRUE(again.has_value()) << row.name;
    EXPECT_EQ(to_yaml(*again), to_yaml(engine));
  }
}

TEST(Engines, MistakesAreNamed) {
  const auto engine = parse_config("engine: vlm\n", "e.yaml", ConfigSyntax::yaml)
                          .and_then([](const ConfigNode& node) { return parse_engine(node); });
  ASSERT_FALSE(engine.has_value());
  EXPECT_THAT(engine.error().to_string(), ::testing::HasSubstr("vllm@0.19"));
  const auto field = parse_config("scheduler: {max_num_seq: 3}\n", "e.yaml", ConfigSyntax::yaml)
                         .and_then([](const ConfigNode& node) { return parse_engine(node); });
  ASSERT_FALSE(field.has_value());
  EXPECT_THAT(field.error().to_string(), ::testing::HasSubstr("max_num_seqs"));
}

}  // namespace
}  // namespace orrery::serving
