// SPDX-License-Identifier: Apache-2.0
/// A step that is exported and read back runs as it did.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "machine/compute/compute_model.h"
#include "machine/machine.h"
#include "simulate/simulate.h"
#include "traces.h"
#include "workload/chakra/from_workload.h"
#include "workload/chakra/to_workload.h"
#include "workload/chakra/write.h"
#include "workload/parallel/lower.h"
#include "workload/zoo/model.h"

namespace orrery::chakra {
namespace {

/// One on which communication slows down kernels.
machine::Machine any_machine(std::int64_t devices) {
  machine::Machine machine =
      machine::with_devices(machine::load_machine("dgx-a100-80g").value(), devices).value();
  EXPECT_GT(machine.device.overlap_units, 0);
  return machine;
}

/// The workload with what a trace can hold: compute nodes of whole microseconds with slowdowns of
/// seven digits, no host, tokens that all travel.
graph::Workload whole_microseconds(graph::Workload workload, const machine::Machine& machine) {
  workload.host_dispatch = Time(0);
  for (graph::Program& program : workload.programs) {
    for (graph::Template& part : program.templates) {
      for (graph::Node& node : part.nodes) {
        compute::KernelTime sum;
        for (const graph::Operator& op : node.operators) {
          const compute::KernelTime time = compute::kernel_time(op, machine.device);
          sum.alone += time.alone;
          sum.beside_collective += time.beside_collective;
          sum.beside_message += time.beside_message;
        }
        if (!node.operators.empty()) {
          graph::Operator whole;
          whole.duration = 1_us * (1 + sum.alone.value() / (1_us).value());
          whole.beside_collective = static_cast<float>(sum.beside_collective / sum.alone);
          whole.beside_message = static_cast<float>(sum.beside_message / sum.alone);
          node.operators = {whole};
        }
        node.route = {};
        node.host_sync = false;
      }
    }
  }
  return workload;
}

ToWorkloadOptions to_host() {
  ToWorkloadOptions options;
  options.memory_tier = 1;
  return options;
}

Time step_time(const graph::Workload& workload, const machine::Machine& machine, bool fold = true) {
  simulate::SimulateOptions options;
  options.fold = fold;
  const auto timeline = simulate::simulate(workload, machine, options);
  EXPECT_TRUE(timeline.has_value()) << timeline.error().to_string();
  return timeline ? timeline->step_time : Time(0);
}

plan::Plan any_exported_plan() {
  plan::Plan plan;
  plan.tp = *rc::gen::element<std::int64_t>(1, 2);
  plan.cp = *rc::gen::element<std::int64_t>(1, 2);
  plan.pp = *rc::gen::element<std::int64_t>(1, 2, 4);
  plan.dp = *rc::gen::element<std::int64_t>(1, 2);
  plan.zero = *rc::gen::inRange<std::int64_t>(0, 4);
  plan.cp_exchange = *rc::gen::element(
      plan::ContextExchange::p2p, plan::ContextExchange::all_gather, plan::ContextExchange::a2a);
  plan.schedule = *rc::gen::element(plan::Schedule::gpipe, plan::Schedule::one_f_one_b,
                                    plan::Schedule::interleaved, plan::Schedule::zb_h1,
                                    plan::Schedule::dualpipe);
  plan.chunks = plan.schedule == plan::Schedule::interleaved ? 2 : 1;
  plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  plan.offload_activations = *rc::gen::element(0.0, 0.5);
  plan.sequence_parallel = *rc::gen::arbitrary<bool>();
  plan.recompute = *rc::gen::element(plan::Recompute::none, plan::Recompute::full);
  plan.attention = zoo::AttentionKernel::flash;
  plan.global_batch = plan.dp * 8;
  return plan;
}

zoo::Model dense_model() {
  zoo::Model model = zoo::load_model("gpt2").value();
  model.layers = 8;
  return model;
}

/// The step as it runs itself, and as it runs when read back.
struct Times {
  Time own{0};
  Time read{0};
  Time unfolded{0};
};

Times times_of(const graph::Workload& own, const TraceSet& traces,
               const machine::Machine& machine) {
  const auto read = to_workload(traces, to_host());
  if (!read) {
    RC_FAIL(read.error().to_string());
  }
  return {step_time(own, machine), step_time(*read, machine), step_time(*read, machine, false)};
}

RC_GTEST_PROP(ToWorkloadProperty, a_step_read_back_takes_as_long, ()) {
  const plan::Plan plan = any_exported_plan();
  auto lowered = parallel::lower(dense_model(), plan);
  RC_PRE(lowered.has_value());
  const machine::Machine machine = any_machine(plan.devices());
  const graph::Workload own = whole_microseconds(std::move(*lowered), machine);
  const auto traces = from_workload(own, {});
  RC_ASSERT(traces.has_value());
  const Times times = times_of(own, *traces, machine);
  RC_ASSERT(times.unfolded == times.read);
  RC_ASSERT(times.read == times.own);
}

RC_GTEST_PROP(ToWorkloadProperty, experts_read_back_take_as_long, ()) {
  zoo::Model model = zoo::load_model("mixtral-8x7b").value();
  model.layers = 4;
  plan::Plan plan;
  plan.tp = *rc::gen::element<std::int64_t>(1, 2);
  plan.pp = *rc::gen::element<std::int64_t>(1, 2);
  plan.dp = *rc::gen::element<std::int64_t>(2, 4);
  plan.ep = *rc::gen::element<std::int64_t>(1, 2, 4);
  plan.etp = *rc::gen::element<std::int64_t>(0, 1);
  plan.zero = *rc::gen::inRange<std::int64_t>(0, 3);
  plan.sequence_parallel = true;
  plan.global_batch = 16;
  auto lowered = parallel::lower(model, plan);
  RC_PRE(lowered.has_value());
  const machine::Machine machine = any_machine(plan.devices());
  const graph::Workload own = whole_microseconds(std::move(*lowered), machine);
  const auto traces = from_workload(own, {});
  RC_ASSERT(traces.has_value());
  const Times times = times_of(own, *traces, machine);
  RC_ASSERT(times.read == times.own);
  RC_ASSERT(times.unfolded == times.own);
}

TEST(ToWorkload, a_step_read_back_from_files_takes_as_long_and_folds) {
  plan::Plan plan;
  plan.tp = 2;
  plan.pp = 4;
  plan.dp = 2;
  plan.zero = 1;
  plan.global_batch = 16;
  const machine::Machine machine = any_machine(plan.devices());
  const graph::Workload own =
      whole_microseconds(parallel::lower(dense_model(), plan).value(), machine);
  const Folder folder;
  ASSERT_TRUE(write_traces(from_workload(own, {}).value(),
                           {.prefix = folder / "t", .most_files = 16, .progress = {}})
                  .has_value());
  const auto read = to_workload(load({.prefix = folder / "t",
                                      .ranks = plan.devices(),
                                      .groups = folder / "t.groups.json",
                                      .progress = {}})
                                    .value(),
                                to_host());
  ASSERT_TRUE(read.has_value());
  const auto timeline = simulate::simulate(*read, machine);
  ASSERT_TRUE(timeline.has_value());
  EXPECT_EQ(timeline->step_time, step_time(own, machine));
  EXPECT_EQ(timeline->fold.simulated, 4);  // one rank per stage
}

}  // namespace
}  // namespace orrery::chakra
