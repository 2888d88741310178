// SPDX-License-Identifier: Apache-2.0
#include "estimate/node_run.h"

#include <algorithm>

namespace orrery::estimate {
namespace {

using Kind = TimedNode::Kind;

/// Of the two, what is in flight, the second so much later and so many nodes on.
bool all_later(const std::vector<Ports::Flight>& before, const std::vector<Ports::Flight>& now,
               Time later, std::size_t nodes) {
  return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                    [&](const Ports::Flight& a, const Ports::Flight& b) {
                      return a.node != kNoNode && a.node + nodes == b.node && a.lane == b.lane &&
                             b.begin - a.begin == later && b.end - a.end == later &&
                             b.done - a.done == later && a.last == b.last && a.phase == b.phase;
                    });
}

bool all_later(const std::vector<Communication>& before, const std::vector<Communication>& now,
               Time later, std::size_t nodes) {
  return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                    [&](const Communication& a, const Communication& b) {
                      return a.node != kNoNode && a.node + nodes == b.node &&
                             a.collective == b.collective && b.begin - a.begin == later &&
                             b.end - a.end == later;
                    });
}

/// Times that do not depend on the run.
struct GivenTimes {
  const std::vector<Time>& works;
  const std::size_t& next;  ///< node

  static constexpr bool kInOrderOfTime = false;

  Time operator()(std::size_t i, Time) const { return works[i]; }
  void forget(Time) const {}
  void put_into(const auto&) const {}
  /// Whether the nodes of every period from the last one on take as long.
  bool go_on_as_since(const auto&, const Repeat& repeat, Time) const {
    const auto at = [&](std::size_t i) { return works.begin() + static_cast<std::ptrdiff_t>(i); };
    return std::equal(at(next - repeat.length), at(repeat.end() - repeat.length), at(next));
  }
  void move(Time, std::size_t) const {}
};

}  // namespace

void NodeRun::start(const TimedTemplate& nodes, const Clocks& clocks, bool jumps,
                    const EarlierHost& earlier) {
  template_ = &nodes;
  following_ = nullptr;
  is_ahead_ = false;
  looked_at_ = 0;
  if (waits_ > 0) {  // of one that was started ahead and given up
    waiting_ = {};
    waits_ = 0;
  }
  next_ = 0;
  said_ = false;
  clocks_ = clocks;
  ends_.assign(nodes.nodes.size(), kNever);
  taken_.assign(nodes.nodes.size(), Time(0));
  spans_.clear();
  jumps_ = jumps;
  jumped_ = 0;
  earlier_ = earlier;
  watch(0);
}

/// `times` says how long a node takes from a moment on.
template <class Times>
bool NodeRun::advance_with(Listener& listener, const Times& times) {
  const std::vector<TimedNode>& nodes = template_->nodes;
  for (;; ++next_) {
    if (Times::kInOrderOfTime && waits_ > 0 && next_ < nodes.size()) {
      look_at_those_before(nodes[next_], listener, times);
    }
    while (next_ == watched_) {
      end_period(times);
    }
    if (next_ == nodes.size()) {
      while (waits_ > 0) {
        look_at_first(listener, times);
      }
      return true;
    }
    const TimedNode& node = nodes[next_];
    if (Times::kInOrderOfTime && looked_at_ > 0 && ends_[next_] != kNever) {
      continue;  // ahead
    }
    if constexpr (Times::kInOrderOfTime) {
      if (waits_ahead()) {  // most nodes have none that follows
        const Time work = node.kind == Kind::kernels ? node.work : Time(0);
        look_ahead(begin_of(node) + work, listener, times.around);
      }
    }
    if (Times::kInOrderOfTime && must_wait(node, begin_of(node))) {
      put_off(next_);
      continue;
    }
    if (!look_at(next_, listener, times)) {
      return false;
    }
  }
}

/// Before the host.
Time NodeRun::begin_of(const TimedNode& node) const {
  Time begin = std::max(clocks_[static_cast<std::size_t>(clock_of(node.lane))], clocks_[kVisible]);
  for (std::uint32_t b = 0; b < node.befores; ++b) {
    begin = std::max(begin, ends_[template_->before[node.first_before + b]]);
  }
  return begin;
}

