// SPDX-License-Identifier: Apache-2.0
/// Collective plans and estimates per second. One 175B plan asks for about ten collectives, so an
/// estimator of 500,000 plans a second may spend 200 ns on each.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "collective/cost.h"

namespace {

using namespace orrery;  // NOLINT(google-build-using-namespace): a benchmark's own file

/// 8 devices a node, 128 nodes; three protocols in each dimension.
machine::Machine cluster() {
  machine::Machine machine;
  for (const std::int64_t size : {8, 128}) {
    topology::NetworkDimension dimension;
    dimension.size = size;
    dimension.bandwidth = size == 8 ? 300_GBps : 25_GBps;
    dimension.latency = 1_us;
    for (const char* name : {"LL", "LL128", "Simple"}) {
      dimension.protocols.push_back(
          {.name = name, .launch = 8_us, .step_latency = 2_us, .efficiency = 0.8, .local_copy = 1});
    }
    machine.network.push_back(dimension);
  }
  return machine;
}

/// A group inside a node, between nodes, or over both.
void over(benchmark::State& state, std::int64_t stride, std::int64_t count, bool plan) {
  const machine::Machine machine = cluster();
  const auto extents = collective::extents_of(stride, count, machine);
  Bytes size(1'000'000);
  for (auto _ : state) {
    size += 1_B;
    if (plan) {
      benchmark::DoNotOptimize(
          collective::plan_collective(graph::CollectiveKind::all_reduce, size, extents,
                                      collective::CollectiveAlgorithm::automatic, machine));
    } else {
      benchmark::DoNotOptimize(
          collective::collective_time(graph::CollectiveKind::all_reduce, size, extents,
                                      collective::CollectiveAlgorithm::automatic, machine));
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(over, plan_in_node, 1, 8, true);
BENCHMARK_CAPTURE(over, plan_between_nodes, 8, 128, true);
BENCHMARK_CAPTURE(over, plan_in_and_between, 1, 1024, true);
BENCHMARK_CAPTURE(over, time_in_node, 1, 8, false);
BENCHMARK_CAPTURE(over, time_between_nodes, 8, 128, false);
BENCHMARK_CAPTURE(over, time_in_and_between, 1, 1024, false);

void group_to_extents(benchmark::State& state) {
  const machine::Machine machine = cluster();
  for (auto _ : state) {
    benchmark::DoNotOptimize(collective::extents_of(2, 64, machine));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(group_to_extents);

}  // namespace
