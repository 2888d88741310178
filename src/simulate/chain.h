// SPDX-License-Identifier: Apache-2.0
/// Nodes that nothing outside touches, taken as one event.
///
/// A chain is a run of nodes of a template, one after the other in its list:
///
///   * kernels, waits, and collectives of communicators of which one member is simulated, on links
///     that nothing else uses (Transport::undisturbed), on at most kMostLanes streams;
///   * but for the first, none depends on a node outside, and but for the last, nothing outside
///     depends on one;
///   * the first and the last are on the compute stream, and when the last starts all others are
///     done: so no node of that stream after the chain could have started earlier;
///   * on every other stream of the chain nodes only run after a node of the compute stream of
///     their own instance, so that none of another instance can overtake the chain.
///
/// So its nodes need no events: the loop walks over them when it has to know (when communication of
/// the rank begins or ends, which changes the speed of kernels and what time counts as) and when
/// the chain ends. Every step is what the loop would have done, in the same arithmetic: results are
/// equal to the picosecond.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "simulate/bind.h"
#include "simulate/job.h"
#include "simulate/ledger.h"

namespace orrery::simulate {

inline constexpr std::size_t kMostLanes = 3;  ///< of a chain: the compute stream is lane 0
/// Times at this one or later are beyond the range of Time, and so is the run. Time::max() itself
/// is for lanes in which nothing runs.
inline constexpr Time kEndOfTime{INT64_MAX - 1};

struct Chain {
  struct Step {
    std::uint32_t node = 0;  ///< of the template
    Time alone{0};           ///< of a collective on its links; 0: it does nothing
    /// Says, for each other lane, how many of its steps must be done before.
    std::array<std::uint32_t, kMostLanes> after{};
    /// A step of lane 0 joins if all nodes before it in the list are done when it starts, and none
    /// after it starts before it is done itself.
    bool joins = false;
    /// A step that joins takes, from its start to the end of the chain, by what runs beside and
    /// with a host that is never in the way: the time, and what is booked.
    std::array<Time, kConcurrentCount> rest{};
    std::size_t booked = 0;  ///< the first of its places in Chain::booked
    Time host_before{0};     ///< host work of the nodes of the chain before it in the list
  };
  std::uint32_t first = 0;  ///< node of the template
  std::uint32_t count = 0;
  std::array<std::vector<Step>, kMostLanes> lanes;
  std::array<graph::StreamIndex, kMostLanes> streams{graph::kComputeStream};
  std::size_t lane_count = 1;
  std::vector<std::uint32_t> joins;  ///< steps of lane 0 that join
  /// Holds what the ledger of an idle rank books (Ledger::append_to) by step that joins and by what
  /// runs beside it: three lists of `rows` for each step. Millions of steps have one vector.
  std::vector<Time> booked;
  std::size_t rows = 0;
  /// The host is in nobody's way if it is free this long after the chain begins, or earlier.
  Time slack{0};

  std::uint32_t last() const { return first + count - 1; }
  std::span<const Time> booked_by(const Step& step, std::size_t concurrent) const {
    return std::span(booked).subspan(step.booked + concurrent * rows, rows);
  }
};

/// The chains of one template.
struct ChainTable {
  std::vector<Chain> chains;
  std::vector<std::int32_t> at;  ///< by node: the chain that begins there; -1
};

/// Says where the lanes of a chain are. The job of lane 0 stands beside it.
struct ChainPlace {
  std::array<std::uint32_t, kMostLanes> done{};                             ///< steps
  std::array<Time, kMostLanes> end{Time::max(), Time::max(), Time::max()};  ///< of what runs
  std::array<bool, kMostLanes> waits{};  ///< its collective waits for the host until `end`

  Time next() const { return std::min({end[0], end[1], end[2]}); }
};

/// A chain in flight.
struct ChainRun {
  const Chain* chain = nullptr;
  std::int64_t instance = 0;
  ChainPlace place;
  Time end{0};  ///< of the chain, as announced
  std::uint32_t generation = 0;
  bool host_in_time = false;
};

/// A chain's kernels and collectives in a ledger.
struct LedgerBook {
  Ledger& ledger;
  Concurrent outside = Concurrent::nothing;  ///< what runs without being in the ledger