/// False: what it waits for is not known yet.
template <class Times>
bool NodeRun::look_at(std::size_t number, Listener& listener, const Times& times) {
  const TimedNode& node = template_->nodes[number];
  Time begin = begin_of(node);
  if (node.kind == Kind::collective || (node.kind == Kind::meeting && !said_)) {
    begin = take_host(begin, node.host_cost);
  }
  if (node.kind == Kind::meeting && !said_) {
    listener.says(node, begin, begin);
    said_ = true;
  }
  if (node.kind == Kind::meeting || node.kind == Kind::receive) {
    const Time heard = listener.hears(node);
    if (heard == kNever) {
      return false;
    }
    begin = std::max(begin, heard);
    said_ = false;
  }
  const Time taken = taken_[number] = times(number, begin);
  Time end = begin + taken;
  if (node.kind == Kind::message) {
    end = listener.says(node, begin, end);
  } else if (node.kind == Kind::kernels) {
    host_delays_ = host_delays_ || clocks_[kHost] + node.host_span > end;
    end = std::max(end, clocks_[kHost] + node.host_span);
    clocks_[kHost] += node.host_cost;
  }
  if (node.host_sync) {
    clocks_[kHost] = std::max(clocks_[kHost], end);
  }
  Time& lane = clocks_[static_cast<std::size_t>(clock_of(node.lane))];
  lane = std::max(lane, end);
  ends_[number] = end;
  return true;
}

/// When the host has issued what takes it for `cost`.
Time NodeRun::take_host(Time begin, Time cost) {
  Time host = clocks_[kHost] + cost;
  if (begin < earlier_.end) {
    host = earlier_.at(begin) + cost;
    earlier_.from += cost;
    earlier_.until += cost;
    clocks_[kHost] = std::max(clocks_[kHost], earlier_.until);
  } else {
    clocks_[kHost] = host;
  }
  host_delays_ = host_delays_ || host > begin;
  return std::max(begin, host);
}

/// A collective that begins after all kernels so far takes the host and its ports after what comes
/// until then.
bool NodeRun::must_wait(const TimedNode& node, Time begin) const {
  return node.kind == Kind::collective && !node.host_sync &&
         (begin > std::max(clocks_[kCompute], clocks_[kVisible]) || !waiting_[node.lane].empty());
}

void NodeRun::put_off(std::size_t number) {
  waiting_[template_->nodes[number].lane].nodes.push_back(number);
  ++waits_;
}

/// What the node waits for, what is before it on its lane, and what begins before it.
template <class Times>
void NodeRun::look_at_those_before(const TimedNode& node, Listener& listener, const Times& times) {
  const auto waits_for_one = [&] {
    for (std::uint32_t b = 0; b < node.befores; ++b) {
      if (ends_[template_->before[node.first_before + b]] == kNever) {
        return true;
      }
    }
    return node.kind != Kind::collective && !waiting_[node.lane].empty();
  };
  while (waits_ > 0 &&
         (waits_for_one() || begin_of(template_->nodes[first_waiting()]) < begin_of(node))) {
    look_at_first(listener, times);
  }
}

/// Of those that wait the one that begins first.
std::size_t NodeRun::first_waiting() const {
  std::size_t first = kNoNode;
  Time earliest = Time::max();
  for (const Waiting& lane : waiting_) {
    if (lane.empty()) {
      continue;
    }
    const Time begin = begin_of(template_->nodes[lane.nodes[lane.first]]);
    if (first == kNoNode || begin < earliest) {
      first = lane.nodes[lane.first];
      earliest = begin;
    }
  }
  return first;
}

template <class Times>
void NodeRun::look_at_first(Listener& listener, const Times& times) {
  const std::size_t first = first_waiting();
  take_waiting(first);
  look_at(first, listener, times);
}

/// The first that waits for its lane waits no more.
void NodeRun::take_waiting(std::size_t number) {
  Waiting& lane = waiting_[template_->nodes[number].lane];
  --waits_;
  if (++lane.first == lane.nodes.size()) {
    lane = {};
  }
}

/// Times of kernels and transfers that meet others.
struct NodeRun::MetTimes {
  static constexpr bool kInOrderOfTime = true;
  NodeRun& run;
  NodeRun& current;  ///< or the one before it
  Listener& listener;
  const Surroundings& around;

