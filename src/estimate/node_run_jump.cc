// SPDX-License-Identifier: Apache-2.0
// Equal layers of a run: whether the next ones follow as those before them did, and if so where
// they end.
#include <algorithm>

#include "estimate/node_run.h"

namespace orrery::estimate {

void NodeRun::watch(std::size_t repeat) {
  repeat_ = repeat;
  mark_.made = false;
  watched_ = repeat < template_->repeats.size() ? template_->repeats[repeat].first : kNoNode;
}

/// Nothing that is left transfers before: it is on these lanes, or waits for the last on one of
/// them.
Time NodeRun::earliest_clock(const Repeat& repeat) const {
  Time earliest = Time::max();
  for (int lane = 0; lane < kMostLanes; ++lane) {
    if (repeat.uses(lane)) {
      earliest = std::min(earliest, clocks_[static_cast<std::size_t>(clock_of(lane))]);
    }
  }
  return earliest;
}

/// By how much clocks and ends are later than at the mark, if that decides as much of what follows.
std::optional<Time> NodeRun::lateness(const Repeat& repeat) const {
  const Time later = ends_[next_ - 1] - mark_.ends.back();
  const auto moved = [&](int clock) {
    return clocks_[static_cast<std::size_t>(clock)] - mark_.clocks[static_cast<std::size_t>(clock)];
  };
  for (int lane = 0; lane < kMostLanes; ++lane) {
    if (moved(clock_of(lane)) != (repeat.uses(lane) ? later : Time(0))) {
      return std::nullopt;
    }
  }
  const bool host_falls_back = !host_delays_ && !repeat.host_sync && moved(kHost) <= later;
  const bool same = std::equal(mark_.ends.begin(), mark_.ends.end(),
                               ends_.begin() + static_cast<std::ptrdiff_t>(next_ - repeat.reach),
                               [&](Time before, Time now) { return now - before == later; });
  return same && (moved(kHost) == later || host_falls_back) ? std::optional(later) : std::nullopt;
}

void NodeRun::jump(const Repeat& repeat, std::size_t periods, Time later) {
  const std::size_t end = repeat.end();
  const auto times = static_cast<std::int64_t>(periods);
  const auto at = [&](std::size_t i) { return taken_.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::vector<Time> last(at(next_ - repeat.length), at(next_));
  const Time earliest = earliest_clock(repeat);
  for (std::size_t i = next_ - repeat.length; i < next_; ++i) {
    if (template_->nodes[i].transfer >= 0 && ends_[i] > earliest) {
      // Still in flight: it may be moved, as that of the period before has been since.
      taken_[i] = taken_[i - repeat.length];
    }
  }
  for (std::size_t i = next_; i < end - repeat.length; ++i) {
    taken_[i] = taken_[i - repeat.length];
  }
  std::copy(last.begin(), last.end(), at(end - repeat.length));
  for (std::size_t i = end; i-- > end - repeat.reach;) {
    ends_[i] = ends_[i - periods * repeat.length] + later * times;
  }
  for (int clock = 0; clock < kMostClocks; ++clock) {
    Time& now = clocks_[static_cast<std::size_t>(clock)];
    now += (now - mark_.clocks[static_cast<std::size_t>(clock)]) * times;
  }
  const std::size_t spans = spans_.size();
  for (std::int64_t period = 1; period <= times; ++period) {
    for (std::size_t i = mark_.spans; i < spans; ++i) {
      const LaneSpan& span = spans_[i];
      spans_.push_back({span.lane, span.begin + later * period, span.end + later * period});
    }
  }
  jumped_ += static_cast<std::int64_t>(end - next_);
  next_ = end;
}

}  // namespace orrery::estimate
