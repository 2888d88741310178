// SPDX-License-Identifier: Apache-2.0
// Messages per second of ASTRA-sim's semantics, rank by rank and folded, on growing systems: one
// all-reduce on one or three dimensions, and a transformer of 24 layers. Arguments: NPUs, folded.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "compat/astra/run.h"

namespace orrery::astra {
namespace {

constexpr double kGiB = 1073741824.0;

Dimension dimension(Building building, std::int64_t size, double gib_per_second, Time latency) {
  return {building, size, Bandwidth(gib_per_second * kGiB), latency};
}

chakra::Node all_reduce(Bytes size) {
  chakra::Node node;
  node.type = chakra::NodeType::comm_coll;
  node.size = size;
  node.has_size = true;
  return node;
}

RunInput system_of(std::vector<Dimension> network, const std::vector<Algorithm>& algorithms,
                   std::int64_t splits) {
  RunInput input;
  std::int64_t ranks = 1;
  for (const Dimension& each : network) {
    ranks *= each.size;
  }
  input.network = std::move(network);
  for (auto& list : input.system.implementation) {
    for (Algorithm algorithm : algorithms) {
      list.push_back({algorithm, 0});
    }
  }
  input.system.splits = splits;
  input.system.local_memory_bandwidth = 1600_GBps;
  input.traces.groups.emplace_back();
  input.traces.program_of.assign(static_cast<std::size_t>(ranks), 0);
  input.traces.programs.emplace_back();
  input.traces.programs[0].names = std::string(1, '\0');
  return input;
}

RunInput one_dimension(Building building, Algorithm algorithm, std::int64_t npus) {
  RunInput input = system_of({dimension(building, npus, 50, 500_ns)}, {algorithm}, 1);
  input.traces.programs[0].nodes = {all_reduce(64_MiB)};
  return input;
}

RunInput three_dimensions(std::int64_t npus) {
  RunInput input = system_of({dimension(Building::ring, 8, 200, 500_ns),
                              dimension(Building::fully_connected, 8, 100, 500_ns),
                              dimension(Building::switched, npus / 64, 50, 500_ns)},
                             {Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling}, 64);
  input.traces.programs[0].nodes = {all_reduce(1_GiB)};
  return input;
}

/// Appends a node that depends on `after` (or on nothing: -1).
std::uint32_t append(chakra::Program& program, chakra::Node node, std::int64_t after) {
  node.id = program.nodes.size();
  node.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  if (after >= 0) {
    node.dependencies = 1;
    program.dependencies.push_back(static_cast<std::uint32_t>(after));
  }
  program.nodes.push_back(node);
  return static_cast<std::uint32_t>(program.nodes.size() - 1);
}

/// Returns a transformer: per layer and direction a computation and a tensor-parallel all-reduce of
/// 8 MiB, and backward a data-parallel all-reduce of 32 MiB.
RunInput transformer(std::int64_t npus) {
  RunInput input = system_of({dimension(Building::fully_connected, 8, 200, 500_ns),
                              dimension(Building::switched, npus / 8, 50, 2_us)},
                             {Algorithm::direct, Algorithm::halving_doubling}, 4);
  chakra::Program& program = input.traces.programs[0];
  std::int64_t last = -1;
  for (int layer = 0; layer < 48; ++layer) {
    const bool backward = layer >= 24;
    chakra::Node compute;
    compute.type = chakra::NodeType::comp;
    compute.duration = backward ? 200_us : 100_us;
    const std::uint32_t done = append(program, compute, last);
    chakra::Node tensor = all_reduce(8_MiB);
    tensor.has_involved = true;
    tensor.involved = 1;
    tensor.involved_entries = 2;
    last = append(program, tensor, done);
    if (backward) {
      chakra::Node gradients = all_reduce(32_MiB);
      gradients.has_involved = true;
      gradients.involved = 2;
      gradients.involved_entries = 2;
      append(program, gradients, done);
    }
  }
  return input;
}

/// Messages between random pairs, each after the last but a few nodes of its ranks, and kernels.
RunInput random_messages(std::int64_t npus) {
  constexpr std::int64_t kMessagesPerRank = 700;
  RunInput input = system_of({dimension(Building::ring, npus, 50, 500_ns)}, {Algorithm::ring}, 1);
  const auto ranks = static_cast<std::size_t>(npus);
  input.traces.programs.assign(ranks, input.traces.programs[0]);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    input.traces.program_of[rank] = rank;
  }
  std::mt19937_64 random(1);  // a named seed: the same run every time
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  const auto add = [&](std::int64_t rank, chakra::Node node) {
    chakra::Program& program = input.traces.programs[static_cast<std::size_t>(rank)];
    const auto made = static_cast<std::int64_t>(program.nodes.size());
    append(program, node, made == 0 ? -1 : made - 1 - below(std::min<std::int64_t>(made, 4)));
  };
  for (std::int64_t i = 0; i < npus * kMessagesPerRank; ++i) {
    const std::int64_t from = below(npus);
    const std::int64_t to = (from + 1 + below(npus - 1)) % npus;
    chakra::Node message;
    message.size = Bytes(1 + below(1 << 20));
    message.tag = static_cast<std::uint32_t>(i);
    message.type = chakra::NodeType::comm_send;
    message.peer = to - from;
    add(from, message);
    message.type = chakra::NodeType::comm_recv;
    message.peer = from - to;
    add(to, message);
    chakra::Node kernel;
    kernel.type = chakra::NodeType::comp;
    kernel.duration = 1_us * (1 + below(50));
    add(below(npus), kernel);
  }
  return input;
}

void measure(benchmark::State& state, const RunInput& input) {
  RunOptions options;
  options.fold = state.range(1) != 0;
  double messages = 0;
  for (auto _ : state) {
    const RunResult result = run(input, options).value();
    benchmark::DoNotOptimize(result.classes[0].finish);
    messages += static_cast<double>(result.messages);
    state.counters["messages"] = static_cast<double>(result.messages);
  }
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
}

void ring(benchmark::State& state) {
  measure(state, one_dimension(Building::ring, Algorithm::ring, state.range(0)));
}
void halving_doubling(benchmark::State& state) {
  measure(state, one_dimension(Building::switched, Algorithm::halving_doubling, state.range(0)));
}
void direct(benchmark::State& state) {
  measure(state, one_dimension(Building::fully_connected, Algorithm::direct, state.range(0)));
}
void three_dimensional(benchmark::State& state) {
  measure(state, three_dimensions(state.range(0)));
}
void transformer_step(benchmark::State& state) {
  measure(state, transformer(state.range(0)));
}
void messages_of_random_pairs(benchmark::State& state) {
  measure(state, random_messages(state.range(0)));
}

BENCHMARK(messages_of_random_pairs)->ArgsProduct({{256, 1024}, {0}});
BENCHMARK(ring)->ArgsProduct({{256, 512, 1024, 2048}, {0}})->Args({2048, 1});
BENCHMARK(halving_doubling)->ArgsProduct({{1024, 2048, 4096}, {0}})->Args({4096, 1});
BENCHMARK(direct)->ArgsProduct({{256, 512}, {0, 1}});
BENCHMARK(three_dimensional)->ArgsProduct({{256, 512, 1024, 4096}, {0}})->Args({65536, 1});
BENCHMARK(three_dimensional)->Args({1048576, 1});
BENCHMARK(transformer_step)->ArgsProduct({{64, 256, 512, 1024}, {0}})->Args({1024, 1});

}  // namespace
}  // namespace orrery::astra
