// SPDX-License-Identifier: Apache-2.0
/// What the bytes of a device are for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/names.h"
#include "base/units.h"

namespace orrery {

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  buffers,
  logits
};
inline constexpr int kMemoryCategoryCount = 6;
template <>
inline constexpr auto kNames<MemoryCategory> = std::to_array<Named<MemoryCategory>>({
    {MemoryCategory::parameters, "parameters", "in the compute type, and their quantised copies"},
    {MemoryCategory::gradients, "gradients", "accumulation buffer"},
    {MemoryCategory::optimizer, "optimizer", "master parameters and Adam's two moments"},
    {MemoryCategory::activations, "activations", "kept for backward, all microbatches in flight"},
    {MemoryCategory::buffers, "buffers", "messages, buckets, gathered parameters, work of a block"},
    {MemoryCategory::logits, "logits", "logits and probabilities, kept for backward"},
});

/// Bytes by category; sums saturate as Bytes do.
struct CategoryBytes {
  std::array<Bytes, kMemoryCategoryCount> bytes{};

  Bytes operator[](MemoryCategory c) const { return bytes[static_cast<std::size_t>(c)]; }
  Bytes& operator[](MemoryCategory c) { return bytes[static_cast<std::size_t>(c)]; }
  Bytes total() const {
    Bytes sum{0};
    for (const Bytes part : bytes) {
      sum += part;
    }
    return sum;
  }
  CategoryBytes& operator+=(const CategoryBytes& other) {
    for (std::size_t c = 0; c < bytes.size(); ++c) {
      bytes[c] += other.bytes[c];
    }
    return *this;
  }
  CategoryBytes& operator-=(const CategoryBytes& other) {
    for (std::size_t c = 0; c < bytes.size(); ++c) {
      bytes[c] -= other.bytes[c];
    }
    return *this;
  }
  friend CategoryBytes operator+(CategoryBytes a, const CategoryBytes& b) { return a += b; }
  friend bool operator==(const CategoryBytes&, const CategoryBytes&) = default;
};

}  // namespace orrery
