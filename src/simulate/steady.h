// SPDX-License-Identifier: Apache-2.0
/// The steady state over microbatches, and over steps: recognised, then jumped.
///
/// Where every role's issue list is periodic (IssueList::periods), a pipeline settles into a cycle:
/// from some microbatch on everything happens again, a constant time later; and so do the steps of
/// a run. Whenever the first rank has issued one more period the whole state of the run -
/// instances, streams, jobs, chains, hosts, ledgers, mailboxes, transfers, pending events - is
/// written down relative to the present moment, microbatch and step. When that is equal, number by
/// number, to the state c periods ago, the run from here on is the run from there on, moved: so n
/// cycles are skipped at once by adding n times their length to every moment, n times their
/// instances to every count and n times what they booked to every ledger, as long as all lists stay
/// periodic. Exact to the picosecond.
///
/// A host that runs far ahead of its device is further ahead after every period; how far does not
/// matter as long as it is never in the way: its lead counts as equal when it is longer than the
/// host's work of kHostPeriods periods.
///
/// Microbatches are looked at step by step, steps all along, but for the end of the warm-up, which
/// no jump passes.
///
/// Not for runs that record spans, sources that are no lists, and streams that are not in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "graph/workload.h"
#include "simulate/loop.h"
#include "simulate/run_description.h"

namespace orrery::simulate {

enum class PeriodKind : std::uint8_t { microbatches, steps };

/// Returns the next period of each role of a workload that ends after instance `from` of the role,
/// alike in microbatches and steps; empty where there is none.
std::vector<graph::Period> steady_periods(const graph::Workload& workload,
                                          const std::vector<std::int64_t>& from, PeriodKind kind);

class SteadyState {
 public:
  explicit SteadyState(Loop& loop) : loop_(loop) {
    const std::vector<std::int64_t> start(loop_.workload_.roles.size(), 0);
    for (Watch& watch : watches_) {
      arm(watch, start);
    }
  }

  /// Looks for a steady state; called when an instant is over and settled. It is cheap until the
  /// first rank has issued a further period.
  void look() {
    for (Watch& watch : watches_) {
      if (loop_.ranks_.front().window.issued() >= watch.next_mark) {
        mark(watch);
      }
    }
  }

 private:
  static constexpr std::size_t kLongestCycle = 4;  ///< in periods
  static constexpr std::int64_t kHostPeriods = 16;

  struct Mark {
    Time when{0};
    std::int64_t period = 0;          ///< how many the first rank has issued
    std::vector<std::int64_t> state;  ///< empty: not written down
    std::vector<Breakdown> booked;    ///< by rank
    std::vector<Time> hosts;
    std::uint64_t completions = 0;
  };

  /// One kind of period, as it comes.
  struct Watch {
    PeriodKind kind;
    std::vector<graph::Period> periods{};  ///< by role; empty: nothing to look for
    std::int64_t next_mark = INT64_MAX;    ///< instances that the first rank has to have issued
    std::deque<Mark> marks{};
    std::vector<std::optional<Time>> host_work{};  ///< by role
  };

  const graph::Period& period_of(const Watch& watch, std::size_t rank) const {
    return watch.periods[static_cast<std::size_t>(loop_.ranks_[rank].role)];
  }

  /// Looks for what ends after these instances of the roles.
  void arm(Watch& watch, const std::vector<std::int64_t>& from) {
    watch.periods = steady_periods(loop_.workload_, from, watch.kind);
    for (std::size_t role = 0; role < watch.periods.size(); ++role) {
      graph::Period& period = watch.periods[role];
      const std::int64_t warm =
          period.steps > 0 ? loop_.steps_.warm * (period.length / period.steps) : 0;
      period.end = from[role] < warm ? std::min(period.end, warm) : period.end;
    }
    watch.marks.clear();
    watch.host_work.clear();
    watch.next_mark =
        watch.periods.empty() ? INT64_MAX : period_of(watch, 0).first + period_of(watch, 0).length;
  }

  /// Looks for what comes after the periods that are watched.
  void arm_next(Watch& watch) {
    std::vector<std::int64_t> from;
    from.reserve(watch.periods.size());
    for (const graph::Period& period : watch.periods) {
      from.push_back(period.end);
    }
    arm(watch, from);
  }

  void mark(Watch& watch) {
    const graph::Period& period = period_of(watch, 0);
    const std::int64_t issued = loop_.ranks_.front().window.issued();
    if (issued > period.end) {
      arm_next(watch);
      return;
    }
    Mark now{.when = loop_.queue_.now(),
             .period = (issued - period.first) / period.length,
             .state = {},
             .booked = {},
             .hosts = {}};
    watch.next_mark = period.first + (now.period + 1) * period.length;
    std::deque<Mark>& marks = watch.marks;
    marks.push_back(std::move(now));
    if (marks.size() > 2 * kLongestCycle + 1) {
      marks.pop_front();
    }
    if (const auto cycle = cycle_by_time(marks)) {
      write_down(watch, marks.back());
      const Mark& before = marks[marks.size() - 1 - *cycle];
      if (before.state == marks.back().state && !before.state.empty()) {
        jump(watch, before, marks.back());
      }
    }
  }

  /// Returns the least cycle for which the last periods took as long as those before; only then is
  /// it worth writing down the state.
  static std::optional<std::size_t> cycle_by_time(const std::deque<Mark>& marks) {
    const auto took = [&](std::size_t back) {
      const std::size_t last = marks.size() - 1 - back;
      return marks[last].when - marks[last - 1].when;
    };
    for (std::size_t cycle = 1; cycle <= kLongestCycle && 2 * cycle < marks.size(); ++cycle) {
      bool same = true;
      for (std::size_t i = 0; i < cycle; ++i) {
        same = same && took(i) == took(i + cycle);
      }
      if (same) {
        return cycle;
      }
    }
    return std::nullopt;
  }

