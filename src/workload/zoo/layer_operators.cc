// SPDX-License-Identifier: Apache-2.0
#include <cassert>

#include "base/lists.h"
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
  return streaming("qkv_split", Role::split_qkv, graph::OperatorKind::elementwise, traffic);
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
  return streaming("rotary", Role::rotate, graph::OperatorKind::elementwise,
                   {traffic, kernels, traffic, kernels});
}

/// Appends the root-mean-square norm of every query and key head.
void append_query_key_norm(GraphBuilder& block, const Shapes& shapes, Heads& heads) {
  const QueryKeyNorm kind = shapes.model.query_key_norm;
  const std::int64_t scales = scales_heads(kind)            ? 2 * shapes.head_dim
                              : kind == QueryKeyNorm::whole ? shapes.query + shapes.key
                                                            : 0;
  ModelOperator op = norm("query_key_norm", Role::norm_heads, shapes, shapes.query + shapes.key);
  op.gemm.k = kind == QueryKeyNorm::whole ? shapes.query : shapes.head_dim;
  const TensorList before{heads.query, heads.key};
  heads.query = block.like(heads.query);
  heads.key = block.like(heads.key);
  block.add(std::move(op), {.reads = before, .writes = {heads.query, heads.key}, .saves = before},
            scales);
  if (kind == QueryKeyNorm::values) {
    ModelOperator values = norm("value_norm", Role::norm_heads, shapes, shapes.value);
    values.gemm.k = shapes.head_dim;
    heads.value = block.map(std::move(values), {heads.value}, {heads.value});
  }
}

struct Residual {
  std::string branch;
  int biases = 0;  ///< of the projections before
};

/// out = residual + dropout(x + bias), with the parts that the model has. Backward: the mask
/// applied to the gradient, and the bias gradient's sum over the tokens; the residual branch gets
/// the gradient as it is.
int append_residual(GraphBuilder& block, const Shapes& shapes, const Residual& what, int x,
                    TensorList results) {
  const Bytes size = shapes.hidden_tensor;
  const bool dropout = shapes.model.dropout > 0;
  const bool fused = shapes.options.fused_kernels;
  const bool bias = what.biases > 0;
  Traffic traffic{.forward = (2 + static_cast<int>(results.size())) * size, .forward_kernels = 1};
  if (dropout) {
    // In a kernel of its own: reads x, writes it and the mask.
    traffic.forward += fused ? shapes.hidden_mask : 2 * size + shapes.hidden_mask;
    traffic.forward_kernels += fused ? 0 : 1;
    traffic.backward += 2 * size + shapes.hidden_mask;
    traffic.backward_kernels += 1;
  }
  if (bias) {
    traffic.forward += fused ? Bytes(0) : 2 * size;
    traffic.forward_kernels += fused ? 0 : 1;
    traffic.backward += size;
    traffic.backward_kernels += 1;
  }
  Edges edges{.reads = {x}, .writes = {block.like(x)}};
  for (const int result : results) {
    edges.reads.add(result);
  }
  if (dropout) {
    edges.saves.add(block.buffer({shapes.rows(), shapes.width()}, kMask));
    edges.writes.add(edges.saves.front());
  }
  block.add(
      streaming(what.branch + (bias ? "_bias" : "") + (dropout ? "_dropout" : "") + "_residual",
                Role::residual, graph::OperatorKind::elementwise, traffic),
      edges, (what.biases + (shapes.model.layer_scale ? 1 : 0)) * shapes.model.hidden);
  return edges.writes.front();
}

/// Q, K and V of one product, or of two, behind it. `gate`: what scales attention's result, if not
/// null.
Heads append_split(GraphBuilder& block, const Shapes& shapes, TensorList products,
                   int* gate = nullptr) {
  const Extent keys{Dim::key_value_heads, shapes.key};
  const Extent values{Dim::key_value_heads, shapes.value};
  const Heads heads{.query = block.activation({shapes.rows(), {Dim::heads, shapes.query}}),
                    .key = block.activation({shapes.rows(), keys}),
                    .value = block.activation({shapes.rows(), values})};
  TensorList parts = heads.all();
  if (gate != nullptr) {
    *gate = block.activation({shapes.rows(), {Dim::heads, shapes.context}});
    parts.add(*gate);
  }
  block.add(qkv_split(shapes), {.reads = products, .writes = parts, .saves = parts});
  return heads;
}

