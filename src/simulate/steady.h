// SPDX-License-Identifier: Apache-2.0
/// The steady state over microbatches: recognised, then jumped.
///
/// Where every role's issue list is periodic (IssueList::period), a pipeline settles into a cycle:
/// from some microbatch on everything happens again, a constant time later. Whenever the first rank
/// has issued one more period the whole state of the run - instances, streams, jobs, chains, hosts,
/// ledgers, mailboxes, transfers, pending events - is written down relative to the present moment
/// and microbatch. When that is equal, number by number, to the state c periods ago, the run from
/// here on is the run from there on, moved: so n cycles are skipped at once by adding n times their
/// length to every moment, n times their instances to every count and n times what they booked to
/// every ledger, as long as all lists stay periodic. Exact to the picosecond.
///
/// A host that runs far ahead of its device is further ahead after every period; how far does not
/// matter as long as it is never in the way: its lead counts as equal when it is longer than the
/// host's work of kHostPeriods periods.
///
/// Not for runs that record spans, sources that are no lists, and streams that are not in order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <tuple>
#include <vector>

#include "engine/event_queue.h"
#include "graph/workload.h"
#include "simulate/rank_state.h"
#include "simulate/transport.h"

namespace orrery::simulate {

/// The period of each role of a workload, alike in microbatches; empty where there is none.
std::vector<graph::Period> steady_periods(const graph::Workload& workload);

template <class Loop>
class SteadyState {
 public:
  explicit SteadyState(Loop& loop) : loop_(loop), periods_(steady_periods(loop.workload_)) {
    if (!periods_.empty()) {
      next_mark_ = period_of(0).first + period_of(0).length;
    }
  }

