// SPDX-License-Identifier: Apache-2.0
/// Attention and MLPs on devices of their own.
#include "serving/step/ffn_apart.h"

#include <gtest/gtest.h>

#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

TEST(PingPong, FollowsItsEquations) {
  PingPong of{.attention = 3_us, .there = 1_us, .ffn = 2_us, .back = 1_us, .layers = 4};
  // One micro-batch waits for itself: 4 layers of 3 + 1 + 2 + 1.
  EXPECT_EQ(ping_pong(of), 28_us);
  // Two keep the slower side busy for 6 of the 7 us that one takes to come around:
  // 7 + 3 + 3 x max(6, 7).
  of.micro_batches = 2;
  EXPECT_EQ(ping_pong(of), 31_us);
  // Three for 9: 7 + 2 x 3 + 3 x 9 = 40, which is fill + slowest (m layers - 1) = 7 + 3 x 11.
  of.micro_batches = 3;
  EXPECT_EQ(ping_pong(of), 40_us);
  // A slow way back is the slowest of all: fill 14, 14 + 2 x 8 + 3 x 24.
  of.back = 8_us;
  EXPECT_EQ(ping_pong(of), 102_us);
}

StepOptions apart(std::int64_t dp, std::int64_t ffn, std::int64_t micro_batches = 3) {
  StepOptions options;
  options.degrees = {.dp = dp, .ffn = ffn};
  options.micro_batches = micro_batches;
  return options;
}

Result<StepCost> made(const char* model, const StepOptions& options) {
  return StepCost::make(zoo::load_model(model).value(), machine::load_machine("dgx-h100").value(),
                        options);
}

StepShape decodes(const StepCost& cost, std::int64_t count) {
  return {
      .tokens = count,
      .samples = count,
      .prompts = {},
      .decodes = count,
      .visible = std::vector<double>(cost.windows().size(), 1000.0 * static_cast<double>(count))};
}

TEST(FfnApart, BothSidesHaveTheModelOnce) {
  // Of Qwen3-30B-A3B the 8 devices have a router, 2,048 x 128, and a norm of 2,048 in each of 48
  // layers, 7 more than the model has; a mean layer's bytes are rounded down.
  const Bytes whole = made("qwen3-30b-a3b", {}).value().weights_per_device();
  const StepCost cost = made("qwen3-30b-a3b", apart(4, 8)).value();
  const Bytes more = Bytes(7 * 48 * 2 * (2048 * 128 + 2048));
  const Bytes all = cost.weights_per_device() + 8 * cost.ffn_bytes(0);
  EXPECT_NEAR(static_cast<double>(all.value()), static_cast<double>((whole + more).value()),
              9 * 48);
  // Keys and values are those of a copy alone, on one device.
  EXPECT_EQ(cost.kv_bytes_per_token(), made("qwen3-30b-a3b", {}).value().kv_bytes_per_token());
}

TEST(FfnApart, DenseModelsHaveTheirMlpsInParts) {
  // A part of an MLP is half of it, norms are on both.
  const StepCost cost = made("llama-3-8b", apart(2, 2)).value();
  const Bytes whole = made("llama-3-8b", {}).value().weights_per_device();
  EXPECT_EQ(cost.weights_per_device() + 2 * cost.ffn_bytes(0), whole + Bytes(32 * 2 * 4096));
}

TEST(FfnApart, MicroBatchesPayWhereTokensAreManyAndCostWhereWeightsAreReadForFew) {
  const auto time = [](std::int64_t micro_batches, std::int64_t count) {
    StepCost cost = made("qwen3-30b-a3b", apart(4, 4, micro_batches)).value();
    return cost.time(decodes(cost, count));
  };
  // 512 decodes of 1,000 keys a copy: one side works while the other does; at most as fast as two
  // sides that never wait.
  EXPECT_LT(time(2, 512), time(1, 512));
  EXPECT_GT(2 * time(2, 512), time(1, 512));
  // Of 4 tokens every micro-batch reads its weights anew.
  EXPECT_GT(time(4, 4), time(1, 4));
}

TEST(FfnApart, FourTimesTheDevicesForExpertsAreAtMostFourTimesAsFast) {
  const auto time = [](std::int64_t ffn) {
    StepCost cost = made("qwen3-30b-a3b", apart(4, ffn)).value();
    return cost.time(decodes(cost, 512));
  };
  EXPECT_LT(time(4), time(1));
  EXPECT_LE(time(1) - time(4), time(1) * 0.75);  // a quarter of the experts' time is left at least
}

TEST(FfnApart, WhatCannotBeApartIsAMistake) {
  const auto message = [](const char* model, const StepOptions& options) {
    const auto cost = made(model, options);
    return cost ? std::string() : cost.error().to_string();
  };
  EXPECT_NE(message("qwen3-30b-a3b", apart(1, 3)).find("redundant_experts 1 more"),
            std::string::npos);
  StepOptions copies = apart(1, 3);
  copies.redundant = 1;
  EXPECT_EQ(message("qwen3-30b-a3b", copies), "");
  StepOptions staged = apart(1, 4);
  staged.degrees.pp = 2;
  EXPECT_NE(message("llama-3-8b", staged).find("ffn: found '4', expected 0 with pp"),
            std::string::npos);
  EXPECT_NE(message("llama-3-8b", apart(1, 3)).find("ffn: found '3', expected a divisor"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::step
