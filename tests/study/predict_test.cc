// SPDX-License-Identifier: Apache-2.0
#include "study/predict.h"

#include <gtest/gtest.h>

#include "study/run.h"

namespace orrery::study {
namespace {

TEST(Predict, MfuIsTheModelFlopRateInPerCentOfThePeak) {
  // A100: 312 TFLOP/s of bf16. Of a GPT whose vocabulary needs no padding both count the same
  // FLOPs.
  const auto run = make_case({{"layers", "4", ""},
                              {"hidden", "1024", ""},
                              {"heads", "16", ""},
                              {"vocab", "51200", ""},
                              {"sequence", "1024", ""},
                              {"devices", "2", ""},
                              {"tp", "2", ""},
                              {"global_batch", "4", ""}});
  ASSERT_TRUE(run) << run.error().to_string();
  const auto machine = machine::load_machine("dgx-a100-80g");
  ASSERT_TRUE(machine);
  const auto mfu = predict(*run, Measure::mfu_percent, *machine);
  const auto rate = predict(*run, Measure::model_tflops, *machine);
  ASSERT_TRUE(mfu && rate);
  EXPECT_GT(mfu->value, 0);
  EXPECT_NEAR(mfu->value, 100 * rate->value / 312, 1e-9 * mfu->value);
}

TEST(PredictStep, PowerIsThatOfAllDevicesAndHasNoCausesOfTime) {
  // Between idle and the cap of two devices of 400 W.
  const auto run = make_case({{"layers", "2", ""},
                              {"hidden", "1024", ""},
                              {"heads", "16", ""},
                              {"vocab", "51200", ""},
                              {"sequence", "1024", ""},
                              {"devices", "2", ""},
                              {"global_batch", "4", ""}});
  ASSERT_TRUE(run) << run.error().to_string();
  const auto machine = machine::load_machine("dgx-a100-80g");
  ASSERT_TRUE(machine);
  const auto power = predict(*run, Measure::power_w, *machine);
  ASSERT_TRUE(power) << power.error().to_string();
  EXPECT_GT(power->value, 2 * machine->device.idle_power.value());
  EXPECT_LE(power->value, 2 * machine->device.power.value());
  EXPECT_TRUE(power->causes.kind.empty());
}

/// 8 replicas, one microbatch each.
plan::Plan replicas(std::int64_t microbatch) {
  plan::Plan plan;
  plan.dp = 8;
  plan.zero = 1;
  plan.attention = zoo::AttentionKernel::flash;
  plan.sequence = 8192;
  plan.microbatch = microbatch;
  plan.global_batch = 8 * microbatch;
  return plan;
}

bool runs_in_memory(const zoo::Model& model, const machine::Machine& machine,
                    const plan::Plan& plan) {
  return run_step(model, machine, plan, 0, {}).has_value();
}

TEST(LeastRecompute, IsNoneWhereNothingIsNeededAndTheFirstOfItsListThatFits) {
  const zoo::Model model = zoo::load_model("llama-3.1-8b").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  std::size_t with_modules = 0;
  std::size_t with_layers = 0;
  for (const std::int64_t microbatch : {1, 2, 3, 4, 6}) {
    const plan::Plan given = replicas(microbatch);
    const plan::Plan least = least_recompute(model, machine, given);
    EXPECT_EQ(least == given, runs_in_memory(model, machine, given)) << microbatch;
    with_modules += least.recompute_modules.empty() ? 0 : 1;
    if (least.recompute == plan::Recompute::full && least.recompute_layers > 0) {
      ++with_layers;
      EXPECT_TRUE(runs_in_memory(model, machine, least)) << microbatch;
      plan::Plan fewer = least;
      --fewer.recompute_layers;
      EXPECT_TRUE(fewer.recompute_layers == 0 || !runs_in_memory(model, machine, fewer))
          << microbatch;
    }
  }
  EXPECT_GT(with_modules + with_layers, 0U);
}

TEST(LeastRecompute, LeavesFullRecomputeAndMistakesAlone) {
  const zoo::Model model = zoo::load_model("llama-3.1-8b").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  plan::Plan plan = replicas(16);
  plan.recompute = plan::Recompute::full;
  EXPECT_EQ(least_recompute(model, machine, plan), plan);
  plan = replicas(16);
  plan.tp = 3;
  EXPECT_EQ(least_recompute(model, machine, plan), plan);
}

}  // namespace
}  // namespace orrery::study
