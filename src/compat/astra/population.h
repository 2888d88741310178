// SPDX-License-Identifier: Apache-2.0
/// Says which ranks a run simulates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compat/astra/communicators.h"
#include "compat/astra/quotient.h"

namespace orrery::astra {

/// Every rank; or rank 0 for all of them when all do the same at the same times: then every
/// communicator has one member, and what it sends comes back to it in place of what its equals
/// send; or one rank per colour (Quotient).
class Population {
 public:
  static Population all(const Communicators& communicators, std::int64_t ranks) {
    return {communicators, static_cast<std::size_t>(ranks), false, nullptr};
  }
  static Population one(const Communicators& communicators) {
    return {communicators, 1, true, nullptr};
  }
  static Population colours(const Communicators& communicators, Quotient& quotient) {
    return {communicators, quotient.count(), false, &quotient};
  }

  std::size_t count() const { return count_; }
  /// Returns whether one rank stands for all.
  bool single() const { return single_; }
  /// Returns the quotient of one rank per colour, or null.
  Quotient* quotient() const { return quotient_; }

  /// Returns the real rank of a simulated one.
  std::int64_t rank(std::uint32_t simulated) const {
    return quotient_ != nullptr ? quotient_->rank(simulated) : simulated;
  }
  /// Returns how many of `ranks` each simulated rank stands for.
  std::vector<std::int64_t> stands_for(std::int64_t ranks) const {
    if (single_) {
      return {ranks};
    }
    std::vector<std::int64_t> counts(count_, quotient_ == nullptr ? 1 : 0);
    if (quotient_ != nullptr) {
      for (std::uint32_t colour : quotient_->colour_of()) {
        ++counts[colour];
      }
    }
    return counts;
  }
  std::size_t communicators() const {
    return quotient_ != nullptr ? quotient_->classes() : communicators_.count();
  }
  const Shape& shape_of(std::uint32_t communicator) const {
    return quotient_ != nullptr ? quotient_->shape(communicator)
                                : communicators_.shape_of(communicator);
  }
  /// Returns the number of simulated members of a communicator.
  std::uint32_t members(std::uint32_t communicator) const {
    if (quotient_ != nullptr) {
      return quotient_->members(communicator);
    }
    return single_ ? 1 : static_cast<std::uint32_t>(communicators_.shape_of(communicator).members);
  }

 private:
  Population(const Communicators& communicators, std::size_t count, bool single, Quotient* quotient)
      : communicators_(communicators), count_(count), single_(single), quotient_(quotient) {}

  const Communicators& communicators_;
  std::size_t count_;
  bool single_;
  Quotient* quotient_;
};

}  // namespace orrery::astra