  /// To be called when an instant is over and settled. Cheap until the first rank has issued a
  /// further period.
  void look() {
    if (!periods_.empty() && loop_.ranks_.front().window.issued() >= next_mark_) {
      mark();
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

  const graph::Period& period_of(std::size_t rank) const {
    return periods_[static_cast<std::size_t>(loop_.ranks_[rank].role)];
  }

  void mark() {
    const graph::Period& period = period_of(0);
    const std::int64_t issued = loop_.ranks_.front().window.issued();
    Mark now{.when = loop_.queue_.now(),
             .period = (issued - period.first) / period.length,
             .state = {},
             .booked = {},
             .hosts = {}};
    next_mark_ = period.first + (now.period + 1) * period.length;
    marks_.push_back(std::move(now));
    if (marks_.size() > 2 * kLongestCycle + 1) {
      marks_.pop_front();
    }
    if (const auto cycle = cycle_by_time()) {
      write_down(marks_.back());
      const Mark& before = marks_[marks_.size() - 1 - *cycle];
      if (before.state == marks_.back().state && !before.state.empty()) {
        jump(before, marks_.back());
      }
    }
  }

  /// The least cycle for which the last periods took as long as those before; only then is it worth
  /// writing down the state.
  std::optional<std::size_t> cycle_by_time() const {
    const auto took = [&](std::size_t back) {
      const std::size_t last = marks_.size() - 1 - back;
      return marks_[last].when - marks_[last - 1].when;
    };
    for (std::size_t cycle = 1; cycle <= kLongestCycle && 2 * cycle < marks_.size(); ++cycle) {
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

  void write_down(Mark& mark) {
    state_ = &mark.state;
    for (std::size_t rank = 0; rank < loop_.ranks_.size(); ++rank) {
      describe_rank(rank, mark.period);
      mark.booked.push_back(loop_.ranks_[rank].ledger.breakdown());
      mark.hosts.push_back(loop_.ranks_[rank].host);
    }
    mark.completions = loop_.completions_;
    describe_meetings();
    describe_network();
  }

  void put(std::int64_t number) { state_->push_back(number); }
  void put(Time moment) { put((moment - loop_.queue_.now()).value()); }

  void describe_rank(std::size_t index, std::int64_t marked) {
    const RankState& rank = loop_.ranks_[index];
    const graph::Period& period = period_of(index);
    put(rank.window.issued() - marked * period.length);
    for (std::int64_t i = rank.window.oldest(); i < rank.window.issued(); ++i) {
      if (rank.window[i].unfinished > 0) {
        put(rank.window.issued() - i);
        describe_slot(rank.window[i], marked * period.microbatches);
      }
    }
    for (const StreamState& stream : rank.streams) {
      const bool stale = stream.instance < rank.window.oldest();
      put(stale ? -1 : rank.window.issued() - stream.instance);
      put(stale ? 0 : stream.position);
      put(stream.busy ? 1 : 0);
    }
    const Time lead = loop_.queue_.now() - rank.host;
    put(lead > host_work(index) ? -1 : lead.value());
    describe_job(rank);
    describe_ledger(rank.ledger);
  }

  void describe_slot(const InstanceSlot& slot, std::int64_t microbatch) {
    put(slot.instance.template_index);
    put(slot.instance.chunk);
    put(slot.instance.microbatch - microbatch);
    put(slot.unfinished);
    std::int64_t word = 0;
    std::size_t in_word = 0;
    for (const std::uint32_t pending : slot.pending) {
      word = (word << 32) | pending;
      if (++in_word == 2) {
        put(word);
        word = 0;
        in_word = 0;
      }
    }
    put(word);
  }

  void describe_job(const RankState& rank) {
    const ChainRun& chain = rank.chain;
    put(chain.chain == nullptr ? -1 : chain.chain->first);
    if (chain.chain != nullptr) {
      for (std::size_t lane = 0; lane < kMostLanes; ++lane) {
        const bool runs = chain.place.end[lane] < Time::max();
        put(chain.place.done[lane]);
        put(chain.place.waits[lane] ? 1 : 0);
        put(runs ? (chain.place.end[lane] - loop_.queue_.now()).value() : -1);
      }
      put(chain.end);
      put(chain.host_in_time ? 1 : 0);
    }
    put(rank.job.running ? 1 : 0);
    if (rank.job.running) {
      put(rank.job.end - rank.job.kernel);
      put(std::bit_cast<std::int64_t>(rank.job.remaining));
      put(static_cast<std::int64_t>(rank.job.concurrent));
      put(rank.job.since);
      put(rank.job.begin);
      put(std::max(rank.job.host_end, loop_.queue_.now()));
      put(rank.job.ran.value());
    }
  }

  void describe_ledger(const Ledger& ledger) {
    put(ledger.last_);
    put(ledger.computing_ ? static_cast<std::int64_t>(*ledger.phase_) : -1);
    put(ledger.collectives_);
    put(ledger.messages_);
    for (const graph::GroupIndex group : ledger.active_groups_) {
      put(static_cast<std::int64_t>(*group));
      put(ledger.active_[*group]);
    }
  }

  /// A node that runs is known by its rank and stream: streams are in order.
  std::int64_t name_of(RunningId id) const {
    const Running& running = loop_.running_[id];
    const RankState& rank = loop_.ranks_[running.rank];
    return static_cast<std::int64_t>(running.rank * rank.streams.size() +
                                     *rank.node(running).stream);
  }

  void describe_meetings() {
    for (const auto& meeting : loop_.meetings_) {
      put(-1);
      for (const RunningId id : meeting.arrived) {
        put(name_of(id));
      }
    }
    for (const auto& mailbox : loop_.mailboxes_) {
      put(static_cast<std::int64_t>(mailbox.arrived.size()));
      put(static_cast<std::int64_t>(mailbox.waiting.size()));
    }
  }

  void describe_network() {
    std::vector<Activity> live;
    for (Activity id = 0; id < loop_.moving_.size(); ++id) {
      if (!loop_.moving_[id].nodes.empty()) {
        live.push_back(id);
      }
    }
    const auto first = [&](Activity id) { return name_of(loop_.moving_[id].nodes.front()); };
    std::sort(live.begin(), live.end(),
              [&](Activity a, Activity b) { return first(a) < first(b); });
    for (const Activity id : live) {
      put(-1);
      for (const RunningId node : loop_.moving_[id].nodes) {
        put(name_of(node));
      }
    }
    loop_.transport_.describe(live, *state_);
    describe_events(first);
  }

  template <class First>
  void describe_events(const First& first) {
    std::vector<engine::EventQueue::Event> events = loop_.queue_.pending();
    std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
      return std::tie(a.when, a.order) < std::tie(b.when, b.order);
    });
    for (const engine::EventQueue::Event& event : events) {
      const auto subject = subject_of(event, first);
      if (subject) {
        put(event.when);
        put(event.kind);
        put(*subject);
      }
    }
  }

  /// Nothing: the event is stale.
  template <class First>
  std::optional<std::int64_t> subject_of(const engine::EventQueue::Event& event,
                                         const First& first) const {
    if (event.kind >= kFirstTransportEvent) {
      const auto activity = loop_.transport_.activity_of(event);
      return activity ? std::optional(first(*activity)) : std::nullopt;
    }
    const auto kind = static_cast<typename Loop::EventKind>(event.kind);
    if (kind == Loop::kHostReady) {
      return name_of(event.subject);
    }
    const RankState& rank = loop_.ranks_[event.subject];
    const bool stale = (kind == Loop::kComputeDone && event.generation != rank.job.generation) ||
                       (kind == Loop::kChainDone && event.generation != rank.chain.generation);
    return stale ? std::nullopt : std::optional<std::int64_t>(event.subject);
  }

  /// Host work of the rank's role in kHostPeriods periods.
  Time host_work(std::size_t index) {
    const RankState& rank = loop_.ranks_[index];
    auto& known = host_work_;
    known.resize(loop_.workload_.roles.size());
    std::optional<Time>& work = known[static_cast<std::size_t>(rank.role)];
    if (!work) {
      const graph::Period& period = period_of(index);
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

  /// As often as every list and every lead of a host allow.
  void jump(const Mark& before, const Mark& now) {
    const std::int64_t cycle = now.period - before.period;
    const Time took = now.when - before.when;
    std::int64_t times = INT64_MAX;
    for (std::size_t i = 0; i < loop_.ranks_.size(); ++i) {
      const graph::Period& period = period_of(i);
      const std::int64_t issued = loop_.ranks_[i].window.issued();
      const bool within = issued - cycle * period.length >= period.first;
      const bool ahead = now.hosts[i] - before.hosts[i] <= took;
      times =
          within && ahead ? std::min(times, (period.end - issued) / (cycle * period.length)) : 0;
    }
    if (times > 0) {
      move_on(before, now, times);
      periods_.clear();  // what is left is the end of the step
    }
  }

  void move_on(const Mark& before, const Mark& now, std::int64_t times) {
    const std::int64_t cycles = (now.period - before.period) * times;
    const Time by = (now.when - before.when) * times;
    for (std::size_t i = 0; i < loop_.ranks_.size(); ++i) {
      RankState& rank = loop_.ranks_[i];
      const graph::Period& period = period_of(i);
      rank.window.shift(cycles * period.length, cycles * period.microbatches);
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
    for (Running& running : loop_.running_) {
      running.instance += cycles * period_of(running.rank).length;
    }
    loop_.completions_ +=
        (now.completions - before.completions) * static_cast<std::uint64_t>(times);
    loop_.transport_.shift(by);
    loop_.queue_.shift(by);
  }

  Loop& loop_;
  std::vector<graph::Period> periods_;  ///< by role; empty: nothing to look for
  std::int64_t next_mark_ = 0;          ///< instances that the first rank has to have issued
  std::deque<Mark> marks_;
  std::vector<std::optional<Time>> host_work_;  ///< by role
  std::vector<std::int64_t>* state_ = nullptr;
};

}  // namespace orrery::simulate
