// SPDX-License-Identifier: Apache-2.0
#include "base/config_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace orrery {
namespace {

ConfigNode yaml(const std::string& text) {
  auto node = parse_config(text, "f.yaml", ConfigSyntax::yaml);
  EXPECT_TRUE(node.has_value()) << node.error().to_string();
  return node.value_or(ConfigNode{});
}

std::string mistake_of(const std::string& text, ConfigSyntax syntax = ConfigSyntax::yaml) {
  auto node = parse_config(text, "f", syntax);
  EXPECT_FALSE(node.has_value());
  return node.has_value() ? "" : node.error().to_string();
}

TEST(ConfigNode, EveryValueKnowsItsLineAndPath) {
  const ConfigNode root = yaml("a: 1\nb:\n  - x: two\n  - y: 'three'\n");
  EXPECT_EQ(root.find("a")->line, 1);
  const ConfigNode& y = *root.find("b")->items[1].find("y");
  EXPECT_EQ(y.line, 4);
  EXPECT_EQ(y.path, "b[1].y");
  EXPECT_EQ(y.text, "three");
  EXPECT_TRUE(y.quoted);
}

TEST(ConfigNode, JsonHasLinesToo) {
  const auto root =
      parse_config("{\n\t\"n_layer\": 12,\n\t\"x\": [1, null]\n}", "c.json", ConfigSyntax::json);
  ASSERT_TRUE(root.has_value()) << root.error().to_string();
  EXPECT_EQ(root->find("n_layer")->line, 2);
  EXPECT_EQ(root->find("x")->items[1].kind, ConfigNode::Kind::null);
}

TEST(ConfigNode, TruncatedJsonNamesTheLineWhereItEnds) {
  EXPECT_EQ(mistake_of("{\n\"a\": [1,\n", ConfigSyntax::json).substr(0, 36),
            "f:3: found 'the end of the file', ex");
}

TEST(ConfigNode, YamlThatIsNotJsonIsRefusedAsJson) {
  EXPECT_THAT(mistake_of("{a: 1}", ConfigSyntax::json), ::testing::HasSubstr("JSON"));
}

TEST(ConfigNode, EverySurpriseIsAMistakeWithItsPlace) {
  EXPECT_THAT(mistake_of(""), ::testing::HasSubstr("empty"));
  EXPECT_THAT(mistake_of("a: 1\n---\nb: 2\n"), ::testing::HasSubstr("several"));
  EXPECT_THAT(mistake_of("a: &x 1\nb: *x\n"),
              ::testing::StartsWith("f:1: plain values; YAML anchors"));
  EXPECT_THAT(mistake_of("a: 1\na: 2\n"), ::testing::StartsWith("f:2: a: this field only once"));
  EXPECT_THAT(mistake_of("a: !!int 1\n"), ::testing::HasSubstr("tags"));
  EXPECT_THAT(mistake_of(std::string("a: 1\nb: \x01\xFF\n")),
              ::testing::StartsWith("f:2: UTF-8 text"));
  EXPECT_THAT(mistake_of("a: [1, 2\nb: 3\n"), ::testing::HasSubstr("valid YAML"));
  EXPECT_THAT(mistake_of("[a]: 1\n"), ::testing::HasSubstr("plain name as key"));
  std::string deep;
  for (int i = 0; i < 100; ++i) {
    deep += "- ";
  }
  EXPECT_THAT(mistake_of(deep + "x"), ::testing::HasSubstr("64 levels"));
  EXPECT_THAT(mistake_of(std::string(100000, '['), ConfigSyntax::json),
              ::testing::HasSubstr("64 levels"));
}

RC_GTEST_PROP(ConfigNode, JunkNeverCrashes, (const std::string& text)) {
  for (const ConfigSyntax syntax : {ConfigSyntax::yaml, ConfigSyntax::json}) {
    const auto node = parse_config(text, "junk", syntax);
    RC_ASSERT(node.has_value() || !node.error().mistakes.empty());
  }
}

}  // namespace
}  // namespace orrery
