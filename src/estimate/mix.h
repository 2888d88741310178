// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace orrery::estimate {

/// A hash of numbers in order.
class Mix {
 public:
  template <class Number>
  void add(Number number) {
    hash_ = (hash_ ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15U;
    hash_ ^= hash_ >> 29;
  }
  std::size_t hash() const { return hash_; }

 private:
  std::size_t hash_ = 0;
};

}  // namespace orrery::estimate
