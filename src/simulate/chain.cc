// SPDX-License-Identifier: Apache-2.0
#include "simulate/chain.h"

#include <algorithm>

#include "base/grouped.h"
#include "simulate/chain_lengths.h"
#include "simulate/rank_state.h"

namespace orrery::simulate {
namespace {

/// Counts the chain's own collectives, so that kernels beside them are as slow as in the loop.
struct Unbooked {
  Concurrent outside = Concurrent::nothing;
  ConcurrentCounts own{};

  void begin_compute(Time, const BoundNode&) {}
  void end_compute(Time, const Job&) {}
  void begin_collective(Time, const BoundNode& node) { own.add(node.takes, 1); }
  void end_collective(Time, const BoundNode& node) { own.add(node.takes, -1); }
  Concurrent concurrent() const { return std::max(own.most(), outside); }
};

/// Finds the chains of one template, from node to node.
class Finder {
 public:
  Finder(const BoundTemplate& shape, const LedgerRows& rows, const std::vector<bool>& serial,
         const Undisturbed& undisturbed)
      : shape_(shape), rows_(rows), before_(shape.nodes.size(), [&](const auto& add) {
          for (std::uint32_t i = 0; i < shape.nodes.size(); ++i) {
            const BoundNode& node = shape.nodes[i];
            for (std::uint32_t d = 0; d < node.dependent_count; ++d) {
              add(shape.dependents[node.first_dependent + d], i);
            }
          }
        }) {
    alone_.reserve(shape.nodes.size());
    for (std::uint32_t i = 0; i < shape.nodes.size(); ++i) {
      const BoundNode& node = shape.nodes[i];
      const bool fits =
          node.stream == graph::kComputeStream
              ? node.kind == graph::Node::Kind::compute || node.kind == graph::Node::Kind::wait
              : node.kind == graph::Node::Kind::collective && serial[*node.stream];
      alone_.push_back(!fits                                        ? std::nullopt
                       : node.kind == graph::Node::Kind::collective ? undisturbed(node)
                                                                    : std::optional(Time(0)));
    }
  }

  ChainTable run() {
    ChainTable table;
    table.at.assign(shape_.nodes.size(), -1);
    ChainLengths lengths(shape_, before_, alone_);
    for (std::uint32_t i = 0; i < shape_.nodes.size();) {
      const std::uint32_t count = lengths.from(i);
      if (count > 1) {
        table.at[i] = static_cast<std::int32_t>(table.chains.size());
        table.chains.push_back(make(i, count));
      }
      i += std::max(count, 1U);
    }
    return table;
  }

 private:
  const BoundNode& node(std::uint32_t i) const { return shape_.nodes[i]; }

  /// Waits alone, and collectives of nobody, are over before they could be an event.
  bool takes_time(std::uint32_t i) const {
    return node(i).kind == graph::Node::Kind::compute || alone_[i].value_or(Time(0)) > Time(0);
  }

  static Chain empty_chain(std::uint32_t first) {
    Chain chain;
    chain.first = first;
    return chain;
  }

  void append(Chain& chain, std::uint32_t i) const {
    const std::size_t lane = lane_of(chain, node(i).stream);
    Chain::Step step{.node = i, .alone = alone_[i].value_or(Time(0))};
    if (!chain.lanes[lane].empty()) {  // in order: what the step before it waited for is done
      step.after = chain.lanes[lane].back().after;
    }
    for (const std::uint32_t before : before_[i]) {
      if (before >= chain.first) {
        const std::size_t other = lane_of(chain, node(before).stream);
        step.after[other] = std::max(step.after[other], place_of(chain.lanes[other], before) + 1);
      }
    }
    step.after[lane] = 0;
    step.joins = lane == 0;
    for (std::size_t other = 1; other < chain.lane_count; ++other) {
      step.joins = step.joins && step.after[other] == chain.lanes[other].size();
    }
    chain.lanes[lane].push_back(step);
    ++chain.count;
  }

  static std::size_t lane_of(Chain& chain, graph::StreamIndex stream) {
    std::size_t lane = 0;
    while (lane < chain.lane_count && chain.streams[lane] != stream) {
      ++lane;
    }
    if (lane == chain.lane_count) {
      chain.streams[chain.lane_count++] = stream;
    }
    return lane;
  }

  static std::uint32_t place_of(const std::vector<Chain::Step>& lane, std::uint32_t node) {
    const auto found = std::lower_bound(
        lane.begin(), lane.end(), node,
        [](const Chain::Step& step, std::uint32_t wanted) { return step.node < wanted; });
    return static_cast<std::uint32_t>(found - lane.begin());
  }

