// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/pieces.h"

#include <cassert>

namespace orrery::parallel {

std::vector<Step> in_pieces(const Step& step, std::int64_t n) {
  assert(n >= 1 && step.node.operators.size() == 1 && "one kernel, in one piece or more");
  const graph::Operator& whole = step.node.operators.front();
  assert((n == 1 || (graph::is_divisible(whole) && whole.kernels <= 1 && whole.pieces == 1)) &&
         "a kernel whose pieces' times are known");
  if (n == 1) {
    return {step};
  }
  std::vector<Step> pieces(static_cast<std::size_t>(n), step);
  for (std::int64_t i = 0; i < n; ++i) {
    Step& piece = pieces[static_cast<std::size_t>(i)];
    graph::Operator& op = piece.node.operators.front();
    op.piece = static_cast<std::int32_t>(i);
    op.pieces = static_cast<std::int32_t>(n);
    op.flops = whole.flops / static_cast<double>(n);
    op.bytes = graph::part_of(whole.bytes, i, n);
    op.kernels = i == 0 ? whole.kernels : 0;
    if (i + 1 < n) {
      piece.writes = Value::none;
      piece.node.host_sync = false;
    }
  }
  return pieces;
}

}  // namespace orrery::parallel
