// SPDX-License-Identifier: Apache-2.0
/// Communication beside kernels: when, and how much slower they run.
///
///   Beside a collective kernels take `beside_collective` times as long, beside messages alone
///   `beside_message` times; how many there are does not matter. A kernel of work w that begins at
///   b ends when the sum of its parts, each divided by the slowdown of its moment, is w.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace orrery::estimate {

struct Slowdown {
  double message = 1;
  double collective = 1;

  bool any() const { return message > 1 || collective > 1; }
};

inline constexpr std::size_t kNoNode = static_cast<std::size_t>(-1);
/// Of two runs of one stage nodes are numbered from 0 and from here on.
inline constexpr std::size_t kSecondRun = std::size_t{1} << 32;

struct Communication {
  Time begin{0};
  Time end{0};
  bool collective = false;
  std::size_t node = kNoNode;  ///< of the running template; kNoNode: of another instance
};

/// What is known of a stage's communication, for questions that move forward in time.
class Beside {
 public:
  /// In any order, each node once.
  void put(const Communication& communication) {
    if (communication.end <= communication.begin) {
      return;
    }
    if (communications_.empty() || communications_.back().begin <= communication.begin) {
      communications_.push_back(communication);
    } else {
      insert(communication);
    }
  }
  /// Nodes' ends, by number less `base`, turn out to be later.
  void prolong(const std::vector<Time>& ends, std::size_t base = 0);
  /// Forgets what has ended by then; what is left behind the first is forgotten later.
  void forget(Time before) {
    if (!communications_.empty() && communications_.front().end <= before) {
      forget_all(before);
    }
  }
  /// Forgets all that are nodes of a run.
  void forget_nodes();
  /// The last collective ends that much later.
  void prolong_last(Time by);
  /// The same now, of all: forget() leaves what is behind the first for later.
  void forget_all(Time before);
  /// All of it that much later, and of nodes so much later.
  void move(Time later, std::size_t nodes = 0);
  const std::vector<Communication>& all() const { return communications_; }

  /// Time that kernels of `work` take from `begin` on.
  Time stretched(Time begin, Time work, const Slowdown& slowdown) const {
    return communications_.empty() || !slowdown.any() ? work
                                                      : stretched_beside(begin, work, slowdown);
  }
  /// Extra time of kernels that fill `share` of [begin, end].
  Time delay(Time begin, Time end, double share, const Slowdown& slowdown) const;

 private:
  void insert(const Communication& communication);
  Time stretched_beside(Time begin, Time work, const Slowdown& slowdown) const;

  std::vector<Communication> communications_;  ///< by begin
};

}  // namespace orrery::estimate