  void write_down(Watch& watch, Mark& mark) {
    RunDescription description(loop_, mark.state);
    for (std::size_t rank = 0; rank < loop_.ranks_.size(); ++rank) {
      const graph::Period& period = period_of(watch, rank);
      description.add_rank(rank, {.instances = mark.period * period.length,
                                  .microbatches = mark.period * period.microbatches,
                                  .steps = mark.period * period.steps,
                                  .host_work = host_work(watch, rank)});
      mark.booked.push_back(loop_.ranks_[rank].ledger.breakdown());
      mark.hosts.push_back(loop_.ranks_[rank].host);
    }
    mark.completions = loop_.completions_;
    description.add_traffic();
  }

  /// Host work of the rank's role in kHostPeriods periods.
  Time host_work(Watch& watch, std::size_t index) {
    const RankState& rank = loop_.ranks_[index];
    auto& known = watch.host_work;
    known.resize(loop_.workload_.roles.size());
    std::optional<Time>& work = known[static_cast<std::size_t>(rank.role)];
    if (!work) {
      const graph::Period& period = period_of(watch, index);
      work = Time(0);
      for (std::int64_t i = period.first; i < period.first + period.length; ++i) {
        const graph::Instance instance = loop_.workload_.source->list()->at(rank.role, i);
        for (const BoundNode& node :
             loop_.bound_.shape(rank.program, instance.template_index).nodes) {
          *work += node.host_cost;
        }
      }
      *work = *work * kHostPeriods;
    }
    return *work;
  }

  /// Jumps over the cycle as often as every list and every lead of a host allow.
  void jump(Watch& watch, const Mark& before, const Mark& now) {
    const std::int64_t cycle = now.period - before.period;
    const Time took = now.when - before.when;
    std::int64_t times = INT64_MAX;
    for (std::size_t i = 0; i < loop_.ranks_.size(); ++i) {
      const graph::Period& period = period_of(watch, i);
      const std::int64_t issued = loop_.ranks_[i].window.issued();
      const bool within = issued - cycle * period.length >= period.first;
      const bool ahead = now.hosts[i] - before.hosts[i] <= took;
      times =
          within && ahead ? std::min(times, (period.end - issued) / (cycle * period.length)) : 0;
    }
    if (times > 0) {
      move_on(watch, before, now, times);
      if (watch.kind == PeriodKind::steps) {
        move_step_ends(watch, before, now, times);
      }
      watch.next_mark = period_of(watch, 0).end + 1;  // what is left comes before the next period
    }
  }

  /// Moves the ends of steps: steps ended, and were watched, as in the cycle before, but later.
  void move_step_ends(const Watch& watch, const Mark& before, const Mark& now, std::int64_t times) {
    const std::int64_t cycle = now.period - before.period;
    const auto cycle_steps = static_cast<std::size_t>(cycle * watch.periods.front().steps);
    std::vector<Time>& ends = loop_.steps_.ends;
    for (std::size_t i = 0; i < cycle_steps * static_cast<std::size_t>(times); ++i) {
      ends.push_back(ends[ends.size() - cycle_steps] + (now.when - before.when));
    }
    Watch& inner = watches_.front();
    for (std::size_t role = 0; role < inner.periods.size(); ++role) {
      const std::int64_t by = cycle * times * watch.periods[role].length;
      inner.periods[role].first += by;
      inner.periods[role].end += by;
      inner.next_mark += role == static_cast<std::size_t>(loop_.ranks_.front().role) ? by : 0;
    }
    inner.marks.clear();
  }

  void move_on(const Watch& watch, const Mark& before, const Mark& now, std::int64_t times) {
    const std::int64_t cycles = (now.period - before.period) * times;
    const Time by = (now.when - before.when) * times;
    for (std::size_t i = 0; i < loop_.ranks_.size(); ++i) {
      RankState& rank = loop_.ranks_[i];
      const graph::Period& period = period_of(watch, i);
      rank.window.shift(cycles * period.length, cycles * period.microbatches,
                        cycles * period.steps);
      rank.steps_ended += cycles * period.steps;
      loop_.instances_ += cycles * period.length;
      for (StreamState& stream : rank.streams) {
        stream.instance += cycles * period.length;
      }
      rank.host += (now.hosts[i] - before.hosts[i]) * times;
      rank.job.since += by;
      rank.job.begin += by;
      rank.job.host_end += by;
      rank.chain.instance += cycles * period.length;
      for (Time& end : rank.chain.place.end) {
        end = end < Time::max() ? std::min(end + by, kEndOfTime) : end;
      }
      rank.chain.end += by;
      rank.ledger.shift(by, before.booked[i], now.booked[i], times);
    }
    for (Running& running : loop_.running_.places()) {
      running.instance += cycles * period_of(watch, running.rank).length;
    }
    loop_.completions_ +=
        (now.completions - before.completions) * static_cast<std::uint64_t>(times);
    loop_.transport_.shift(by);
    loop_.queue_.shift(by);
  }

  Loop& loop_;
  std::array<Watch, 2> watches_{Watch{.kind = PeriodKind::microbatches},
                                Watch{.kind = PeriodKind::steps}};
};

}  // namespace orrery::simulate