  Time operator()(std::size_t i, Time begin) const {
    const TimedNode& node = run.template_->nodes[i];
    if (node.kind == Kind::kernels) {
      around.beside.forget(begin);
      return around.beside.stretched(
          begin, node.work, {.message = node.beside_message, .collective = node.beside_collective});
    }
    Time taken = node.work;
    if (node.transfer >= 0) {
      const auto& phases = around.transfers[static_cast<std::size_t>(node.transfer)];
      const Ports::Sender sender{node.lane, run.base_ + i, node.kind == Kind::message};
      taken = around.ports.start(sender, begin, phases) - begin;
      if (!around.ports.moved().empty()) {
        current.follow_moved(around.ports, around.beside, run.clocks_);
        for (const Ports::Moved& moved : around.ports.moved_messages()) {
          listener.delays(moved);
        }
      }
      if (node.kind == Kind::collective) {
        run.spans_.push_back({node.lane, begin, begin + taken});
      }
    }
    if (slows(node)) {
      around.beside.put({begin, begin + taken, node.kind != Kind::message, run.base_ + i});
    }
    return taken;
  }
  void forget(Time before) const {
    around.ports.forget(before);
    around.beside.forget_all(std::min(before, run.clocks_[kCompute]));
  }
  void put_into(Mark& mark) const {
    mark.flights = around.ports.flights();
    mark.beside = around.beside.all();
  }
  bool go_on_as_since(const Mark& mark, const Repeat& repeat, Time later) const {
    return all_later(mark.flights, around.ports.flights(), later, repeat.length) &&
           all_later(mark.beside, around.beside.all(), later, repeat.length);
  }
  void move(Time later, std::size_t nodes) const {
    around.ports.move(later, nodes);
    around.beside.move(later, nodes);
  }
};

bool NodeRun::advance(Listener& listener, const std::vector<Time>& works) {
  return advance_with(listener, GivenTimes{works, next_});
}

bool NodeRun::advance(Listener& listener, const Surroundings& around) {
  return advance_with(listener, MetTimes{*this, *this, listener, around});
}

void NodeRun::look_ahead(Time until, Listener& listener, const Surroundings& around) {
  while (waits_ahead() && begins_ahead(until)) {
    NodeRun& next = *following_;
    const Time visible = next.clocks_[kVisible];
    next.clocks_ = clocks_;
    next.clocks_[kVisible] = visible;
    const std::size_t first = first_ahead();
    if (first == kNoNode || next.begin_of(next.template_->nodes[first]) >= until) {
      return;
    }
    next.looked_at_ += 1;
    next.take_waiting(first);
    next.look_at(first, listener, MetTimes{next, *this, listener, around});
    const Time seen = clocks_[kVisible];
    clocks_ = next.clocks_;
    clocks_[kVisible] = seen;
    least_ahead_ = kNever;
  }
}

/// Before the first node of a period, or behind the last one.
template <class Times>
void NodeRun::end_period(const Times& times) {
  const Repeat& repeat = template_->repeats[repeat_];
  times.forget(earliest_clock(repeat));
  const std::size_t left = (repeat.end() - next_) / repeat.length;
  if (left == 0) {
    watch(repeat_ + 1);
    return;
  }
  if (waits_ > 0 ||
      may_begin_ahead(repeat.end())) {  // more than what is compared decides what comes next
    mark_.made = false;
    watched_ += repeat.length;
    return;
  }
  const auto later = jumps_ && mark_.made ? lateness(repeat) : std::nullopt;
  if (later && times.go_on_as_since(mark_, repeat, *later)) {
    times.move(*later * static_cast<std::int64_t>(left), left * repeat.length);
    jump(repeat, left, *later);
    watch(repeat_ + 1);
    return;
  }
  if (jumps_ && next_ >= repeat.reach) {
    mark_.made = true;
    mark_.clocks = clocks_;
    mark_.ends.assign(ends_.begin() + static_cast<std::ptrdiff_t>(next_ - repeat.reach),
                      ends_.begin() + static_cast<std::ptrdiff_t>(next_));
    mark_.spans = spans_.size();
    times.put_into(mark_);
    host_delays_ = false;
  }
  watched_ += repeat.length;
}

}  // namespace orrery::estimate
