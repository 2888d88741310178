// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"

namespace orrery {
namespace {

ConfigNode yaml_file(const std::string& text) {
  return parse_config(text, "cluster.yaml", ConfigSyntax::yaml).value();
}

struct Device {
  Bandwidth bandwidth{0};
  std::int64_t units = 0;
};

TEST(Reader, AFloodOfUnknownFieldsIsCounted) {
  // A mistake of each of 1,000,000 fields would take more memory than 20 times the file.
  std::string text = "{";
  for (int i = 0; i < 250; ++i) {
    text += "\"field" + std::to_string(i) + "\": 1, ";
  }
  const auto node = parse_config(text + "\"last\": 1}", "flood.json", ConfigSyntax::json);
  Reader read(*node);
  const auto result = read.finish(0);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().mistakes.size(), 101U);
  EXPECT_EQ(result.error().mistakes.back().expected, "151 more unknown fields");
}

TEST(Reader, ReportsEveryMistakeAtOnceWithPlaceFieldFoundAndExpected) {
  const ConfigNode node = yaml_file("bandwidth: 400 Gb\nunits: many\nbandwith: 1 GB/s\n");
  Reader read(node);
  Device device;
  device.bandwidth = read.required<Bandwidth>("bandwidth");
  device.units = read.required<std::int64_t>("units");
  read.required<std::string>("name");
  const auto result = read.finish(device);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(
      result.error().to_string(),
      "cluster.yaml:1: bandwidth: found '400 Gb', expected a rate in bytes or bits per second "
      "such as '50 GB/s' or '400 Gbit/s'\n"
      "cluster.yaml:2: units: found 'many', expected a whole number\n"
      "cluster.yaml:1: name: required, but missing\n"
      "cluster.yaml:3: bandwith: unknown field (did you mean 'bandwidth'?)");
}

TEST(Reader, AFieldThatIsNotGivenIsNotWhatIsExpected) {
  const ConfigNode node = yaml_file("a: 1\n");
  Reader read(node);
  read.ignore("a");
  read.reject("degree", "a degree");
  EXPECT_EQ(read.finish(0).error().to_string(),
            "cluster.yaml:1: degree: not given; expected a degree");
}

TEST(Reader, OptionalFieldsKeepTheirDefault) {
  const ConfigNode node = yaml_file("a: 1\nb: null\n");
  Reader read(node);
  EXPECT_EQ(read.optional<std::int64_t>("a", 7), 1);
  EXPECT_EQ(read.optional<std::int64_t>("b", 7), 7);
  EXPECT_EQ(read.optional<std::int64_t>("c", 7), 7);
  EXPECT_TRUE(read.finish(0).has_value());
}

TEST(Reader, OneMistakePerField) {
  const ConfigNode node = yaml_file("bandwidth: 400 Gb\n");
  Reader read(node);
  const auto bandwidth = read.optional<Bandwidth>("bandwidth", Bandwidth(0));
  read.require(bandwidth > Bandwidth(0), "bandwidth", "a rate above 0");
  read.reject("units", "a number of units");
  const auto result = read.finish(0);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().mistakes.size(), 2U) << result.error().to_string();
}

TEST(Reader, WhatIsNoMapIsOneMistake) {
  const ConfigNode node = yaml_file("[1, 2]");
  Reader read(node);
  read.required<std::string>("name");
  EXPECT_EQ(read.finish(0).error().to_string(),
            "cluster.yaml:1: found 'a list', expected a map of fields");
}

TEST(Reader, ListsAndNestedMapsKeepTheirPaths) {
  const ConfigNode node = yaml_file("list: [1, x]\nmap: {inner: {a: true}}\nwrong: 1\n");
  Reader read(node);
  read.list<std::int64_t>("list");
  Reader inner(*Reader(*read.child("map", true)).child("inner", true));
  inner.required<std::int64_t>("a");
  read.absorb(inner.finish(0));
  read.take_items("wrong", false);
  EXPECT_EQ(read.finish(0).error().to_string(),
            "cluster.yaml:1: list[1]: found 'x', expected a whole number\n"
            "cluster.yaml:2: map.inner.a: found 'true', expected a whole number\n"
            "cluster.yaml:3: wrong: found '1', expected a list");
}

TEST(Names, ALongListIsCut) {
  EXPECT_EQ(enumerated({"a", "b"}), "a, b");
  EXPECT_EQ(enumerated(std::vector<std::string>(99, "a")),
            "a, a, a, a, a, a, a, a, a, a, a, a and 87 more");
}

TEST(Names, CloseWordsAreSuggested) {
  EXPECT_EQ(did_you_mean("bandwith", {"latency", "bandwidth"}), " (did you mean 'bandwidth'?)");
  EXPECT_EQ(did_you_mean("tpp", {"tp", "pp"}), " (did you mean 'tp'?)");
  EXPECT_EQ(did_you_mean("xyzzy", {"tp", "pp"}), "");
  EXPECT_EQ(did_you_mean("tp", {"tp", "pp"}), "");  // the name itself is not what is wrong
  EXPECT_EQ(did_you_mean("a", {"m", "n"}), "");     // one letter is wrong of one
  EXPECT_EQ(did_you_mean("--bs", {"--jobs"}), "");  // two of four: dashes are no letters
}

TEST(Names, APartSuggestsTheShortestNameThatHoldsIt) {
  EXPECT_EQ(did_you_mean("h100", {"dgx-a100-80g", "dgx-h100-large", "dgx-h100"}),
            " (did you mean 'dgx-h100'?)");
  EXPECT_EQ(did_you_mean("bandwidth", {"memory_bandwidth_share", "bandwith"}),
            " (did you mean 'bandwith'?)");                 // one letter away comes first
  EXPECT_EQ(did_you_mean("tp", {"tensor-tp-degree"}), "");  // two letters are a part of anything
}

}  // namespace
}  // namespace orrery
