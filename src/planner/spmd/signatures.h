// SPDX-License-Identifier: Apache-2.0
/// Says which forms each operator of HiDup's graphs accepts, from one table: op -> rule or list of
/// signatures.
///
/// Every operator can also run whole on every device (all full); inputs are sliced on the batch or
/// whole, parameters and buffers replicated or sliced along any dimension, the loss is summands.
/// A sum of two summands is missing (reduce + reduce -> reduce), as in the published search.
/// is_sound() is false where a device's part, computed alone, is not its part of the result: those
/// the published search has and our cost does not allow. Source: HiDup's published search;
/// tests/planner/spmd executes each on small tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planner/spmd/operator_graph.h"

namespace orrery::spmd {

using Shape = std::vector<std::int64_t>;

/// An OperatorShape is what signatures depend on.
struct OperatorShape {
  std::string op;             ///< "linear", "einsum bsd,bsec->becd"
  std::vector<Shape> inputs;  ///< tensors only; scalars are part of the operator
  std::vector<Shape> outputs;
  int axis = -1;        ///< of softmax, log_softmax, chunk; flatten's first; from the end if < 0
  int other_axis = -1;  ///< transpose swaps it with `axis`
  int normalised = 1;   ///< layer_norm: trailing dimensions
};

/// Returns an operator's signatures in the order of the published search, all full last; ours is
///   regroup           (b, s, d) -> (g, b s / g, d) and back, the same elements in their order
/// Empty for an operator that the table does not know or that has another number of inputs.
std::vector<Signature> signatures_of(const OperatorShape& shape);

/// Returns the signatures of a load or input of this rank.
std::vector<Signature> load_signatures(int rank);
std::vector<Signature> input_signatures();

/// False for three that the published search has:
///   attention on slices of the hidden dimension: a slice of the in-projection's rows holds no
///   head's q, k and v together; matmul (b,E,C,m)(E,m,p): dimensions of the second operand counted
///   as of the first, one too many; einsum becd,bsec->bsd, full gather_2 -> gather_1: slices
///   experts of one operand only, where gather_1, tokens, would do.
bool is_sound(std::string_view op, const Signature& signature);

/// Operators of the table, in its order.
std::vector<std::string> known_operators();

}  // namespace orrery::spmd
