// SPDX-License-Identifier: Apache-2.0
/// Time of a program of stages run by two half-batches, the second half a stage behind the first.
///
///   step A of stage i:  communicate_i on half 1  ||  compute_{i-1} on half 2 ; barrier
///   step B of stage i:  compute_i on half 1      ||  communicate_i on half 2 ; barrier
///
/// With fc a stage's forward compute of one half, 2 fc its backward compute, f1 and f2 forward
/// communication of half 1 and 2, b1 and b2 backward, and the clock (acc, debt), from (0, 0):
///
///   forward   acc' = acc + max(debt, f1) + max(fc, f2) + 2 debt + b1 + 2 fc + b2
///   none      acc' = acc + debt + f1 + fc + f2         + 2 debt + b1 + 2 fc + b2
///   both      acc' = acc + max(debt, f1) + max(fc, f2) + max(2 debt, b1) + max(2 fc, b2)
///   debt' = fc ;   total = acc + flush * debt
///
/// and acc' more by the stage's penalties. The published search has f1 = f2, b1 = b2 and flush = 1:
/// the last stage's backward of half 2 is missing. flush = 3 has it. Source: HiDup (Zhang et al.,
/// SoCC'22), its published search.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/names.h"
#include "base/units.h"

namespace orrery::spmd {

enum class Overlap : std::uint8_t { forward, none, both };
constexpr auto named_values(Overlap) {
  return std::to_array<Named<Overlap>>({
      {Overlap::forward, "forward", "communication hides behind compute in the forward pass only"},
      {Overlap::none, "none", "nothing hides"},
      {Overlap::both, "both", "communication hides in the forward and in the backward pass"},
  });
}

/// Sums over a stage; of one half-batch each.
struct StageWork {
  Time compute{0};    ///< forward
  Time forward_1{0};  ///< communication of half 1, with what runs once for both
  Time forward_2{0};
  Time backward_1{0};
  Time backward_2{0};
  Time penalty{0};  ///< what nothing hides: Prices::penalty

  StageWork& operator+=(const StageWork& other) {
    compute += other.compute;
    forward_1 += other.forward_1;
    forward_2 += other.forward_2;
    backward_1 += other.backward_1;
    backward_2 += other.backward_2;
    penalty += other.penalty;
    return *this;
  }
};

struct Clock {
  Time elapsed{0};  ///< acc
  Time debt{0};     ///< compute that half 2 still has to do
};

struct StageRule {
  Overlap overlap = Overlap::forward;
  int flush = 1;
};

constexpr Clock advance(const StageRule& rule, const Clock& clock, const StageWork& stage) {
  const auto beside = [](bool hides, Time compute, Time communication) {
    return hides ? std::max(compute, communication) : compute + communication;
  };
  const bool forward = rule.overlap != Overlap::none;
  const bool backward = rule.overlap == Overlap::both;
  return {clock.elapsed + stage.penalty + beside(forward, clock.debt, stage.forward_1) +
              beside(forward, stage.compute, stage.forward_2) +
              beside(backward, 2 * clock.debt, stage.backward_1) +
              beside(backward, 2 * stage.compute, stage.backward_2),
          stage.compute};
}

constexpr Time total(const StageRule& rule, const Clock& clock) {
  return clock.elapsed + rule.flush * clock.debt;
}

/// Returns whether a stage of work `a` can stand for one of `b` whatever is before and after it. A
/// maximum grows by at most what its argument grows by and shrinks by at least 0, a sum by exactly
/// that. Requires equal compute.
constexpr bool no_slower(const StageRule& rule, const StageWork& a, const StageWork& b) {
  const auto change = [](bool hides, Time to, Time from) {
    return hides ? std::max(to - from, Time(0)) : to - from;
  };
  const bool forward = rule.overlap != Overlap::none;
  const bool backward = rule.overlap == Overlap::both;
  return change(forward, a.forward_1, b.forward_1) + change(forward, a.forward_2, b.forward_2) +
             change(backward, a.backward_1, b.backward_1) +
             change(backward, a.backward_2, b.backward_2) + (a.penalty - b.penalty) <=
         Time(0);
}

/// Returns whether clock `a` can stand for `b` whatever follows, at least one stage: the rest of a
/// program grows with the debt by 0 to 3 times it (none: exactly 3; forward: 2 to 3).
constexpr bool no_later(const StageRule& rule, const Clock& a, const Clock& b) {
  const Time more = a.debt - b.debt;
  const int least = rule.overlap == Overlap::none ? 3 : rule.overlap == Overlap::forward ? 2 : 0;
  return a.elapsed - b.elapsed + (more > Time(0) ? 3 : least) * more <= Time(0);
}

}  // namespace orrery::spmd
