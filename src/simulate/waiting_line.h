// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace orrery::simulate {

/// First in, first out. Memory follows the longest line, not how many have passed through it, which
/// grows with the microbatches; empty lines own none (std::deque's do).
template <class T>
class WaitingLine {
 public:
  bool empty() const { return next_ == items_.size(); }
  std::size_t size() const { return items_.size() - next_; }
  void push(T item) { items_.push_back(std::move(item)); }
  /// Requires !empty().
  T pop() {
    T item = std::move(items_[next_++]);
    if (2 * next_ >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
    return item;
  }

 private:
  std::vector<T> items_;
  std::size_t next_ = 0;
};

}  // namespace orrery::simulate
