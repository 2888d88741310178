// SPDX-License-Identifier: Apache-2.0
/// Says which nodes of each rank may start.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "workload/chakra/trace.h"

namespace orrery::astra {

/// A Slot is what a node occupies on its rank while it runs; one node at a time, `none` without
/// limit.
enum class Slot : std::uint8_t { cpu, compute, communication, none };
inline constexpr std::size_t kSlots = 4;

Slot slot_of(const chakra::Node& node, bool replay);

/// Successors of every node of a program.
struct Successors {
  explicit Successors(const chakra::Program& program);
  std::vector<std::uint32_t> first;  ///< by node; one more
  std::vector<std::uint32_t> nodes;
};

/// Nodes of the simulated ranks whose dependencies are done. next() gives them in ascending order
/// among those whose slot is free.
class ReadyNodes {
 public:
  struct Options {
    bool replay = false;
    bool one_communication = true;  ///< otherwise that slot has no limit
  };
  /// `program_of`: by simulated rank.
  ReadyNodes(const std::vector<chakra::Program>& programs, std::vector<std::uint32_t> program_of,
             const Options& options);

  /// Returns the next node that may start; occupies its slot.
  std::optional<std::uint32_t> next(std::uint32_t rank);
  /// A node is done: frees its slot, and its successors may become ready.
  void complete(std::uint32_t rank, std::uint32_t node);

  bool finished(std::uint32_t rank) const { return left_[rank] == 0; }
  std::uint64_t unfinished_nodes() const { return unfinished_; }
  /// Nodes that run, and nodes that are ready but lack a slot: what a deadlock waits for.
  std::vector<std::uint32_t> stuck(std::uint32_t rank) const;

 private:
  /// State is what a node waits for beside what it occupies, so that both come in one look at
  /// memory; small, since there may be tens of millions.
  struct State {
    std::uint16_t waiting_for : 14;  ///< dependencies; kDone when done, kMany: see `many_`
    std::uint16_t slot : 2;
  };
  static constexpr std::uint32_t kDone = (1U << 14) - 1;
  static constexpr std::uint32_t kMany = kDone - 1;
  struct Rank {
    std::array<std::vector<std::uint32_t>, kSlots> ready;  ///< heaps, least node first
    std::array<bool, kSlots> busy{};
  };
  Slot slot(const chakra::Node& node) const;
  State& state(std::uint32_t rank, std::uint32_t node) { return states_[first_node_[rank] + node]; }
  void add(std::uint32_t rank, std::uint32_t node);
  /// Takes away one dependency; returns whether it was the last.
  bool release(State& waiting);

  const std::vector<chakra::Program>& programs_;
  std::vector<std::uint32_t> program_of_;
  Options options_;
  std::vector<Successors> successors_;   ///< by program
  std::vector<std::size_t> first_node_;  ///< by rank, into states_
  std::vector<State> states_;
  std::unordered_map<std::size_t, std::uint32_t> many_;  ///< by state: dependencies, from kMany on
  std::vector<std::uint32_t> left_;                      ///< by rank
  std::vector<Rank> ranks_;
  std::uint64_t unfinished_ = 0;
};

}  // namespace orrery::astra
