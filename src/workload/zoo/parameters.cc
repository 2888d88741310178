// SPDX-License-Identifier: Apache-2.0
/// Parameter counts from the architecture, apart from the operator lists (a test compares them).
#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// rows x columns, with a bias of `columns` elements.
std::int64_t linear(std::int64_t rows, std::int64_t columns, bool bias) {
  return rows * columns + (bias ? columns : 0);
}

std::int64_t attention(const Model& m, const LayerKind& kind) {
  const std::int64_t head_dim = head_dim_of(m, kind);
  const std::int64_t value_dim = value_dim_of(m, kind);
  const std::int64_t kv_heads = kv_heads_of(m, kind);
  const std::int64_t gate = m.attention_gate ? m.heads * value_dim : 0;
  const std::int64_t qkv =
      m.heads * head_dim + gate + kv_heads * (head_dim + (kind.shared_key_value ? 0 : value_dim));
  const std::int64_t scales = scales_heads(m.query_key_norm) ? 2 * head_dim
                              : m.query_key_norm == QueryKeyNorm::whole
                                  ? (m.heads + kv_heads) * head_dim
                                  : 0;
  return linear(m.hidden, qkv, m.attention_bias) +
         linear(m.heads * value_dim, m.hidden, m.attention_output_bias) + scales +
         (m.sinks ? m.heads : 0);
}

std::int64_t latent_attention(const Model& m) {
  const LatentAttention& latent = m.latent;
  const std::int64_t value_dim = m.value_dim > 0 ? m.value_dim : m.head_dim;
  const std::int64_t query = m.heads * m.head_dim;
  const std::int64_t queries = latent.query_rank == 0
                                   ? m.hidden * query
                                   : linear(m.hidden, latent.query_rank, m.attention_bias) +
                                         norm_parameters(m, latent.query_rank) +
                                         latent.query_rank * query;
  const std::int64_t expanded = m.heads * (m.head_dim - latent.rotary + value_dim);
  const SparseIndex& index = m.index;  // its keys have a LayerNorm
  const std::int64_t indexer = index.chosen == 0
                                   ? 0
                                   : latent.query_rank * index.heads * index.dim +
                                         m.hidden * (index.dim + index.heads) + 2 * index.dim;
  return indexer + queries +
         linear(m.hidden, latent.key_value_rank + latent.rotary, m.attention_bias) +
         norm_parameters(m, latent.key_value_rank) + latent.key_value_rank * expanded +
         linear(m.heads * value_dim, m.hidden, m.attention_output_bias);
}

std::int64_t compressed_attention(const Model& m, const LayerKind& kind) {
  const CompressedAttention& c = m.compressed;
  const std::int64_t context = m.heads * m.head_dim;
  const std::int64_t queries =
      (m.hidden + context) * c.query_rank + norm_parameters(m, c.query_rank);
  const std::int64_t keys = m.hidden * m.head_dim + norm_parameters(m, m.head_dim);
  const std::int64_t output = (context + c.output_groups * m.hidden) * c.output_rank;
  // Columns of values and of weights: two of each series where keys are chosen, else one.
  const auto compressor = [&](std::int64_t width) {
    const std::int64_t series = (kind.chosen > 0 ? 2 : 1) * width;
    return (2 * m.hidden + kind.compression) * series + norm_parameters(m, width);
  };
  const std::int64_t indexer = compressor(c.index_dim) +
                               c.query_rank * c.index_heads * c.index_dim +
                               m.hidden * c.index_heads;
  return queries + keys + output + (m.sinks ? m.heads : 0) +
         (kind.compression > 0 ? compressor(m.head_dim) : 0) + (kind.chosen > 0 ? indexer : 0);
}

std::int64_t gated_delta(const Model& m) {
  const Mamba& s = m.mamba;
  return linear(m.hidden, s.inner() + s.convolved() + 2 * s.heads, s.projection_bias) +
         s.convolved() * (s.kernel + (s.convolution_bias ? 1 : 0)) + 2 * s.heads + s.head_dim +
         linear(s.inner(), m.hidden, s.projection_bias);
}

std::int64_t mamba(const Model& m) {
  const Mamba& s = m.mamba;
  return linear(m.hidden, s.inner() + s.convolved() + s.heads, s.projection_bias) +
         s.convolved() * (s.kernel + (s.convolution_bias ? 1 : 0)) + 3 * s.heads + s.inner() +
         linear(s.inner(), m.hidden, s.projection_bias);
}

/// An MLP between tensors of `width`.
std::int64_t mlp(const Model& m, std::int64_t width, std::int64_t ffn, bool bias) {
  return linear(width, (is_gated(m.mlp) ? 2 : 1) * ffn, bias) + linear(ffn, width, bias);
}

std::int64_t one_expert(const Model& m) {
  const std::int64_t width = m.expert.latent > 0 ? m.expert.latent : m.hidden;
  return mlp(m, width, m.expert.ffn, m.expert.bias);
}

std::int64_t experts(const Model& m) {
  const ExpertShape& e = m.expert;
  return linear(m.hidden, m.experts, e.router_bias) + 2 * m.hidden * e.latent +
         m.experts * one_expert(m) + mlp(m, m.hidden, e.shared_ffn, false) +
         (e.shared_gate ? m.hidden : 0) +
         (e.normed ? 3 * norm_parameters(m, m.hidden) + m.hidden + m.experts : 0);
}

