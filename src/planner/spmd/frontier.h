// SPDX-License-Identifier: Apache-2.0
/// The states at one cut of the graph, each with the clocks that no other of it can stand for.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/spmd/compiled_graph.h"
#include "planner/spmd/stage.h"

namespace orrery::spmd {

/// One way to a state, as far as it is needed to go back.
struct Entry {
  Clock clock{};
  int state = 0;            ///< at the cut before the last stage
  int entry = 0;            ///< of that cut
  int next = -1;            ///< of this state
  std::uint8_t length = 0;  ///< nodes of the last stage
  bool full = false;  ///< as many as a stage may have: then the next may do without communication
};

class Frontier {
 public:
  /// Adds a way, unless one of the state's stands for it; those that it stands for go.
  void add(const StageRule& rule, const Key& key, const Entry& entry);

  int states() const { return static_cast<int>(keys_.size()); }
  const Key& key(int state) const { return keys_[static_cast<std::size_t>(state)]; }
  /// Returns the first entry of a state; follow Entry::next to -1.
  int first(int state) const { return first_[static_cast<std::size_t>(state)]; }
  const Entry& entry(int index) const { return entries_[static_cast<std::size_t>(index)]; }
  /// Returns the state; -1: there is none.
  int find(const Key& key) const;
  /// Returns the entry of the state with this clock and fullness; -1: there is none.
  int find(int state, const Clock& clock, bool full) const;

  /// Returns whether both have the same states and entries, all `shift` later here.
  bool repeats(const Frontier& before, Time shift) const;
  /// Lets go of what adding alone needs.
  void close() { table_ = {}; }

 private:
  int entries_of(int state) const;
  std::size_t slot_of(const Key& key) const;
  void grow();

  std::vector<Key> keys_;
  std::vector<int> first_;
  std::vector<Entry> entries_;
  std::vector<int> table_;  ///< open addressing: state, -1 for none
};

}  // namespace orrery::spmd
