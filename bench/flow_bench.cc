// SPDX-License-Identifier: Apache-2.0
/// Bare flows on fat trees: solving, colouring, packets.
#include <benchmark/benchmark.h>

#include <string>

#include "machine/network/flows.h"
#include "machine/network/packets/packet.h"
#include "machine/network/traffic.h"
#include "machine/topology/makers.h"

namespace {

using namespace orrery;  // NOLINT(google-build-using-namespace): a benchmark's own file
using network::Traffic;
using topology::Routing;

void flows(benchmark::State& state, const std::string& spec, Traffic kind, Routing routing) {
  const topology::LinkGraph graph = *topology::parse_topology(spec, "bench");
  const auto traffic = network::make_traffic({.kind = kind, .bytes = Bytes(100'000)}, graph.hosts);
  for (auto _ : state) {
    topology::Router router(graph, routing, 1);
    benchmark::DoNotOptimize(run_flows(router, traffic));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(traffic.size()));
}
BENCHMARK_CAPTURE(flows, all_to_all_512, "leaf_spine:leaves=32,spines=16,hosts=16",
                  Traffic::all_to_all, Routing::d_mod_k);
BENCHMARK_CAPTURE(flows, all_to_all_512_ecmp, "leaf_spine:leaves=32,spines=16,hosts=16",
                  Traffic::all_to_all, Routing::ecmp);
BENCHMARK_CAPTURE(flows, all_to_all_1024, "fat_tree:k=16", Traffic::all_to_all, Routing::d_mod_k);
BENCHMARK_CAPTURE(flows, permutation_16384, "leaf_spine:leaves=128,spines=128,hosts=128",
                  Traffic::permutation, Routing::ecmp);
BENCHMARK_CAPTURE(flows, permutation_16384_coloured, "leaf_spine:leaves=128,spines=128,hosts=128",
                  Traffic::permutation, Routing::colour);

void colouring(benchmark::State& state) {
  // 100,000 flows: six permutations and a bit of 16,384 hosts.
  const topology::LinkGraph graph =
      *topology::parse_topology("leaf_spine:leaves=128,spines=128,hosts=128", "bench");
  std::vector<topology::FlowEnds> ends;
  for (std::uint64_t seed = 0; ends.size() < 100'000; ++seed) {
    for (const auto& flow : network::make_traffic(
             {.kind = Traffic::permutation, .bytes = Bytes(1), .seed = seed}, graph.hosts)) {
      ends.push_back({flow.source, flow.target, flow.bytes});
    }
  }
  ends.resize(100'000);
  for (auto _ : state) {
    topology::Router router(graph, Routing::colour);
    benchmark::DoNotOptimize(assign(router, ends));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ends.size()));
}
BENCHMARK(colouring);

void packets(benchmark::State& state) {
  const topology::LinkGraph graph = *topology::parse_topology("fat_tree:k=16", "bench");
  const auto traffic =
      network::make_traffic({.kind = Traffic::permutation, .bytes = Bytes(2'000'000)}, graph.hosts);
  for (auto _ : state) {
    topology::Router router(graph, Routing::ecmp, 1);
    benchmark::DoNotOptimize(packets::run_packets(router, traffic, {}));
  }
}
BENCHMARK(packets);

/// Sends 100 MB from each of a ring's neighbours to the next: every packet, or without the steady
/// phase.
void ring_of_packets(benchmark::State& state, double steady) {
  const topology::LinkGraph graph = *topology::parse_topology("fat_tree:k=8", "bench");
  const auto traffic =
      network::make_traffic({.kind = Traffic::ring, .bytes = Bytes(100'000'000)}, graph.hosts);
  for (auto _ : state) {
    topology::Router router(graph, Routing::ecmp, 1);
    benchmark::DoNotOptimize(packets::run_packets(router, traffic, {.steady = steady}));
  }
}
BENCHMARK_CAPTURE(ring_of_packets, all, 0.0);
BENCHMARK_CAPTURE(ring_of_packets, steady_skipped, 0.01);

}  // namespace
