// SPDX-License-Identifier: Apache-2.0
#include "estimate/estimate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cases.h"
#include "workload/parallel/lower.h"

namespace orrery::estimate {
namespace {

zoo::Model gpt3() {
  return zoo::gpt_model("GPT-3 175B", 96, 12288, 96, 2048, 50257);
}

machine::Machine selene() {
  auto machine = machine::load_machine("selene");
  return machine ? *machine : machine::Machine{};
}

std::int64_t pick(std::initializer_list<std::int64_t> values) {
  return *rc::gen::elementOf(std::vector<std::int64_t>(values));
}

/// A random plan that check() accepts.
plan::Plan any_plan(const zoo::Model& model) {
  plan::Plan plan;
  plan.tp = pick({1, 2, 4, 8});
  plan.pp = pick({1, 2, 4, 8, 16});
  plan.dp = pick({1, 2, 4, 16});
  plan.microbatch = pick({1, 2});
  plan.global_batch = plan.dp * plan.microbatch * plan.pp * pick({1, 2, 5});
  plan.sequence_parallel = plan.tp > 1 && *rc::gen::arbitrary<bool>();
  plan.recompute =
      *rc::gen::element(plan::Recompute::none, plan::Recompute::selective, plan::Recompute::full);
  plan.order = *rc::gen::element(std::string("tp-dp-pp"), std::string("tp-pp-dp"));
  plan.zero = pick({0, 1, 2, 3});
  plan.zero = plan.pp > 1 ? std::min<std::int64_t>(plan.zero, 1) : plan.zero;
  plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  plan.overlap_param_gather = plan.zero > 0 && *rc::gen::arbitrary<bool>();
  plan.overlap_p2p = *rc::gen::arbitrary<bool>();
  plan.host_dispatch = 1_us * pick({0, 0, 20});
  if (plan.pp > 1 && plan.pp < 16 && *rc::gen::arbitrary<bool>()) {
    plan.schedule = plan::Schedule::interleaved;
    plan.chunks = pick({2, 3, 4});
  }
  RC_PRE(plan::check(plan, model).has_value());
  // Whole nodes, or part of one.
  RC_PRE(plan.devices() <= 8 || plan.devices() % 8 == 0);
  return plan;
}

RC_GTEST_PROP(Estimate, IsNeverBelowTheFlopsAtPeakRate, ()) {
  const zoo::Model model = gpt3();
  const machine::Machine machine = selene();
  const plan::Plan plan = any_plan(model);
  const auto estimate = Estimator(model, machine).interval(plan);
  RC_ASSERT(estimate.has_value());
  // Model FLOPs over all devices at the peak; causal flash kernels alone do fewer, not used here.
  const FlopRate peak = machine.device.peak[static_cast<std::size_t>(plan.compute_type)];
  const Flops flops = zoo::model_flops_per_sequence(model, 2048);
  const Time least =
      flops * static_cast<double>(plan.global_batch) / static_cast<double>(plan.devices()) / peak;
  RC_ASSERT(estimate->value > least);
  RC_ASSERT(estimate->compute > Time(0));
  RC_ASSERT(estimate->bubble >= Time(0));
  RC_ASSERT(estimate->tail >= Time(0));
}

RC_GTEST_PROP(Estimate, GrowsWithTheBatch, ()) {
  const zoo::Model model = gpt3();
  plan::Plan plan = any_plan(model);
  Estimator estimator(model, selene());
  const auto less = estimator.interval(plan);
  plan.global_batch *= 2;
  const auto more = estimator.interval(plan);
  RC_ASSERT(less.has_value());
  RC_ASSERT(more.has_value());
  RC_ASSERT(more->value > less->value);
  // Twice the microbatches take at most twice as long: fill, drain and end stay the same.
  RC_ASSERT(more->value <= 2 * less->value);
}

RC_GTEST_PROP(Estimate, DoesNotDependOnThePlansEstimatedBefore, ()) {
  const zoo::Model model = gpt3();
  const machine::Machine machine = selene();
  Estimator used(model, machine);
  for (int i = 0; i < 4; ++i) {
    const plan::Plan plan = any_plan(model);
    const auto one = used.interval(plan);
    const auto other = Estimator(model, machine).interval(plan);
    RC_ASSERT(one.has_value());
    RC_ASSERT(other.has_value());
    RC_ASSERT(one->value == other->value);
  }
}

/// Memory and time of one plan are kept together: neither is taken for the other's.
RC_GTEST_PROP(Estimate, MemoryIsThatOfTheFullestStageHoweverOftenAsked, ()) {
  const zoo::Model model = gpt3();
  Estimator estimator(model, selene());
  for (int plans = 0; plans < 2; ++plans) {
    const plan::Plan plan = any_plan(model);
    const auto machine = machine::with_devices(selene(), plan.devices());
    const footprint::Fullest fullest = footprint::fullest(model, plan, *machine);
    const auto time = Estimator(model, selene()).interval(plan);
    for (int asked = 0; asked < 2; ++asked) {
      const auto memory = estimator.memory(plan);
      RC_ASSERT(memory.has_value());
      RC_ASSERT(memory->total == fullest.total);
      RC_ASSERT(memory->fits == fullest.fits);
      RC_ASSERT(estimator.interval(plan)->value == time->value);
    }
  }
}

TEST(Estimate, NamesTheDevicesThatAMachineCannotHave) {
  // 12 devices do not fill nodes of 8.
  plan::Plan plan;
  plan.dp = 12;
  plan.global_batch = 12;
  const auto estimate = Estimator(gpt3(), selene()).interval(plan);
  ASSERT_FALSE(estimate);
  EXPECT_NE(estimate.error().to_string().find("devices"), std::string::npos);
}

TEST(Estimate, SaysWhatIsBeyondItsRange) {
  // One more microbatch always takes as long; half of 2^63 ps are 53.4 days.
  plan::Plan plan;
  const auto of = [&](std::int64_t microbatches) {
    plan.global_batch = microbatches;
    return Estimator(gpt3(), selene()).interval(plan);
  };
  const Time each = of(2001)->value - of(2000)->value;
  const double days = to_seconds(each) / 86400;
  const auto within = of(static_cast<std::int64_t>(53 / days));
  ASSERT_TRUE(within);
  EXPECT_NEAR(to_seconds(within->value) / 86400, 53, 0.01);
  const auto beyond = of(static_cast<std::int64_t>(54 / days));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().to_string(),
            "the step takes longer than 53 days, beyond the range of estimated time");
}

}  // namespace
}  // namespace orrery::estimate
