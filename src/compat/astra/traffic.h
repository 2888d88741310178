// SPDX-License-Identifier: Apache-2.0
/// Traffic counts what NPUs send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "compat/astra/wires.h"

namespace orrery::astra {

/// Counts the bytes that each simulated NPU sends into each dimension of the network, ready
/// messages too. A message counts in every dimension that it pays for (Wires::between), not where
/// it is passed on. It does not serve ranks folded by colour.
class Traffic {
 public:
  Traffic(const Wires& wires, std::size_t ranks)
      : wires_(wires),
        sent_(ranks, std::vector<Bytes>(static_cast<std::size_t>(wires.dimensions()), Bytes(0))) {}

  void add(std::int64_t from, std::int64_t to, Bytes bytes) {
    std::vector<Bytes>& sent = sent_[static_cast<std::size_t>(from)];
    for (int d = 0; d < wires_.dimensions(); ++d) {
      if (wires_.coordinate(from, d) != wires_.coordinate(to, d)) {
        sent[static_cast<std::size_t>(d)] += bytes;
        if (wires_.first_only()) {
          return;
        }
      }
    }
  }
  /// Returns the bytes sent, by simulated rank and dimension.
  std::vector<std::vector<Bytes>>& sent() { return sent_; }

 private:
  const Wires& wires_;
  std::vector<std::vector<Bytes>> sent_;
};

}  // namespace orrery::astra
