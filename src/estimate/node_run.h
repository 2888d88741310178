// SPDX-License-Identifier: Apache-2.0
/// One run of a template, node by node, by the rules of pass_map.h.
///
///   Equal layers: where the template's nodes repeat (repeats.h) and at the end of a period all
///   that decides the next one (clocks, ends that later nodes wait for, transfers and communication
///   under way) is what it was a period before, T later, the periods left follow as this one did,
///   each T later: they are jumped, to the picosecond what the run of their nodes gives. The host's
///   clock may fall back where it has delayed nothing: it then delays nothing in what follows
///   either.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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
  void start(const TimedTemplate& nodes, const Clocks& clocks, bool jumps = true);
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

  /// Nodes of this template that another transfer has delayed; the lanes that they hold, in
  /// `clocks`.
  void follow_moved(const Ports& ports, Beside& beside, Clocks& clocks);

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

  template <class Times>
  bool advance_with(Listener& listener, const Times& times);
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
  Mark mark_;
};

}  // namespace orrery::estimate
