// SPDX-License-Identifier: Apache-2.0
/// Every operator of small decoders of the zoo, to be executed with the signatures of its node.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decoder_operators.h"
#include "operator_cases.h"
#include "planner/spmd/decoder.h"

namespace orrery::spmd {

inline constexpr std::int64_t kHeadWidth = 2;

/// The model with few and narrow layers: two heads, groups and experts, all kinds of its layers.
inline zoo::Model small_model(const std::string& name) {
  zoo::Model m = zoo::load_model(name).value();
  const bool latent = m.latent.key_value_rank > 0;
  m.hidden = 4;
  m.heads = m.kv_heads = 2;
  m.head_dim = latent ? 2 * kHeadWidth : kHeadWidth;
  m.value_dim = latent ? 2 * kHeadWidth : 0;
  m.latent = latent ? zoo::LatentAttention{4, 4, kHeadWidth} : m.latent;
  m.ffn = 4;
  m.vocab = 8;
  m.max_positions = 4;
  m.mtp = std::min<std::int64_t>(m.mtp, 1);
  m.experts = m.experts > 0 ? 2 : 0;
  m.top_k = m.experts > 0 ? 2 : 0;
  m.expert.ffn = 4;
  m.expert.shared_ffn = m.expert.shared_ffn > 0 ? 4 : 0;
  m.expert.latent = m.expert.latent > 0 ? 2 : 0;
  m.mamba = {.heads = 4,
             .head_dim = 1,
             .groups = 2,
             .state = 1,
             .kernel = 3,
             .chunk = 2,
             .convolution_bias = m.mamba.convolution_bias};
  m.layout.clear();
  for (std::size_t kind = 0; kind < m.kinds.size(); ++kind) {
    m.kinds[kind].ffn = m.kinds[kind].ffn > 0 ? 8 : 0;
    m.layout.push_back(static_cast<int>(kind));
  }
  m.layers = std::max<std::int64_t>(1, static_cast<std::int64_t>(m.kinds.size()));
  m.mtp_layout.clear();
  return m;
}

/// Queries, keys and values of two columns each for every head, behind one another.
inline Arrays heads_of(const Array& shared, std::int64_t width) {
  return {columns_of(shared, width, 0, kHeadWidth),
          columns_of(shared, width, kHeadWidth, kHeadWidth),
          columns_of(shared, width, 2 * kHeadWidth, kHeadWidth)};
}

/// Queries and keys, of one tensor with the values or of two.
inline Arrays queries_and_keys(const Arrays& in, std::int64_t width) {
  if (in.size() < 2 || in[1].rank() == 1) {
    const Arrays all = heads_of(in[0], width);
    return {all[0], all[1]};
  }
  return {in[0], in[1]};
}

inline std::optional<Arrays> attends(const Arrays& in, std::int64_t width) {
  Arrays all = in;
  if (in.size() < 3 || in[0].shape != in[1].shape || in[2].shape != in[0].shape) {
    const Array& shared = in.size() > 2 && in[2].rank() == 3 ? in[2] : in[0];
    all = queries_and_keys(in, width);
    all.push_back(heads_of(shared, width)[2]);
    if (in.back().rank() == 1) {
      all.push_back(in.back());
    }
  }
  return all[0].shape == all[2].shape ? windowed_attention(all, all[0].extent(1)) : std::nullopt;
}

/// Queries as they are; of a head two columns without position and one rotated part for all heads;
/// values.
inline std::optional<Arrays> assembled(const Arrays& in) {
  const std::int64_t expanded = 3 * kHeadWidth;
  const Array& rotated = in[2];
  if (in[0].extent(2) / 4 != in[1].extent(2) / expanded || rotated.extent(2) != 6) {
    return std::nullopt;
  }
  const Array keys = make(in[0].shape, [&](const Shape& i) {
    const std::int64_t place = i[2] % 4;
    return place < 2 ? in[1].at({i[0], i[1], i[2] / 4 * expanded + place})
                     : rotated.at({i[0], i[1], 4 + place - 2});
  });
  return Arrays{in[0], keys, columns_of(in[1], expanded, kHeadWidth, 2 * kHeadWidth)};
}

/// Convolves: of a group's eight columns two are gates, four what is convolved and two the steps.
inline std::optional<Arrays> convolved(const Arrays& in) {
  const Array x = columns_of(in[0], 8, 2, 4);
  const std::int64_t each = in[1].extent(0) / x.extent(2);
  const Array weights =
      make({x.extent(2), 3}, [&](const Shape& i) { return in[1].at({i[0] * each + i[1]}); });
  const Array biases =
      make({x.extent(2)}, [&](const Shape& i) { return in[1].at({(i[0] + 1) * each - 1}); });
  return causal_convolution(each > 3 ? Arrays{x, weights, biases} : Arrays{x, weights});
}

inline std::optional<Arrays> scanned(const Arrays& in) {
  const Array steps = columns_of(in[1], 8, 6, 2);
  return in[2].extent(0) != 3 * steps.extent(2)
             ? std::nullopt
             : state_space_scan({in[0], steps, reshaped(in[2], {steps.extent(2), 3})});
}

inline std::optional<Arrays> normed_by_group(const Arrays& in) {
  return gated_norm({in[0], columns_of(in[1], 8, 0, 2), in[2]});
}

inline std::optional<Arrays> gated_sum(const Arrays& in) {
  return Arrays{make(in[0].shape, [&](Shape i) {
    const double routed = in[0].at(i);
    const double shared = in[1].at(i);
    double gate = 0;
    for (i[2] = 0; i[2] < in[2].extent(2); ++i[2]) {
      gate += in[2].at(i) * in[3].at({i[2]});
    }
    return routed + shared / (1 + std::exp(-gate));
  })};
}

/// Queries and keys of each head by their root mean square; both are scaled.
inline std::optional<Arrays> heads_normed(const Arrays& in, std::int64_t width) {
  Arrays heads = queries_and_keys(in, width);
  if (in.back().rank() > 1) {
    return Arrays{norm_of(heads[0], kHeadWidth, nullptr), norm_of(heads[1], kHeadWidth, nullptr)};
  }
  const Array scale_q = slice(in.back(), 0, 0, 2);
  const Array scale_k = slice(in.back(), 0, 1, 2);
  return Arrays{norm_of(heads[0], kHeadWidth, &scale_q), norm_of(heads[1], kHeadWidth, &scale_k)};
}

/// Two of a head's columns turned by the same angle.
inline std::optional<Arrays> rotated(const Arrays& in, std::int64_t width) {
  Arrays turned = queries_and_keys(in, width);
  for (Array& one : turned) {
    one = make(one.shape, [before = one](Shape i) {
      const double own = before.at(i);
      const double sign = i[2] % 2 == 0 ? -1 : 1;
      i[2] += i[2] % 2 == 0 ? 1 : -1;
      return 0.8 * own + sign * 0.6 * before.at(i);
    });
  }
  return turned;
}

/// Returns what executes a node, by the name of the operator without the block that it is in.
inline Execute execute_of(const Node& node, int weight, std::int64_t head_columns) {
  const auto is = [&](const char* name) { return node.op.find(name) != std::string::npos; };
  const auto width = head_columns;
  const graph::OperatorKind kind = node.kernel->kind;
  if (kind == graph::OperatorKind::gemm) {
    return [weight](const Arrays& in) { return product_of(in, static_cast<std::size_t>(weight)); };
  }
  if (kind == graph::OperatorKind::grouped_gemm) {
    return experts_of;
  }
  if (is("qkv_split")) {
    return [width](const Arrays& in) { return heads_of(in[0], width); };
  }
  if (is("query_key_norm")) {
    return [width](const Arrays& in) { return heads_normed(in, width); };
  }
  if (is("latent_rotary")) {
    return assembled;
  }
  if (is("rotary")) {
    return [width](const Arrays& in) { return rotated(in, width); };
  }
  if (is("shared_gate_sum")) {
    return gated_sum;
  }
  if (is("_mul")) {
    return gated_activation;
  }
  if (is("relu") || is("gelu")) {
    return [](const Arrays& in) { return Arrays{map(in[0], [](double x) { return silu(x); })}; };
  }
  switch (kind) {
    case graph::OperatorKind::attention:
      return [width](const Arrays& in) { return attends(in, width); };
    case graph::OperatorKind::convolution:
      return convolved;
    case graph::OperatorKind::scan:
      return scanned;
    case graph::OperatorKind::loss:
      return token_loss;
    case graph::OperatorKind::norm:
      if (is("gated_norm")) {
        return normed_by_group;
      }
      return [](const Arrays& in) {
        return Arrays{norm_of(in[0], in[0].shape.back(), in.size() > 1 ? &in[1] : nullptr)};
      };
    default:
      return is("residual") || is("shared_sum") ? sum_with_biases : Execute();
  }
}

/// Adds what only an execution needs: which token a slot holds, or the numbers of a table's lines,
/// spread as the tensor's dimensions from `first` on are.
inline void add_index(Case& op, std::size_t like, bool of_result, int first, Shape extents) {
  op.indices.push_back(op.shape.inputs.size());
  const int last = first + static_cast<int>(extents.size());
  op.shape.inputs.push_back(std::move(extents));
  for (Signature& signature : op.own) {
    const Form form = of_result ? signature.outputs[like] : signature.inputs[like];
    const bool slices = form.is_gather() && form.dimension() >= first && form.dimension() < last;
    signature.inputs.push_back(slices ? Form::gather(form.dimension() - first) : Form::full());
  }
}

inline Case case_of(const OperatorGraph& graph, const Node& node, std::int64_t head_columns) {
  Case op{{node.op, {}, {}}, execute_of(node, graph.weight_of(node), head_columns)};
  op.own = node.signatures;
  op.keeps_parts = node.kernel->parts > 0;
  for (const int input : node.inputs) {
    op.shape.inputs.push_back(graph.tensor(input).shape);
  }
  for (const int output : node.outputs) {
    op.shape.outputs.push_back(graph.tensor(output).shape);
  }
  if (const std::int64_t columns = op.shape.inputs[0].back();
      node.op.ends_with("kv_a_norm") && columns > op.shape.outputs[0].back()) {
    // Of what the projection gives, the columns before those that are rotated.
    op.execute = [columns, width = op.shape.outputs[0].back()](const Arrays& in) {
      return Arrays{norm_of(columns_of(in[0], columns, 0, width), width, &in[1])};
    };
  }
  op.below = 4;
  if (node.op.ends_with("routing")) {
    const Shape& rows = op.shape.outputs[0];
    add_index(op, 0, true, 1, {rows[1], rows[2]});
    op.execute = [](const Arrays& in) { return routed(in[1], in[2]); };
  } else if (node.op.ends_with("unpermute")) {
    const Shape& rows = op.shape.inputs[0];
    add_index(op, 0, false, 1, {rows[1], rows[2]});
    op.execute = [tokens = op.shape.outputs[0][1]](const Arrays& in) {
      return unpermuted(in[0], in[1], tokens);
    };
  } else if (node.op.ends_with("token_embedding")) {
    op.indices.push_back(0);
    op.below = op.shape.inputs[1][0];
    add_index(op, 1, false, 0, {op.shape.inputs[1][0]});
    op.execute = [](const Arrays& in) { return looked_up(in[0], in[1], in[2]); };
  } else if (node.op.ends_with("cross_entropy")) {
    op.indices.push_back(1);
    op.below = op.shape.inputs[0][2];
  }
  return op;
}

/// Operators of decoders that together have grouped and latent heads, biases, sinks, experts, a
/// shared expert with and without a gate, one sum of both branches, norms around, Mamba-2 and a
/// second prediction; each form once.
inline std::vector<Case> decoder_cases() {
  std::vector<Case> cases;
  std::set<std::pair<std::string, std::vector<Shape>>> known;
  for (const char* name :
       {"llama-3-8b", "gemma-2-9b", "gpt-neox-20b", "qwen2.5-7b", "qwen3-30b-a3b",
        "qwen1.5-moe-a2.7b", "deepseek-v3", "gpt-oss-20b", "nemotron-h-8b", "nemotron-3-super"}) {
    const zoo::Model model = small_model(name);
    const OperatorGraph graph =
        decoder_graph(model, {.devices = 2, .batch = 4, .sequence = 4, .mesh = true}).value();
    const std::int64_t head_columns = 3 * kHeadWidth;
    for (const Node& node : graph.nodes) {
      if (node.kernel) {
        Case op = case_of(graph, node, head_columns);
        if (known.insert({node.op, op.shape.inputs}).second) {
          cases.push_back(std::move(op));
        }
      }
    }
  }
  return cases;
}

}  // namespace orrery::spmd
