// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/shard.h"

namespace orrery {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::int64_t sequence_of(const Model& model, const Plan& plan) {
  return plan.sequence == 0 ? model.max_positions : plan.sequence;
}

ShapeOptions shape_options(const Model& model, const Plan& plan) {
  return {.microbatch = plan.microbatch,
          .sequence = sequence_of(model, plan),
          .type = plan.compute_type,
          .attention = plan.attention,
          .fused_kernels = plan.fused_kernels,
          .padded_vocab = round_up(model.vocab, plan.vocab_multiple * plan.tp)};
}

Bytes boundary_bytes(const Model& model, const Plan& plan) {
  return size_of(plan.compute_type) * plan.microbatch * sequence_of(model, plan) * model.hidden;
}

std::vector<std::vector<ModelOperator>> block_operators(const Model& model, const Plan& plan) {
  const ShapeOptions options = shape_options(model, plan);
  std::vector<std::vector<ModelOperator>> blocks{embedding_operators(model, options),
                                                 head_operators(model, options)};
  const int kinds = static_cast<int>(layer_kinds(model).size());
  for (int kind = 0; kind < kinds; ++kind) {
    blocks.push_back(layer_operators(model, options, kind));
  }
  for (std::vector<ModelOperator>& operators : blocks) {
    for (ModelOperator& op : operators) {
      if (op.kind == OperatorKind::norm) {
        op.gemm.k = model.hidden;  // the row length, on which a norm's bandwidth depends
      }
    }
  }
  return blocks;
}

ModelOperator shard(ModelOperator op, std::int64_t t, bool sequence_parallel) {
  if (op.gemm_split == GemmSplit::column) {
    op.gemm.n /= t;
  } else if (op.gemm_split == GemmSplit::row) {
    op.gemm.k /= t;
  } else if (op.gemm_split == GemmSplit::heads) {
    op.gemm.batch /= t;
  }
  const bool splits_bytes =
      op.split == Split::tensor || (op.split == Split::sequence && sequence_parallel);
  const std::int64_t share = splits_bytes ? t : 1;
  const std::int64_t flop_share = op.gemm_split == GemmSplit::none ? share : t;
  op.forward_flops = op.forward_flops / flop_share;
  op.model_flops = op.model_flops / flop_share;
  op.backward_flops = op.backward_flops / flop_share;
  op.forward_bytes = op.forward_bytes / share;
  op.backward_bytes = op.backward_bytes / share;
  op.saved = op.saved / share;
  if (op.gemm_split == GemmSplit::column || op.gemm_split == GemmSplit::row) {
    op.parameters = (op.parameters + t - 1) / t;
  }
  return op;
}

std::int64_t weight_elements(const ModelOperator& op) {
  return op.has_weight ? op.gemm.n * op.gemm.k : 0;
}

Bytes gemm_bytes(const GemmShape& s, DataType type) {
  const Bytes elements = Bytes(s.m) * s.k + Bytes(s.k) * s.n + Bytes(s.m) * s.n;
  return bytes_of(type, (elements * s.batch).value());
}

}  // namespace orrery
