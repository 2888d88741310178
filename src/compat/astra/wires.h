// SPDX-License-Identifier: Apache-2.0
/// Says where the NPUs stand in the network and how long a message takes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "compat/astra/config.h"

namespace orrery::astra {

/// Returns whole nanoseconds, rounded down; Time::max() when out of range.
Time whole_nanoseconds(double nanoseconds);
/// Returns floor(bytes / bandwidth), the same way.
Time whole_nanoseconds(Bytes bytes, Bandwidth bandwidth);

/// Network of dimensions, innermost first. The coordinate of an NPU in dimension d is
/// (npu / stride(d)) mod size(d).
class Wires {
 public:
  /// Makes wires of dimensions. `first_only`: a message pays for the first dimension in which its
  /// ends differ only (Quirk::first_dimension).
  explicit Wires(std::vector<Dimension> dimensions, bool first_only = false);

  int dimensions() const { return static_cast<int>(dimensions_.size()); }
  const Dimension& dimension(int d) const { return dimensions_[static_cast<std::size_t>(d)]; }
  std::int64_t size(int d) const { return dimension(d).size; }
  std::int64_t stride(int d) const { return strides_[static_cast<std::size_t>(d)]; }
  std::int64_t npus() const { return npus_; }
  bool first_only() const { return first_only_; }
  std::int64_t coordinate(std::int64_t npu, int d) const { return npu / stride(d) % size(d); }

  /// Returns the number of links between two coordinates: Ring min(k, p-k), FullyConnected 1,
  /// Switch 2; 0 to itself.
  std::int64_t hops(int d, std::int64_t from, std::int64_t to) const;

  /// Returns the time of a message without other traffic: floor(hops * latency + bytes /
  /// bandwidth), in ns.
  Time along(int d, std::int64_t hop_count, Bytes bytes) const;

  /// Returns the time of cut-through over all dimensions in which the two differ: their latencies
  /// add up, the slowest of their links sets the serialisation; or the first of them alone. Zero
  /// from an NPU to itself.
  Time between(std::int64_t from, std::int64_t to, Bytes bytes) const;

 private:
  std::vector<Dimension> dimensions_;
  std::vector<std::int64_t> strides_;
  std::int64_t npus_ = 1;
  bool first_only_;
};

}  // namespace orrery::astra
