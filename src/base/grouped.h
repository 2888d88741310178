// SPDX-License-Identifier: Apache-2.0
/// Lists of numbers in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace orrery {

/// Grouped holds one list of numbers for each of so many keys. A million lists of a few numbers
/// take two allocations.
class Grouped {
 public:
  /// `each(add)` calls add(key, value) for all pairs, the same whenever it is called. The values of
  /// a key keep their order.
  template <class Each>
  Grouped(std::size_t keys, const Each& each) : begin_(keys + 1) {
    each([&](std::size_t key, std::uint32_t) { ++begin_[key + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    values_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    each([&](std::size_t key, std::uint32_t value) { values_[next[key]++] = value; });
  }

  std::size_t size() const { return begin_.size() - 1; }
  std::span<const std::uint32_t> operator[](std::size_t key) const {
    return std::span(values_).subspan(begin_[key], begin_[key + 1] - begin_[key]);
  }
  std::uint32_t begin_of(std::size_t key) const { return begin_[key]; }
  /// Returns all values, by key.
  std::vector<std::uint32_t> take_values() && { return std::move(values_); }

 private:
  std::vector<std::uint32_t> begin_;  ///< by key, into values_; one more at the end
  std::vector<std::uint32_t> values_;
};

}  // namespace orrery
