// SPDX-License-Identifier: Apache-2.0
// Events per second of the event loop, folded and unfolded, and the whole path from plan to
// timeline.
#include <benchmark/benchmark.h>

#include "machine/machine.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery {
namespace {

struct Job {
  zoo::Model model;
  machine::Machine machine;
  plan::Plan plan;
};

/// Shipped configurations; a benchmark without them has nothing to measure.
Job load(const char* model, const char* plan) {
  Job job{zoo::load_model(model).value(), {}, plan::load_plan(plan).value()};
  job.machine =
      machine::with_devices(machine::load_machine("dgx-a100-80g").value(), job.plan.devices())
          .value();
  return job;
}

void run(benchmark::State& state, const Job& job, bool fold,
         simulate::NetworkModel network = simulate::NetworkModel::ports) {
  simulate::SimulateOptions options;
  options.network = network;
  options.fold = fold;
  double events = 0;
  std::int64_t ranks = 0;
  for (auto _ : state) {
    const graph::Workload workload = parallel::lower(job.model, job.plan).value();
    const simulate::Timeline timeline = simulate::simulate(workload, job.machine, options).value();
    benchmark::DoNotOptimize(timeline.step_time);
    events += static_cast<double>(timeline.events);
    ranks = timeline.fold.simulated;
  }
  state.counters["events/s"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["ranks"] = static_cast<double>(ranks);
}

void gpt3_175b_1024_folded(benchmark::State& state) {
  run(state, load("gpt3-175b", "gpt3-175b-1024"), true);
}
void gpt3_175b_1024_unfolded(benchmark::State& state) {
  run(state, load("gpt3-175b", "gpt3-175b-1024"), false);
}
void gpt3_175b_1024_flows(benchmark::State& state) {
  run(state, load("gpt3-175b", "gpt3-175b-1024"), true, simulate::NetworkModel::flow);
}
void gpt_1t_16384_folded(benchmark::State& state) {
  run(state, load("gpt-1t", "gpt-1t-16384"), true);
}
void lowering_gpt3_175b(benchmark::State& state) {
  const Job job = load("gpt3-175b", "gpt3-175b-1024");
  for (auto _ : state) {
    benchmark::DoNotOptimize(parallel::lower(job.model, job.plan).value().programs.size());
  }
}
BENCHMARK(gpt3_175b_1024_folded)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt3_175b_1024_flows)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt3_175b_1024_unfolded)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(gpt_1t_16384_folded)->Unit(benchmark::kMillisecond);
BENCHMARK(lowering_gpt3_175b)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
