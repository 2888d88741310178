// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/operator.h"

namespace orrery::compute {

/// Returns the attention of a prompt in 16 bits: half of the pairs; queries, keys, values and
/// output each once.
inline graph::Operator causal_attention(std::int64_t heads, std::int64_t length,
                                        std::int64_t width) {
  graph::Operator op;
  op.kind = graph::OperatorKind::attention;
  op.gemm = {.batch = heads, .m = length, .n = length, .k = width};
  op.flops = Flops(2.0 * static_cast<double>(heads * length * length * width));
  op.bytes = Bytes(2 * 4 * heads * length * width);
  return op;
}

}  // namespace orrery::compute
