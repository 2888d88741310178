// SPDX-License-Identifier: Apache-2.0
/// Products per second on systolic arrays: a closed form, however large the product.
#include <benchmark/benchmark.h>

#include "machine/compute/systolic.h"

namespace {

using namespace orrery;  // NOLINT(google-build-using-namespace): a benchmark's own file

void product(benchmark::State& state) {
  compute::SystolicArray array{.rows = 256,
                               .cols = 256,
                               .dataflow = compute::Dataflow::best,
                               .arrays = state.range(1),
                               .input_sram = 12_MiB,
                               .filter_sram = 12_MiB,
                               .output_sram = 8_MiB};
  const std::int64_t extent = state.range(0);
  const compute::SystolicProblem problem{.shape = {8, extent, extent, extent}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(compute::device_cost(problem, array, {.shared = 64}));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(product)->Args({256, 1})->Args({65536, 1})->Args({65536, 8});

}  // namespace
