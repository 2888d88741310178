// SPDX-License-Identifier: Apache-2.0
/// Endpoints say what a message costs between an NPU and its network endpoint.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "compat/astra/config.h"
#include "compat/astra/phase.h"
#include "compat/astra/wires.h"

namespace orrery::astra {

/// The phase's endpoint delay, or with a shared LogGP bus (without Quirk::memory_bus)
///
///   start = max(now, bus free), end = start + o + floor((bytes - 1) G) + L + o,
///   bus free = start + max(g, o + floor((bytes - 1) G))
///
/// one bus per rank and direction. Source: Alexandrov et al., "LogGP", SPAA 1995.
class Endpoints {
 public:
  enum class Direction : std::uint8_t { out, in };

  Endpoints(std::size_t ranks, const std::optional<Bus>& bus) {
    if (bus && bus->shared) {
      bus_ = bus;
      free_at_.assign(2 * ranks, Time(0));
    }
  }
  bool has_bus() const { return bus_.has_value(); }

  /// Returns when a message of a phase that is handed over now has passed.
  Time pass(Time now, std::uint32_t rank, Direction direction, Bytes bytes, const Phase& phase) {
    return bus_ && !phase.group_ring ? pass_bus(now, rank, direction, bytes) : now + phase.delay;
  }

 private:
  Time pass_bus(Time now, std::uint32_t rank, Direction direction, Bytes bytes) {
    Time& free_at = free_at_[2 * std::size_t{rank} + (direction == Direction::in ? 1 : 0)];
    const double copy =
        static_cast<double>(std::max<std::int64_t>(bytes.value() - 1, 0)) * bus_->gap_per_byte_ns;
    const Time busy = bus_->overhead + whole_nanoseconds(copy);
    const Time start = std::max(now, free_at);
    free_at = start + std::max(bus_->gap, busy);
    return start + busy + bus_->latency + bus_->overhead;
  }

  std::optional<Bus> bus_;
  std::vector<Time> free_at_;
};

}  // namespace orrery::astra
