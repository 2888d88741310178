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
/// no kernel waits for, copies on the port of a collective), and those that hear from other stages
/// in between, are `stepwise`: they run node by node.
///
/// Source: Baccelli, Cohen, Olsder, Quadrat, Synchronization and Linearity, 1992, chapter 2.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "estimate/node_run.h"
#include "estimate/timed_workload.h"

namespace orrery::estimate {

/// Sums of two are times yet: 53 days.
inline constexpr Time kMostTime = Time(Time::max().value() / 2);

struct PassMap {
  struct Output {
    int clock = -1;           ///< or, of a message, -1
    bool collective = false;  ///< the clock of a lane of collectives
    int flow = -1;
    Time work{0};  ///< of a message
    int transfer = -1;
    bool awaited = false;  ///< of a message: compute goes on when it has arrived
  };
  std::vector<int> clocks;     ///< inputs, all but unused lanes
  std::vector<int> receives;   ///< flows, in order: the inputs after the clocks
  std::ptrdiff_t leading = 0;  ///< receives before the first message or meeting
  std::vector<Output> outputs;
  std::vector<Time> entries;  ///< [output][input]
  Time kernels{0};            ///< alone
  Time host{0};               ///< that it takes to issue all of it
  Slowdown slowdown;          ///< of all kernels together
  bool stepwise = false;
  /// Collectives that follow no other nodes than such, if they slow kernels or share their ports:
  /// they begin beside the instance before (node_run.h). Of slowed maps.
  std::vector<std::uint32_t> ahead{};
  std::vector<LaneSpan> spans{};  ///< with all inputs at zero; none of stepwise templates

  std::size_t inputs() const { return clocks.size() + receives.size(); }
  /// max over the inputs of in + entry, all at most kMostTime.
  Time output(std::size_t number, const Time* in) const {
    const std::size_t count = inputs();
    const Time* column = entries.data() + number * count;
    std::int64_t out = kNever.value();
    for (std::size_t i = 0; i < count; ++i) {
      out = std::max(out, in[i].value() + column[i].value());
    }
    return out >= kMostTime.value() ? Time::max() : Time(out);
  }
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

/// From compute free to compute free: that entry of the slowed map, of stepwise templates of the
/// least one.
Time compute_chain(const TimedTemplate& nodes, const Transfers& transfers);

}  // namespace orrery::estimate
