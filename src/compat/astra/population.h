// SPDX-License-Identifier: Apache-2.0
/// Which ranks a run simulates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat/astra/communicators.h"

namespace orrery::astra {

/// Every rank, or rank 0 for all of them when all do the same at the same times. Then every
/// communicator has one member, and what it sends comes back to it in place of what its equals
/// send.
class Population {
 public:
  static Population all(std::int64_t ranks) { return Population(ranks, false); }
  static Population one() { return Population(1, true); }

  std::size_t count() const { return static_cast<std::size_t>(count_); }
  bool folded() const { return folded_; }
  /// Real rank of a simulated one.
  std::int64_t rank(std::uint32_t simulated) const { return simulated; }
  /// Simulated members of a communicator of `members` ranks.
  std::uint32_t members(std::int64_t members) const {
    return folded_ ? 1 : static_cast<std::uint32_t>(members);
  }
  std::int64_t npu(const Communicators& communicators, std::uint32_t communicator,
                   std::uint32_t local) const {
    return communicators.rank_of(communicator, local);
  }

 private:
  Population(std::int64_t count, bool folded) : count_(count), folded_(folded) {}
  std::int64_t count_;
  bool folded_;
};

}  // namespace orrery::astra
