// SPDX-License-Identifier: Apache-2.0
/// Says how long the tensors of a rank live, and the most bytes that live at once.
///
///   lifetime of a tensor   from the start of the first node that writes it to the end of the last
///                          node that reads it; from 0 when it is read before it is written (a
///                          parameter, an input of the step); to the end of the run when nobody
///                          reads it after it was written last (a result)
///   footprint at t         sum of the sizes of the tensors that live at t: what ends at t has
///                          left, what begins at t has come
///
/// Source: track-local-mem of ASTRA-sim, where it does not fail: a tensor may be written again, and
/// lives from its first write to its last read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "workload/chakra/tensors.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// Says when a node ran.
struct NodeTime {
  Time start{0};
  Time end{0};
};

struct TensorLifetime {
  Time from{0};
  Time until{0};
  bool initial = false;  ///< read before it was written
  bool result = false;   ///< never read after it was written last
};

struct Footprint {
  Bytes peak{0};
  Time peak_at{0};                        ///< the first such moment
  std::vector<TensorLifetime> lifetimes;  ///< by tensor
  std::vector<std::uint32_t> at_peak;     ///< tensors that live then, ascending
};

/// Returns the position of the node that uses a tensor. Mistakes: a node that the program does not
/// have.
Result<std::size_t> position_of(const Program& program, const TensorUses& tensors,
                                const TensorUses::Use& use);

/// Returns the footprint of a program. `times`: by position in the program. Mistakes: a use by a
/// node that the program does not have.
Result<Footprint> footprint(const Program& program, const TensorUses& tensors,
                            std::span<const NodeTime> times);

/// Nodes one after the other in the order of their ids, the i-th from i to i + 1 ns: a footprint
/// without a simulation.
std::vector<NodeTime> one_after_the_other(const Program& program);

}  // namespace orrery::chakra
