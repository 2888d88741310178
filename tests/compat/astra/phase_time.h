// SPDX-License-Identifier: Apache-2.0
/// Closed forms: how long a phase takes when all its NPUs start together and no message delays
/// another.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/units.h"
#include "compat/astra/phase.h"

namespace orrery::astra {

inline Time reductions(const Phase& phase) {
  if (phase.pattern == Pattern::chain) {
    return phase.reducing == 0 ? Time(0) : phase.reductions[0] * phase.reducing;
  }
  Time sum{0};
  for (std::uint32_t j = 0; j < phase.messages; ++j) {
    sum += phase.reduction(j);
  }
  return sum;
}

inline std::optional<Time> direct_time(const Phase& phase) {
  const auto farther = [](const Step& a, const Step& b) { return a.transfer < b.transfer; };
  const auto [nearest, farthest] =
      std::minmax_element(phase.steps.begin(), phase.steps.end(), farther);
  const bool twice = phase.type == PhaseType::all_reduce;
  if (phase.window < phase.steps.size() || (twice && nearest->transfer != farthest->transfer)) {
    return std::nullopt;
  }
  const Time reduction = phase.reducing == 0 ? Time(0) : phase.reductions[0];
  return phase.delay + (farthest->transfer + phase.delay) * (twice ? 2 : 1) + reduction;
}

/// Computes the times at which positions of a tree have their message up, then down.
class TreeTimes {
 public:
  TreeTimes(const Phase& phase, const Wires& wires)
      : phase_(phase), wires_(wires), sent_(phase.tree.parent.size(), Time(0)) {
    root_ = static_cast<std::uint32_t>(
        std::find(phase.tree.parent.begin(), phase.tree.parent.end(), -1) -
        phase.tree.parent.begin());
  }

  Time slowest() {
    const Time top = phase_.up ? up(root_) : phase_.delay;
    Time last = top;
    if (phase_.down) {
      down(root_, top, last);
    } else {
      last = std::max(top, *std::max_element(sent_.begin(), sent_.end()));
    }
    return last;
  }

 private:
  std::uint32_t child(std::uint32_t node, std::uint32_t i) const {
    return static_cast<std::uint32_t>(phase_.tree.children[phase_.tree.first_child[node] + i]);
  }
  std::uint32_t children(std::uint32_t node) const {
    return phase_.tree.first_child[node + 1] - phase_.tree.first_child[node];
  }
  Time edge(std::uint32_t a, std::uint32_t b) const {
    const int d = phase_.axis.queue;
    return wires_.along(d, wires_.hops(d, a, b), phase_.steps[0].bytes);
  }
  /// Returns when `node` has processed what comes from below.
  Time up(std::uint32_t node) {
    Time ready = children(node) == 0 ? phase_.delay : Time(0);
    for (std::uint32_t i = 0; i < children(node); ++i) {
      const std::uint32_t below = child(node, i);
      ready = std::max(ready, up(below) + edge(below, node) + phase_.delay + phase_.reductions[0]);
    }
    sent_[node] = ready;
    return ready;
  }
  void down(std::uint32_t node, Time ready, Time& last) const {
    last = std::max(last, ready);
    for (std::uint32_t i = 0; i < children(node); ++i) {
      const std::uint32_t below = child(node, i);
      const bool reduces = phase_.reduces_down && children(below) > 0;
      down(below,
           ready + edge(node, below) + phase_.delay + (reduces ? phase_.reductions[0] : Time(0)),
           last);
    }
  }

  const Phase& phase_;
  const Wires& wires_;
  std::vector<Time> sent_;
  std::uint32_t root_ = 0;
};

/// Returns the time of the phase on the slowest NPU. With T_k the time of message k, d the delay,
/// r_k reductions:
///
///   ring                          d + n (T + d) + sum r              n messages
///   halving-doubling, cyclic      d + sum over k (T_k + d) + sum r_k
///   direct, all at once           d + T + d + r, T of the farthest peer; all-reduce: twice T + d
///   tree, up                      a leaf sends after d, others d + r after the last of their
///                                 children
///   tree, down                    a node sends d (+ r) after its parent's message came, a leaf
///                                 ends
///
/// Nothing where messages overtake each other so that no simple form holds: direct with a smaller
/// window, or an all-reduce to peers at different distances; axes that are not uniform.
inline std::optional<Time> phase_time(const Phase& phase, const Wires& wires) {
  if (!phase.axis.uniform) {
    return std::nullopt;
  }
  switch (phase.pattern) {
    case Pattern::chain:
      return phase.delay + (phase.steps[0].transfer + phase.delay) * phase.messages +
             reductions(phase);
    case Pattern::direct:
      return direct_time(phase);
    case Pattern::halving:
    case Pattern::cyclic: {
      Time sum = phase.delay + reductions(phase);
      for (const Step& step : phase.steps) {
        sum += step.transfer + phase.delay;
      }
      return sum;
    }
    case Pattern::tree:
      return TreeTimes(phase, wires).slowest();
  }
  return std::nullopt;
}

}  // namespace orrery::astra
