// SPDX-License-Identifier: Apache-2.0
/// Simulated steps against the traces that HiDup ships: six layers of 1024 on V100, 4 of one
/// machine and 2 x 4. One calibration (examples/hidup/v100-4.yaml): kernels of dgx-1-v100, whose
/// loads and waits are scaled to fp32, and two bandwidths fitted to HiDup's tables of collectives;
/// nothing is fitted to a step.
///
///                        measured (s)                     simulated
///   HiDup 1 x 4, 2 x 4   0.3873, 0.4589                   0.403, 0.474
///   DDP   1 x 4          0.4010                           0.450
///   DeepSpeed            0.5748, 0.6634                   see below
///
/// DeepSpeed gives the tokens of a device's whole batch to its experts as one group, so that the
/// products with masks that bring rows to their slots are 32 times as much work (Dmoe), and hides
/// nothing. Others are not those programs: FastMoE drops no tokens and waits for the device with
/// the most, and DDP's gradients on 2 x 4 move at 1.7 GB/s, a sixth of what HiDup's and DeepSpeed's
/// collectives reach in their traces (docs/models/spmd.md).
#include <gtest/gtest.h>

#include "planner/spmd/fixed.h"
#include "planner/spmd/mesh_search.h"
#include "planner/spmd/program.h"
#include "planner/spmd/search.h"
#include "published.h"
#include "simulate/simulate.h"

namespace orrery::spmd {
namespace {

machine::Machine traced_machine() {
  return machine::load_machine(std::string(ORRERY_SOURCE_DIR) + "/examples/hidup/v100-4.yaml")
      .value();
}

double step(std::int64_t devices, const SearchOptions& options) {
  const OperatorGraph graph = model("Emoe", devices, 6);
  const MachinePrices prices =
      MachinePrices::make(traced_machine(), devices, Overlap::both).value();
  const Solution best = search(graph, prices, options).value();
  const graph::Workload workload = program_of(graph, best.strategy, prices).value();
  return to_seconds(simulate::simulate(workload, prices.machine()).value().step_time);
}

TEST(Traces, StepsOfHidupAndOfDataParallelism) {
  constexpr double kGoal = 0.15;
  EXPECT_NEAR(step(4, {}) / 0.3873, 1, kGoal);
  EXPECT_NEAR(step(8, {}) / 0.4589, 1, kGoal);
  EXPECT_NEAR(step(4, {.allowed = restriction(FixedStrategy::data_parallel)}) / 0.4010, 1, kGoal);
}

TEST(Traces, StepsOfDeepSpeed) {
  constexpr double kGoal = 0.15;
  for (const auto& [mesh, measured] :
       {std::pair(mesh_of(4, 1), 0.5748), std::pair(mesh_of(4, 2), 0.6634)}) {
    const OperatorGraph graph = model("Dmoe", devices_of(mesh), 6);
    const MeshPrices prices = MeshPrices::make(traced_machine(), mesh, graph.element).value();
    const MeshSolution best =
        search_mesh(graph, prices, {.allowed = restriction(FixedStrategy::expert_parallel)})
            .value();
    const graph::Workload workload = program_of(graph, best.strategy, prices).value();
    const double step =
        to_seconds(simulate::simulate(workload, prices.machine()).value().step_time);
    EXPECT_NEAR(step / measured, 1, kGoal) << step;
  }
}

TEST(Traces, TheModelHasTheTracesExchangesAndGradients) {
  // 24 exchanges a step: 3 layers of experts, there and back, two halves, forward and backward. 16
  // experts of 2 x 4096 x 1024 on 4 devices, and 32 on 8.
  for (const std::int64_t devices : {4, 8}) {
    const OperatorGraph graph = model("Emoe", devices, 6);
    const std::int64_t experts = 3 * 4 * devices * 2 * 4096 * 1024;
    const std::int64_t others = 6 * (4 * 1024 * 1024 + 4 * 1024 + 4 * 1024) +
                                3 * (2 * 4096 * 1024 + 4096 + 1024) + 3 * 1024 * 4 * devices;
    EXPECT_EQ(graph.parameters(), experts + others);
  }
}

}  // namespace
}  // namespace orrery::spmd
