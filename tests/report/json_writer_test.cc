// SPDX-License-Identifier: Apache-2.0
#include "report/json_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace orrery::report {
namespace {

std::string compact(const std::function<void(JsonWriter&)>& write) {
  std::string text;
  {
    JsonWriter json([&](std::string_view piece) { text += piece; });
    write(json);
  }
  return text;
}

TEST(JsonWriter, SeparatesItemsAtEveryDepth) {
  EXPECT_EQ(compact([](JsonWriter& json) {
              json.begin_object();
              json.key("a").begin_array().value(1).value(true).begin_array().end_array();
              json.end_array();
              json.key("b").begin_object().key("c").value("x").end_object();
              json.end_object();
            }),
            R"({"a":[1,true,[]],"b":{"c":"x"}})");
}

TEST(JsonWriter, IndentsByTwoAndKeepsEmptyListsShort) {
  EXPECT_EQ(json_text([](JsonWriter& json) {
              json.begin_object();
              json.key("a").begin_array().value(1).end_array();
              json.key("b").begin_array().end_array();
              json.end_object();
            }),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": []\n}\n");
}

TEST(JsonWriter, NumbersThatJsonHasNotAreNull) {
  EXPECT_EQ(compact([](JsonWriter& json) {
              json.begin_array();
              json.value(std::nan("")).value(std::numeric_limits<double>::infinity());
              json.end_array();
            }),
            "[null,null]");
}

TEST(JsonWriter, EscapesControlCharactersQuotesAndBackslashes) {
  EXPECT_EQ(compact([](JsonWriter& json) { json.value("\"\\\n\x01"); }),
            "\"\\\"\\\\\\u000a\\u0001\"");
}

TEST(JsonWriter, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  // 0xFF never occurs; 0xC0 0xAF is an overlong '/'; 0xED 0xA0 0x80 a surrogate; é stays.
  EXPECT_EQ(compact([](JsonWriter& json) { json.value("\xFF|\xC0\xAF|\xED\xA0\x80|\xC3\xA9"); }),
            "\"\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\xC3\xA9\"");
}

RC_GTEST_PROP(JsonWriter, DoublesReadBackEqual, (const double number)) {
  RC_PRE(std::isfinite(number));
  const auto parsed = nlohmann::json::parse(compact([&](JsonWriter& json) { json.value(number); }));
  RC_ASSERT(parsed.get<double>() == number);
}

RC_GTEST_PROP(JsonWriter, AnyBytesGiveAWellFormedString, (const std::string& bytes)) {
  const std::string text = compact([&](JsonWriter& json) { json.value(bytes); });
  RC_ASSERT(nlohmann::json::accept(text));
}

TEST(JsonWriter, PiecesOfALongTextJoinUp) {
  // 30,000 items are more than one piece of 64 KiB.
  const std::string text = compact([](JsonWriter& json) {
    json.begin_array();
    for (int i = 0; i < 30'000; ++i) {
      json.value(i);
    }
    json.end_array();
  });
  const auto parsed = nlohmann::json::parse(text);
  ASSERT_EQ(parsed.size(), 30'000U);
  EXPECT_EQ(parsed.back(), 29'999);
}

}  // namespace
}  // namespace orrery::report
