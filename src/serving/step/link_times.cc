// SPDX-License-Identifier: Apache-2.0
#include "serving/step/link_times.h"

#include <fmt/format.h>

#include "simulate/lone_collective.h"
#include "simulate/simulate.h"

namespace orrery::step {

LinkTimes::LinkTimes(machine::Machine machine, simulate::NetworkModel network)
    : machine_(std::move(machine)), network_(network) {
  for (const topology::NetworkDimension& dimension : machine_.network) {
    ranks_ *= dimension.size;
  }
}

Result<Time> LinkTimes::simulated(const Key& key) const {
  simulate::SimulateOptions how;
  how.network = network_;
  how.algorithms.set(simulate::kLoneGroup, key.algorithm);
  const graph::Workload lone = simulate::lone_collective({.kind = key.kind,
                                                          .bytes = key.bytes,
                                                          .route = key.route,
                                                          .devices = key.devices,
                                                          .stride = key.stride,
                                                          .ranks = ranks_,
                                                          .everywhere = true});
  return simulate::simulate(lone, machine_, how).map([](const simulate::Timeline& run) {
    return run.step_time;
  });
}

Result<void> LinkTimes::check(graph::CollectiveKind kind, const RankGroup& group,
                              collective::CollectiveAlgorithm algorithm) {
  constexpr Bytes kAny{1 << 20};
  if (group.count == 1) {
    return {};
  }
  auto ran = simulated({kind, kAny, {}, group.count, group.stride, algorithm});
  if (!ran) {
    Mistake mistake = std::move(ran.error().mistakes.front());
    mistake.where.clear();
    mistake.field = machine_.wires.graph
                        ? fmt::format("{} on the topology", name_of(kind))
                        : fmt::format("{} with --network {}", name_of(kind), name_of(network_));
    return fail(Error(std::move(mistake)));
  }
  return {};
}

Time LinkTimes::time(graph::CollectiveKind kind, Bytes size, const RankGroup& group,
                     collective::CollectiveAlgorithm algorithm, const graph::TokenRoute& route) {
  if (group.count == 1) {
    return Time(0);
  }
  const Key key{kind, size, route, group.count, group.stride, algorithm};
  const auto [known, fresh] = known_.try_emplace(key);
  if (fresh) {
    known->second = simulated(key).value_or(Time::max());
  }
  return known->second;
}

}  // namespace orrery::step
