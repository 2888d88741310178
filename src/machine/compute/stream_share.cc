// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/stream_share.h"

namespace orrery::compute {

double stream_share(const graph::Operator& op, const KernelCoefficients& c) {
  if (op.kind == graph::OperatorKind::softmax) {
    return c.softmax_share;
  }
  const auto own = [](double share, double usual) { return share > 0 ? share : usual; };
  if (op.kind == graph::OperatorKind::norm && op.backward && c.norm_backward_share > 0) {
    return c.norm_backward_share;
  }
  if (op.kind == graph::OperatorKind::norm) {
    const double width = static_cast<double>(op.gemm.k) / c.norm_width;
    return c.norm_long_share + (c.norm_share - c.norm_long_share) / (1 + width * width * width);
  }
  switch (op.kind) {
    case graph::OperatorKind::cache_write:
      return c.cache_write_share;
    case graph::OperatorKind::permute:
      return c.permute_share;
    case graph::OperatorKind::convolution:
      return c.convolution_share;
    case graph::OperatorKind::accumulate:
      return own(c.accumulate_share, c.elementwise_share);
    case graph::OperatorKind::optimizer: {
      const double wide = own(c.optimizer_share, c.elementwise_share);
      return graph::bits_of(op.type) < 32 ? own(c.optimizer_narrow_share, wide) : wide;
    }
    default:
      return op.backward ? own(c.elementwise_backward_share, c.elementwise_share)
                         : c.elementwise_share;
  }
}

}  // namespace orrery::compute
