// SPDX-License-Identifier: Apache-2.0
/// Tensors of a trace as allocations of its template. For to_workload.cc.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "graph/workload.h"
#include "workload/chakra/tensors.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// Adds what nodes read and write to the template that was made of them; `order` says of which
/// (execution_order). Returns the bytes that are there when the trace begins.
///
///   read before it is written     there at the begin, Lifetime::enters
///   not read after its last write stays, Lifetime::leaves
///   both                          there all the time: bytes of the begin alone, no allocation
///   else                          from its first use to its last
///
/// "Before" is the template's order: where every two uses of a tensor, one of them a write, are
/// ordered by dependencies and take time, lifetimes are those of footprint.h.
/// Mistakes: a use by a node that the program does not have; sizes that sum to 2^63 bytes.
Result<Bytes> add_tensors(const Program& program, std::span<const std::uint32_t> order,
                          const TensorUses& uses, graph::MemoryIndex memory, graph::Template& made);

}  // namespace orrery::chakra
