// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/units.h"
#include "compat/calculon/execution.h"

namespace orrery::calculon {

/// A pass over all operators of a block.
struct BlockPass {
  Time taken{0};  ///< without the communication of exchanges
  Time compute{0};
  Time memory{0};
};

/// Tensor-parallel communication of a block and one microbatch.
struct BlockTraffic {
  Time forward{0};  ///< on the link
  Time backward{0};
  Time again{0};
  Time forward_exposed{0};
  Time backward_exposed{0};
  Time again_exposed{0};
};

/// One block and microbatch on one rank: sums over its operators (layer.h).
///
/// As published: compute and memory of what runs again are summed up over all operators so far, not
/// over those that run again; an overlapped product sends again exposed what its forward pass
/// exposed, and exposes at the end of a chunk what it exposes within.
struct Block {
  BlockPass forward;
  BlockPass again;
  BlockPass backward;
  BlockPass weight;
  BlockPass optimizer;
  BlockTraffic base;  ///< within a chunk
  BlockTraffic edge;  ///< at its end
  Bytes weights{0};
  Bytes working{0};     ///< activations of the block that runs
  Bytes storage{0};     ///< activations kept for the backward pass
  Bytes checkpoint{0};  ///< input of a block that runs again
  Bytes gradients{0};
  Bytes weight_gradients{0};  ///< over the replicas where the optimizer is
  Bytes whole_weight_gradients{0};
  Bytes optimizer_states{0};
  Flops useful{0};  ///< without what runs again
};

/// Does not depend on pipeline, batch, overlap of replicas and offload. Requires an execution that
/// check() accepts.
Block block_of(const Application& application, const System& system, const Execution& execution);

}  // namespace orrery::calculon
