// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace orrery::engine {

/// A std::vector of plain data for rows of millions: growing does not write to what is not used
/// yet, so that its pages are not taken from the system, and stays out of push_back().
template <class T>
class PlainVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> &&
                alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t index) const {
    assert(index < size_ && "an index below the size");
    return data()[index];
  }
  T& operator[](std::size_t index) {
    assert(index < size_ && "an index below the size");
    return data()[index];
  }
  std::span<T> span() { return {data(), size_}; }

  [[gnu::always_inline]] void push_back(const T& value) {
    if (size_ == capacity_) {
      grow(size_ + 1);
    }
    data()[size_++] = value;
  }
  void append(const PlainVector& other) {
    resize(size_ + other.size_);
    std::copy_n(other.data(), other.size_, data() + size_ - other.size_);
  }
  /// Changes the size; new elements have no value before they are written.
  void resize(std::size_t size) {
    if (size > capacity_) {
      grow(size);
    }
    size_ = size;
  }
  void clear() { size_ = 0; }

 private:
  T* data() { return reinterpret_cast<T*>(bytes_.get()); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.get()); }

  [[gnu::noinline]] void grow(std::size_t least) {
    const std::size_t capacity = std::max({std::size_t{4}, 2 * capacity_, least});
    auto bytes = std::make_unique_for_overwrite<std::byte[]>(capacity * sizeof(T));
    if (size_ > 0) {
      std::memcpy(bytes.get(), bytes_.get(), size_ * sizeof(T));
    }
    bytes_ = std::move(bytes);
    capacity_ = capacity;
  }

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace orrery::engine
