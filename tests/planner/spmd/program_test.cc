// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spmd/fixed.h"
#include "planner/spmd/search.h"
#include "published.h"
#include "simulate/simulate.h"

namespace orrery::spmd {
namespace {

/// Kernels are as fast beside a collective as alone.
machine::Machine undisturbed(const std::string& name, std::int64_t devices) {
  machine::Machine machine =
      machine::with_devices(machine::load_machine(name).value(), devices).value();
  machine.device.overlap_units = 0;
  machine.device.overlap_memory = 0;
  return machine;
}

Time simulated(const OperatorGraph& graph, const Strategy& strategy, const MachinePrices& prices,
               const machine::Machine& machine) {
  const graph::Workload workload = program_of(graph, strategy, prices).value();
  EXPECT_TRUE(graph::verify(workload));
  return simulate::simulate(workload, machine).value().step_time;
}

TEST(Program, TakesAsLongAsTheClosedFormUnderEveryOverlap) {
  // Two computations that share nothing but the prices of kernels and collectives: the recursion of
  // stage.h and the event loop.
  for (const char* name : {"Rmoe", "Vswitch"}) {
    for (const std::int64_t devices : {1, 8, 16}) {
      const OperatorGraph graph = model(name, devices, 4);
      const machine::Machine machine = undisturbed("dgx-a100-80g", devices);
      for (const Overlap overlap : {Overlap::none, Overlap::forward, Overlap::both}) {
        const MachinePrices prices = MachinePrices::make(machine, devices, overlap).value();
        const Solution best = search(graph, prices).value();
        EXPECT_EQ(simulated(graph, best.strategy, prices, machine), best.total)
            << name << " " << devices << " " << name_of(overlap);
      }
    }
  }
}

TEST(Program, RunsWellKnownStrategiesOnTheSameSimulator) {
  // The search's answer is no slower than they are, simulated too: nothing disturbs.
  const OperatorGraph graph = model("Rmoe", 16, 4);
  const machine::Machine machine = undisturbed("dgx-1-v100", 16);
  const MachinePrices prices = MachinePrices::make(machine, 16, Overlap::both).value();
  const Time best = simulated(graph, search(graph, prices).value().strategy, prices, machine);
  for (const auto& row : kNames<FixedStrategy>) {
    const Solution other = search(graph, prices, {.allowed = restriction(row.value)}).value();
    const Time time = simulated(graph, other.strategy, prices, machine);
    EXPECT_EQ(time, other.total) << row.name;
    EXPECT_LE(best, time) << row.name;
  }
}

TEST(Program, KernelsBesideCollectivesAreSlowerWhereTheyShareUnits) {
  // Nothing else differs: between the closed form and everything one after the other.
  const OperatorGraph graph = model("Rmoe", 16, 4);
  machine::Machine machine = undisturbed("dgx-1-v100", 16);
  const MachinePrices prices = MachinePrices::make(machine, 16, Overlap::both).value();
  const Solution best = search(graph, prices).value();
  machine.device.overlap_units = 0.2;
  const Time slowed = simulated(graph, best.strategy, prices, machine);
  EXPECT_GT(slowed, best.total);
  const MachinePrices in_turn = MachinePrices::make(machine, 16, Overlap::none).value();
  EXPECT_LT(slowed, replay(graph, best.strategy, in_turn)->total);
}

TEST(Program, RefusesWhatRunsWrongly) {
  const OperatorGraph graph = model("Rmoe", 8, 2);
  const MachinePrices prices =
      MachinePrices::make(machine::load_machine("dgx-h100").value(), 8, Overlap::both).value();
  Strategy strategy = search(graph, prices).value().strategy;
  strategy.stages.pop_back();
  EXPECT_FALSE(program_of(graph, strategy, prices));
}

}  // namespace
}  // namespace orrery::spmd
