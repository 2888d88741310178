// SPDX-License-Identifier: Apache-2.0
/// Calculon's spaces, every execution of them, one core. Its own search would take 1.7 core-hours
/// for 1T on 3,072 with its debug messages silenced (0.86 ms an execution, reference run).
#include <benchmark/benchmark.h>

#include <string>

#include "compat/calculon/search.h"

namespace {

using namespace orrery;

void whole_space(benchmark::State& state, const std::string& model, std::uint64_t executions) {
  const std::string folder = std::string(ORRERY_SOURCE_DIR) + "/examples/calculon/";
  const auto application = calculon::load_application(folder + model + ".json");
  const auto system =
      calculon::load_system(folder + "a100_80g.json", calculon::NumberType::float16);
  for (auto _ : state) {
    const auto found = calculon::search(*application, *system, {state.range(0), state.range(1)}, 1);
    if (found.executions != executions) {
      state.SkipWithError("not the published space");
    }
    state.counters["distinct"] = static_cast<double>(found.distinct);
    state.counters["feasible"] = static_cast<double>(found.feasible);
    state.counters["executions/s"] = benchmark::Counter(
        static_cast<double>(executions), benchmark::Counter::kIsIterationInvariantRate);
  }
}
BENCHMARK_CAPTURE(whole_space, 22B, "megatron-22B", 193'496U)
    ->Args({8, 4})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_space, 22B, "megatron-22B", 2'393'240U)
    ->Args({64, 64})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_space, 175B, "gpt3-175B", 3'232'128U)
    ->Args({64, 64})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_space, 1T, "megatron-1T", 5'882'400U)
    ->Args({512, 512})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_space, 1T, "megatron-1T", 7'002'336U)
    ->Args({3072, 3072})
    ->Unit(benchmark::kMillisecond);

}  // namespace
