// SPDX-License-Identifier: Apache-2.0
/// One run of a template, node by node, by the rules of pass_map.h.
///
///   Equal layers: where the template's nodes repeat (repeats.h) and at the end of a period all
///   that decides the next one (clocks, ends that later nodes wait for, transfers and communication
///   in flight) is what it was a period before, T later, the periods left follow as this one did,
///   each T later: they are jumped, to the picosecond what the run of their nodes gives. The host's
///   clock may fall back where it has delayed nothing: it then delays nothing in what follows
///   either.
///
///   The host issues in the order in which nodes begin. Collectives that begin before the instance
///   before has ended (gathers ahead) find the host where it then was (EarlierHost); those that
///   their lane keeps waiting are looked at when the nodes that begin before them have been.
///
///   Ahead: an instance is visible when the last but one before it has ended, so collectives that
///   follow none of its nodes but others like them (PassMap::ahead) begin beside the instance
///   before. They are looked at with that one's nodes, in the order of time, once it has no more
///   nodes on their lane.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "estimate/beside.h"
#include "estimate/ports.h"
#include "estimate/timed_workload.h"

namespace orrery::estimate {

/// Numbers of clocks: compute, host, visible, then lane l as kVisible + l.
inline constexpr int kCompute = 0;
inline constexpr int kHost = 1;
inline constexpr int kVisible = 2;
inline constexpr int kMostClocks = kMostLanes + 2;
constexpr int clock_of(int lane) {
  return lane == 0 ? kCompute : kVisible + lane;
}

/// Minus infinity: far enough below every time for sums of it to stay there.
inline constexpr Time kNever = Time(std::int64_t{-1} << 60);

using Clocks = std::array<Time, kMostClocks>;

/// Where a node-by-node run gets what it hears and leaves what it says.
class Listener {
 public:
  virtual ~Listener() = default;
  /// Arrival of the next message, or the start of the meeting that this stage has come to; kNever
  /// when it is not known yet.
  virtual Time hears(const TimedNode& node) = 0;
  /// A message leaves to be there at `end`, or the stage comes to a meeting. Returns when the
  /// message is there in the end.
  virtual Time says(const TimedNode& node, Time when, Time end) = 0;
  /// A message that has been sent, from here or to here, is there later.
  virtual void delays(const Ports::Moved& /*message*/) {}
};

/// The host over the instance before: from `from` at its begin to `until` at its end, before it
/// waited for that (host_sync).
struct EarlierHost {
  Time begin = kNever;
  Time end = kNever;  ///< there was none
  Time from = kNever;
  Time until = kNever;

  Time at(Time when) const {
    return when >= end || begin >= end
               ? until
               : from + (until - from) * (std::max(when - begin, Time(0)) / (end - begin));
  }
};

/// When a lane transfers.
struct LaneSpan {
  int lane = 0;
  Time begin{0};
  Time end{0};
};

/// A run of one template, node by node, that can stop where something is not known yet.
class NodeRun {
 public:
  /// `jumps`: equal layers at once.
  void start(const TimedTemplate& nodes, const Clocks& clocks, bool jumps = true,
             const EarlierHost& earlier = {});
  /// With these times of the nodes. False when it stopped.
  bool advance(Listener& listener, const std::vector<Time>& works);
  /// With kernels slowed by what is beside them and transfers that share ports. Both are told what
  /// the nodes do. Transfers wait for the kernels before them in the list or stand before all of
  /// them, so kernels know what began before they end.
  struct Surroundings {
    const Transfers& transfers;
    Beside& beside;
    Ports& ports;
  };
  bool advance(Listener& listener, const Surroundings& around);

  /// The instance behind `before`, visible from then on, of which the nodes `ahead` are looked at
  /// with those of `before`.
  void start_ahead(const TimedTemplate& nodes, std::span<const std::uint32_t> ahead, Time visible,
                   NodeRun& before);
  /// Whether it has been started so.
  bool is_ahead() const { return is_ahead_; }
  /// The instance before it is over: what is left of this one.
  void go_on(const Clocks& clocks, bool jumps, const EarlierHost& earlier);
  /// Nodes of the next instance that begin before `until`.
  void look_ahead(Time until, Listener& listener, const Surroundings& around);
  /// Ends of the nodes that have been looked at ahead; of those that are over by `now`, that.
  std::vector<Time> ends_ahead(Time now) const;
  /// What has been looked at ahead is so much later; of one lane.
  void move_ahead(Time later);
  void prolong_ahead(int lane, Time by);
  /// Where numbers of its nodes begin, in ports and beside kernels.
  std::size_t base() const { return base_; }
  bool owns(std::size_t node) const { return node - base_ < ends_.size(); }

