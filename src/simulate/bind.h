// SPDX-License-Identifier: Apache-2.0
/// A workload's templates with the times that this machine gives them: what the event loop runs on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery {

/// What runs on a device beside its kernels and takes units or bandwidth from them. Copies to other
/// memory tiers do not: copy engines make them.
enum class Beside : std::uint8_t { nothing, messages, collectives };

/// Slowdown of kernels, >= 1; what is beside them takes its share whatever their number.
struct Contention {
  double message = 1;
  double collective = 1;

  double slowdown(Beside beside) const {
    return beside == Beside::nothing ? 1 : beside == Beside::messages ? message : collective;
  }
};

struct BoundNode {
  Node::Kind kind = Node::Kind::compute;
  Stream stream = Stream::compute;
  Phase phase = Phase::forward;
  Axis axis = Axis::tp;
  Channel channel = Channel::forward;
  bool host_sync = false;
  std::uint16_t dependencies = 0;
  std::uint32_t first_dependent = 0;  ///< into BoundTemplate::dependents
  std::uint32_t dependent_count = 0;
  int collective = -1;  ///< into BoundWorkload::collectives
  Bytes bytes{0};       ///< of a send
  Time work{0};         ///< kernels back to back
  /// From the host's free moment until the last kernel is done, if the host is what limits:
  /// max over i of (i+1) dispatches + kernels i..n-1 back to back.
  Time host_span{0};
  Time host_cost{0};      ///< host time to issue the node
  Contention contention;  ///< of its kernels
};

struct BoundTemplate {
  std::vector<BoundNode> nodes;
  std::vector<std::uint32_t> dependents;
  std::array<std::vector<std::uint32_t>, kStreamCount> by_stream;  ///< node numbers in issue order
  std::vector<Stream>
      streams;  ///< that have nodes, by their first node: the host issues in this order
  std::vector<std::uint16_t> pending;  ///< dependencies per node
};

/// One distinct collective of an axis; or copy, which is one phase without ports.
struct BoundCollective {
  Axis axis = Axis::tp;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{0};
  int tier = 0;              ///< of a copy
  std::int64_t sharers = 1;  ///< of a copy: ranks that move the same bytes
  std::int64_t copies = 0;   ///< Node::copies
  std::vector<CollectivePhase> phases;
};

struct BoundWorkload {
  AlgorithmChoice algorithms{};                   ///< as asked for
  std::vector<std::vector<BoundTemplate>> roles;  ///< [role][template]
  std::vector<BoundCollective> collectives;
};

/// Requires a verified workload.
BoundWorkload bind(const Workload& workload, const Machine& machine,
                   const AlgorithmChoice& algorithms);

}  // namespace orrery