  void begin_compute(Time now, const BoundNode& node) { ledger.begin_compute(now, node.phase); }
  void end_compute(Time now, const Job& job) { ledger.end_compute(now, job.stall(now)); }
  void begin_collective(Time now, const BoundNode& node) {
    ledger.begin_communication(now, node.takes, node.group);
  }
  void end_collective(Time now, const BoundNode& node) {
    ledger.end_communication(now, node.takes, node.group);
  }
  Concurrent concurrent() const { return std::max(ledger.concurrent(), outside); }
};

/// Runs a chain's steps from moment to moment. `Book` is told what begins and ends, and says what
/// runs beside kernels:
///   begin_compute(now, node), end_compute(now, node, job), begin_collective(now, node),
///   end_collective(now, node), beside() -> Concurrent
template <class Book>
class ChainWalk {
 public:
  ChainWalk(const Chain& chain, const BoundTemplate& shape, ChainPlace& place, Job& job, Time& host,
            Book& book)
      : chain_(chain), shape_(shape), place_(place), job_(job), host_(host), book_(book) {}

  /// Starts what can start, at the beginning of the chain.
  void begin(Time now) { start_all(now, 0); }

  /// Does everything that happens at place.next(). Kernels keep their speed: see change_speed.
  void step() {
    const Time now = place_.next();
    for (std::size_t lane = 0; lane < chain_.lane_count; ++lane) {
      if (place_.end[lane] == now) {
        finish(lane, now);
        start_all(now, lane);
      }
    }
  }

  /// Changes the kernel's speed, after a step or when what runs beside has changed.
  void change_speed(Time now) {
    if (job_.running && job_.concurrent != book_.concurrent()) {
      place_.end[0] = std::min(job_.change_speed(now, book_.concurrent()), kEndOfTime);
    }
  }

  /// Returns whether a step that joins has begun at `now`.
  bool joined(Time now) const {
    return !over() && current().joins && place_.end[0] < Time::max() && job_.begin == now;
  }

  /// Skips from a step that joined at `now` to the last one that begins before `until`, with a host
  /// that is never in the way. Returns when that one begins.
  Time skip(Time now, Time until) {
    const auto concurrent = static_cast<std::size_t>(book_.concurrent());
    const Chain::Step& from = current();
    const auto begins = [&](std::uint32_t step) {
      return now + (from.rest[concurrent] - chain_.lanes[0][step].rest[concurrent]);
    };
    const auto later = std::upper_bound(chain_.joins.begin(), chain_.joins.end(), place_.done[0]);
    const auto end = std::partition_point(later, chain_.joins.end(),
                                          [&](std::uint32_t step) { return begins(step) < until; });
    if (end == later) {
      return now;
    }
    const std::uint32_t target = *(end - 1);
    const Chain::Step& to = chain_.lanes[0][target];
    const Time moment = begins(target);
    book_.ledger.skip(moment, chain_.booked_by(from, concurrent), chain_.booked_by(to, concurrent));
    host_ += to.host_before - from.host_before - node(0).host_cost;
    place_.done = to.after;
    place_.done[0] = target;
    place_.end[0] = Time::max();
    start_all(moment, 0);
    return moment;
  }

  bool over() const { return place_.done[0] == chain_.lanes[0].size(); }
  /// Returns the step that lane 0 runs or will run next.
  const Chain::Step& current() const { return chain_.lanes[0][place_.done[0]]; }

 private:
  const Chain::Step& head(std::size_t lane) const { return chain_.lanes[lane][place_.done[lane]]; }
  const BoundNode& node(std::size_t lane) const { return shape_.nodes[head(lane).node]; }

  /// Starts steps until nothing that takes no time is left. The host issues what waited for a step
  /// of another lane, as release() does, before what comes after it in the `finished` lane.
  void start_all(Time now, std::size_t finished) {
    for (bool changes = true; changes;) {
      changes = false;
      for (std::size_t lane = 0; lane < chain_.lane_count; ++lane) {
        changes = (lane != finished && start_lane(lane, now)) || changes;
      }
      changes = start_lane(finished, now) || changes;
    }
  }

