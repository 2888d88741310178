// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/reader.h"

namespace orrery {
namespace {

TEST(Units, DecimalAndBinaryPrefixesMeanWhatTheySay) {
  EXPECT_EQ(parse_bytes("40 GB"), Bytes(40'000'000'000));
  EXPECT_EQ(parse_bytes("80 GiB"), 80_GiB);
  EXPECT_EQ(parse_bandwidth("400 Gbit/s"), 50_GBps);
  EXPECT_EQ(parse_bandwidth("1 GiB/s"), Bandwidth(1073741824.0));
  EXPECT_EQ(parse_time("1.5 us"), 1500_ns);
  EXPECT_EQ(parse_flop_rate("312 TFLOP/s"), 312_TFLOPs);
}

TEST(Units, EnergyIsPowerTimesTimeAndBytesTimesTheirCost) {
  // 10 pJ/bit = 80 pJ/B; 700 W for 3 s are 2.1 kJ; 1 GB at 80 pJ/B costs 0.08 J.
  EXPECT_NEAR(parse_energy_per_byte("10 pJ/bit")->value(), 80e-12, 1e-24);
  EXPECT_EQ(parse_energy_per_byte("60 pJ/B"), EnergyPerByte(60e-12));
  EXPECT_FALSE(parse_energy_per_byte("60 pJ").has_value());
  EXPECT_EQ(parse_energy("2 kWh"), Energy(7.2e6));
  EXPECT_EQ(Power(700) * 3_s, Energy(2100));
  EXPECT_DOUBLE_EQ((EnergyPerByte(80e-12) * Bytes(1'000'000'000)).value(), 0.08);
}

TEST(Units, MoneyIsInDollarsWithOrWithoutTheWord) {
  EXPECT_EQ(parse_money("2.5"), Money(2.5));
  EXPECT_EQ(parse_money("2.5 USD"), Money(2.5));
  EXPECT_FALSE(parse_money("2.5 EUR").has_value());
}

TEST(Units, ABareNumberIsAMistakeExceptZero) {
  EXPECT_FALSE(parse_bytes("80").has_value());
  EXPECT_EQ(parse_bytes("100KB").error(),
            "'kB' (1000 bytes) or 'KiB' (1024 bytes): 'KB' may be either");
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

TEST(Units, WholeNumbersAreExactBeyondTheDigitsOfADouble) {
  // 2^53 + 1 is no double.
  EXPECT_EQ(parse_bytes("9007199254740993 B"), Bytes(9007199254740993));
  EXPECT_EQ(parse_time("9007199254740993 ps"), Time(9007199254740993));
  EXPECT_EQ(parse_bytes("8191 PiB"), Bytes(std::int64_t{8191} << 50));
  EXPECT_FALSE(parse_bytes("8192 PiB").has_value());  // 2^63
}

TEST(Units, ALeadingZeroIsAMistake) {
  EXPECT_FALSE(parse_integer("08"));
  EXPECT_FALSE(parse_integer("-01"));
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("-10"), -10);
}

TEST(Units, AMistakeSaysWhatWouldBeRight) {
  EXPECT_EQ(parse_time("5").error(), "a time such as '1.5 us' (min, s, ms, us, ns, ps)");
  EXPECT_EQ(parse_bytes("1e30 GB").error(), "a smaller value; this one is out of range");
  EXPECT_EQ(parse_flop_rate("1e300 PFLOP/s").error(), "a smaller value; this one is out of range");
  EXPECT_EQ(parse_integer("99999999999999999999").error(), "a whole number that fits 64 bits");
  for (const char* amount : {"8k", "1,024", "1e3"}) {
    EXPECT_EQ(parse_integer(amount).error(), "a whole number in digits alone, such as 1024");
  }
  EXPECT_EQ(parse_integer("eight").error(), "a whole number");
}

TEST(Format, ForPeople) {
  EXPECT_EQ(to_string(Bandwidth(2039e9)), "2.039 TB/s");
  EXPECT_EQ(to_string(Bandwidth(300e9)), "300 GB/s");
  EXPECT_EQ(to_string(80_GiB), "80 GiB");
  EXPECT_EQ(to_string(2450_ns), "2.45 us");
  EXPECT_EQ(to_string(Time(0)), "0 s");
  EXPECT_EQ(to_string(312_TFLOPs), "312 TFLOP/s");
  EXPECT_EQ(to_string(Power(400)), "400 W");
}

TEST(Format, ExactTextsAreShort) {
  EXPECT_EQ(exact_text(2450_ns), "2.45 us");
  EXPECT_EQ(exact_text(0_ps), "0 ps");
  EXPECT_EQ(exact_text(300_GBps), "300 GB/s");
  EXPECT_EQ(exact_text(80_GiB), "80 GiB");
  EXPECT_EQ(exact_text(Bytes(40'000'000'000)), "40 GB");
  EXPECT_EQ(exact_text(Bytes(1001)), "1001 B");
  EXPECT_EQ(exact_text(FlopRate(989.4e12)), "989.4 TFLOP/s");
  EXPECT_EQ(exact_text(Power(400)), "400 W");
  EXPECT_EQ(exact_text(Energy(3.6e6)), "3.6 MJ");
  EXPECT_EQ(exact_text(EnergyPerByte(60e-12)), "60 pJ/B");
  EXPECT_EQ(exact_text(Money(2.5)), "2.5 USD");
  EXPECT_EQ(exact_text(std::string("a \"b\"\n")), R"("a \"b\"\x0a")");
}

template <class T>
void expect_exact(T value) {
  const auto again = parse_value<T>(exact_text(value));
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == value);
}

RC_GTEST_PROP(Format, ExactTextsReadBackEqual, ()) {
  const auto whole = *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
  const auto shift = *rc::gen::inRange(0, 63);
  expect_exact(Bytes(whole >> shift));
  expect_exact(Time(whole >> shift));
  const double number = std::ldexp(static_cast<double>(whole), *rc::gen::inRange(-80, 40));
  expect_exact(number);
  expect_exact(Bandwidth(number));
  expect_exact(FlopRate(number));
  expect_exact(Power(number));
  expect_exact(Energy(number));
  expect_exact(EnergyPerByte(number * 1e-12));
  expect_exact(Money(std::min(number, 1e12)));  // more is not read
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

}  // namespace
}  // namespace orrery
