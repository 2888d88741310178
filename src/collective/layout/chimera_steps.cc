// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/chimera_steps.h"

namespace orrery::layout {
namespace {

constexpr std::int64_t kRanks = 4;  // of a group: 2 x 2, or 4 of a switch
constexpr std::int64_t kWidth = 2;  // X and Y
constexpr std::int64_t kPayload = 256;
constexpr std::int64_t kFlitsOfPacket = 7;
constexpr std::int64_t kFlitBits = 400;
constexpr std::int64_t kHop = 109;
constexpr std::int64_t kThroughSwitch = 205;

using Cycles = std::optional<std::int64_t>;

Cycles operator+(Cycles a, Cycles b) {
  return a && b ? Cycles(*a + *b) : std::nullopt;
}

std::int64_t flits(std::int64_t bytes) {
  const std::int64_t rest = bytes % kPayload;
  return kFlitsOfPacket * (bytes / kPayload) +
         (rest > 0 ? (8 * rest + kFlitBits - 1) / kFlitBits + 1 : 0);
}

class Sequences {
 public:
  Sequences(ChimeraNetwork network, bool artifact)
      : network_(network), artifact_(artifact), is_switch_(network == ChimeraNetwork::two_switch) {}

  std::int64_t step(std::int64_t bytes) const {
    return flits(bytes) + (is_switch_ ? kThroughSwitch : kHop);
  }
  std::int64_t all_gather(std::int64_t m) const { return step(m / kRanks) + step(m / kWidth); }
  /// Of a dp group of `ranks`, a line of the group.
  std::int64_t all_gather_in(std::int64_t ranks, std::int64_t m) const {
    return ranks == kRanks ? all_gather(m) : (ranks - 1) * step(m / ranks);
  }
  std::int64_t reduce_scatter(std::int64_t m) const {
    const std::int64_t first = step(m / kWidth);
    const std::int64_t second = step(m / kRanks);
    if (artifact_ && is_switch_) {
      return 2 * (first + second) + 7;  // D2
    }
    if (artifact_ && network_ == ChimeraNetwork::torus3d) {
      return flits(m / kWidth) + flits(m / kRanks) + kHop + 1;  // D3
    }
    return first + second + 3;
  }
  std::int64_t reduce_scatter_in(std::int64_t ranks, std::int64_t m) const {
    if (ranks == kRanks) {
      return reduce_scatter(m);
    }
    if (ranks == 1) {
      return 0;
    }
    return artifact_ && is_switch_ ? 2 * step(m / ranks) + 3 : step(m / ranks) + 1;
  }
  std::int64_t all_reduce(std::int64_t m) const {
    const std::int64_t release = artifact_ && is_switch_ ? 3 : 1;
    return reduce_scatter(m) + release + all_gather(m);
  }
  std::int64_t all_reduce_in(std::int64_t ranks, std::int64_t m) const {
    return ranks == kRanks ? all_reduce(m)
           : ranks == 1    ? 0
                           : reduce_scatter_in(ranks, m) + 1 + all_gather_in(ranks, m);
  }
  std::int64_t all_to_all(std::int64_t m) const { return 2 * step(m / (kWidth * kRanks)); }
  /// The next stage is beside a 2 x 2 block in x, two hops away, but a plane of the 3-D torus.
  Cycles send(std::int64_t m) const {
    const bool one_hop = is_switch_ || network_ == ChimeraNetwork::torus3d;
    return one_hop ? Cycles(step(m)) : std::nullopt;
  }
  Cycles many_to_many(std::int64_t m) const {
    return is_switch_ ? Cycles(kRanks * flits(m / (kRanks * kRanks)) + kThroughSwitch)
                      : std::nullopt;
  }

 private:
  ChimeraNetwork network_;
  bool artifact_;
  bool is_switch_;
};

}  // namespace

std::optional<std::int64_t> chimera_cycles(const ChimeraStudy& study, bool fused, bool artifact) {
  const Sequences run(study.network, artifact);
  const std::int64_t m = study.message.value();
  const std::int64_t tokens = m * study.copies * study.dp;  // Mkd
  const std::int64_t group = kRanks / study.dp;
  switch (study.pair) {
    case Pair::tp_sp:
      return fused ? run.reduce_scatter(m) : run.all_reduce(m);
    case Pair::tp_pp:
      return (fused ? Cycles(run.reduce_scatter(m) + 1) : Cycles(run.all_reduce(m))) +
             run.many_to_many(m) + Cycles(run.all_gather(m));
    case Pair::tp_ep:
      return (fused ? run.reduce_scatter_in(group, m) + 1 : run.all_reduce_in(group, m)) +
             run.all_to_all(tokens);
    case Pair::pp_ep:
      return fused ? run.many_to_many(tokens) : run.send(m) + Cycles(run.all_to_all(tokens));
    case Pair::sp_pp:
      return fused ? run.many_to_many(m) : Cycles(run.all_gather(m)) + run.send(m);
    case Pair::sp_ep:
      return (fused ? 0 : run.all_gather_in(group, m)) + run.all_to_all(tokens);
  }
  return std::nullopt;
}

}  // namespace orrery::layout
