// SPDX-License-Identifier: Apache-2.0
/// An objective is what a search minimises, always as a time, so that one search does for all.
///
///   time               T, the step time
///   cost               T too: of so many devices a step costs devices * T * price per hour; of
///                      those of the parts that a plan fills, where devices differ
///   tokens_per_joule   E / (N P): energy of a step (study/energy.h) over what N devices draw at
///                      full power. With r = P0 / P and K what a device's kernels draw above idle
///                      power, on the mean and at the least,
///
///                        E / (N P) >= min(r T + K / P, T cap / P)
///
///                      since communication, links and lower memory only add to it: a bound where T
///                      and K are bounds. Without a power model K is (P - P0) times the mean time
///                      of a device's kernels
///   headroom           T; of the plans that take at most 5 % more than the fastest the one with
///                      most memory free is chosen afterwards (advice/memory_frontier.h)
///
/// Requires: of cost the machine's price, of energy its power.
#pragma once

#include <cstdint>

#include "base/names.h"
#include "base/result.h"
#include "estimate/quick_bound.h"
#include "machine/machine.h"
#include "study/run.h"

namespace orrery::full {

enum class Objective : std::uint8_t { time, tokens_per_joule, cost, headroom };
constexpr auto named_values(Objective) {
  return std::to_array<Named<Objective>>({
      {Objective::time, "time", "the shortest step"},
      {Objective::tokens_per_joule, "tokens_per_joule", "the least energy per token"},
      {Objective::cost, "cost", "the least money per token"},
      {Objective::headroom, "headroom",
       "the most free memory of plans that are at most 5 % slower"},
  });
}

/// Checks that the machine states what the objective needs. Mistakes: what it does not state.
Result<void> check_objective(Objective objective, const machine::Machine& machine);

class Score {
 public:
  Score(Objective objective, const machine::Machine& machine, estimate::QuickBound& bounds);

  /// Returns a score that no plan like it is below. As QuickBound::least_time.
  Result<Time> least(const plan::Plan& plan) const;
  /// Returns the plan's score with so long a step. Requires a plan of which there is a bound.
  Time of(const plan::Plan& plan, Time step) const;
  Time of(const study::Run& run) const;

 private:
  double idle_ = 1;  ///< r; 1: the step time alone counts
  double cap_ = 1;   ///< cap / P
  Power power_{0};   ///< P, of a device with a power model; 0: without
  estimate::QuickBound& bounds_;
};

}  // namespace orrery::full
