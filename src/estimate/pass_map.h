// SPDX-License-Identifier: Apache-2.0
/// A template on one stage as a map of moments: clocks in, clocks out.
///
///   clocks      when compute, the host and every other lane of the stage are free, and since when
///               the template is visible (the loop issues one instance ahead)
///   begin       max(lane free, visible, ends of what it waits for)
///   kernels     end = max(begin + work, host + host_span);   host += host_cost
///   collective  host += host_cost;   end = max(begin, host) + work
///   message     leaves at begin, its lane is busy until it has arrived
///   receive     end = max(begin, arrival)
///   host_sync   host = max(host, end)
///
/// All of these are sums and maxima, so the whole template is a matrix over (max, +): entry (i, j)
/// is how long after input j output i comes at the least. It is found by running the template once
/// per input, with that input at 0 and the others at minus infinity.
///
/// Kernels are slowed by the template's own communication as with all inputs at one moment.
/// Templates where that depends on the inputs (gathers that follow no kernel, long reductions that
/// no kernel waits for), and those that hear from other stages in between, are `stepwise`: they run
/// node by node.
///
/// Source: Baccelli, Cohen, Olsder, Quadrat, Synchronization and Linearity, 1992, chapter 2.
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
  void start(const TimedTemplate& nodes, const Clocks& clocks);
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

 private:
  Time earliest_begin() const;
  template <class Times>
  bool advance_with(Listener& listener, Times&& times);

  const TimedTemplate* template_ = nullptr;
  std::size_t next_ = 0;
  bool said_ = false;  ///< that this stage has come to the meeting of node next_
  Clocks clocks_{};
  std::vector<Time> ends_;
  std::vector<Time> taken_;
  std::vector<LaneSpan> spans_;
  std::size_t forget_at_ = 0;                            ///< flights
  std::array<std::size_t, kMostLanes> last_transfer_{};  ///< nodes
};

struct PassMap {
  struct Output {
    int clock = -1;           ///< or, of a message, -1
    bool collective = false;  ///< the clock of a lane of collectives
    int flow = -1;
    Time work{0};  ///< of a message
    int transfer = -1;
  };
  std::vector<int> clocks;     ///< inputs, all but unused lanes
  std::vector<int> receives;   ///< flows, in order: the inputs after the clocks
  std::ptrdiff_t leading = 0;  ///< receives before the first message or meeting
  std::vector<Output> outputs;
  std::vector<Time> entries;  ///< [output][input]
  Time kernels{0};            ///< alone
  Slowdown slowdown;          ///< of all kernels together
  bool stepwise = false;
  std::vector<LaneSpan> spans{};  ///< with all inputs at zero; none of stepwise templates

  std::size_t inputs() const { return clocks.size() + receives.size(); }
  Time entry(std::size_t output, std::size_t input) const {
    return entries[output * inputs() + input];
  }
};

enum class Works : std::uint8_t {
  slowed,  ///< by the template's own communication and by who shares its links
  least,   ///< alone and on idle links: what no run can be faster than
};
/// A template that plans share, and its maps once someone has asked for them.
struct MappedTemplate {
  TimedTemplate nodes;
  std::optional<PassMap> slowed{};
  std::optional<PassMap> least{};
};
/// Makes the maps that are missing.
void map_templates(TimedWorkload& timed, Works works);

/// Entries of stepwise templates are only made of the least works, and count no meeting's wait.
PassMap map_of(const TimedTemplate& nodes, const Transfers& transfers, Works works);

}  // namespace orrery::estimate
