// SPDX-License-Identifier: Apache-2.0
/// Which forms each operator accepts, from one table: op -> rule or list of signatures.
///
/// Every operator can also run whole on every device (all full); inputs are sliced on the batch or
/// whole, parameters and buffers replicated or sliced along any dimension, the loss is summands.
/// A sum of two summands is missing (reduce + reduce -> reduce), as in the published search.
/// `sound` is false where a device's part, computed alone, is not its part of the result: those the
/// published search has and ours does not use.
/// Source: HiDup's published search; tests/planner/spmd executes each on small tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planner/spmd/operator_graph.h"

namespace orrery::spmd {

using Shape = std::vector<std::int64_t>;

/// What signatures depend on.
struct OperatorShape {
  std::string op;             ///< "linear", "einsum bsd,bsec->becd"
  std::vector<Shape> inputs;  ///< tensors only; scalars are part of the operator
  std::vector<Shape> outputs;
  int axis = -1;        ///< of softmax, log_softmax, chunk; flatten's first; from the end if < 0
  int other_axis = -1;  ///< transpose swaps it with `axis`
  int normalised = 1;   ///< layer_norm: trailing dimensions
};

/// In the order of the published search, all full last. Empty for an operator that the table does
/// not know or that has another number of inputs.
std::vector<Signature> signatures_of(const OperatorShape& shape);

/// Of a load or input of this rank.
std::vector<Signature> load_signatures(int rank);
std::vector<Signature> input_signatures();

/// False for head-parallel attention (heads of q, k and v are not together in a slice of the
/// in-projection) and for matmul's second operand sliced by its first dimension's index.
bool is_sound(std::string_view op, const Signature& signature);

/// Operators of the table, in its order.
std::vector<std::string> known_operators();

}  // namespace orrery::spmd
