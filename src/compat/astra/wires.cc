// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/wires.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace orrery::astra {
namespace {

double nanoseconds(Time time) {
  constexpr double kPicoseconds = 1e3;
  return static_cast<double>(time.value()) / kPicoseconds;
}
double bytes_per_nanosecond(Bandwidth bandwidth) {
  return bandwidth.value() / 1e9;
}
double serialisation(Bytes bytes, Bandwidth bandwidth) {
  return static_cast<double>(bytes.value()) / bytes_per_nanosecond(bandwidth);
}

}  // namespace

Time whole_nanoseconds(double value) {
  constexpr double kRange = 9.2e15;
  return value < kRange ? Time(static_cast<std::int64_t>(value) * 1000) : Time::max();
}

Time whole_nanoseconds(Bytes bytes, Bandwidth bandwidth) {
  return whole_nanoseconds(serialisation(bytes, bandwidth));
}

Wires::Wires(std::vector<Dimension> dimensions, bool first_only)
    : dimensions_(std::move(dimensions)), first_only_(first_only) {
  strides_.reserve(dimensions_.size());
  for (const Dimension& dimension : dimensions_) {
    strides_.push_back(npus_);
    npus_ *= dimension.size;
  }
}

std::int64_t Wires::hops(int d, std::int64_t from, std::int64_t to) const {
  if (from == to) {
    return 0;
  }
  switch (dimension(d).building) {
    case Building::ring: {
      const std::int64_t distance = std::abs(from - to);
      return std::min(distance, size(d) - distance);
    }
    case Building::fully_connected:
      return 1;
    case Building::switched:
      return 2;
  }
  return 0;
}

Time Wires::along(int d, std::int64_t hop_count, Bytes bytes) const {
  return whole_nanoseconds(static_cast<double>(hop_count) * nanoseconds(dimension(d).latency) +
                           serialisation(bytes, dimension(d).bandwidth));
}

Time Wires::between(std::int64_t from, std::int64_t to, Bytes bytes) const {
  double latency = 0;
  Bandwidth slowest(std::numeric_limits<double>::infinity());
  for (int d = 0; d < dimensions(); ++d) {
    const std::int64_t hop_count = hops(d, coordinate(from, d), coordinate(to, d));
    if (hop_count > 0) {
      if (first_only_) {
        return along(d, hop_count, bytes);
      }
      latency += static_cast<double>(hop_count) * nanoseconds(dimension(d).latency);
      slowest = std::min(slowest, dimension(d).bandwidth);
    }
  }
  return whole_nanoseconds(latency + serialisation(bytes, slowest));
}

}  // namespace orrery::astra
