// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"

namespace orrery {
namespace {

ConfigNode yaml(const std::string& text) {
  return parse_config(text, "cluster.yaml", ConfigSyntax::yaml).value();
}

struct Device {
  Bandwidth bandwidth{0};
  std::int64_t units = 0;
};

TEST(Reader, ReportsEveryMistakeAtOnceWithPlaceFieldFoundAndExpected) {
  const ConfigNode node = yaml("bandwidth: 400 Gb\nunits: many\nbandwith: 1 GB/s\n");
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

TEST(Reader, OptionalFieldsKeepTheirDefault) {
  const ConfigNode node = yaml("a: 1\nb: null\n");
  Reader read(node);
  EXPECT_EQ(read.optional<std::int64_t>("a", 7), 1);
  EXPECT_EQ(read.optional<std::int64_t>("b", 7), 7);
  EXPECT_EQ(read.optional<std::int64_t>("c", 7), 7);
  EXPECT_TRUE(read.finish(0).has_value());
}

TEST(Units, DecimalAndBinaryPrefixesMeanWhatTheySay) {
  EXPECT_EQ(parse_bytes("40 GB"), Bytes(40'000'000'000));
  EXPECT_EQ(parse_bytes("80 GiB"), 80_GiB);
  EXPECT_EQ(parse_bandwidth("400 Gbit/s"), 50_GBps);
  EXPECT_EQ(parse_bandwidth("1 GiB/s"), Bandwidth(1073741824.0));
  EXPECT_EQ(parse_time("1.5 us"), 1500_ns);
  EXPECT_EQ(parse_flop_rate("312 TFLOP/s"), 312_TFLOPs);
}

TEST(Units, ABareNumberIsAMistakeExceptZero) {
  EXPECT_FALSE(parse_bytes("80").has_value());
  EXPECT_EQ(parse_bytes("0"), 0_B);
  EXPECT_EQ(parse_time("0"), 0_ps);
}

TEST(Units, WrongValuesAreMistakes) {
  for (const char* text : {"", "GB", "-1 GB", "nan GB", "inf GB", "1e400 GB", "1e30 GB", "1 gb"}) {
    EXPECT_FALSE(parse_bytes(text).has_value()) << text;
  }
  EXPECT_FALSE(parse_integer("1.5").has_value());
  EXPECT_FALSE(parse_integer("99999999999999999999").has_value());
  EXPECT_FALSE(parse_number("nan").has_value());
  EXPECT_FALSE(parse_bool("yes").has_value());
}

TEST(Units, ArithmeticSaturatesAndStaysThere) {
  EXPECT_TRUE((Time::max() + 1_ps).is_overflow());
  EXPECT_TRUE((Time::max() - 1_s).is_overflow());
  EXPECT_TRUE((Bytes(std::int64_t{1} << 40) * (std::int64_t{1} << 40)).is_overflow());
  EXPECT_TRUE(from_seconds(1e30).is_overflow());
  EXPECT_EQ(Bytes(7) / 2, Bytes(4));  // a shard is never smaller than its share
}

RC_GTEST_PROP(Units, WhatIsPrintedIsReadBackWithinItsFourDigits, ()) {
  const auto value = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 60);
  const auto near = [](double found, double wanted) {
    return std::abs(found - wanted) <= 6e-4 * wanted;
  };
  RC_ASSERT(
      near(parse_bytes(to_string(Bytes(value))).value() / Bytes(1), static_cast<double>(value)));
  RC_ASSERT(near(parse_time(to_string(Time(value))).value() / Time(1), static_cast<double>(value)));
  RC_ASSERT(near(parse_bandwidth(to_string(Bandwidth(static_cast<double>(value)))).value().value(),
                 static_cast<double>(value)));
}

RC_GTEST_PROP(Units, JunkIsNeverAccidentallyAQuantity, (const std::string& text)) {
  const auto bytes = parse_bytes(text);
  RC_ASSERT(!bytes.has_value() || bytes->value() >= 0);
}

TEST(Names, CloseWordsAreSuggested) {
  EXPECT_EQ(did_you_mean("bandwith", {"latency", "bandwidth"}), " (did you mean 'bandwidth'?)");
  EXPECT_EQ(did_you_mean("tpp", {"tp", "pp"}), " (did you mean 'tp'?)");
  EXPECT_EQ(did_you_mean("xyzzy", {"tp", "pp"}), "");
}

}  // namespace
}  // namespace orrery
