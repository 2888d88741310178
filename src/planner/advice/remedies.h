// SPDX-License-Identifier: Apache-2.0
/// Finds the smallest change with which a plan fits, where none does, or divides, where nothing
/// does.
///
///   memory    of each device: the least with which some plan fits, to 1 %
///   devices   more, nearest first: up to 16 more, in eighths up to twice as many, then so of each
///             doubling up to 64 times; where nothing divides, also fewer
///   batch     where plans do not fit 3/4, 3/2, 1/2, 2, 1/4, 4, 1/8 and 8 times; where nothing
///             divides the nearest of 64 each way and of multiples of the devices
///
/// Each is the first tried that works, all else as it is. Ignores changes of two at once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/names.h"
#include "planner/advice/probe.h"

namespace orrery::advice {

enum class Remedied : std::uint8_t { memory, devices, batch };
constexpr auto named_values(Remedied) {
  return std::to_array<Named<Remedied>>({
      {Remedied::memory, "memory", "bytes of each device that a plan may use"},
      {Remedied::devices, "devices", "accelerators"},
      {Remedied::batch, "batch", "sequences per step"},
  });
}

struct Remedy {
  Remedied changed = Remedied::memory;
  std::int64_t from = 0;
  std::int64_t to = 0;
  full::Found best;  ///< a good plan with it

  /// Returns the greater over the smaller amount.
  double change() const;
};

/// Returns the remedies, the smallest change first; none for a task that itself has mistakes.
/// Requires a task that a search refused or for which nothing fits; then `answer` is what it said,
/// and takes the plan of the remedy in memory as its most frugal one: it was bisected for.
std::vector<Remedy> remedies(const full::Task& task, const full::Options& options,
                             Result<full::Answer>& answer, const Progress& progress = {});

}  // namespace orrery::advice
