// SPDX-License-Identifier: Apache-2.0
/// Says which sends and receives of traces belong together.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "workload/chakra/mistakes.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// Returns whether a node is its rank's part of a ring shift, whose send stands for both.
inline bool is_ring_shift(const Node& node) {
  return !node.on_cpu && node.ring_shift;
}
/// Returns whether a node sends or receives. Those on the CPU only take their duration.
inline bool is_message(const Node& node) {
  return !node.on_cpu && !node.ring_shift &&
         (node.type == NodeType::comm_send || node.type == NodeType::comm_recv);
}

/// Messages with one tag and size between two ranks are one channel: the first sent is received
/// first.
class MessageEnds {
 public:
  explicit MessageEnds(const TraceSet& traces);

  /// Returns the number of the channel, the same on every rank.
  std::uint32_t channel(const Node& message) const;
  /// Reports messages to the own rank, to ranks that do not exist, without counterpart.
  void check(Mistakes& mistakes) const;

 private:
  struct End {
    std::int64_t peer = 0;
    bool sends = false;
    std::uint32_t channel = 0;
    friend auto operator<=>(const End&, const End&) = default;
  };
  struct Uses {
    std::size_t count = 0;
    std::uint32_t first = 0;  ///< node
  };
  using Ends = std::map<End, Uses>;

  Ends ends_of(const Program& program) const;
  void check_end(std::int64_t rank, const End& end, const Uses& uses, Mistakes& mistakes) const;

  const TraceSet& traces_;
  std::map<std::pair<std::uint32_t, Bytes>, std::uint32_t> channels_;  ///< by tag and size
  std::vector<Ends> ends_;                                             ///< by program
  std::vector<std::vector<std::int64_t>> peers_;                       ///< by program
};

}  // namespace orrery::chakra
