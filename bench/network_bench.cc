// SPDX-License-Identifier: Apache-2.0
/// Messages per second of the network models: every device of a three-dimensional network sends to
/// another at once.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "machine/network/fair.h"
#include "machine/network/fifo.h"

namespace {

using namespace orrery;  // NOLINT(google-build-using-namespace): a benchmark's own file

topology::NetworkDimension dimension(topology::DimensionKind kind, std::int64_t size,
                                     Bandwidth bandwidth) {
  topology::NetworkDimension d;
  d.kind = kind;
  d.size = size;
  d.bandwidth = bandwidth;
  d.latency = 500_ns;
  return d;
}

template <class Network>
void permutation(benchmark::State& state) {
  const topology::LinkMap map(
      {dimension(topology::DimensionKind::ring, 8, 400_GBps),
       dimension(topology::DimensionKind::fully_connected, 8, 700_GBps),
       dimension(topology::DimensionKind::switched, state.range(0), 50_GBps)});
  std::vector<std::vector<topology::Hop>> routes(static_cast<std::size_t>(map.devices()));
  for (std::int64_t device = 0; device < map.devices(); ++device) {
    map.route(device, (device * 37 + 11) % map.devices(), routes[static_cast<std::size_t>(device)]);
  }
  for (auto _ : state) {
    Network network(map.links());
    engine::EventQueue queue;
    for (const auto& route : routes) {
      network.start(1_MiB, route, queue);
    }
    network.settle(queue);
    while (!queue.empty()) {
      const auto event = queue.pop();
      benchmark::DoNotOptimize(network.handle(event, queue));
      if (queue.instant_is_over()) {
        network.settle(queue);
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * map.devices());
}
BENCHMARK(permutation<network::FifoNetwork>)->Arg(4)->Arg(64);
BENCHMARK(permutation<network::FairNetwork>)->Arg(4);

}  // namespace
