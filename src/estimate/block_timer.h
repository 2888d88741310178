// SPDX-License-Identifier: Apache-2.0
/// The times of the blocks of one plan: every kernel and collective of a list of steps, and how
/// long the list takes from compute free to compute free.
///
///   lane        an in-order stream; 0 is compute
///   begin       max(lane free, ends of the steps that it waits for)
///   kernels     end = begin + work, stretched by Slowdown while a collective is in flight
///   collective  end = begin + time
///
/// Ignores:  what kernels lose to messages of engines; that collectives of different lanes share
///           ports; the host, whose time is a sum apart.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "collective/cost.h"
#include "estimate/placement.h"
#include "estimate/prices.h"
#include "workload/parallel/step_list.h"
#include "workload/plan/axes.h"

namespace orrery::estimate {

/// Returns an index of a container from a number or an enumerator.
constexpr std::size_t index_of(auto value) {
  return static_cast<std::size_t>(value);
}

/// Lanes of the collectives inside blocks: tp, cp and its parts, ep, etp.
inline constexpr std::size_t kExpertLane = *plan::stream_of(plan::Axis::ep);
inline constexpr std::size_t kBlockLanes = *plan::stream_of(plan::Axis::cp_ring) + 1;

/// The factors by which kernels are slower beside a collective; a factor is rounded down to one of
/// these.
inline constexpr std::array<double, 6> kSlowdowns{1, 1.04, 1.08, 1.12, 1.16, 1.24};

struct PassCost {
  Time chain{0};    ///< from compute free to compute free
  Time kernels{0};  ///< alone
  Time host{0};     ///< that the host takes to issue it
  std::array<Time, kBlockLanes> lanes{};
  Time exchanges{0};  ///< of tokens, where kernels beside them are slower
  std::array<Time, kSlowdowns.size()> by_slowdown{};  ///< of kernels
  PortTimes ports{};                                  ///< of its collectives

  PassCost& operator+=(const PassCost& other);
  PassCost& operator-=(const PassCost& other);
};
PassCost operator*(PassCost cost, std::int64_t times);

/// Sharing says whose transfers are on the same links of a line or a node.
enum class Sharing : std::uint8_t {
  alone,     ///< nobody's: what no run is faster than, since groups need not move together
  together,  ///< those of all groups of its stage (time_together)
};

/// Returns the time of a collective beside those of the other groups of its stage, and for half of
/// the time those of other stages.
Time time_together(const CollectiveTime& time, Communicator& where, Placement& placement);

class BlockTimer {
 public:
  /// All outlive it.
  BlockTimer(Placement& placement, const collective::AlgorithmChoice& algorithms, Prices& prices,
             Time host_dispatch, Sharing sharing)
      : placement_(placement),
        algorithms_(algorithms),
        prices_(prices),
        host_dispatch_(host_dispatch),
        sharing_(sharing) {}

  /// Requires a list of kernels and collectives (list_blocks) whose steps outlive this.
  PassCost cost_of(const parallel::StepList& list);

 private:
  struct TimedStep {
    std::uint8_t lane = 0;
    bool kernels = false;
    bool slows = false;  ///< kernels that run beside it
    Time time{0};        ///< alone
    Time host{0};
    double beside = 1;  ///< slowdown of these kernels beside a collective
    PortTimes ports{};
  };
  struct Span {
    Time begin{0};
    Time end{0};
  };

  const TimedStep& timed(const parallel::Step& step);
  void time_kernels(const graph::Node& node, TimedStep& timed);
  void time_collective(const graph::Node& node, TimedStep& timed);
  static Time stretched(Time begin, const TimedStep& kernels, const std::vector<Span>& collectives);

  Placement& placement_;
  const collective::AlgorithmChoice& algorithms_;
  Prices& prices_;
  Time host_dispatch_;
  Sharing sharing_;
  std::unordered_map<const parallel::Step*, TimedStep> known_;  // never iterated over
};

}  // namespace orrery::estimate