  /// Returns whether a step is over at once.
  bool start_lane(std::size_t lane, Time now) {
    bool changes = false;
    while (can_start(lane) && start(lane, now)) {
      changes = true;
    }
    return changes;
  }

  bool can_start(std::size_t lane) const {
    if (place_.end[lane] < Time::max() || place_.done[lane] == chain_.lanes[lane].size()) {
      return false;
    }
    const Chain::Step& step = head(lane);
    for (std::size_t other = 0; other < chain_.lane_count; ++other) {
      if (place_.done[other] < step.after[other]) {
        return false;
      }
    }
    return true;
  }

  /// Returns whether the step is over at once.
  bool start(std::size_t lane, Time now) {
    const BoundNode& its = node(lane);
    if (its.kind == graph::Node::Kind::compute) {
      const Time host_end = host_ + its.host_span;
      host_ += its.host_cost;
      book_.begin_compute(now, its);
      place_.end[lane] =
          std::min(job_.start(now, host_end, shape_, its, book_.concurrent()), kEndOfTime);
      return false;
    }
    if (head(lane).alone == Time(0)) {  // a wait, or a collective of nobody
      done(lane, now);
      return true;
    }
    host_ += its.host_cost;
    place_.waits[lane] = host_ > now;
    if (place_.waits[lane]) {
      place_.end[lane] = std::min(host_, kEndOfTime);
    } else {
      begin_collective(lane, now);
    }
    return false;
  }

  void begin_collective(std::size_t lane, Time now) {
    book_.begin_collective(now, node(lane));
    place_.end[lane] = std::min(now + head(lane).alone, kEndOfTime);
  }

  void finish(std::size_t lane, Time now) {
    if (place_.waits[lane]) {
      place_.waits[lane] = false;
      begin_collective(lane, now);
      return;
    }
    if (node(lane).kind == graph::Node::Kind::compute) {
      job_.running = false;
      book_.end_compute(now, job_);
    } else {
      book_.end_collective(now, node(lane));
    }
    done(lane, now);
  }

  void done(std::size_t lane, Time now) {
    if (node(lane).host_sync) {
      host_ = std::max(host_, now);
    }
    place_.end[lane] = Time::max();
    ++place_.done[lane];
  }

  const Chain& chain_;
  const BoundTemplate& shape_;
  ChainPlace& place_;
  Job& job_;
  Time& host_;
  Book& book_;
};

/// Returns when the chain ends if what runs beside it, apart from its own collectives, stays as it
/// is. `joins`: only until the next step that joins, and its `rest` from there.
Time chain_end(const ChainRun& run, const BoundTemplate& shape, Job job, Time host,
               Concurrent concurrent, bool joins);

struct RankState;

/// The rank runs the chain from now on; the streams of its lanes stand at its first nodes.
void begin_chain(RankState& rank, const Chain& chain, std::int64_t instance, Time now);
/// Walks over the rank's chain, if it runs one, to the nodes that run at `now`. Returns whether
/// something happens at this very instant: then the speed of its kernels is still to be changed,
/// when the instant is over.
bool walk_chain(RankState& rank, Time now);
/// Changes the speed of the chain's kernels, where walk_chain() has said so or when what runs
/// beside the chain has changed.
void change_chain_speed(RankState& rank, Time now);
/// Returns when the rank's chain ends if what runs beside it stays as it is.
Time chain_end(const RankState& rank);

/// Returns a collective's time if it runs alone whatever else happens; else nothing.
using Undisturbed = std::function<std::optional<Time>(const BoundNode&)>;

/// Finds the chains of a template. `serial`: by stream, whether its nodes only run after a compute
/// node of their instance.
ChainTable find_chains(const BoundTemplate& shape, const LedgerRows& rows,
                       const std::vector<bool>& serial, const Undisturbed& undisturbed);

/// Streams of a program on which every node depends on a node of the compute stream of its
/// template, or follows a node of its own stream in the list.
std::vector<bool> serial_streams(const std::vector<graph::Template>& templates,
                                 std::size_t streams);

}  // namespace orrery::simulate