  Chain make(std::uint32_t first, std::uint32_t count) const {
    Chain chain = empty_chain(first);
    chain.lanes[0].reserve(static_cast<std::size_t>(
        std::count_if(shape_.nodes.begin() + first, shape_.nodes.begin() + first + count,
                      [](const BoundNode& one) { return one.stream == graph::kComputeStream; })));
    for (std::uint32_t i = first; i < first + count; ++i) {
      append(chain, i);
    }
    std::vector<Chain::Step>& lane = chain.lanes[0];
    chain.rows = Ledger(rows_).size();
    chain.booked.reserve(lane.size() * kConcurrentCount * chain.rows);
    for (std::uint32_t i = static_cast<std::uint32_t>(lane.size()); i-- > 0;) {
      lane[i].joins = lane[i].joins && alone_from(chain, i);
      for (std::size_t concurrent = 0; lane[i].joins && concurrent < kConcurrentCount;
           ++concurrent) {
        measure(chain, i, static_cast<Concurrent>(concurrent));
      }
      if (lane[i].joins) {
        chain.joins.push_back(i);
      }
    }
    std::reverse(chain.joins.begin(), chain.joins.end());
    count_host_work(chain);
    chain.slack = slack_of(chain);
    return chain;
  }

  /// Sets what the host does before each step that joins; nodes that do nothing ask nothing of it.
  void count_host_work(Chain& chain) const {
    Time sum{0};
    std::uint32_t counted = chain.first;
    for (const std::uint32_t join : chain.joins) {
      Chain::Step& step = chain.lanes[0][join];
      for (; counted < step.node; ++counted) {
        sum += takes_time(counted) ? node(counted).host_cost : Time(0);
      }
      step.host_before = sum;
    }
  }

  /// Returns whether no later step of another lane can start before this one is done.
  static bool alone_from(const Chain& chain, std::size_t step) {
    for (std::size_t lane = 1; lane < chain.lane_count; ++lane) {
      const std::size_t next = chain.lanes[0][step].after[lane];
      if (next < chain.lanes[lane].size() && chain.lanes[lane][next].after[0] <= step) {
        return false;
      }
    }
    return true;
  }

  /// The rest of a step that joins: to the next one, and its rest.
  void measure(Chain& chain, std::uint32_t step, Concurrent concurrent) const {
    Chain::Step& from = chain.lanes[0][step];
    ChainPlace place;
    place.done = from.after;
    place.done[0] = step;
    Job job;
    Time host = Time(0) - Time::max();
    Ledger ledger(rows_);
    LedgerBook book{ledger, concurrent};
    ChainWalk walk(chain, shape_, place, job, host, book);
    Time now{0};
    walk.begin(now);
    while (!walk.over() && (place.done[0] == step || !walk.joined(now))) {
      walk.change_speed(now);
      now = place.next();
      walk.step();
    }
    const auto beside = static_cast<std::size_t>(concurrent);
    const std::size_t begin = chain.booked.size();
    from.rest[beside] = now;
    from.booked = beside == 0 ? begin : from.booked;
    ledger.append_to(chain.booked);
    if (!walk.over()) {
      from.rest[beside] += walk.current().rest[beside];
      for (std::size_t row = 0; row < chain.rows; ++row) {
        chain.booked[begin + row] += chain.booked_by(walk.current(), beside)[row];
      }
    }
  }

  /// Returns the host's least slack. It has least time with kernels as fast as they can be; and it
  /// may have to issue all up to the next step that joins before the node. A node that the host
  /// waits for makes it late.
  Time slack_of(const Chain& chain) const {
    Time slack = Time::max();
    Time host{0};
    Time start{0};
    const auto needs = [&](std::uint32_t i, Time latest) {
      slack = std::min(slack, latest - host - node(i).host_span);
    };
    std::uint32_t counted = chain.first;  // nodes whose host work is in `host`
    for (std::size_t s = 0; s < chain.lanes[0].size(); ++s) {
      const Chain::Step& step = chain.lanes[0][s];
      if (step.joins) {
        start = chain.lanes[0][0].rest[0] - step.rest[0];
        const std::uint32_t next = next_join(chain, s);
        for (; counted < next; ++counted) {
          host += node(counted).host_cost;
        }
        for (std::uint32_t i = step.node; i < next; ++i) {
          // No node before the next join starts earlier than this one.
          needs(i, node(i).kind == graph::Node::Kind::compute ? start + node(i).work : start);
        }
      }
      const bool sync = node(step.node).host_sync && step.node != chain.last();
      slack = sync ? Time(0) - Time::max() : slack;
    }
    return slack;
  }

