// SPDX-License-Identifier: Apache-2.0
#include "study/rescale.h"

#include <gtest/gtest.h>

#include "machine/compute/compute_model.h"
#include "machine/device_groups.h"
#include "study/trace_workload.h"
#include "workload/chakra/from_workload.h"

namespace orrery::study {
namespace {

machine::Machine described() {
  return machine::load_machine("dgx-h100").value();
}

/// A device of less compute and less bandwidth, on the same network.
machine::Machine real() {
  machine::Machine machine = described();
  for (FlopRate& peak : machine.device.peak) {
    peak = peak * 0.6;
  }
  machine.device.memory.front().bandwidth = machine.device.memory.front().bandwidth * 0.8;
  return machine;
}

plan::Plan plan_of(std::int64_t tp, std::int64_t pp, std::int64_t dp) {
  plan::Plan plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.dp = dp;
  plan.sequence_parallel = tp > 1;
  plan.zero = dp > 1 ? 1 : 0;
  plan.global_batch = 8 * dp;
  plan.sequence = 2048;
  plan.attention = zoo::AttentionKernel::flash;
  return plan;
}

Run run_of(const plan::Plan& plan, const machine::Machine& machine,
           const std::set<std::string>& skip = {}) {
  auto run = run_step(zoo::load_model("gpt-7.5b").value(), machine, plan, 0,
                      {.allow_oom = true, .record_spans = true, .skip = skip});
  EXPECT_TRUE(run.has_value()) << run.error().to_string();
  return run ? std::move(*run) : Run();
}

/// The step of `run` as Chakra traces of its ranks, on another machine. Requires a node for every
/// kernel, as `orrery export chakra` writes them.
StepTimes traced(const Run& run, const machine::Machine& machine, const KernelSums& like) {
  const auto times = [&](const graph::Node& node) {
    chakra::ComputeTimes sum;
    for (const graph::Operator& op : node.operators) {
      const compute::KernelTime time = compute::kernel_time(op, run.machine.device);
      sum.alone += time.alone;
      sum.beside_collective += time.beside_collective;
      sum.beside_message += time.beside_message;
    }
    return sum;
  };
  const auto traces = chakra::from_workload(run.workload, {.times = times});
  const machine::Machine fitted = machine::with_devices(machine, run.devices).value();
  auto workload = workload_of(traces.value(), fitted, true);
  const auto again =
      run_workload("traces", std::move(workload.value()), machine, {.record_spans = true});
  return times_of(again.value(), like);
}

// One device, nothing beside it: products that took twice as long make the step longer by their
// time, whether they are known by name or by their class alone.
TEST(Rescale, KernelsThatTookTwiceAsLongAddTheirTime) {
  const auto run = run_of(plan_of(1, 1, 1), described());
  const StepTimes simulated = times_of(run);
  const auto product = static_cast<std::size_t>(WorkClass::product);
  StepTimes by_name = simulated;
  by_name.busy[product] = simulated.busy[product] * 2;
  for (auto& [name, sum] : by_name.kernels) {
    sum.time = sum.of == WorkClass::product ? sum.time * 2 : sum.time;
  }
  StepTimes by_class = by_name;
  by_class.kernels = {{"nvjet_gemm", {WorkClass::product, by_name.busy[product]}}};
  const double longer = to_seconds(run.timeline.step_time + simulated.busy[product]);
  for (const StepTimes* measured : {&by_name, &by_class}) {
    const auto rescaled = rescale(*measured, simulated, run);
    ASSERT_TRUE(rescaled.has_value()) << rescaled.error().to_string();
    EXPECT_EQ(rescaled->simulated, run.timeline.step_time);
    EXPECT_NEAR(to_seconds(rescaled->step), longer, 1e-4 * longer);
    EXPECT_EQ(rescaled->factors.front().name, "product");
    EXPECT_NEAR(rescaled->factors.front().factor, 2, 1e-6);
    EXPECT_EQ(rescaled->factors.front().by_name > 0, measured == &by_name);
  }
}

// Traces of 8 ranks on devices that the machine file describes wrongly: the steps of plans of 4 and
// 16 ranks come out within 5 % of what these devices take, although the machine alone is off by
// a quarter or more.
TEST(Rescale, EightRanksGiveFourAndSixteen) {
  const auto run = run_of(plan_of(2, 2, 2), described());
  const StepTimes simulated = times_of(run);
  const StepTimes measured =
      traced(run_of(plan_of(2, 2, 2), real(), {"fuse"}), described(), simulated.kernels);
  for (const plan::Plan& plan :
       {plan_of(1, 2, 2), plan_of(2, 1, 2), plan_of(2, 2, 1), plan_of(4, 2, 2), plan_of(2, 4, 2),
        plan_of(2, 2, 4), plan_of(4, 1, 1), plan_of(1, 4, 4)}) {
    const auto rescaled = rescale(measured, simulated, run_of(plan, described()));
    ASSERT_TRUE(rescaled.has_value()) << rescaled.error().to_string();
    const double truth = to_seconds(run_of(plan, real()).timeline.step_time);
    EXPECT_NEAR(to_seconds(rescaled->step), truth, 0.05 * truth) << plan.tp << plan.pp << plan.dp;
    EXPECT_LT(to_seconds(rescaled->simulated), 0.8 * truth) << plan.tp << plan.pp << plan.dp;
  }
}

TEST(Rescale, AMachineOfSeveralPartsIsRefused) {
  auto run = run_of(plan_of(1, 1, 1), described());
  const StepTimes simulated = times_of(run);
  run.machine.parts.resize(2);
  const auto refused = rescale(simulated, simulated, run);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().to_string().find("one device type"), std::string::npos);
}

}  // namespace
}  // namespace orrery::study
