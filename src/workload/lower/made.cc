// SPDX-License-Identifier: Apache-2.0
#include "workload/lower/made.h"

#include <optional>

namespace orrery::lower {
namespace {

/// A Share is what one rank's kernel makes of a tensor.
class Share {
 public:
  Share(const zoo::ModelOperator& op, const TensorSplit& split)
      : op_(op), split_(split), axis_(op.expert ? plan::Axis::etp : plan::Axis::tp) {}

  /// Returns how the ranks hold it; none: whole. `sums`: every rank has a part of the sum.
  std::optional<graph::Sharding> held(const graph::ModelTensor& tensor, bool sums) const {
    using Kind = graph::Sharding::Kind;
    if (ranks() > 1 && tensor.is_divided()) {
      return graph::Sharding{.group = axis_, .kind = Kind::shard, .dimension = 1};
    }
    if (ranks() > 1 && sums) {
      return graph::Sharding{.group = axis_, .kind = Kind::partial};
    }
    if (own_tokens()) {
      return graph::Sharding{.group = plan::Axis::tp, .kind = Kind::shard};
    }
    return std::nullopt;
  }

  Bytes bytes(const graph::ModelTensor& tensor, bool sums) const {
    const bool of_rows = tensor.extents.front().dim == graph::Dim::rows;
    const Bytes all = of_rows ? tensor.bytes() * rows() : tensor.bytes();
    if (tensor.is_divided()) {
      return all / ranks();
    }
    return own_tokens() && !sums && !of_rows ? all / split_.tp : all;
  }

 private:
  std::int64_t ranks() const { return op_.expert ? split_.etp : split_.tp; }
  bool own_tokens() const {
    return !op_.expert && split_.sequence && op_.split == zoo::Split::sequence;
  }
  /// Experts' rows before they are sent are those of the rank's own tokens.
  double rows() const {
    return op_.expert ? split_.expert_rows : split_.expert_rows / static_cast<double>(split_.etp);
  }

  const zoo::ModelOperator& op_;
  const TensorSplit& split_;
  plan::Axis axis_;
};

}  // namespace

Made made_by(const zoo::ModelOperator& op, const std::vector<graph::ModelTensor>& tensors,
             const TensorSplit& split, Direction direction) {
  const bool gradient = direction == Direction::gradient;
  const bool sums_up = op.role == graph::OperatorRole::residual ||
                       op.role == graph::OperatorRole::shared_sum ||
                       op.role == graph::OperatorRole::join;
  const bool sums = op.gemm_split == (gradient ? zoo::GemmSplit::column : zoo::GemmSplit::row);
  const Share share(op, split);
  using Use = graph::ModelTensor::Use;
  Made made;
  for (const int number : gradient && !sums_up ? op.reads : op.writes) {
    const graph::ModelTensor& tensor = tensors[static_cast<std::size_t>(number)];
    if (tensor.use != Use::parameter && tensor.use != Use::buffer) {
      made.held = made.bytes == Bytes(0) ? share.held(tensor, sums) : made.held;
      made.bytes += share.bytes(tensor, sums);
    }
  }
  return made;
}

}  // namespace orrery::lower
