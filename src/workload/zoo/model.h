// SPDX-License-Identifier: Apache-2.0
/// A model as a list of operators with shapes, before any parallelisation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "graph/operator.h"

namespace orrery {

/// How attention is computed; a plan field, because the same model runs with either.
enum class AttentionKernel : std::uint8_t { unfused, flash };
template <>
inline constexpr auto kNames<AttentionKernel> = std::to_array<Named<AttentionKernel>>({
    {AttentionKernel::unfused, "unfused", "scores, scale-mask-softmax, context; S x S is stored"},
    {AttentionKernel::flash, "flash", "one fused kernel, recomputes scores in backward"},
});

enum class MlpKind : std::uint8_t { gelu, swiglu };
template <>
inline constexpr auto kNames<MlpKind> = std::to_array<Named<MlpKind>>({
    {MlpKind::gelu, "gelu", "two matrices, GeLU between"},
    {MlpKind::swiglu, "swiglu", "gate, up and down matrices, SiLU(gate) * up between"},
});
enum class NormKind : std::uint8_t { layer_norm, rms_norm };
template <>
inline constexpr auto kNames<NormKind> = std::to_array<Named<NormKind>>({
    {NormKind::layer_norm, "layer_norm", "mean and variance; scale and shift"},
    {NormKind::rms_norm, "rms_norm", "root mean square; scale"},
});
enum class PositionKind : std::uint8_t { learned, rotary };
template <>
inline constexpr auto kNames<PositionKind> = std::to_array<Named<PositionKind>>({
    {PositionKind::learned, "learned", "a table of max_positions rows added to the embedding"},
    {PositionKind::rotary, "rotary", "rotation of queries and keys; no parameters"},
});

/// Architecture of a decoder-only transformer, from a Hugging Face config.json.
struct Model {
  std::string name;
  std::string model_type;  ///< as in config.json: gpt2, llama, ...
  std::int64_t layers = 0;        ///< L
  std::int64_t hidden = 0;        ///< H
  std::int64_t heads = 0;         ///< query heads
  std::int64_t kv_heads = 0;      ///< key and value heads (GQA); = heads without
  std::int64_t head_dim = 0;      ///< hidden / heads unless given
  std::int64_t ffn = 0;           ///< inner width of the MLP
  std::int64_t vocab = 0;         ///< V, without padding
  std::int64_t max_positions = 0; ///< rows of the learned position table; default sequence length
  MlpKind mlp = MlpKind::gelu;
  NormKind norm = NormKind::layer_norm;
  PositionKind position = PositionKind::learned;
  bool tied_embedding = true;     ///< output projection shares the input embedding
  bool attention_bias = true;     ///< QKV bias (output projection: attention_output_bias)
  bool attention_output_bias = true;
  bool mlp_bias = true;
  double dropout = 0;             ///< > 0: dropout kernels and masks after attention and MLP
  double attention_dropout = 0;   ///< > 0: dropout kernel and mask on the scores
};

/// Reads config.json of model_type gpt2, gpt_neo-like GPT-3 shapes (model_type "gpt2") and llama
/// (also mistral without sliding window). Fields that do not change the computation (token ids,
/// initializer_range, torch_dtype, ...) are known and ignored; any other unknown field, and values
/// that are not understood, are mistakes naming the field.
Result<Model> parse_model(const ConfigNode& node, std::string name);
/// A shipped name ("gpt3-175b") or a path to config.json (or its folder).
Result<Model> load_model(const std::string& name_or_path);

/// Exact parameter counts.
struct ParameterCount {
  std::int64_t per_layer = 0;
  std::int64_t embedding = 0;        ///< token table (V x H)
  std::int64_t position = 0;         ///< position table
  std::int64_t final_norm = 0;
  std::int64_t head = 0;             ///< untied output projection, else 0
  std::int64_t total = 0;
};
ParameterCount count_parameters(const Model& model);

/// How tensor parallelism of degree t splits an operator's work and its saved activations.
enum class Split : std::uint8_t {
  none,      ///< every rank does all of it
  sequence,  ///< 1/t with sequence parallelism, else all of it (norms, dropout, residual)
  tensor,    ///< 1/t always (heads, MLP inner width)
};
/// Which extent of a GEMM tensor parallelism divides.
enum class GemmSplit : std::uint8_t { none, column, row, heads };

/// Collective that sequence of operators ends or begins with, under tensor parallelism.
enum class TensorBoundary : std::uint8_t {
  none,
  enter,  ///< before it: (SP) all-gather of the tokens; backward: all-reduce / reduce-scatter
  leave,  ///< after it: all-reduce / (SP) reduce-scatter; backward: (SP) all-gather
};

/// Which recompute mode drops an operator's saved activations and runs its forward again.
enum class RecomputeGroup : std::uint8_t { never, selective };  // full recompute drops all of a layer

/// One operator of the model for one microbatch of B sequences of S tokens on one device, before
/// splitting. FLOPs and bytes are those of the whole (t = 1) operator.
struct ModelOperator {
  std::string name;
  OperatorKind kind = OperatorKind::elementwise;
  GemmShape gemm;                         ///< gemm, attention: m = tokens (or S), n = out, k = in
  GemmSplit gemm_split = GemmSplit::none; ///< column: n/t; row: k/t; heads: batch/t
  Split split = Split::none;              ///< of bytes, saved activations and non-GEMM FLOPs
  TensorBoundary boundary = TensorBoundary::none;
  RecomputeGroup recompute = RecomputeGroup::never;
  Flops forward_flops{0};    ///< really done (causal kernels: half the square)
  Flops model_flops{0};      ///< as MFU counts: full S^2, GEMMs and logits only; forward
  Flops backward_flops{0};   ///< really done
  Bytes forward_bytes{0};    ///< reads + writes of the forward kernel(s)
  Bytes backward_bytes{0};   ///< of the non-GEMM backward kernel(s)
  int forward_kernels = 1;
  int backward_kernels = 1;
  bool has_weight = false;   ///< GEMM with a weight: backward = input-gradient + weight-gradient GEMM
  Bytes saved{0};            ///< activations kept for backward, at t = 1
  std::int64_t parameters = 0;  ///< split by t when gemm_split is column/row, else replicated
};

struct ShapeOptions {
  std::int64_t microbatch = 1;  ///< B
  std::int64_t sequence = 0;    ///< S
  DataType type = DataType::bf16;
  AttentionKernel attention = AttentionKernel::unfused;
  bool fused_kernels = true;  ///< bias+GeLU, bias+dropout+residual, scale+mask+softmax as one each
  std::int64_t padded_vocab = 0;  ///< V rounded up for tensor parallelism; 0 = model.vocab
};

/// One transformer layer; the input embedding; final norm, logits and loss; in forward order.
std::vector<ModelOperator> layer_operators(const Model& model, const ShapeOptions& options);
std::vector<ModelOperator> embedding_operators(const Model& model, const ShapeOptions& options);
std::vector<ModelOperator> head_operators(const Model& model, const ShapeOptions& options);

/// FLOPs of one step as the published tables count them (Narayanan 2021 eq. 3 without recompute):
/// 72 B S L H^2 (1 + S/(6H) + V/(12 L H)) for GPT shapes; 3 x the sum of model_flops in general.
Flops model_flops_per_sequence(const Model& model, std::int64_t sequence);

}  // namespace orrery
