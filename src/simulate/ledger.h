// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "base/units.h"
#include "simulate/bind.h"
#include "simulate/timeline.h"

namespace orrery {

/// Books every instant of one rank's time in exactly one category (timeline.h), so that the
/// categories sum to the time booked, by construction.
class Ledger {
 public:
  Time last() const { return last_; }
  /// Collectives, if there are any, take what messages take too.
  Beside beside() const {
    const int messages = active_[index(Axis::pp)];
    const int copies = active_[index(Axis::to_host)] + active_[index(Axis::from_host)];
    if (active_total_ > messages + copies) {
      return Beside::collectives;
    }
    return messages > 0 ? Beside::messages : Beside::nothing;
  }
  const Breakdown& breakdown() const { return breakdown_; }

  void begin_compute(Time now, Phase phase) {
    book(now);
    computing_ = true;
    phase_ = phase;
  }
  /// `stall`: part of the compute span in which it waited for the host.
  void end_compute(Time now, Time stall) {
    book(now);
    computing_ = false;
    at(category_of(phase_)) -= stall;
    at(TimeCategory::host) += stall;
  }
  void begin_communication(Time now, Axis axis) {
    book(now);
    ++active_[index(axis)];
    ++active_total_;
  }
  void end_communication(Time now, Axis axis) {
    book(now);
    --active_[index(axis)];
    --active_total_;
  }
  /// Books the time since the last call.
  void book(Time now) {
    const Time elapsed = now - last_;
    if (elapsed == Time(0)) {
      return;
    }
    last_ = now;
    if (!computing_) {
      at(active_total_ == 0 ? TimeCategory::bubble : exposed()) += elapsed;
      return;
    }
    at(category_of(phase_)) += elapsed;
    if (active_total_ > 0) {
      for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
        breakdown_.hidden[axis] += active_[axis] > 0 ? elapsed : Time(0);
      }
    }
  }

 private:
  static constexpr std::size_t index(Axis axis) { return static_cast<std::size_t>(axis); }
  Time& at(TimeCategory c) { return breakdown_.time[static_cast<std::size_t>(c)]; }
  static constexpr TimeCategory category_of(Phase phase) {
    constexpr std::array kByPhase{TimeCategory::forward, TimeCategory::backward,
                                  TimeCategory::recompute, TimeCategory::optimizer};
    return kByPhase[static_cast<std::size_t>(phase)];
  }
  /// The first category, in their order, of which a communication is active.
  TimeCategory exposed() const {
    TimeCategory first = TimeCategory::bubble;
    for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
      if (active_[axis] > 0) {
        first = std::min(first, exposed_category(static_cast<Axis>(axis)));
      }
    }
    return first;
  }

  Breakdown breakdown_;
  Time last_{0};
  Phase phase_ = Phase::forward;
  bool computing_ = false;
  std::array<int, kAxisCount> active_{};
  int active_total_ = 0;
};

}  // namespace orrery
