// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "collective/cost.h"
#include "machine/machine.h"
#include "simulate/network_model.h"

namespace orrery::step {

/// Ranks of an engine that communicate: `count` of them, `stride` apart.
struct RankGroup {
  std::int64_t stride = 1;
  std::int64_t count = 1;
  std::vector<collective::Extent> extents{};  ///< where they lie
};

/// Times collectives as a model of the network simulates them: those of all groups of the engine at
/// once, with nothing else on the links. Every kind, size and group is simulated once.
class LinkTimes {
 public:
  /// Requires as many devices as the engine has; with wires, device d is host d.
  LinkTimes(machine::Machine machine, simulate::NetworkModel network);

  /// Mistakes: algorithms that have no messages there.
  Result<void> check(graph::CollectiveKind kind, const RankGroup& group,
                     collective::CollectiveAlgorithm algorithm);
  /// Returns the time of a collective. `route`: as of graph::Node. Requires check(). Time::max():
  /// it never ends (pauses of RoCE in a ring of links).
  Time time(graph::CollectiveKind kind, Bytes size, const RankGroup& group,
            collective::CollectiveAlgorithm algorithm, const graph::TokenRoute& route = {});

 private:
  /// A collective in every group of `devices` ranks, `stride` apart.
  struct Key {
    graph::CollectiveKind kind;
    Bytes bytes;
    graph::TokenRoute route;
    std::int64_t devices;
    std::int64_t stride;
    collective::CollectiveAlgorithm algorithm;
    auto operator<=>(const Key&) const = default;
  };

  Result<Time> simulated(const Key& key) const;

  machine::Machine machine_;
  simulate::NetworkModel network_;
  std::int64_t ranks_ = 1;
  std::map<Key, Time> known_;
};

}  // namespace orrery::step