std::int64_t mixer(const Model& m, const LayerKind& kind) {
  switch (kind.mixer) {
    case MixerKind::attention:
      return attention(m, kind);
    case MixerKind::latent_attention:
      return latent_attention(m);
    case MixerKind::compressed_attention:
      return compressed_attention(m, kind);
    case MixerKind::mamba:
      return mamba(m);
    case MixerKind::gated_delta:
      return gated_delta(m);
    case MixerKind::none:
      return 0;
  }
  return 0;
}

std::int64_t tower(const LayerKind& kind) {
  std::int64_t sum = 0;
  for (std::size_t i = 1; i < kind.widths.size(); ++i) {
    sum += linear(kind.widths[i - 1], kind.widths[i], true);
  }
  return sum;
}

std::int64_t layer(const Model& m, const LayerKind& kind) {
  if (kind.feed_forward == FeedForwardKind::tower) {
    return tower(kind);
  }
  const std::int64_t norm = norm_parameters(m, m.hidden);
  const std::int64_t norms = m.norm_place == NormPlace::around ? 2 * norm : norm;
  const std::int64_t norm_and_scale = m.layer_scale ? norms + m.hidden : norms;
  std::int64_t sum = mixer(m, kind);
  sum += kind.mixer != MixerKind::none ? stream_parameters(m) : 0;
  sum += kind.mixer != MixerKind::none ? norm_and_scale : 0;
  sum += kind.cross_attention ? attention(m, kind) + norms : 0;
  if (kind.feed_forward != FeedForwardKind::none) {
    sum += stream_parameters(m);
    sum += m.parallel_residual && m.shared_norm ? 0 : norm_and_scale;
    sum += kind.feed_forward == FeedForwardKind::experts
               ? experts(m)
               : mlp(m, m.hidden, kind.ffn > 0 ? kind.ffn : m.ffn, m.mlp_bias);
  }
  return sum + (kind.ends_encoder ? norm : 0);
}

/// Returns the parameters of the matrix between the token table's rows and the layers; one more
/// stands before the logits.
std::int64_t projection(const Model& m) {
  return m.table_width * m.hidden;
}

/// Tables and projections of the input, without positions.
std::int64_t input(const Model& m) {
  std::int64_t sum = m.embedding_norm ? norm_parameters(m, m.hidden) : 0;
  switch (m.input) {
    case InputKind::tokens:
      return sum + m.vocab * table_width(m) + projection(m) + m.token_types * m.hidden +
             2 * m.relative_buckets * m.heads;
    case InputKind::patches:
      return sum + linear(m.patches.width(), m.hidden, m.patches.bias) +
             (m.patches.class_token ? m.hidden : 0) + m.patches.positions * m.hidden;
    case InputKind::features:
      for (const std::int64_t rows : m.tables) {
        sum += rows * m.hidden;
      }
      return sum;
  }
  return sum;
}

std::int64_t projectors(const Model& m) {
  std::int64_t sum = 0;
  for (const Projector& one : m.projectors) {
    std::int64_t parameters = one.norm;
    for (std::size_t i = 1; i < one.widths.size(); ++i) {
      parameters += linear(one.widths[i - 1], one.widths[i], one.bias);
    }
    sum += one.copies * parameters;
  }
  return sum;
}

std::int64_t output(const Model& m) {
  if (m.head == HeadKind::click) {
    return 0;
  }
  if (m.head == HeadKind::projected) {
    return projectors(m);
  }
  const std::int64_t logits = (m.tied_embedding ? 0 : m.vocab * table_width(m)) + projection(m) +
                              (m.head_bias ? m.vocab : 0) + stream_head_parameters(m);
  if (m.head != HeadKind::masked_token) {
    return logits;
  }
  return logits + 2 * linear(m.hidden, m.hidden, true) + norm_parameters(m, m.hidden) +
         linear(m.hidden, 2, true);
}

/// Parameters of the routed experts of this layer that one token does not use.
std::int64_t idle(const Model& m, const LayerKind& kind) {
  return kind.feed_forward == FeedForwardKind::experts ? (m.experts - m.top_k) * one_expert(m) : 0;
}

}  // namespace

ParameterCount count_parameters(const Model& model) {
  const std::int64_t norm = norm_parameters(model, model.hidden);
  const std::vector<std::int64_t> layers = layers_by_kind(model);
  ParameterCount count;
  std::int64_t unused = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerKind kind = kind_of(model, static_cast<int>(i));
    count.per_kind.push_back(layer(model, kind));
    count.layers += layers[i] * count.per_kind.back();
    unused += layers[i] * idle(model, kind);
  }
  count.embedding = input(model);
  count.position = model.position == PositionKind::learned
                       ? (model.max_positions + model.extra_positions) * model.hidden
                       : 0;
  count.final_norm = model.final_norm ? norm : 0;
  count.head = output(model);
  for (const int kind : prediction_layers(model)) {
    const LayerKind& described = kind_of(model, kind);
    count.mtp += model.mtp * layer(model, described);
    unused += model.mtp * idle(model, described);
  }
  count.mtp +=
      model.mtp * (2 * model.hidden * model.hidden + 3 * norm + stream_head_parameters(model));
  count.total =
      count.layers + count.embedding + count.position + count.final_norm + count.head + count.mtp;
  count.active = count.total - unused;
  count.vision = model.vision ? count_parameters(model.vision->encoder).total : 0;
  return count;
}

}  // namespace orrery::zoo