/// x sigmoid(gate): reads both, writes one; backward reads them and the gradient, writes two.
int append_gate(GraphBuilder& block, const Shapes& shapes, int x, int gate) {
  const Bytes size = shapes.wide(shapes.context);
  return block.map(streaming("attention_gate", Role::gate_context, graph::OperatorKind::elementwise,
                             {3 * size, 1, 5 * size, 1}),
                   {x, gate}, {x, gate});
}

Heads append_projections(GraphBuilder& block, const Shapes& shapes, int x, int* gate) {
  const Model& model = shapes.model;
  const std::int64_t qkv = shapes.query + shapes.key +
                           (shapes.kind.shared_key_value ? 0 : shapes.value) +
                           (gate != nullptr ? shapes.context : 0);
  const bool rotates = model.position == PositionKind::rotary && shapes.kind.rotary;
  const int product = block.product({.name = "qkv_gemm",
                                     .role = Role::project_qkv,
                                     .out = {Dim::heads, qkv},
                                     .further = model.attention_bias ? qkv : 0},
                                    {x});
  Heads heads = append_split(block, shapes, {product}, gate);
  if (scales_heads(model.query_key_norm) || model.query_key_norm == QueryKeyNorm::whole ||
      (model.query_key_norm == QueryKeyNorm::plain && rotates)) {
    append_query_key_norm(block, shapes, heads);
  }
  if (rotates) {
    const TensorList before{heads.query, heads.key};
    heads.query = block.like(heads.query);
    heads.key = block.like(heads.key);
    block.add(rotary(shapes), {.reads = before, .writes = {heads.query, heads.key}});
  }
  return heads;
}

int append_mixer(GraphBuilder& block, const Shapes& shapes, int x) {
  const std::size_t first = block.operators().size();
  if (shapes.kind.mixer == MixerKind::mamba || shapes.kind.mixer == MixerKind::gated_delta) {
    const int result = append_mamba(block, shapes, x);
    mark(block.operators(), first, Branch::mamba);
    return result;
  }
  int result = -1;
  if (shapes.kind.mixer == MixerKind::compressed_attention) {
    result = append_compressed_attention(block, shapes, x);
  } else {
    const bool latent = shapes.kind.mixer == MixerKind::latent_attention;
    int gate = -1;
    int* const gates = shapes.model.attention_gate && !latent ? &gate : nullptr;
    const Heads heads = latent ? append_latent_projections(block, shapes, x)
                               : append_projections(block, shapes, x, gates);
    int attended = append_attention(block, shapes, heads);
    attended = gate < 0 ? attended : append_gate(block, shapes, attended, gate);
    result = block.product({.name = "proj_gemm", .role = Role::project_out, .out = shapes.width()},
                           {attended});
  }
  mark(block.operators(), first, Branch::attention);
  return result;
}

/// Queries from the decoder, keys and values from as many tokens of the encoder's output.
int append_cross_attention(GraphBuilder& block, const Shapes& decoder, int x) {
  Shapes shapes = decoder;
  shapes.kind.causal = false;
  const std::size_t first = block.operators().size();
  const int encoded = block.input({shapes.rows(), shapes.width()});
  const int query = block.product(
      {.name = "q_gemm", .role = Role::project_query, .out = {Dim::heads, shapes.query}}, {x});
  const int keys = block.product({.name = "kv_gemm",
                                  .role = Role::project_key_value,
                                  .out = {Dim::key_value_heads, shapes.key + shapes.value}},
                                 {encoded});
  const Heads heads = append_split(block, shapes, {query, keys});
  const int result =
      block.product({.name = "proj_gemm", .role = Role::project_out, .out = shapes.width()},
                    {append_attention(block, shapes, heads)});
  for (std::size_t i = first; i < block.operators().size(); ++i) {
    block.operators()[i].name.insert(0, "cross_");
  }
  mark(block.operators(), first, Branch::cross_attention);
  return result;
}

