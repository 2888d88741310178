// SPDX-License-Identifier: Apache-2.0
#include "base/config_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "base/format.h"
#include "base/reader.h"

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

TEST(ConfigNode, AValueThatIsNotThereIsOnTheLineOfItsKey) {
  const ConfigNode root = yaml("a:\n\nb: 1\nc:\n");
  EXPECT_EQ(root.find("a")->line, 1);
  EXPECT_EQ(root.find("c")->line, 4);
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

TEST(ConfigNode, JsonMistakesNameTheirLineAndWhatStandsThere) {
  EXPECT_EQ(
      mistake_of("{\n  \"a\": 1,\n  b: 2\n}", ConfigSyntax::json),
      "f:3: found 'b: 2', expected JSON (parsing object key - invalid literal; expected string "
      "literal)");
  EXPECT_EQ(
      mistake_of("{\"a\": 1}\n{}", ConfigSyntax::json),
      "f:2: found '{}', expected JSON (parsing value - unexpected '{'; expected end of input)");
  EXPECT_EQ(mistake_of("{\"a\": 1,\n\"a\": 2}", ConfigSyntax::json),
            "f:2: a: this field only once; it was given before");
  EXPECT_THAT(mistake_of("", ConfigSyntax::json), ::testing::HasSubstr("the end of the file"));
  EXPECT_THAT(mistake_of("[1e999]", ConfigSyntax::json), ::testing::StartsWith("f:1: "));
}

TEST(ConfigNode, AnyLayoutOfJsonHasItsLines) {
  // A key and its colon on two lines, tabs, a number before a line end, escapes beyond 16 bits: all
  // JSON, none of it YAML.
  const auto root = parse_config("{\"a\"\n:\t[10\n, 20,\r\n3e2\n],\n\"b\": \"\\ud83d\\ude00\\/\"}",
                                 "c.json", ConfigSyntax::json);
  ASSERT_TRUE(root.has_value()) << root.error().to_string();
  const ConfigNode& a = *root->find("a");
  EXPECT_EQ(a.line, 2);
  EXPECT_EQ(a.items[0].line, 2);
  EXPECT_EQ(a.items[1].line, 3);
  EXPECT_EQ(a.items[2].line, 4);
  EXPECT_EQ(a.items[2].text, "3e2");
  EXPECT_EQ(root->find("b")->line, 6);
  EXPECT_EQ(root->find("b")->text, "\xF0\x9F\x98\x80/");
}

TEST(ConfigNode, ALongMapIsReadInLinearTime) {
  // 200,000 fields: comparing each with all before it would take minutes.
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) {
    text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  }
  EXPECT_EQ(parse_config(text + "}", "c.json", ConfigSyntax::json)->fields.size(), 200'000U);
}

TEST(ConfigNode, ValuesThatTakeManyTimesTheirFileAreRefused) {
  // 600,000 values of two bytes each: a node takes over 128 bytes, and 64 MiB are the least limit.
  static_assert(sizeof(ConfigNode) > 128);
  std::string text = "{\"a\": [0";
  for (int i = 0; i < 600'000; ++i) {
    text += ",0";
  }
  EXPECT_EQ(mistake_of(text + "]}", ConfigSyntax::json),
            "f:1: a file whose values take at most 64 MiB: 11 times its size, and 64 MiB to 2 GiB "
            "(--big: 2 GiB)");
  // Every value below a key of 1,000 bytes carries it in its path: 70,000 of them are 70 MB.
  const std::string key(1'000, 'k');
  std::string paths = "{\"" + key + "\": [0";
  std::string lines = key + ":\n";
  for (int i = 0; i < 70'000; ++i) {
    paths += ",0";
    lines += "- 0\n";
  }
  EXPECT_THAT(mistake_of(paths + "]}", ConfigSyntax::json), ::testing::HasSubstr("64 MiB"));
  EXPECT_THAT(mistake_of(lines), ::testing::HasSubstr("64 MiB"));
}

TEST(ConfigNode, RepeatedFieldsAreNamedInTheOrderInWhichTheyStand) {
  EXPECT_EQ(mistake_of("{\"b\": 1, \"a\": 2,\n\"b\": 3, \"c\": 4,\n\"a\": 5,\n\"a\": 6}",
                       ConfigSyntax::json),
            "f:2: b: this field only once; it was given before\n"
            "f:3: a: this field only once; it was given before\n"
            "f:4: a: this field only once; it was given before");
}

TEST(ConfigNode, OnlyUtf8IsText) {
  for (const char* wrong : {"\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80",
                            "\xE2\x82", "\x7F", "\x1B[0m"}) {
    EXPECT_EQ(mistake_of(std::string("a: 1\nb: ") + wrong),
              "f:2: expected UTF-8 text; this is not a text file");
  }
  EXPECT_EQ(mistake_of(std::string("a\0b", 3)),
            "f:1: expected UTF-8 text; this is not a text file");
  EXPECT_EQ(yaml("\xEF\xBB\xBF"
                 "a: \xE2\x82\xAC")
                .find("a")
                ->text,
            "\xE2\x82\xAC");  // mark and euro sign
}

TEST(ConfigNode, WhatIsShownIsShortAndEndsWithAWholeCharacter) {
  std::string euros;
  for (int i = 0; i < 100; ++i) {
    euros += "\xE2\x82\xAC";
  }
  // 20 of 3 bytes are 60 bytes; one letter before them leaves room for 19.
  EXPECT_EQ(yaml("a: " + euros).find("a")->shown(), euros.substr(0, 60) + "...");
  EXPECT_EQ(yaml("a: x" + euros).find("a")->shown(), "x" + euros.substr(0, 57) + "...");
}

TEST(Error, ControlCharactersOfAFileDoNotReachTheTerminal) {
  const ConfigNode node = yaml(R"(a: "\e[31m\nf.yaml:9: fake")");
  Error error(Mistake{node.where(), "a", node.find("a")->shown(), "a number"});
  EXPECT_EQ(error.to_string(),
            R"(f.yaml:1: a: found '\x1b[31m\nf.yaml:9: fake', expected a number)");
}

TEST(Error, FloodsAndLongValuesAreCut) {
  Error error;
  for (int i = 0; i < 1000; ++i) {
    error.add({"f:1", std::string(10'000, 'k'), std::string(10'000, 'v'), "less"});
  }
  const std::string text = error.to_string();
  EXPECT_LT(text.size(), 50U * 500);
  EXPECT_THAT(text, ::testing::EndsWith("\n... and 950 more mistakes"));
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
              ::testing::StartsWith("f:2: expected UTF-8 text"));
  EXPECT_THAT(mistake_of("a: [1, 2\nb: 3\n"), ::testing::HasSubstr("valid YAML"));
  EXPECT_THAT(mistake_of("a: 1\nb: 'x\n"), ::testing::StartsWith("f:"));
  EXPECT_THAT(mistake_of("a: 1\n~: 2\n"), ::testing::StartsWith("f:2: a name before ':'"));
  EXPECT_THAT(mistake_of("a: !x {b: 1}\n"), ::testing::HasSubstr("tags"));
  EXPECT_THAT(mistake_of("[a]: 1\n"), ::testing::HasSubstr("plain name as key"));
  std::string deep;
  for (int i = 0; i < 100; ++i) {
    deep += "- ";
  }
  EXPECT_THAT(mistake_of(deep + "x"), ::testing::HasSubstr("64 levels"));
  EXPECT_THAT(mistake_of(std::string(100000, '['), ConfigSyntax::json),
              ::testing::HasSubstr("64 levels"));
}

/// Characters that mean something to the parsers, so that junk gets deeper than the first byte.
rc::Gen<std::string> markup() {
  return rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("{}[]:,-#&*!|>'\"%@`\\\n\t ?a0~.")));
}

