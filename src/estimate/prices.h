// SPDX-License-Identifier: Apache-2.0
/// Times of kernels and collectives, each computed once for all plans of a sweep.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collective/cost.h"
#include "graph/operator.h"
#include "machine/compute/compute_model.h"
#include "machine/machine.h"

namespace orrery::estimation {

/// Whatever a kernel's time depends on: all of an operator but its name.
struct KernelHash {
  std::size_t operator()(const Operator& op) const;
};
struct SameKernel {
  bool operator()(const Operator& a, const Operator& b) const;
};

/// A collective on the network of one machine.
struct CollectiveKey {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  Bytes bytes{0};
  std::int64_t copies = 0;      ///< Node::copies
  std::vector<Extent> extents;  ///< of the group
  std::vector<double> sharing;  ///< by extent: groups that share its busiest link
  std::int64_t devices = 1;     ///< of the machine, which decide its dimensions

  friend bool operator==(const CollectiveKey&, const CollectiveKey&) = default;
};
struct CollectiveHash {
  std::size_t operator()(const CollectiveKey& key) const;
};

/// A rank has a port out and a port in for every dimension; dimensions on one nic share them.
inline constexpr std::size_t kMostPorts = std::size_t{2} * kMaxDimensions;
enum class Way : std::uint8_t { out, in };
constexpr std::size_t port_of(int nic, Way way) {
  return 2 * static_cast<std::size_t>(nic) + (way == Way::in ? 1 : 0);
}

/// One phase of a transfer on the ports of a rank.
struct PortPhase {
  Time serialisation{0};  ///< on its busiest port, alone
  Time latency{0};
  std::array<float, kMostPorts> weight{};  ///< busy time of the port over the busiest one's
  std::array<float, kMostPorts> groups{};  ///< of its communicator that share the port's link

  /// Beside nothing but its own communicator's other groups.
  Time time() const;

  friend bool operator==(const PortPhase&, const PortPhase&) = default;
};

struct CollectiveTime {
  Time shared{0};  ///< phases after one another, each with the other groups of its communicator
  Time alone{0};
  std::vector<PortPhase> phases;
};

/// Number of the nic of each dimension of a machine.
std::vector<int> nics_of(const Machine& machine);

class Prices {
 public:
  const KernelTime& kernel(const Operator& op, const Device& device);
  const CollectiveTime& collective(const CollectiveKey& key, const Machine& machine);

 private:
  // Never iterated over, so their order does not matter.
  std::unordered_map<Operator, KernelTime, KernelHash, SameKernel> kernels_;
  std::unordered_map<CollectiveKey, CollectiveTime, CollectiveHash> collectives_;
};

}  // namespace orrery::estimation
