// SPDX-License-Identifier: Apache-2.0
/// Says how long the chain is that begins at a node (chain.h says what a chain is). Private to
/// simulate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/grouped.h"
#include "simulate/bind.h"

namespace orrery::simulate {

/// MinTree answers where the next value below a bound is, in logarithmic time.
class MinTree {
 public:
  explicit MinTree(std::vector<std::int64_t> values);
  /// Returns the first place in [begin, end) whose value is below `bound`; `end` without one.
  std::size_t first_below(std::size_t begin, std::size_t end, std::int64_t bound) const;
  /// Returns the last place in [begin, end) whose value is below `bound`; `end` without one.
  std::size_t last_below(std::size_t begin, std::size_t end, std::int64_t bound) const;

 private:
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> least_;  ///< a binary heap: node n has the children 2n and 2n + 1
};

/// ChainLengths says of every node of one template how many nodes its longest chain has.
///
///   a chain from f can end at i  <=>  i is on the compute stream, joins, and nothing in [f, i) has
///                                     a dependent after i  <=>  ends_from(i) < f
///   a chain from f goes on to    the first node that cannot be in a chain, waits for a node before
///                                f, or needs a lane too many
///
/// So a template of n nodes takes O(n log n), however little of it are chains.
class ChainLengths {
 public:
  /// `before`: by node, those it waits for; `alone`: by node, nothing if it cannot be in a chain,
  /// and zero for a collective or wait that takes no time.
  ChainLengths(const BoundTemplate& shape, const Grouped& before,
               const std::vector<std::optional<Time>>& alone);

  /// Returns the nodes of the longest chain that begins at `first`, 1 if that is only itself, 0 if
  /// none can. Requires calls with ascending `first`.
  std::uint32_t from(std::uint32_t first);

 private:
  std::uint32_t lanes_end(std::uint32_t first);

  const BoundTemplate& shape_;
  const std::vector<std::optional<Time>>& alone_;
  std::vector<std::uint32_t> lasting_;  ///< by node, how many before it take time
  std::vector<std::uint32_t> barrier_;  ///< by node, the next that cannot be in a chain
  MinTree earliest_before_;
  MinTree ends_from_;
  std::vector<std::uint32_t> in_window_;  ///< by stream, nodes of [window_begin_, window_end_)
  std::size_t streams_in_window_ = 0;     ///< beside the compute stream
  std::uint32_t window_begin_ = 0;
  std::uint32_t window_end_ = 0;
};

}  // namespace orrery::simulate