  static std::uint32_t next_join(const Chain& chain, std::size_t step) {
    for (std::size_t s = step + 1; s < chain.lanes[0].size(); ++s) {
      if (chain.lanes[0][s].joins) {
        return chain.lanes[0][s].node;
      }
    }
    return chain.last() + 1;
  }

  const BoundTemplate& shape_;
  const LedgerRows& rows_;
  Grouped before_;                          ///< by node
  std::vector<std::optional<Time>> alone_;  ///< by node; nothing: it cannot be in a chain
};

/// Returns the chain's own communications in flight.
ConcurrentCounts running_in(const Chain& chain, const BoundTemplate& shape,
                            const ChainPlace& place) {
  ConcurrentCounts own;
  for (std::size_t lane = 1; lane < chain.lane_count; ++lane) {
    if (place.end[lane] < Time::max() && !place.waits[lane]) {
      own.add(shape.nodes[chain.lanes[lane][place.done[lane]].node].takes, 1);
    }
  }
  return own;
}

ChainWalk<LedgerBook> walk_of(RankState& rank, LedgerBook& book) {
  return {*rank.chain.chain, *rank.window[rank.chain.instance].shape,
          rank.chain.place,  rank.job,
          rank.host,         book};
}

}  // namespace

Time chain_end(const ChainRun& run, const BoundTemplate& shape, Job job, Time host,
               Concurrent concurrent, bool joins) {
  Unbooked book{.outside = concurrent, .own = running_in(*run.chain, shape, run.place)};
  ChainPlace place = run.place;
  ChainWalk walk(*run.chain, shape, place, job, host, book);
  for (;;) {
    const Time now = place.next();
    walk.step();
    if (walk.over()) {
      return now;
    }
    if (joins && walk.joined(now)) {
      return std::min(now + walk.current().rest[static_cast<std::size_t>(concurrent)], kEndOfTime);
    }
    walk.change_speed(now);
  }
}

void begin_chain(RankState& rank, const Chain& chain, std::int64_t instance, Time now) {
  rank.chain.chain = &chain;
  rank.chain.instance = instance;
  rank.chain.place = {};
  rank.chain.host_in_time = rank.host - now <= chain.slack;
  rank.chain.end = Time::max();
  LedgerBook book{rank.ledger};
  walk_of(rank, book).begin(now);
}

bool walk_chain(RankState& rank, Time now) {
  if (rank.chain.chain == nullptr) {
    return false;
  }
  LedgerBook book{rank.ledger};
  ChainWalk<LedgerBook> walk = walk_of(rank, book);
  bool at_once = false;
  while (!walk.over() && rank.chain.place.next() <= now) {
    const Time moment = rank.chain.place.next();
    walk.step();
    at_once = moment == now;
    if (!at_once) {
      const bool skips = rank.chain.host_in_time && walk.joined(moment);
      walk.change_speed(skips ? walk.skip(moment, now) : moment);
    }
  }
  return at_once;
}

void change_chain_speed(RankState& rank, Time now) {
  LedgerBook book{rank.ledger};
  walk_of(rank, book).change_speed(now);
}

Time chain_end(const RankState& rank) {
  const ChainRun& run = rank.chain;
  const BoundTemplate& shape = *rank.window[run.instance].shape;
  const ConcurrentCounts own = running_in(*run.chain, shape, run.place);
  return chain_end(run, shape, rank.job, rank.host, rank.ledger.concurrent_without(own),
                   run.host_in_time);
}

ChainTable find_chains(const BoundTemplate& shape, const LedgerRows& rows,
                       const std::vector<bool>& serial, const Undisturbed& undisturbed) {
  return Finder(shape, rows, serial, undisturbed).run();
}

std::vector<bool> serial_streams(const std::vector<graph::Template>& templates,
                                 std::size_t streams) {
  std::vector<bool> serial(streams, true);
  for (const graph::Template& t : templates) {
    for (std::size_t i = 0; i < t.nodes.size(); ++i) {
      const graph::Node& node = t.nodes[i];
      const bool follows = i > 0 && t.nodes[i - 1].stream == node.stream;
      const bool waits = std::any_of(node.after.begin(), node.after.end(), [&](int before) {
        return t.nodes[static_cast<std::size_t>(before)].stream == graph::kComputeStream;
      });
      if (!follows && !waits) {
        serial[*node.stream] = false;
      }
    }
  }
  return serial;
}

}  // namespace orrery::simulate