  /// Nodes of this template, and of the next one, that another transfer has delayed; the lanes that
  /// they hold, in `clocks`.
  void follow_moved(const Ports& ports, Beside& beside, Clocks& clocks);
  void follow_moved(const Ports& ports, Beside& beside) { follow_moved(ports, beside, clocks_); }

  const Clocks& clocks() const { return clocks_; }
  /// By node: of kernels and transfers, with what slowed them, not with waits for the host.
  const std::vector<Time>& taken() const { return taken_; }
  /// Of its collectives and copies through ports, as they began.
  const std::vector<LaneSpan>& spans() const { return spans_; }
  /// Nodes that were not looked at.
  std::int64_t jumped() const { return jumped_; }

 private:
  /// All that decides what comes next, at the end of a period.
  struct Mark {
    bool made = false;
    Clocks clocks{};
    std::vector<Time> ends{};  ///< of the last nodes (Repeat::reach)
    std::vector<Ports::Flight> flights{};
    std::vector<Communication> beside{};
    std::size_t spans = 0;
  };

  struct MetTimes;

  /// Collectives that wait for their lanes, in order.
  struct Waiting {
    std::vector<std::size_t> nodes{};
    std::size_t first = 0;

    bool empty() const { return first == nodes.size(); }
  };

  template <class Times>
  bool advance_with(Listener& listener, const Times& times);
  template <class Times>
  bool look_at(std::size_t number, Listener& listener, const Times& times);
  Time begin_of(const TimedNode& node) const;
  bool must_wait(const TimedNode& node, Time begin) const;
  void put_off(std::size_t number);
  template <class Times>
  void look_at_those_before(const TimedNode& node, Listener& listener, const Times& times);
  template <class Times>
  void look_at_first(Listener& listener, const Times& times);
  std::size_t first_waiting() const;
  void take_waiting(std::size_t number);
  std::size_t first_ahead();
  bool waits_ahead() const { return following_ != nullptr && following_->waits_ > 0; }
  /// Whether one may begin before `until`: not before the first did when they were last looked at,
  /// unless a lane has got free since.
  bool begins_ahead(Time until) const { return until > least_ahead_ || next_ >= freed_ahead_; }
  bool may_begin_ahead(std::size_t until) const;
  Time take_host(Time begin, Time cost);
  template <class Times>
  void end_period(const Times& times);
  void watch(std::size_t repeat);
  Time earliest_clock(const Repeat& repeat) const;
  std::optional<Time> lateness(const Repeat& repeat) const;
  void jump(const Repeat& repeat, std::size_t periods, Time later);

  const TimedTemplate* template_ = nullptr;
  std::size_t next_ = 0;
  bool said_ = false;  ///< that this stage has come to the meeting of node next_
  Clocks clocks_{};
  std::vector<Time> ends_;
  std::vector<Time> taken_;
  std::vector<LaneSpan> spans_;
  bool jumps_ = true;
  std::size_t repeat_ = 0;         ///< the next, or that it is in
  std::size_t watched_ = kNoNode;  ///< where the next period begins
  std::int64_t jumped_ = 0;
  bool host_delays_ = false;  ///< something, since the mark
  EarlierHost earlier_;
  std::array<Waiting, kMostLanes> waiting_;
  std::size_t waits_ = 0;  ///< in all of them
  Mark mark_;
  std::size_t base_ = 0;
  bool is_ahead_ = false;
  std::size_t looked_at_ = 0;     ///< nodes, ahead
  NodeRun* following_ = nullptr;  ///< the next instance, with nodes that begin ahead
  /// By lane, behind its last node; only where another instance follows.
  std::array<std::size_t, kMostLanes> past_{};
  Time least_ahead_ = kNever;    ///< when the first that may begin does
  std::size_t freed_ahead_ = 0;  ///< node at which the next lane that such wait for gets free
};

}  // namespace orrery::estimate
