// SPDX-License-Identifier: Apache-2.0
#include <cassert>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// Q, K, V as views of the fused projection; they are what attention's backward needs. The bias is
/// added by a kernel of its own, as in Megatron-LM's and PyTorch's linear layers over a
/// three-dimensional input (the biases of the other layers go into the kernels after them).
/// Backward concatenates dQ, dK, dV and sums the bias gradient over the tokens.
ModelOperator qkv_split(const Shapes& shapes) {
  const Bytes qkv = shapes.wide(shapes.query + shapes.key + shapes.value);
  Traffic traffic{.backward = 2 * qkv, .backward_kernels = 1};
  if (shapes.model.attention_bias) {
    traffic.forward = 2 * qkv;
    traffic.forward_kernels = 1;
    traffic.backward += qkv;
    ++traffic.backward_kernels;
  }
  ModelOperator op = streaming("qkv_split", Role::split_qkv, graph::OperatorKind::elementwise,
                               Split::tensor, traffic);
  op.saved = qkv;
  return op;
}

/// x cos + rotate_half(x) sin for queries and keys. Unfused, per tensor: rotate_half negates one
/// half and concatenates (1 + 2 passes), two products (2 + 2), one sum (3). Linear: nothing is
/// saved. A part of each head (rotary_share) is rotated, the rest is left where it is.
ModelOperator rotary(const Shapes& shapes) {
  const auto width = static_cast<double>(shapes.query + shapes.key) * shapes.model.rotary_share;
  const Bytes rotated = shapes.wide(static_cast<std::int64_t>(width));
  const bool fused = shapes.options.fused_kernels;
  const Bytes traffic = (fused ? 2 : 10) * rotated;
  const int kernels = fused ? 1 : 10;
  return streaming("rotary", Role::rotate, graph::OperatorKind::elementwise, Split::tensor,
                   {traffic, kernels, traffic, kernels});
}

/// Root-mean-square norm of every query and key head.
ModelOperator query_key_norm(const Shapes& shapes) {
  const bool scaled = shapes.model.query_key_norm == QueryKeyNorm::scaled;
  ModelOperator op = norm("query_key_norm", Role::norm_heads, shapes, shapes.query + shapes.key);
  op.split = Split::tensor;
  op.gemm.k = shapes.model.head_dim;
  op.parameters = scaled ? 2 * shapes.model.head_dim : 0;
  return op;
}

struct Residual {
  std::string branch;
  bool bias = false;  ///< of the projection before
  int branches = 1;   ///< results that are added to the residual stream
};

/// out = residual + dropout(x + bias), with the parts that the model has. Backward: the mask
/// applied to the gradient, and the bias gradient's sum over the tokens; the residual branch gets
/// the gradient as it is.
ModelOperator residual(const Residual& what, const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  const bool dropout = shapes.model.dropout > 0;
  const bool fused = shapes.options.fused_kernels;
  const bool bias = what.bias;
  Traffic traffic{.forward = (2 + what.branches) * x, .forward_kernels = 1};
  if (dropout) {
    // In a kernel of its own: reads x, writes it and the mask.
    traffic.forward += fused ? shapes.hidden_mask : 2 * x + shapes.hidden_mask;
    traffic.forward_kernels += fused ? 0 : 1;
    traffic.backward += 2 * x + shapes.hidden_mask;
    traffic.backward_kernels += 1;
  }
  if (bias) {
    traffic.forward += fused ? Bytes(0) : 2 * x;
    traffic.forward_kernels += fused ? 0 : 1;
    traffic.backward += x;
    traffic.backward_kernels += 1;
  }
  ModelOperator op =
      streaming(what.branch + (bias ? "_bias" : "") + (dropout ? "_dropout" : "") + "_residual",
                Role::residual, graph::OperatorKind::elementwise, Split::sequence, traffic);
  op.saved = dropout ? shapes.hidden_mask : Bytes(0);
  op.parameters = bias ? shapes.model.hidden : 0;
  return op;
}

void append_projections(Operators& operators, const Shapes& shapes) {
  const Model& model = shapes.model;
  const std::int64_t qkv = shapes.query + shapes.key + shapes.value;
  const bool rotates = model.position == PositionKind::rotary && shapes.kind.rotary;
  operators.push_back(
      weight_gemm("qkv_gemm", Role::project_qkv, shapes, qkv, model.hidden, GemmSplit::column));
  operators.back().parameters += model.attention_bias ? qkv : 0;
  operators.push_back(qkv_split(shapes));
  if (model.query_key_norm == QueryKeyNorm::scaled ||
      (model.query_key_norm == QueryKeyNorm::plain && rotates)) {
    operators.push_back(query_key_norm(shapes));
  }
  if (rotates) {
    operators.push_back(rotary(shapes));
  }
}

void append_mixer(Operators& operators, const Shapes& shapes) {
  const std::size_t first = operators.size();
  if (shapes.kind.mixer == MixerKind::mamba) {
    append_mamba(operators, shapes);
    mark(operators, first, Branch::mamba);
    return;
  }
  if (shapes.kind.mixer == MixerKind::compressed_attention) {
    append_compressed_attention(operators, shapes);
    mark(operators, first, Branch::attention);
    return;
  }
  if (shapes.kind.mixer == MixerKind::latent_attention) {
    append_latent_projections(operators, shapes);
  } else {
    append_projections(operators, shapes);
  }
  append_attention(operators, shapes);
  operators.push_back(weight_gemm("proj_gemm", Role::project_out, shapes, shapes.model.hidden,
                                  shapes.context, GemmSplit::row));
  mark(operators, first, Branch::attention);
}

