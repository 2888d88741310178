// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/visible_share.h"

#include <algorithm>
#include <vector>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// The two counts of a forward pass.
struct ForwardCounts {
  Flops whole{0};
  Flops visible{0};

  void add(const std::vector<ModelOperator>& operators, std::int64_t times) {
    for (const ModelOperator& op : operators) {
      whole += op.model_flops * times;
      visible += std::min(op.model_flops, op.forward_flops) * times;
    }
  }
};

}  // namespace

double visible_share(const Model& model, std::int64_t sequence) {
  if (model.layers == 0) {
    return 1;
  }
  const ShapeOptions one{.sequence = sequence, .attention = AttentionKernel::flash};
  const std::vector<std::int64_t> layers = layers_by_kind(model);
  ForwardCounts counts;
  counts.add(embedding_operators(model, one), 1);
  counts.add(head_operators(model, one), 1);
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    counts.add(layer_operators(model, one, static_cast<int>(kind)), layers[kind]);
  }
  return counts.whole > Flops(0) ? counts.visible / counts.whole : 1;
}

}  // namespace orrery::zoo
