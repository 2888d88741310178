// SPDX-License-Identifier: Apache-2.0
/// Flit hops per second of processor time: an 8x8 mesh, uniform, as docs/models/flit.md reports.
#include <benchmark/benchmark.h>

#include "machine/network/flit/experiment.h"

namespace orrery {
namespace {

/// Arguments: load in thousandths of a flit per node and cycle, flits of a packet.
void mesh(benchmark::State& state) {
  flit::Experiment experiment;
  experiment.load.rate = static_cast<double>(state.range(0)) / 1000;
  experiment.load.packet = static_cast<int>(state.range(1));
  experiment.load.sample_period = 5000;
  const auto prepared = flit::prepare(experiment);
  std::uint64_t hops = 0;
  std::int64_t cycles = 0;
  for (auto unused : state) {
    const flit::OpenLoopResult run = flit::run_open_loop(
        *prepared->graph, prepared->routing, experiment.router, prepared->traffic, experiment.load);
    hops += run.flit_hops;
    cycles += run.cycles;
  }
  state.counters["flit_hops"] =
      benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
  state.counters["cycles"] =
      benchmark::Counter(static_cast<double>(cycles), benchmark::Counter::kIsRate);
}
BENCHMARK(mesh)->Args({200, 1})->Args({200, 8})->Args({10, 1})->Args({1, 1});

}  // namespace
}  // namespace orrery