/// Queries from the decoder, keys and values from as many tokens of the encoder's output.
void append_cross_attention(Operators& operators, const Shapes& decoder) {
  Shapes shapes = decoder;
  shapes.kind.causal = false;
  const Model& model = shapes.model;
  const std::size_t first = operators.size();
  operators.push_back(weight_gemm("q_gemm", Role::project_query, shapes, shapes.query, model.hidden,
                                  GemmSplit::column));
  operators.push_back(weight_gemm("kv_gemm", Role::project_key_value, shapes,
                                  shapes.key + shapes.value, model.hidden, GemmSplit::column));
  operators.push_back(qkv_split(shapes));
  append_attention(operators, shapes);
  operators.push_back(weight_gemm("proj_gemm", Role::project_out, shapes, model.hidden,
                                  shapes.context, GemmSplit::row));
  for (std::size_t i = first; i < operators.size(); ++i) {
    operators[i].name.insert(0, "cross_");
  }
  mark(operators, first, Branch::cross_attention);
}

/// Norm, branch, [norm], residual sum, [norm]: by Model::norm_place. With several streams: their
/// weighted sum, norm, branch, mix.
template <class Branch>
void append_branch(Operators& operators, const Shapes& shapes, const Residual& sum,
                   const std::string& norm_name, Branch branch) {
  if (shapes.model.streams > 1) {
    append_collapse(operators, shapes, sum.branch);
    operators.push_back(norm(norm_name, Role::norm_branch, shapes, shapes.model.hidden));
    branch();
    append_expand(operators, shapes, sum.branch);
    return;
  }
  const NormPlace place = shapes.model.norm_place;
  if (place != NormPlace::after) {
    operators.push_back(norm(norm_name, Role::norm_branch, shapes));
  }
  branch();
  if (place == NormPlace::around) {
    operators.push_back(
        norm(sum.branch + "_post_norm", Role::norm_post, shapes, shapes.model.hidden));
  }
  operators.push_back(residual(sum, shapes));
  if (place == NormPlace::after) {
    operators.push_back(norm(norm_name, Role::norm_branch, shapes));
  }
}

void append_feed_forward(Operators& operators, const Shapes& shapes) {
  if (shapes.kind.feed_forward == FeedForwardKind::experts) {
    append_experts(operators, shapes);
  } else {
    append_mlp(operators, shapes, Branch::mlp, shapes.ffn);
  }
}

/// x + attention(norm(x)) + mlp(norm(x)): the row-parallel results are added before one reduction
/// (Wang & Komatsuzaki 2021, GPT-J; Black et al. 2022, GPT-NeoX-20B; Chowdhery et al. 2022, PaLM).
/// With one norm for both, its output enters once.
void append_parallel(Operators& operators, const Shapes& shapes) {
  const Model& model = shapes.model;
  operators.push_back(norm("input_norm", Role::norm_branch, shapes));
  append_mixer(operators, shapes);
  operators.back().boundary = TensorBoundary::none;
  if (!model.shared_norm) {
    operators.push_back(norm("mlp_norm", Role::norm_branch, shapes));
  }
  const std::size_t first = operators.size();
  append_feed_forward(operators, shapes);
  if (model.shared_norm) {
    operators[first].boundary = TensorBoundary::none;
    operators[first].saved = Bytes(0);  // by qkv_gemm
  }
  const bool bias = model.attention_output_bias || model.mlp_bias;
  operators.push_back(residual({"parallel", bias, 2}, shapes));
  operators.back().parameters =
      ((model.attention_output_bias ? 1 : 0) + (model.mlp_bias ? 1 : 0)) * model.hidden;
}

Operators layer(const Shapes& shapes) {
  const Model& model = shapes.model;
  const LayerKind& kind = shapes.kind;
  Operators operators;
  if (kind.feed_forward == FeedForwardKind::tower) {
    append_tower(operators, shapes);
    return operators;
  }
  if (model.parallel_residual) {
    append_parallel(operators, shapes);
    return operators;
  }
  const bool mixer_bias = kind.mixer != MixerKind::mamba && model.attention_output_bias;
  if (kind.mixer != MixerKind::none) {
    append_branch(operators, shapes, {"attention", mixer_bias}, "input_norm",
                  [&] { append_mixer(operators, shapes); });
  }
  if (kind.cross_attention) {
    append_branch(operators, shapes, {"cross_attention", mixer_bias}, "cross_norm",
                  [&] { append_cross_attention(operators, shapes); });
  }
  if (kind.feed_forward != FeedForwardKind::none) {
    const bool dense = kind.feed_forward == FeedForwardKind::dense;
    append_branch(operators, shapes, {"mlp", dense && model.mlp_bias}, "mlp_norm",
                  [&] { append_feed_forward(operators, shapes); });
  }
  if (kind.ends_encoder) {
    operators.push_back(norm("encoder_final_norm", Role::norm_final, shapes));
  }
  return operators;
}

}  // namespace

std::vector<std::string> layer_kinds(const Model& model) {
  if (model.kinds.empty()) {
    return {LayerKind{}.name};
  }
  std::vector<std::string> names;
  names.reserve(model.kinds.size());
  for (const LayerKind& kind : model.kinds) {
    names.push_back(kind.name);
  }
  return names;
}

int layer_kind(const Model& model, std::int64_t layer) {
  assert(layer >= 0 && "layers count from 0");
  return model.layout.empty() ? 0
                              : model.layout[static_cast<std::size_t>(layer) % model.layout.size()];
}

std::vector<ModelOperator> layer_operators(const Model& model, const ShapeOptions& options,
                                           int kind) {
  return layer(Shapes(model, options, kind_of(model, kind)));
}

}  // namespace orrery::zoo
