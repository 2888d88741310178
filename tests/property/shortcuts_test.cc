// SPDX-License-Identifier: Apache-2.0
// Shortcuts are exact: with chains of nodes as one event and the steady state jumped, every finish,
// every breakdown and the count of nodes equal, to the picosecond, those of a run of every node.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "../simulate/builder.h"
#include "../workload/parallel/cases.h"
#include "simulate/simulate.h"

namespace orrery {
namespace {

struct ShortcutCase {
  zoo::Model model;
  plan::Plan plan;
  machine::Machine machine;
};

std::int64_t pick(std::initializer_list<std::int64_t> values) {
  return *rc::gen::elementOf(std::vector<std::int64_t>(values));
}
bool coin() {
  return *rc::gen::arbitrary<bool>();
}

/// A plan of a small model with many microbatches, so that there is a steady state to jump.
plan::Plan any_plan() {
  plan::Plan plan;
  plan.schedule = *rc::gen::elementOf(std::vector<plan::Schedule>{
      plan::Schedule::gpipe, plan::Schedule::one_f_one_b, plan::Schedule::one_f_one_b,
      plan::Schedule::interleaved, plan::Schedule::zb_h1, plan::Schedule::zb_v});
  plan.pp = pick({1, 2, 4});
  plan.pp = plan.schedule == plan::Schedule::one_f_one_b || plan.schedule == plan::Schedule::gpipe
                ? plan.pp
                : std::max<std::int64_t>(plan.pp, 2);
  plan.chunks = plan.schedule == plan::Schedule::interleaved ? 2 : 1;
  const bool pairs = plan.schedule == plan::Schedule::one_f_one_b || plan.chunks > 1;
  plan.overlap_ep = pairs && coin() ? plan::OverlapExperts::microbatch : plan::OverlapExperts::off;
  plan.tp = pick({1, 2, 4});
  plan.dp = pick({1, 2});
  plan.sequence_parallel = plan.tp > 1 && coin();
  plan.zero = pick({0, 1});
  plan.recompute = coin() ? plan::Recompute::full : plan::Recompute::none;
  plan.overlap_p2p = coin();
  plan.overlap_grad_reduce = coin();
  plan.host_dispatch = 1_us * pick({0, 0, 5, 40});
  plan.p2p_host_sync = coin();
  plan.global_batch = plan.dp * plan.pp * *rc::gen::inRange<std::int64_t>(6, 30);
  plan.order = coin() ? "tp-cp-dp-pp" : "tp-cp-pp-dp";
  return plan;
}

machine::Machine any_cut_machine(std::int64_t devices) {
  const std::int64_t inner = devices % 4 == 0 ? pick({4, devices}) : devices;
  machine::Machine machine =
      testing::machine_of({testing::dimension(topology::DimensionKind::switched, inner),
                           testing::dimension(topology::DimensionKind::switched, devices / inner)});
  machine.network[0].bandwidth = 1_GBps * static_cast<double>(pick({1, 20, 300}));
  machine.network[1].bandwidth = 1_GBps * static_cast<double>(pick({1, 5}));
  if (coin()) {
    machine.network[0].nic = machine.network[1].nic = "nic";
  }
  machine.device.overlap_units = machine.device.overlap_memory = coin() ? 0.2 : 0;
  machine.device.overlap_send_units = coin() ? 0.05 : 0;
  return machine;
}

struct Step {
  graph::Workload workload;
  machine::Machine machine;
};

Step any_step() {
  const zoo::Model model = cases::small_gpt(8);
  plan::Plan plan = any_plan();
  if (plan.tp > 1 && coin()) {
    plan.overlap_tensor = coin() ? plan::TensorOverlap::tracked_mca : plan::TensorOverlap::cu_split;
  }
  RC_PRE(plan::check(plan, model).has_value());
  RC_LOG(fmt::format("schedule {} tp {} pp {} dp {} batch {} host {} us", name_of(plan.schedule),
                     plan.tp, plan.pp, plan.dp, plan.global_batch, plan.host_dispatch / 1_us));
  graph::Workload workload = cases::lowered(model, plan);
  machine::Machine machine = any_cut_machine(workload.ranks);
  return {std::move(workload), std::move(machine)};
}

TEST(Shortcuts, StepsOfPlansEqualThoseOfEveryNodeRun) {
  int compared = 0;
  EXPECT_TRUE(rc::check("shortcuts change nothing", [&] {
    const auto [workload, machine] = any_step();
    const auto taken = simulate::simulate(workload, machine);
    simulate::SimulateOptions every_node;
    every_node.shortcuts = false;
    const auto single = simulate::simulate(workload, machine, every_node);
    RC_ASSERT(taken.has_value() && single.has_value());
    RC_ASSERT(taken->step_time == single->step_time);
    RC_ASSERT(taken->finish == single->finish);
    RC_ASSERT(taken->by_rank == single->by_rank);
    RC_ASSERT(taken->events == single->events);
    ++compared;
  }));
  EXPECT_GT(compared, 50);
}

TEST(Shortcuts, StepsWithFlowsEqualThoseOfEveryMessageRun) {
  int folded = 0;
  EXPECT_TRUE(rc::check("shortcuts and folding change nothing", [&] {
    const auto [workload, machine] = any_step();
    simulate::SimulateOptions options;
    options.network = simulate::NetworkModel::flow;
    options.fold = false;
    const auto taken = simulate::simulate(workload, machine, options);
    options.shortcuts = false;
    const auto single = simulate::simulate(workload, machine, options);
    options.fold = true;
    const auto mirrored_single = simulate::simulate(workload, machine, options);
    options.shortcuts = true;
    const auto mirrored = simulate::simulate(workload, machine, options);
    RC_ASSERT(taken.has_value() && single.has_value() && mirrored.has_value());
    RC_ASSERT(mirrored->finish == mirrored_single->finish);
    RC_ASSERT(mirrored->by_rank == mirrored_single->by_rank);
    RC_ASSERT(mirrored->events == mirrored_single->events);
    RC_ASSERT(taken->finish == single->finish);
    RC_ASSERT(taken->by_rank == single->by_rank);
    RC_ASSERT(taken->events == single->events);
    // Sums of rates in another order may round a time to the next picosecond, once a message.
    const auto alike = [](Time a, Time b) {
      return std::abs((a - b).value()) <= 10 + b.value() / 1'000'000'000;
    };
    RC_ASSERT(alike(mirrored->step_time, single->step_time));
    for (std::size_t i = 0; i < mirrored->ranks.size(); ++i) {
      RC_ASSERT(
          alike(mirrored->finish[i], single->finish[static_cast<std::size_t>(mirrored->ranks[i])]));
    }
    folded += mirrored->fold.simulated < mirrored->fold.ranks ? 1 : 0;
  }));
  EXPECT_GT(folded, 30);
}

TEST(Shortcuts, TheSteadyStateIsJumpedWithFlowsToo) {
  // A hundred times the microbatches, as many events handled: of which the calls of progress tell.
  const zoo::Model model = cases::small_gpt(8);
  const auto run = [&](std::int64_t microbatches, int& calls) {
    plan::Plan plan;
    plan.pp = plan.tp = 2;
    plan.global_batch = microbatches;
    const graph::Workload workload = cases::lowered(model, plan);
    simulate::SimulateOptions options;
    options.network = simulate::NetworkModel::flow;
    options.progress = [&](double, std::uint64_t) { ++calls; };
    return simulate::simulate(
               workload,
               testing::machine_of({testing::dimension(topology::DimensionKind::switched, 2),
                                    testing::dimension(topology::DimensionKind::switched, 2)}),
               options)
        .value();
  };
  int few = 0;
  int many = 0;
  const auto before = run(1'000, few);
  const auto after = run(100'000, many);
  EXPECT_EQ(many, few);
  EXPECT_GT(after.step_time, before.step_time * 90);
}

TEST(Shortcuts, FusedKernelsTakeWhatTheyTakeOneByOne) {
  // Where the host is in nobody's way: what it takes for a fused node is that of its kernels
  // together (BoundNode::host_span).
  int compared = 0;
  EXPECT_TRUE(rc::check("fusion changes nothing", [&] {
    const zoo::Model model = cases::small_gpt(8);
    plan::Plan plan = any_plan();
    plan.host_dispatch = Time(0);
    RC_PRE(plan::check(plan, model).has_value());
    const graph::Workload fused = cases::lowered(model, plan);
    parallel::LowerOptions unfused;
    unfused.skip = {"fuse"};
    const auto single = parallel::lower(model, plan, unfused);
    RC_ASSERT(single.has_value());
    const machine::Machine machine = any_cut_machine(fused.ranks);
    const auto together = simulate::simulate(fused, machine);
    const auto one_by_one = simulate::simulate(*single, machine);
    RC_ASSERT(together.has_value() && one_by_one.has_value());
    RC_ASSERT(together->step_time == one_by_one->step_time);
    RC_ASSERT(together->by_rank == one_by_one->by_rank);
    ++compared;
  }));
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace orrery
