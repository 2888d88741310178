// SPDX-License-Identifier: Apache-2.0
#include "serving/step/link_times.h"

#include <fmt/format.h>

#include "simulate/simulate.h"

namespace orrery::step {

LinkTimes::LinkTimes(machine::Machine machine) : machine_(std::move(machine)) {
  for (const topology::NetworkDimension& dimension : machine_.network) {
    ranks_ *= dimension.size;
  }
}

Result<Time> LinkTimes::simulated(const simulate::LoneCollective& what,
                                  collective::CollectiveAlgorithm algorithm) const {
  simulate::SimulateOptions how;
  how.network = simulate::NetworkModel::flow;
  how.fold = false;
  how.algorithms.set(simulate::kLoneGroup, algorithm);
  return simulate::simulate(simulate::lone_collective(what), machine_, how)
      .map([](const simulate::Timeline& run) { return run.step_time; });
}

Result<void> LinkTimes::check(graph::CollectiveKind kind, const RankGroup& group,
                              collective::CollectiveAlgorithm algorithm) {
  constexpr Bytes kAny{1 << 20};
  if (group.count == 1) {
    return {};
  }
  auto ran = simulated({.kind = kind,
                        .bytes = kAny,
                        .devices = group.count,
                        .stride = group.stride,
                        .ranks = ranks_,
                        .everywhere = true},
                       algorithm);
  if (!ran) {
    Mistake mistake = std::move(ran.error().mistakes.front());
    mistake.where.clear();
    mistake.field = fmt::format("{} on the topology", name_of(kind));
    return fail(Error(std::move(mistake)));
  }
  return {};
}

Time LinkTimes::time(graph::CollectiveKind kind, Bytes size, const RankGroup& group,
                     collective::CollectiveAlgorithm algorithm, const graph::TokenRoute& route) {
  if (group.count == 1) {
    return Time(0);
  }
  const auto [known, fresh] =
      known_.try_emplace(Key{kind, size, group.stride, group.count, algorithm, route});
  if (fresh) {
    known->second = simulated({.kind = kind,
                               .bytes = size,
                               .route = route,
                               .devices = group.count,
                               .stride = group.stride,
                               .ranks = ranks_,
                               .everywhere = true},
                              algorithm)
                        .value();
  }
  return known->second;
}

}  // namespace orrery::step
