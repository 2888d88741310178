// SPDX-License-Identifier: Apache-2.0
/// A collective as a sequence of phases, each on the links of one or several network dimensions.
///
/// Time of one phase on idle links = latency + serialisation of its busiest link, with
///
///   serialisation = load * S / (efficiency * bandwidth)
///                   (trees: efficiency * 0.92, as in NCCL's tuning model)
///                   a port that several dimensions share (nic, through): their sum
///                   a node's link: what all members of the group in the node send over it
///   latency       = launch + steps * step_latency + further hops and messages + local copy
///                   + copies of the buffer, and at least what the host needs to issue one
///
/// S is the buffer as Node::bytes counts it; steps and load come from the algorithm and the kind of
/// dimension (steps.h), launch, step_latency, efficiency and local copy from the protocol
/// (dimension.h). docs/models/collective.md derives every formula and names its source.
///
/// It is the price of one group alone: what others send at the same time, groups of the same
/// collective between its members too, is for the network to add.
///
/// Ignores: the reduction's own compute time; switches are non-blocking; a port that several
/// messages of one collective share is never idle between them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "collective/algorithm_name.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::collective {

/// An AlgorithmChoice says what the communicators of each group run; automatic where nothing is
/// said.
class AlgorithmChoice {
 public:
  CollectiveAlgorithm operator[](graph::GroupIndex group) const {
    return *group < by_group_.size() ? by_group_[*group] : CollectiveAlgorithm::automatic;
  }
  void set(graph::GroupIndex group, CollectiveAlgorithm algorithm) {
    by_group_.resize(std::max(by_group_.size(), *group + 1), CollectiveAlgorithm::automatic);
    by_group_[*group] = algorithm;
  }
  /// Sets the algorithm of the first `groups` groups.
  void fill(std::size_t groups, CollectiveAlgorithm algorithm) {
    by_group_.assign(groups, algorithm);
  }

 private:
  std::vector<CollectiveAlgorithm> by_group_;
};

/// The part of a group that lies in one network dimension: `count` members `stride` apart.
struct Extent {
  int dimension = 0;
  std::int64_t count = 1;
  std::int64_t stride = 1;  ///< in coordinates of the dimension

  friend bool operator==(const Extent&, const Extent&) = default;
};

inline const topology::NetworkDimension& dimension_of(const Extent& extent,
                                                      const machine::Machine& machine) {
  return machine.network[static_cast<std::size_t>(extent.dimension)];
}

/// Splits a group (count members, `stride` ranks apart) over the dimensions, innermost first; every
/// extent has at least two members. Groups tile the ranks: they fill blocks of stride * count
/// ranks. A group whose members do not form a product of extents lies wholly in the outermost
/// dimension that it touches (flat over the slowest link). Empty for one member.
std::vector<Extent> extents_of(std::int64_t stride, std::int64_t count,
                               const machine::Machine& machine);

/// Says for how long a phase holds links of one dimension, each the busiest of its sort, when it
/// has them to itself; it holds them longer when it shares. Which links those are says occupancy.h.
struct PortUse {
  Extent extent;
  Time serialisation{0};  ///< of the dimension's own links: a member's port, or a link between two
  int protocol = -1;      ///< index into protocols_of its dimension; -1 = none listed
  Time port{0};     ///< of a member's shared port (nic) beside links of its own; switches have none
  Time through{0};  ///< of its port of the dimension that this one goes through
  /// A member's part of the link up or down that its block of devices shares (node_bandwidth).
  Time node{0};
};

/// One step sequence. It uses all its links at once (chunks are pipelined through them); when the
/// busiest is done `latency` follows and occupies nothing.
struct CollectivePhase {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;  ///< of this phase
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  /// Index into protocols_of(kind, algorithm) of the first port's dimension; -1 = none listed. The
  /// other ports have the one of the same name, else the fastest.
  int protocol = -1;
  Bytes size{0};  ///< buffer of this phase, counted as in Node::bytes
  Time latency{0};
  Time waits{0};               ///< part of latency: Protocol::buffer_copy and at_least
  Time sends{0};               ///< part of latency: a member's messages beyond the first of a step
  Time serialisation{0};       ///< of its busiest link: what dimensions share counts once for each
  std::vector<PortUse> ports;  ///< innermost dimension first, never empty
};

/// Phases of one collective over `extents` (of extents_of; counts of two and more).
///
///   ring, double_binary_tree, in_switch, automatic, and every all_to_all and send_recv: one phase
///     over all dimensions;
///   hierarchical, direct, halving_doubling: a phase per dimension. all_reduce is reduce_scatter
///     inwards to outwards, all_reduce in the outermost, all_gather back; reduce_scatter goes
///     outwards, all_gather and broadcast inwards; sizes shrink by the members inside;
///   themis: one phase over all dimensions, see chunked.h.
///
/// An algorithm that does not do the kind (halving_doubling for all_to_all) gives way to automatic.
/// The protocol is the fastest for the phase. Empty for one member or zero bytes.
std::vector<CollectivePhase> plan_collective(graph::CollectiveKind kind, Bytes size,
                                             const std::vector<Extent>& extents,
                                             CollectiveAlgorithm algorithm,
                                             const machine::Machine& machine);

/// Messages go from rank to rank, nothing is passed on or added.
constexpr bool exchanges(graph::CollectiveKind kind) {
  return kind == graph::CollectiveKind::all_to_all || kind == graph::CollectiveKind::send_recv;
}

/// NCCL's own tuning model gives trees 92 % of the bandwidth of rings (src/graph/tuning.cc, 2.19).
inline constexpr double kTreeEfficiency = 0.92;

/// Returns the protocols among which a phase chooses: those of the algorithm, where it has its own;
/// exchange for messages from rank to rank (all_to_all, send_recv), where there are any; else
/// protocols.
const std::vector<topology::Protocol>& protocols_of(graph::CollectiveKind kind,
                                                    CollectiveAlgorithm algorithm,
                                                    const topology::NetworkDimension& dimension);

/// Returns whether `algorithm` does `kind` over `extents`, so that it need not give way. Automatic
/// always does, and hierarchical does over several extents (but send_recv).
bool performs(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
              const std::vector<Extent>& extents, const machine::Machine& machine);

/// The names of those that do: "auto, ring, direct".
std::string possible_algorithms(graph::CollectiveKind kind, const std::vector<Extent>& extents,
                                const machine::Machine& machine);

/// Returns the sum over phases of latency + serialisation: the time on idle links.
Time total_time(const std::vector<CollectivePhase>& phases);

/// Returns total_time(plan_collective(...)) without the vectors, for estimates in a hot loop.
Time collective_time(graph::CollectiveKind kind, Bytes size, const std::vector<Extent>& extents,
                     CollectiveAlgorithm algorithm, const machine::Machine& machine);

}  // namespace orrery::collective
