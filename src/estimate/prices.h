// SPDX-License-Identifier: Apache-2.0
/// Computes times of kernels and collectives, each computed once for all plans of a sweep.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "collective/cost.h"
#include "graph/operator.h"
#include "machine/compute/compute_model.h"
#include "machine/machine.h"

namespace orrery::estimate {

/// Whatever a kernel's time depends on: all of an operator but its name.
struct KernelHash {
  std::size_t operator()(const graph::Operator& op) const;
};
struct SameKernel {
  bool operator()(const graph::Operator& a, const graph::Operator& b) const;
};

/// A collective on the network of one machine.
struct CollectiveKey {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  collective::CollectiveAlgorithm algorithm = collective::CollectiveAlgorithm::automatic;
  Bytes bytes{0};
  graph::TokenRoute route{};                ///< Node::route
  std::vector<collective::Extent> extents;  ///< of the group
  std::int64_t devices = 1;                 ///< of the machine, which decide its dimensions

  friend bool operator==(const CollectiveKey&, const CollectiveKey&) = default;
};
struct CollectiveHash {
  std::size_t operator()(const CollectiveKey& key) const;
};

/// PortLoad is what the transfers of all ranks of a stage that move at once want of the busiest
/// link of one sort: the sum of their weights on it (Occupancy).
struct PortLoad {
  std::uint32_t port = 0;  ///< LinkMap::class_of
  double load = 0;

  friend bool operator==(const PortLoad&, const PortLoad&) = default;
};

/// One phase of a transfer on the ports of a rank.
struct PortPhase {
  Time serialisation{0};  ///< on its busiest port, alone
  Time latency{0};
  std::vector<PortLoad> ports{};
  std::vector<PortLoad> arrival{};  ///< of a message: the ports of the stage that it comes to

  /// Returns the time beside nothing but the same transfer of the stage's other ranks.
  Time time() const;

  friend bool operator==(const PortPhase&, const PortPhase&) = default;
};

/// Says, by port, how long it is wanted: sums of serialisation x load. Ports beyond the last, which
/// machines of more than four dimensions have, are not looked at.
using PortTimes = std::array<Time, 8>;
void add_ports(PortTimes& times, const std::vector<PortPhase>& phases, std::int64_t often = 1);
void add_ports(PortTimes& times, const PortTimes& more, std::int64_t often = 1);
Time busiest_port(const PortTimes& times);

struct CollectiveTime {
  Time alone{0};
  std::vector<collective::CollectivePhase> phases;
  std::vector<PortPhase> on_ports;  ///< of a group that shares no link with others
};

/// Ports of a phase of a group that shares no link with others; nothing: it may share some.
using LoadsOf = std::function<std::vector<PortLoad>(const collective::CollectivePhase&)>;

/// A search comes back to most of what it has priced soon; of the rest only so many are kept.
class Prices {
 public:
  static constexpr std::size_t kMostKernels = 65'536;      ///< some 25 MB
  static constexpr std::size_t kMostCollectives = 65'536;  ///< some 100 MB

  /// Takes kernels at these clocks of the machine from now on, by a number of the caller's.
  void at_clocks(std::size_t number) { clocks_ = number; }

  /// Returns the time of a kernel, valid until the next question of its sort, like the other. It
  /// runs on the device of the machine or, of several parts, on that where it takes least.
  const compute::KernelTime& kernel(const graph::Operator& op, const machine::Machine& machine);
  const CollectiveTime& collective(const CollectiveKey& key, const machine::Machine& machine,
                                   const LoadsOf& loads_of);

 private:
  // Never iterated over, so their order does not matter.
  using Kernels = std::unordered_map<graph::Operator, compute::KernelTime, KernelHash, SameKernel>;
  std::unordered_map<std::size_t, Kernels> kernels_;  ///< by clocks
  std::size_t kernel_count_ = 0;
  std::size_t clocks_ = 0;
  std::unordered_map<CollectiveKey, CollectiveTime, CollectiveHash> collectives_;
};

}  // namespace orrery::estimate
