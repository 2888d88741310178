// SPDX-License-Identifier: Apache-2.0
/// Where all stages are at the end of a round, and whether that is where they were before.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "estimate/stage_state.h"

namespace orrery::estimate {

/// A stage relative to the round it is in.
struct StageMark {
  std::int64_t behind = 0;  ///< instances that it has left of the round
  Clocks clocks{};
  std::array<std::vector<Time>, plan::kChannelCount> arrivals;
  std::vector<Communication> beside;
  std::vector<Ports::Flight> flights;
  std::vector<Time> ahead;  ///< ends of nodes of the next instance
  std::array<Window, kWindows> windows{};
  StageTime time;
};
using Mark = std::vector<StageMark>;

/// Forgets what is over first. Nothing while a stage is in the middle of an instance.
std::optional<Mark> mark_of(std::vector<Stage>& stages);

/// By how much `now` is later than `before` if they are else the same; clocks other than compute
/// may have fallen back. `contends`: communication slows kernels, so windows count.
std::optional<Time> shift(const Mark& before, const Mark& now, bool contends);

/// The marks of the last rounds.
class RoundMarks {
 public:
  void add(Mark mark);
  /// Rounds since a mark that was the same but for a shift; 0: there is none.
  std::int64_t length(bool contends) const;
  std::int64_t most_back() const { return std::ssize(marks_) - 1; }
  /// Of so many rounds ago.
  const Mark& back(std::int64_t rounds) const {
    return marks_[marks_.size() - 1 - static_cast<std::size_t>(rounds)];
  }

 private:
  static constexpr std::size_t kRemembered = 7;
  std::deque<Mark> marks_;
};

/// Whether every stage's next instance, so many on, is the same or neither begins ahead.
bool next_alike(const PreparedPlan& plan, const std::vector<Stage>& stages, std::int64_t instances);

/// Two marks that are the same but for a shift.
struct Period {
  const Mark& before;
  const Mark& now;
};
/// From `now` as many periods on, in which every stage issues so many instances.
void jump(std::vector<Stage>& stages, const Period& period, std::int64_t times,
          std::int64_t instances);
/// The same of marks that are only alike, so many times (with parts) what lies between them. A lane
/// that falls behind compute goes on with what it transfers.
void extrapolate(std::vector<Stage>& stages, const Period& period, double times,
                 std::int64_t instances);

}  // namespace orrery::estimate
