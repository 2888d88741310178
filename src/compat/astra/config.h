// SPDX-License-Identifier: Apache-2.0
/// ASTRA-sim's configuration as plain values (parse.h reads its files).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/units.h"

namespace orrery::astra {

enum class Building : std::uint8_t { ring, fully_connected, switched };
constexpr auto named_values(Building) {
  return std::to_array<Named<Building>>({
      {Building::ring, "Ring", "two neighbours each, closed"},
      {Building::fully_connected, "FullyConnected", "a link to every other NPU"},
      {Building::switched, "Switch", "one link to a switch"},
  });
}

/// One dimension of the network file. NPU n has coordinate (n / product of inner sizes) mod size.
struct Dimension {
  Building building = Building::ring;
  std::int64_t size = 2;
  Bandwidth bandwidth{0};  ///< of one link. As written, x GB/s = x * 2^30 B/s
  Time latency{0};         ///< of one hop, whole nanoseconds
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

enum class Algorithm : std::uint8_t {
  ring,
  direct,
  halving_doubling,
  double_binary_tree,
  one_ring,
  one_direct,
  one_halving_doubling
};
constexpr auto named_values(Algorithm) {
  return std::to_array<Named<Algorithm>>({
      {Algorithm::ring, "ring", "neighbours in turn"},
      {Algorithm::direct, "direct", "all peers at once; direct<W>: W at once"},
      {Algorithm::halving_doubling, "halvingDoubling", "partners at distances 1, 2, 4 ..."},
      {Algorithm::double_binary_tree, "doubleBinaryTree", "two trees, chunks alternate"},
      {Algorithm::one_ring, "oneRing", "one ring over all dimensions"},
      {Algorithm::one_direct, "oneDirect", "direct over all dimensions"},
      {Algorithm::one_halving_doubling, "oneHalvingDoubling", "over all dimensions"},
  });
}

/// One entry of a list such as all-reduce-implementation.
struct Implementation {
  Algorithm algorithm = Algorithm::ring;
  std::int64_t window = 0;  ///< of direct<W>: messages in flight at once; 0 = all
  friend bool operator==(const Implementation&, const Implementation&) = default;
};

enum class Policy : std::uint8_t { lifo, fifo, explicit_priority };
enum class InterDimension : std::uint8_t { ascending, themis, round_robin };
enum class IntraDimension : std::uint8_t { fifo, smallest_chunk_first };
constexpr auto named_values(Policy) {
  return std::to_array<Named<Policy>>({
      {Policy::lifo, "LIFO", "newest collective first"},
      {Policy::fifo, "FIFO", "oldest collective first"},
      {Policy::explicit_priority, "EXPLICIT", "greatest comm_priority first"},
  });
}

/// LogGP bus between NPU and endpoint (keys L, o, g, G), in place of endpoint_delay; shared_bus.h.
struct Bus {
  Time latency{0};
  Time overhead{0};
  Time gap{0};
  double gap_per_byte_ns = 0;
  bool shared = false;
  Time reduction{1'000};  ///< of each 100 bytes (local-reduction-delay)
  friend bool operator==(const Bus&, const Bus&) = default;
};

/// Kinds of collectives that have an implementation list each.
enum class Operation : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all };
inline constexpr int kOperationCount = 4;
constexpr auto named_values(Operation) {
  return std::to_array<Named<Operation>>({
      {Operation::all_reduce, "all-reduce", "the sum, everywhere"},
      {Operation::all_gather, "all-gather", "every part, everywhere"},
      {Operation::reduce_scatter, "reduce-scatter", "a part of the sum each"},
      {Operation::all_to_all, "all-to-all", "a part from each to each"},
  });
}

struct System {
  Policy policy = Policy::lifo;
  Time endpoint_delay{10'000};
  std::int64_t splits = 1;         ///< preferred-dataset-splits
  std::int64_t active_chunks = 1;  ///< active-chunks-per-dimension
  /// The algorithms by Operation, one entry per dimension (or a single one* entry).
  std::array<std::vector<Implementation>, kOperationCount> implementation;
  /// The prefixes, by Operation, of a custom collective's trace files (*-implementation-custom).
  std::array<std::optional<std::string>, kOperationCount> custom;
  /// YAML file that maps node ids to prefixes (per-node-custom-implementation); goes before custom.
  std::optional<std::string> custom_by_node;
  bool local_bandwidth_aware = true;  ///< collective-optimization; false: baseline
  InterDimension inter_dimension = InterDimension::ascending;
  IntraDimension intra_dimension = IntraDimension::fifo;
  std::optional<Bandwidth> local_memory_bandwidth;  ///< absent: reductions cost nothing
  std::optional<FlopRate> peak;
  bool roofline = false;
  std::optional<Bus> bus;
  bool replay_only = false;
  bool track_local_memory = false;
  std::optional<std::string> local_memory_trace;  ///< local-mem-trace-filename
};

enum class RemoteMemoryKind : std::uint8_t { none, per_npu, per_node, pool };
constexpr auto named_values(RemoteMemoryKind) {
  return std::to_array<Named<RemoteMemoryKind>>({
      {RemoteMemoryKind::none, "NO_MEMORY_EXPANSION", "no remote memory"},
      {RemoteMemoryKind::per_npu, "PER_NPU_MEMORY_EXPANSION", "one of its own per NPU"},
      {RemoteMemoryKind::per_node, "PER_NODE_MEMORY_EXPANSION", "one per node, a queue"},
      {RemoteMemoryKind::pool, "MEMORY_POOL", "one for all, a queue"},
  });
}

struct RemoteMemory {
  RemoteMemoryKind kind = RemoteMemoryKind::none;
  Time latency{0};
  Bandwidth bandwidth{0};  ///< written in B/ns
  std::int64_t nodes = 1;
  std::int64_t npus_per_node = 1;
};

}  // namespace orrery::astra
