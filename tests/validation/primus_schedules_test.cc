// SPDX-License-Identifier: Apache-2.0
/// Published pipeline schedules on 8 MI300X (AMD-AGI/Primus, configs/validation/
/// training_primus_schedules.csv): what the others take against 1F1B.
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "study/run.h"
#include "workload/plan/framework.h"

namespace orrery {
namespace {

/// Model FLOPs a device and second of 16 layers of Llama 2 7B, in TFLOP/s, as the table's profile
/// runs them.
double rate(const machine::Machine& machine, plan::Schedule schedule, std::int64_t chunks) {
  zoo::Model model = zoo::load_model("llama-2-7b").value();
  model.layers = 16;
  plan::PlacedPlan placed;
  placed.plan.framework = "megatron";
  plan::apply_framework(placed);
  plan::Plan plan = placed.plan;
  plan.autograd = plan::Autograd::pytorch;
  plan.fused_kernels = plan.persistent_norm = false;
  plan.pp = 8;
  plan.schedule = schedule;
  plan.chunks = chunks;
  plan.global_batch = 32;
  plan.sequence = 4096;
  const auto run = study::run_step(model, machine, plan, 0, {});
  EXPECT_TRUE(run) << run.error().to_string();
  return run ? run->model_flops_per_device.value() / 1e12 : 0;
}

TEST(PrimusSchedules, FollowWithinSixPercentFromTheFirst) {
  const machine::Machine machine = machine::load_machine("mi300x").value();
  const double level = rate(machine, plan::Schedule::one_f_one_b, 1) / 235.7;
  EXPECT_NEAR(rate(machine, plan::Schedule::interleaved, 2) / 257.3 / level, 1, 0.06);
  EXPECT_NEAR(rate(machine, plan::Schedule::zb_h1, 1) / 268.0 / level, 1, 0.06);
  EXPECT_NEAR(rate(machine, plan::Schedule::zb_v, 2) / 265.9 / level, 1, 0.06);
  EXPECT_NEAR(rate(machine, *value_of<plan::Schedule>("v-half"), 2) / 255.1 / level, 1, 0.06);
  EXPECT_NEAR(rate(machine, *value_of<plan::Schedule>("v-min"), 2) / 208.5 / level, 1, 0.06);
}

}  // namespace
}  // namespace orrery