RC_GTEST_PROP(ConfigNode, MarkupNeverCrashesAndEveryNodeKnowsItsLine, ()) {
  const std::string text = *markup();
  for (const ConfigSyntax syntax : {ConfigSyntax::yaml, ConfigSyntax::json}) {
    const auto node = parse_config(text, "junk", syntax);
    RC_ASSERT((node.has_value() ? node->line >= 1 : !node.error().to_string().empty()));
  }
}

RC_GTEST_PROP(ConfigNode, AnyTextSurvivesBeingQuoted, (const std::string& bytes)) {
  std::string text;
  for (const char c : bytes) {
    text += static_cast<char>(c & 0x7F);
  }
  RC_ASSERT(yaml("a: " + exact_text(text)).find("a")->text == text);
}

RC_GTEST_PROP(ConfigNode, JunkNeverCrashes, (const std::string& text)) {
  for (const ConfigSyntax syntax : {ConfigSyntax::yaml, ConfigSyntax::json}) {
    const auto node = parse_config(text, "junk", syntax);
    RC_ASSERT(node.has_value() || !node.error().mistakes.empty());
  }
}

TEST(ConfigNode, JsonHasPythonsNumbersThatAreNotFinite) {
  const auto node =
      parse_config(R"({"a": [0.0, Infinity], "b": -Infinity, "c": NaN, "d": "an Infinity \" NaN"})",
                   "c.json", ConfigSyntax::json);
  ASSERT_TRUE(node) << node.error().to_string();
  EXPECT_EQ(node->find("a")->items[1].text, "Infinity");
  EXPECT_FALSE(node->find("a")->items[1].quoted);
  EXPECT_EQ(node->find("b")->text, "-Infinity");
  EXPECT_EQ(node->find("d")->text, "an Infinity \" NaN");
  EXPECT_TRUE(node->find("d")->quoted);
  Reader read(*node);  // no number of ours
  read.required<double>("b");
  EXPECT_FALSE(read.ok());
  EXPECT_FALSE(parse_config("{\"a\": Infinit}", "c.json", ConfigSyntax::json));
}

TEST(ConfigNode, KeysHaveALimitSinceEveryValueBelowCarriesThem) {
  const std::string key(5000, 'k');
  const auto node = parse_config("{\"" + key + "\": [1, 2]}", "c", ConfigSyntax::json);
  ASSERT_FALSE(node);
  EXPECT_THAT(node.error().to_string(), ::testing::HasSubstr("a name of at most 4096 bytes"));
}

}  // namespace
}  // namespace orrery
