// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "simulate/bind.h"
#include "simulate/timeline.h"

namespace orrery::simulate {

/// LedgerRows are what a ledger needs to know of the workload's tables.
struct LedgerRows {
  TimeCategories categories;
  std::vector<std::size_t> exposed;  ///< by group: its category's row

  explicit LedgerRows(const graph::Workload& workload) : categories(workload) {
    for (const graph::Group& group : workload.groups) {
      exposed.push_back(categories.of(group.category));
    }
  }
};

/// Books every instant of one rank's time in exactly one category (timeline.h), so that the
/// categories sum to the time booked, by construction.
class Ledger {
 public:
  explicit Ledger(const LedgerRows& rows) : rows_(&rows), active_(rows.exposed.size()) {
    breakdown_.time.assign(rows.categories.size(), Time(0));
    breakdown_.hidden.assign(rows.exposed.size(), Time(0));
  }

  Time last() const { return last_; }
  /// Collectives, if there are any, take what messages take too.
  Concurrent concurrent() const { return concurrent_without({}); }
  /// Returns what runs if as many of the active ones as `others` says did not run.
  Concurrent concurrent_without(const ConcurrentCounts& others) const {
    return counts_.without(others).most();
  }
  const Breakdown& breakdown() const { return breakdown_; }

  void begin_compute(Time now, graph::PhaseIndex phase) {
    book(now);
    computing_ = true;
    phase_ = phase;
  }
  /// Ends a compute span. `stall`: part of the compute span in which it waited for the host.
  void end_compute(Time now, Time stall) {
    book(now);
    computing_ = false;
    breakdown_.time[rows_->categories.of(phase_)] -= stall;
    breakdown_.time[rows_->categories.host()] += stall;
  }
  /// `takes`: from kernels beside it.
  void begin_communication(Time now, Concurrent takes, graph::GroupIndex group) {
    book(now);
    counts_.add(takes, 1);
    if (active_[*group]++ == 0) {
      active_groups_.push_back(group);
    }
  }
  void end_communication(Time now, Concurrent takes, graph::GroupIndex group) {
    book(now);
    counts_.add(takes, -1);
    if (--active_[*group] == 0) {
      std::erase(active_groups_, group);
    }
  }
  /// Books the time since the last call.
  void book(Time now) {
    const Time elapsed = now - last_;
    if (elapsed == Time(0)) {
      return;
    }
    last_ = now;
    if (!computing_) {
      breakdown_.time[exposed()] += elapsed;
      return;
    }
    breakdown_.time[rows_->categories.of(phase_)] += elapsed;
    for (const graph::GroupIndex group : active_groups_) {
      breakdown_.hidden[*group] += elapsed;
    }
  }
  /// Returns how many times a breakdown has: categories, then groups.
  std::size_t size() const { return breakdown_.time.size() + breakdown_.hidden.size(); }
  /// Appends them to a list.
  void append_to(std::vector<Time>& list) const {
    list.insert(list.end(), breakdown_.time.begin(), breakdown_.time.end());
    list.insert(list.end(), breakdown_.hidden.begin(), breakdown_.hidden.end());
  }
  /// Books from the last call to `now` what one rank alone books between two moments of which it
  /// books `from` and `to` up to a later one, as append_to() lists it. Requires that neither
  /// compute nor a communication of its own runs at either; what else runs does so all the while.
  void skip(Time now, std::span<const Time> from, std::span<const Time> to) {
    const std::size_t outside = exposed();
    Time computed{0};
    for (std::size_t row = 0; row < breakdown_.time.size(); ++row) {
      const Time took = from[row] - to[row];
      const bool computes = row <= rows_->categories.host();
      breakdown_.time[computes ? row : std::min(row, outside)] += took;
      computed += computes ? took : Time(0);
    }
    for (std::size_t group = 0; group < breakdown_.hidden.size(); ++group) {
      const std::size_t row = breakdown_.time.size() + group;
      breakdown_.hidden[group] += active_[group] > 0 ? computed : from[row] - to[row];
    }
    last_ = now;
    computing_ = false;
  }
  /// Books `times` more what was booked from one moment to another, and moves time on.
  void shift(Time by, const Breakdown& before, const Breakdown& after, std::int64_t times) {
    last_ += by;
    for (std::size_t row = 0; row < breakdown_.time.size(); ++row) {
      breakdown_.time[row] += (after.time[row] - before.time[row]) * times;
    }
    for (std::size_t group = 0; group < breakdown_.hidden.size(); ++group) {
      breakdown_.hidden[group] += (after.hidden[group] - before.hidden[group]) * times;
    }
  }

 private:
  /// Returns the first category of an active communication.
  std::size_t exposed() const {
    std::size_t first = rows_->categories.bubble();
    for (const graph::GroupIndex group : active_groups_) {
      first = std::min(first, rows_->exposed[*group]);
    }
    return first;
  }

  const LedgerRows* rows_;
  Breakdown breakdown_;
  Time last_{0};
  graph::PhaseIndex phase_;
  bool computing_ = false;
  ConcurrentCounts counts_;
  std::vector<int> active_;  ///< by group
  std::vector<graph::GroupIndex> active_groups_;

  friend class SteadyState;
  friend class RunDescription;
};

}  // namespace orrery::simulate
