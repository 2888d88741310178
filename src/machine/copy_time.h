// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "machine/machine.h"

namespace orrery::machine {

/// A device's copy to or from memory below its own (machine/memory).
struct MemoryCopy {
  Bytes bytes{0};
  int tier = 1;              ///< as Node::tier
  std::int64_t devices = 1;  ///< of the run, which share the remote memory
  /// Ranks of one communicator that ask for the same bytes; empty: each for its own.
  std::vector<std::int64_t> sharers{};
};
/// Requires: a machine with that memory.
Time copy_time(const MemoryCopy& copy, const Machine& machine);

}  // namespace orrery::machine
