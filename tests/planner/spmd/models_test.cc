// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spmd/strategy.h"
#include "published.h"

namespace orrery::spmd {
namespace {

TEST(Models, AreThePublishedGraphs) {
  for (const std::string name : {"Rmoe", "Vmoe"}) {
    const auto expected = load_graph(published("graph_" + name + "_8gpus_8layers.json"));
    ASSERT_TRUE(expected) << expected.error().to_string();
    const OperatorGraph built = model(name, 8, 8);
    ASSERT_EQ(built.nodes.size(), expected->nodes.size());
    for (std::size_t i = 0; i < built.nodes.size(); ++i) {
      SCOPED_TRACE(built.nodes[i].name);
      EXPECT_EQ(built.nodes[i].name, expected->nodes[i].name);
      EXPECT_EQ(built.nodes[i].op, expected->nodes[i].op);
      EXPECT_EQ(built.nodes[i].flops, expected->nodes[i].flops);
      EXPECT_EQ(built.nodes[i].inputs, expected->nodes[i].inputs);
      EXPECT_EQ(built.nodes[i].signatures, expected->nodes[i].signatures);
    }
    EXPECT_EQ(built.tensors, expected->tensors);
    EXPECT_EQ(built, *expected);
  }
}

TEST(Models, HaveAsManyNodesAndTensorsAsTheFormulasSay) {
  for (const std::int64_t layers : {2, 3, 8, 96}) {
    EXPECT_EQ(model("Rswitch", 8, layers).nodes.size(), 70 + 28 * (layers - 2)) << layers;
    EXPECT_EQ(model("Vswitch", 8, layers).nodes.size(), 72 + 27 * (layers - 2)) << layers;
  }
  EXPECT_EQ(model("Rmoe", 8, 8).tensors.size(), 249U);
  EXPECT_EQ(model("Vmoe", 8, 8).tensors.size(), 245U);
}

TEST(Models, GrowWithTheDevices) {
  // 1.86 trillion parameters: 48 layers of 8,192 experts of 2 x 768 x 3072.
  EXPECT_NEAR(static_cast<double>(model("Rmoe", 4096, 96).parameters()), 1.86e12, 5e9);
  EXPECT_TRUE(verify(model("Vswitch", 3, 7)));
  EXPECT_FALSE(build_model(ModelName::rmoe, {.devices = 0, .layers = 0}));
}

TEST(Strategies, OfAFloodOfMistakesTheFirstAreTold) {
  std::string text = R"({"format": "spmd-strategy/1", "stages": [)";
  for (int stage = 0; stage < 30; ++stage) {
    text += std::string(stage == 0 ? "" : ",") + "\n{\"communications\": []}";
  }
  const auto read = parse_config(text + "]}", "s.json", ConfigSyntax::json).and_then(read_strategy);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), ::testing::HasSubstr("s.json:21: "));
  EXPECT_THAT(read.error().to_string(), ::testing::Not(::testing::HasSubstr("s.json:22: ")));
  EXPECT_THAT(read.error().to_string(), ::testing::HasSubstr("s.json: and 10 more"));
}

TEST(Strategies, OfTheReferenceTakeTheirPublishedTime) {
  for (const auto& [name, seconds] : {std::pair("Rmoe", 2.910879), {"Vmoe", 1.387896}}) {
    const std::string file = std::string(name) + "_8gpus_8layers.json";
    const OperatorGraph graph = load_graph(published("graph_" + file)).value();
    const Strategy strategy = load_strategy(published("strategy_" + file)).value();
    const PublishedPrices prices(setting(8, "64c8m"));
    const auto cost = replay(graph, strategy, prices);
    ASSERT_TRUE(cost) << cost.error().to_string();
    EXPECT_NEAR(to_seconds(cost->total), seconds, 5e-7);
    Time sum(0);
    for (const Time stage : cost->by_stage) {
      sum += stage;
    }
    EXPECT_LE(sum, cost->total);
  }
}

}  // namespace
}  // namespace orrery::spmd
