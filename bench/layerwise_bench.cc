// SPDX-License-Identifier: Apache-2.0
/// Galvatron's problem at its size: 96 layers, 22 strategies, 40 GB, random costs. Its recurrence
/// over 40,960 MB takes 3.4 s (reference run).
#include <benchmark/benchmark.h>

#include <random>

#include "planner/layerwise/fastest.h"

namespace {

using namespace orrery;

/// Strategies that hold more are mostly faster; every layer its own costs, or one in `kinds`.
layerwise::Chain chain_of(std::size_t kinds, std::uint64_t seed) {
  constexpr std::size_t kLayers = 96;
  constexpr std::size_t kStrategies = 22;
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least));
  };
  layerwise::Chain chain;
  chain.strategies.resize(kStrategies);
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    layerwise::LayerCosts costs;
    for (std::size_t s = 0; s < kStrategies; ++s) {
      const std::int64_t megabytes = between(100, 900);
      costs.memory.push_back(Bytes(megabytes << 20));
      costs.time.push_back(1_us * (between(2000, 6000) + 2'000'000 / megabytes));
    }
    for (std::size_t from = 0; from < kStrategies; ++from) {
      costs.change.emplace_back();
      for (std::size_t to = 0; to < kStrategies; ++to) {
        costs.change.back().push_back(1_us * (from == to ? 0 : between(0, 500)));
      }
    }
    chain.kinds.push_back(std::move(costs));
  }
  for (std::size_t i = 0; i < kLayers; ++i) {
    chain.layers.push_back(i % kinds);
  }
  return chain;
}

void galvatron_size(benchmark::State& state) {
  const layerwise::Chain chain = chain_of(static_cast<std::size_t>(state.range(0)),
                                          static_cast<std::uint64_t>(state.range(1)));
  for (auto _ : state) {
    const auto found = layerwise::fastest_within(chain, Bytes(std::int64_t{40'960} << 20));
    if (!found || found->bound < found->time) {
      state.SkipWithError("not proved");
      break;
    }
    state.counters["labels"] = static_cast<double>(found->labels);
  }
}
BENCHMARK(galvatron_size)
    ->ArgNames({"kinds", "seed"})
    ->ArgsProduct({{1, 2, 96}, {1, 2, 3, 4, 5, 6}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