/// Norm, branch, [norm], residual sum, [norm]: by Model::norm_place. With several streams: their
/// weighted sum, norm, branch, mix. `branch` appends itself behind its input and returns its
/// result.
template <class Branch>
int append_branch(GraphBuilder& block, const Shapes& shapes, const Residual& sum,
                  const std::string& norm_name, int x, Branch branch) {
  const std::int64_t width = shapes.model.hidden;
  if (shapes.model.streams > 1) {
    Streams streams{.values = x};
    const int collapsed = append_collapse(block, shapes, sum.branch, streams);
    const int even = append_norm(block, shapes, norm_name, Role::norm_branch, collapsed, width);
    return append_expand(block, shapes, sum.branch, streams, branch(even));
  }
  const NormPlace place = shapes.model.norm_place;
  int result = branch(
      place == NormPlace::after ? x : append_norm(block, shapes, norm_name, Role::norm_branch, x));
  if (place == NormPlace::around) {
    result = append_norm(block, shapes, sum.branch + "_post_norm", Role::norm_post, result, width);
  }
  const int added = append_residual(block, shapes, sum, x, {result});
  return place == NormPlace::after ? append_norm(block, shapes, norm_name, Role::norm_branch, added)
                                   : added;
}

int append_feed_forward(GraphBuilder& block, const Shapes& shapes, int x, bool keeps_input = true) {
  return shapes.kind.feed_forward == FeedForwardKind::experts
             ? append_experts(block, shapes, x)
             : append_mlp(block, shapes, x, Branch::mlp, shapes.ffn, keeps_input);
}

/// x + attention(norm(x)) + mlp(norm(x)): the row-parallel results are added before one reduction
/// (Wang & Komatsuzaki 2021, GPT-J; Black et al. 2022, GPT-NeoX-20B; Chowdhery et al. 2022, PaLM).
/// With one norm for both, its output enters once.
int append_parallel(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& model = shapes.model;
  const int even = append_norm(block, shapes, "input_norm", Role::norm_branch, x);
  const int mixed = append_mixer(block, shapes, even);
  const int second =
      model.shared_norm ? even : append_norm(block, shapes, "mlp_norm", Role::norm_branch, x);
  const int fed = append_feed_forward(block, shapes, second, !model.shared_norm);
  const int biases = (model.attention_output_bias ? 1 : 0) + (model.mlp_bias ? 1 : 0);
  return append_residual(block, shapes, {"parallel", biases}, x, {mixed, fed});
}

}  // namespace

int append_layer(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& model = shapes.model;
  const LayerKind& kind = shapes.kind;
  if (kind.feed_forward == FeedForwardKind::tower) {
    return append_tower(block, shapes);
  }
  if (model.parallel_residual) {
    return append_parallel(block, shapes, x);
  }
  const bool recurs = kind.mixer == MixerKind::mamba || kind.mixer == MixerKind::gated_delta;
  const int mixer_bias = !recurs && model.attention_output_bias ? 1 : 0;
  if (kind.mixer != MixerKind::none) {
    x = append_branch(block, shapes, {"attention", mixer_bias}, "input_norm", x,
                      [&](int even) { return append_mixer(block, shapes, even); });
  }
  if (kind.cross_attention) {
    x = append_branch(block, shapes, {"cross_attention", mixer_bias}, "cross_norm", x,
                      [&](int even) { return append_cross_attention(block, shapes, even); });
  }
  if (kind.feed_forward != FeedForwardKind::none) {
    const bool dense = kind.feed_forward == FeedForwardKind::dense;
    x = append_branch(block, shapes, {"mlp", dense && model.mlp_bias ? 1 : 0}, "mlp_norm", x,
                      [&](int even) { return append_feed_forward(block, shapes, even); });
  }
  if (kind.ends_encoder) {
    x = append_norm(block, shapes, "encoder_final_norm", Role::norm_final, x);
  }
  return x;
}

std::vector<std::string> layer_kinds(const Model& model) {
  if (model.kinds.empty()) {
    return {LayerKind{}.name};
  }
  return mapped(model.kinds, &LayerKind::name);
}

int layer_kind(const Model& model, std::int64_t layer) {
  assert(layer >= 0 && "layers count from 0");
  return model.layout.empty() ? 0
                              : model.layout[static_cast<std::size_t>(layer) % model.layout.size()];
}

ModelGraph layer_graph(const Model& model, const ShapeOptions& options, int kind) {
  const Shapes shapes(model, options, kind_of(model, kind));
  GraphBuilder block(options.type);
  const bool tower = shapes.kind.feed_forward == FeedForwardKind::tower;
  return block.finish(append_layer(block, shapes, tower ? -1 : append_input(block, shapes)));
}

std::vector<ModelOperator> layer_operators(const Model& model, const ShapeOptions& options,
                                           int kind) {
  return layer_graph(model, options, kind).operators;
}

}  // namespace orrery::zoo
