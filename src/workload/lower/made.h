// SPDX-License-Identifier: Apache-2.0
/// Shares of a block's tensors that the kernels of one rank make.
///
///   forward          a rank's share of what the operator writes
///   input gradient   of the gradients of what it reads; of a sum, whose gradient is that of all
///                    its terms, of what it writes
///
///   columns that tensor parallelism divides   shards of them, 1/t of the bytes
///   else of a product cut by rows, or the     partial sums, all of the bytes
///   gradient of one cut by columns
///   else with sequence parallelism            shards of tokens, 1/t of the bytes
///
/// Parallelism of the batch (dp, and the tokens of cp), and of experts over ep, is in no layout.
/// Buffers that an operator keeps for its own backward are no part of it.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/lower/step.h"
#include "workload/zoo/model.h"

namespace orrery::lower {

/// Says how the ranks of a plan split the tensors of its blocks.
struct TensorSplit {
  std::int64_t tp = 1;
  bool sequence = false;   ///< sequence parallelism
  std::int64_t etp = 1;    ///< tp of experts
  double expert_rows = 1;  ///< share of the rows of experts that those of one rank get
};

enum class Direction : std::uint8_t { forward, gradient };

/// Returns what an operator makes: no bytes where it makes no tensor that others read.
Made made_by(const zoo::ModelOperator& op, const std::vector<graph::ModelTensor>& tensors,
             const TensorSplit& split, Direction direction);

}  // namespace orrery::lower
