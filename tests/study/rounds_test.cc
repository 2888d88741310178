// SPDX-License-Identifier: Apache-2.0
// Workers that step alone, simulated: a round takes what the formula says, and no less than the
// estimate's bound; published rows of CO2 are in tests/validation.
#include <gtest/gtest.h>

#include "estimate/estimate.h"
#include "study/run.h"

namespace orrery::study {
namespace {

using plan::DataParallelUpdate;

/// GPT-2 on two nodes of 8; the network between them takes `slower` times as long.
machine::Machine nodes(double slower) {
  machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  topology::NetworkDimension& between = machine.network.back();
  between.bandwidth = between.bandwidth / slower;
  machine.device.overlap_units = machine.device.overlap_memory = 0;  // kernels lose nothing beside
  return machine;
}

plan::Plan rounds(DataParallelUpdate update, std::int64_t tau) {
  plan::Plan plan{.dp = 16, .microbatch = 4, .global_batch = 64};
  plan.data_parallel_update = update;
  plan.local_steps = tau;
  plan.attention = zoo::AttentionKernel::flash;
  return plan;
}

Run run_on(const machine::Machine& machine, const plan::Plan& plan) {
  auto run = run_step(zoo::load_model("gpt2").value(), machine, plan, 0, {});
  EXPECT_TRUE(run) << run.error().to_string();
  return std::move(*run);
}

/// Parts of a round, taken from runs of which each shows one: a step of workers that hardly ever
/// meet, and what a meeting adds where it is waited for.
struct Parts {
  Time step{0};   ///< t
  Time outer{0};  ///< t_outer
  Time sum{0};    ///< T_allreduce
};

Time collective_of(const Run& run) {
  Time sum{0};
  for (const collective::CollectivePhase& phase :
       collective::plan_collective(graph::CollectiveKind::all_reduce, 4_B * 124'475'904,
                                   collective::extents_of(1, 16, run.machine), {}, run.machine)) {
    sum += phase.latency + phase.serialisation;
  }
  return sum;
}

Parts parts_of(const machine::Machine& machine) {
  // A run of 5 steps of a round of 1,000 is local steps alone.
  RunOptions alone;
  alone.steps = 5;
  alone.warm_steps = 1;
  const auto local = run_step(zoo::load_model("gpt2").value(), machine,
                              rounds(DataParallelUpdate::co2, 1000), 0, alone);
  EXPECT_TRUE(local);
  Parts parts;
  parts.step = local->timeline.step_time;
  parts.sum = collective_of(*local);
  // Where the average is nothing beside a step, what a round has besides its steps is t_outer.
  const Run hidden = run_on(machine, rounds(DataParallelUpdate::co2, 64));
  parts.outer = hidden.timeline.step_time * 64 - parts.step * 64;
  return parts;
}

double seconds(Time time) {
  return to_seconds(time);
}

TEST(Rounds, TakeTheLongerOfComputeAndAllReduce) {
  // T_round = max(tau t + t_outer, T_allreduce), for averages that take some 0.5 and 40 steps.
  for (const double slower : {1.0, 80.0}) {
    const machine::Machine machine = nodes(slower);
    const Parts parts = parts_of(machine);
    EXPECT_GT(parts.outer, Time(0));
    for (const std::int64_t tau : {1, 2, 4, 8, 32}) {
      const auto run = run_on(machine, rounds(DataParallelUpdate::co2, tau));
      const Time compute = parts.step * tau + parts.outer;
      const double expected = seconds(std::max(compute, parts.sum));
      EXPECT_NEAR(seconds(run.timeline.step_time * tau) / expected, 1, 2e-3)
          << slower << " " << tau;
    }
  }
}

TEST(Rounds, WaitForTheirAverageUnlessItRunsBesideTheNext) {
  // T_round = tau t + t_outer + T_allreduce of slow_mo, whose end of a round has no norm to find:
  // between co2's kernels and none.
  const machine::Machine machine = nodes(20);
  const Parts parts = parts_of(machine);
  for (const std::int64_t tau : {1, 8}) {
    const auto run = run_on(machine, rounds(DataParallelUpdate::slow_mo, tau));
    const Time least = parts.step * tau + parts.sum;
    EXPECT_GT(run.timeline.step_time * tau, least);
    EXPECT_LT(run.timeline.step_time * tau, least + parts.outer + 100_us);
  }
}

TEST(Rounds, ThroughputRisesUntilTheAverageIsHiddenAndThenIsFlat) {
  const machine::Machine machine = nodes(40);
  double before = 0;
  double most = 0;
  for (const std::int64_t tau : {1, 2, 4, 8, 16, 32}) {
    const auto run = run_on(machine, rounds(DataParallelUpdate::co2, tau));
    EXPECT_GE(run.tokens_per_s, before * 0.999);
    before = run.tokens_per_s;
    most = std::max(most, run.tokens_per_s);
  }
  estimate::Estimator estimator(zoo::load_model("gpt2").value(), machine);
  const std::int64_t hiding =
      estimator.hiding_local_steps(rounds(DataParallelUpdate::co2, 1)).value();
  ASSERT_GT(hiding, 1);
  const double at = run_on(machine, rounds(DataParallelUpdate::co2, hiding)).tokens_per_s;
  const double below = run_on(machine, rounds(DataParallelUpdate::co2, hiding / 2)).tokens_per_s;
  EXPECT_GT(at, 0.9 * most);
  EXPECT_LT(below, 0.9 * at);
}

TEST(Rounds, ABackgroundAverageHasItsShareOfTheNetwork) {
  // Where the average decides, half the share makes a round twice as long.
  machine::Machine machine = nodes(80);
  const Time whole = run_on(machine, rounds(DataParallelUpdate::co2, 2)).timeline.step_time;
  for (topology::NetworkDimension& dimension : machine.network) {
    dimension.background_share = 0.5;
  }
  const Time half = run_on(machine, rounds(DataParallelUpdate::co2, 2)).timeline.step_time;
  EXPECT_NEAR(half / whole, 2, 0.02);
  const Time waited = run_on(machine, rounds(DataParallelUpdate::slow_mo, 2)).timeline.step_time;
  machine = nodes(80);
  EXPECT_EQ(run_on(machine, rounds(DataParallelUpdate::slow_mo, 2)).timeline.step_time, waited);
}

TEST(Rounds, EstimatesHoldWhatIsSimulated) {
  const machine::Machine machine = nodes(30);
  estimate::Estimator estimator(zoo::load_model("gpt2").value(), machine);
  for (const DataParallelUpdate update :
       {DataParallelUpdate::local_sgd, DataParallelUpdate::slow_mo, DataParallelUpdate::diloco,
        DataParallelUpdate::co2}) {
    for (const std::int64_t tau : {1, 3, 24}) {
      for (const bool shared : {false, true}) {
        plan::Plan plan = rounds(update, tau);
        plan.shard_outer = shared && update != DataParallelUpdate::local_sgd;
        const Time time = run_on(machine, plan).timeline.step_time;
        const estimate::Interval interval = estimator.interval(plan).value();
        EXPECT_LE(interval.least, time) << name_of(update) << " " << tau;
        EXPECT_NEAR(interval.value / time, 1, 0.05) << name_of(update) << " " << tau;
      }
    }
  }
}

TEST(LowBandwidth, EstimatesHoldWhatIsSimulated) {
  const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  estimate::Estimator estimator(zoo::load_model("gpt2").value(), machine);
  for (int which = 0; which < 8; ++which) {
    plan::Plan plan{.dp = 32, .microbatch = 2, .global_batch = 64 * (1 + which % 2)};
    plan.zero = 3;
    plan.grad_type = plan.grad_reduce_type = graph::DataType::bf16;
    plan.attention = zoo::AttentionKernel::flash;
    plan.quantized_gather = (which & 1) == 0;
    plan.quantized_reduce = (which & 2) == 0;
    plan.secondary_shard = (which & 4) == 0 ? 8 : 0;
    plan.overlap_grad_reduce = plan.overlap_param_gather = which % 3 == 0;
    const Time time = run_on(machine, plan).timeline.step_time;
    const estimate::Interval interval = estimator.interval(plan).value();
    EXPECT_LE(interval.least, time) << which;
    EXPECT_NEAR(interval.value / time, 1, 0.15) << which;
  }
}

TEST(LowBandwidth, EstimatesHaveTheGatherOfWhatWasUpdated) {
  const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  estimate::Estimator estimator(zoo::load_model("gpt2").value(), machine);
  for (const int zero : {1, 2, 3}) {
    for (const bool quantized : {false, true}) {
      plan::Plan plan{.dp = 32, .microbatch = 2, .global_batch = 64, .zero = zero};
      plan.attention = zoo::AttentionKernel::flash;
      plan.quantized_gather = quantized && zero == 3;
      plan.shard_params = zero == 3 ? 2 : 0;  // gathered again from all ranks once a step
      plan.shard_grads = zero == 3 ? 8 : 0;
      const Time time = run_on(machine, plan).timeline.step_time;
      const estimate::Interval interval = estimator.interval(plan).value();
      EXPECT_LE(interval.least, time) << zero << quantized;
      EXPECT_NEAR(interval.value / time, 1, 0.05) << zero << quantized;
    }
  }
}

TEST(LowBandwidth, NothingOfOneNodeCrossesItsAdapter) {
  // Fields that split over a node do nothing to a plan of one node but to quantise.
  const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  plan::Plan plan{.dp = 8, .global_batch = 8, .zero = 3};
  const auto plain = run_on(machine, plan);
  machine::Machine slow = machine;
  slow.network.back().bandwidth = slow.network.back().bandwidth / 100;
  EXPECT_EQ(run_on(slow, plan).timeline.step_time, plain.timeline.step_time);
  plan.quantized_gather = plan.quantized_reduce = true;
  plan.secondary_shard = 4;
  EXPECT_EQ(run_on(slow, plan).timeline.step_time, run_on(machine, plan).timeline.step_time);
}

}  // namespace
}  // namespace orrery::study
