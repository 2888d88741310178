// SPDX-License-Identifier: Apache-2.0
/// Kernels that gather the pieces of a step into a buffer, and spread what arrived.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "collective/layout/steps.h"
#include "machine/compute/device.h"

namespace orrery::layout {

/// Packing is the kernels before and after the messages, of the rank where they take longest.
struct Packing {
  Time time{0};             ///< of both kernels; 0: every piece is one run of memory
  std::int64_t blocks = 0;  ///< runs of memory that they read or write
  Bytes block{0};           ///< the shortest of them
};

/// Returns what a rank packs before the step and unpacks after it. Pieces of what it holds, rows
/// one after the other and the last dimension innermost, are read as datatypes
/// (datatype/datatype.h). A piece that is one block is sent from where it lies; all others of a
/// rank, its own too, are copied by one kernel that streams
///
///   bytes of the pieces + blocks * (bytes of a block in whole sectors of 32 bytes)
///
/// An all_reduce and a step that moves nothing pack nothing.
/// Ignores: that packing may overlap the messages; kernels that pack while they compute.
/// Source: sectors: NVIDIA, CUDA C++ Best Practices Guide, section 9.2.1.
Packing packing_of(const Step& step, const Shape& shape, const Mesh& mesh,
                   const compute::Device& device);

/// Passes says how often the kernel before a step and that after it read or write each byte: 2
/// where pieces are no runs, else 0.
struct Passes {
  double before = 0;
  double after = 0;

  friend bool operator==(const Passes&, const Passes&) = default;
};

/// Returns the passes of a step between shards of dimensions on one axis, whose pieces have several
/// rows of whole sectors, by the same datatypes. Dimension 0 is the outermost.
Passes packing_passes(Operation operation, const Placement& from, const Placement& to);

}  // namespace orrery::layout
