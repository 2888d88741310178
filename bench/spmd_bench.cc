// SPDX-License-Identifier: Apache-2.0
/// Seconds of the SPMD search: HiDup's four models at 8 layers, Rmoe at 96 layers on 4,096 devices,
/// and the same without skipping repeated layers. Graph and machine are built beforehand.
#include <benchmark/benchmark.h>

#include "planner/spmd/decoder.h"
#include "planner/spmd/mesh_search.h"
#include "planner/spmd/mixed.h"
#include "planner/spmd/models.h"
#include "planner/spmd/search.h"

namespace {

using namespace orrery;  // NOLINT(google-build-using-namespace): a benchmark's own file

/// 64 V100 on 8 machines at 9.71 Gb/s, as published with HiDup.
spmd::Profile cluster() {
  return {.name = "64c8m",
          .description = {},
          .device_flops = FlopRate(4139214925014),
          .all_gather = Bandwidth(1224592728),
          .all_reduce = Bandwidth(611692856),
          .reduce_scatter = Bandwidth(1130230706),
          .all_to_all = Bandwidth(10701240728)};
}

void search(benchmark::State& state, spmd::ModelName model, bool skip_periods) {
  const spmd::ModelSize size{.devices = state.range(0), .layers = state.range(1)};
  const auto graph = spmd::build_model(model, size);
  const spmd::PublishedPrices prices({size.devices, cluster(), spmd::Overlap::forward});
  for (auto _ : state) {
    benchmark::DoNotOptimize(spmd::search(*graph, prices, {.skip_periods = skip_periods}));
  }
}
BENCHMARK_CAPTURE(search, Rmoe, spmd::ModelName::rmoe, true)
    ->Args({8, 8})
    ->Args({4096, 8})
    ->Args({8, 96})
    ->Args({4096, 96})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, Rswitch, spmd::ModelName::rswitch, true)
    ->Args({8, 8})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, Vmoe, spmd::ModelName::vmoe, true)
    ->Args({8, 8})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, Vswitch, spmd::ModelName::vswitch, true)
    ->Args({8, 8})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, every_period, spmd::ModelName::rmoe, false)
    ->Args({8, 8})
    ->Args({8, 96})
    ->Unit(benchmark::kMillisecond);

/// Half of the devices at a third of the rate: two exact searches. HAP's own takes 0.1 to 0.7 s for
/// 2 layers, 4 to 6 s for 12 and 14 s for 24 (reference run).
void mixed(benchmark::State& state) {
  const spmd::ModelSize size{.devices = 8, .layers = state.range(0)};
  const auto graph = spmd::build_model(spmd::ModelName::rmoe, size);
  std::vector<FlopRate> rates(4, 12_TFLOPs);
  rates.insert(rates.end(), 4, 4_TFLOPs);
  const spmd::MixedDevices devices{cluster(), rates};
  for (auto _ : state) {
    benchmark::DoNotOptimize(spmd::search_mixed(*graph, devices));
  }
}
BENCHMARK(mixed)->Arg(2)->Arg(12)->Arg(24)->Arg(96)->Unit(benchmark::kMillisecond);

/// A form on each of two axes, 8 x 4.
void mesh(benchmark::State& state, const std::string& model) {
  const auto graph = spmd::decoder_graph(
      zoo::load_model(model).value(), {.devices = 32, .batch = 64, .sequence = 2048, .mesh = true});
  const auto prices = spmd::MeshPrices::make(machine::load_machine("dgx-h100").value(),
                                             spmd::mesh_of(8, 4), graph->element);
  for (auto _ : state) {
    benchmark::DoNotOptimize(spmd::search_mesh(*graph, *prices));
  }
}
BENCHMARK_CAPTURE(mesh, llama, "llama-3-8b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mesh, mixtral, "mixtral-8x7b")->Unit(benchmark::kMillisecond);

void build(benchmark::State& state) {
  const spmd::ModelSize size{.devices = 4096, .layers = 96};
  for (auto _ : state) {
    benchmark::DoNotOptimize(spmd::build_model(spmd::ModelName::rmoe, size));
  }
}
BENCHMARK(build)->Unit(benchmark::kMillisecond);

}  // namespace
