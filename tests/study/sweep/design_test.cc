// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/design.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace orrery::sweep {
namespace {

using ::testing::HasSubstr;

/// `rest`: machine, and what is varied.
Study priced_study(const std::string& rest) {
  const std::string text =
      "kind: plan\nmodel: gpt2\nplan: {global_batch: 32, sequence: 1024, pp: 1, cp: 1}\n"
      "only: {offload_optimizer: none, offload_activations: 0, zero: 1, microbatch: 4}\n" +
      rest;
  auto parsed =
      parse_config(text, "design", ConfigSyntax::yaml).and_then([](const ConfigNode& node) {
        return parse_study(node, "design");
      });
  EXPECT_TRUE(parsed) << parsed.error().to_string();
  return *parsed;
}

Study study(const std::string& price) {
  return priced_study(
      "machine: dgx-a100-80g\ndevices: 8\n"
      "vary:\n  devices: [8, 16]\n  machine.network.1.bandwidth: [12.5 GB/s, 50 GB/s]\n" +
      price);
}

constexpr const char* kTwoDollars = "  machine.device.price_per_hour: 2\n";

/// The file says 25 GB/s; 0.1 dollars for each GB/s more: 2 - 1.25 and 2 + 2.5 dollars a device.
TEST(Design, PricesTheDifferenceFromTheFileAndKeepsToTheBudget) {
  const std::string field = "machine.network.1.bandwidth";
  const auto found = design(
      study(kTwoDollars),
      {.prices = {{field, "GB/s", Money(0.1)}}, .budget = Money(40), .threads = 1, .progress = {}});
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->points.size(), 4U);
  const std::array<double, 4> prices{8 * 0.75, 8 * 4.5, 16 * 0.75, 16 * 4.5};
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const DesignPoint& point = found->points[i];
    EXPECT_NEAR(point.price->value(), prices[i], 1e-9);
    EXPECT_EQ(point.affordable, prices[i] <= 40);
    EXPECT_EQ(point.has_plan(), point.affordable) << point.outcome.error;
    if (point.has_plan()) {
      const double rate = std::get<double>(point.figure("tokens_per_s"));
      EXPECT_NEAR(point.cost_per_million_tokens->value(), prices[i] / 3600 / rate * 1e6, 1e-12);
    }
  }
  // Of those within 40 dollars the fastest: 16 devices on the slow network, or 8 on either.
  ASSERT_EQ(found->best.size(), 1U);
  for (const DesignPoint& point : found->points) {
    if (point.has_plan()) {
      EXPECT_LE(std::get<double>(point.figure("tokens_per_s")),
                std::get<double>(found->points[found->best[0]].figure("tokens_per_s")));
    }
  }
}

/// 12.5 GB/s less at 0.2 dollars each take more than the two dollars: 2 - 2.5.
TEST(Design, NobodyIsPaidForADevice) {
  const auto found =
      design(study(kTwoDollars), {.prices = {{"machine.network.1.bandwidth", "GB/s", Money(0.2)}},
                                  .budget = {},
                                  .threads = 1,
                                  .progress = {}});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().to_string(), HasSubstr("--price: found '-0.5 USD an hour"));
}

/// Four devices at 3 dollars with 4 or 12 at 1 dollar: 4 x 3 + 4 = 16, and 4 x 3 + 12 = 24 an hour.
TEST(Design, PaysForEveryDeviceOfAMixedMachine) {
  const std::string rest =
      "units: 1, power: 300 W, memory: [{name: h, capacity: 80 GB, bandwidth: 2 TB/s}]}}\n";
  const Study mixed = priced_study(
      "machine:\n  name: m\n  parts:\n"
      "    - {name: fast, devices: 4, device: {name: f, price_per_hour: 3, "
      "peak: {bf16: 300 TFLOP/s, fp32: 20 TFLOP/s}, " +
      rest +
      "    - {name: slow, devices: 4, device: {name: s, price_per_hour: 1, "
      "peak: {bf16: 100 TFLOP/s, fp32: 10 TFLOP/s}, " +
      rest +
      "  network:\n    - {name: rack, kind: switch, size: 0, bandwidth: 100 GB/s, latency: 1 us}\n"
      "vary:\n  machine.parts.slow.devices: [4, 12]\n");
  const auto found =
      design(mixed, {.prices = {}, .budget = Money(20), .threads = 1, .progress = {}});
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->points.size(), 2U);
  EXPECT_EQ(found->points[0].devices, 8);
  EXPECT_EQ(found->points[1].devices, 16);
  EXPECT_NEAR(found->points[0].price->value(), 16, 1e-9);
  EXPECT_NEAR(found->points[1].price->value(), 24, 1e-9);
  EXPECT_TRUE(found->points[0].has_plan()) << found->points[0].outcome.error;
  EXPECT_FALSE(found->points[1].affordable);
  EXPECT_THAT(std::get<std::string>(found->points[0].figure("best")), HasSubstr(", on fast"));
}

TEST(Design, RefusesWhatHasNoPriceOrNoUnit) {
  const auto none =
      design(study(""), {.prices = {}, .budget = Money(1), .threads = 1, .progress = {}});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().to_string(), HasSubstr("device.price_per_hour"));
  const auto only_priced =
      design(study(""),
             {.prices = {{"devices", "", Money(1)}}, .budget = {}, .threads = 1, .progress = {}});
  ASSERT_FALSE(only_priced);
  EXPECT_THAT(only_priced.error().to_string(), HasSubstr("--price: the machine states no"));
  for (const PricedField& wrong : {PricedField{"machine.network.1.bandwidth", "GiB", Money(1)},
                                   PricedField{"machine.network.7.bandwidth", "GB/s", Money(1)},
                                   PricedField{"devices", "", Money(1)}}) {
    const auto priced =
        design(study(kTwoDollars), {.prices = {wrong}, .budget = {}, .threads = 1, .progress = {}});
    ASSERT_FALSE(priced);
    EXPECT_THAT(priced.error().to_string(), HasSubstr("--price"));
  }
}

}  // namespace
}  // namespace orrery::sweep
