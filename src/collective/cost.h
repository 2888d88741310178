// SPDX-License-Identifier: Apache-2.0
/// A collective as a sequence of phases, each on one network dimension.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/units.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery {

enum class CollectiveAlgorithm : std::uint8_t {
  automatic, ring, direct, halving_doubling, double_binary_tree, pairwise
};
template <>
inline constexpr auto kNames<CollectiveAlgorithm> = std::to_array<Named<CollectiveAlgorithm>>({
    {CollectiveAlgorithm::automatic, "auto", "the fastest of the others for each size"},
    {CollectiveAlgorithm::ring, "ring", "2(p-1) steps of S/p"},
    {CollectiveAlgorithm::direct, "direct", "2 steps, p-1 messages of S/p each"},
    {CollectiveAlgorithm::halving_doubling, "halving_doubling", "2 log2 p steps, halving sizes"},
    {CollectiveAlgorithm::double_binary_tree, "double_binary_tree", "two pipelined trees, S/2 each"},
    {CollectiveAlgorithm::pairwise, "pairwise", "all-to-all: p-1 exchanges"},
});

using AlgorithmChoice = std::array<CollectiveAlgorithm, kAxisCount>;  ///< by Axis

/// The part of a group that lies in one network dimension: `count` members `stride` apart.
struct Extent {
  int dimension = 0;
  std::int64_t count = 1;
  std::int64_t stride = 1;  ///< in coordinates of the dimension
};

/// Splits a group (count members, `stride` ranks apart) over the dimensions, innermost first. A
/// group whose members do not form a product of extents lies wholly in the outermost dimension that
/// it touches (flat over the slowest link).
std::vector<Extent> extents_of(std::int64_t stride, std::int64_t count, const Machine& machine);

/// One step sequence on one dimension. The port of every member is occupied for `serialisation`
/// when it has the port to itself, longer when it shares; `latency` follows and occupies nothing.
struct CollectivePhase {
  Extent extent;
  CollectiveKind kind = CollectiveKind::all_reduce;  ///< of this phase
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  int protocol = -1;  ///< index into the dimension's protocols; -1 = none listed
  Bytes size{0};      ///< buffer of this phase, counted as in Node::bytes
  Time latency{0};
  Time serialisation{0};
};

/// Phases of one collective: all_reduce over several dimensions is reduce_scatter inwards to
/// outwards, all_reduce in the outermost, all_gather back. Each phase takes the algorithm given, or
/// the fastest, and the fastest protocol. Empty for one member or zero bytes.
std::vector<CollectivePhase> plan_collective(CollectiveKind kind, Bytes size,
                                             const std::vector<Extent>& extents,
                                             CollectiveAlgorithm algorithm, const Machine& machine);

/// Sum over phases of latency + serialisation: the time on idle links.
Time total_time(const std::vector<CollectivePhase>& phases);

}  // namespace orrery
