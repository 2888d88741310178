// SPDX-License-Identifier: Apache-2.0
/// A model as a list of operators with shapes, before any parallelisation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "graph/model_graph.h"
#include "graph/operator.h"
#include "graph/token_route.h"
#include "workload/zoo/architecture.h"

namespace orrery::zoo {

/// Reads config.json of the model types in families.h. The shape must be given; only what Hugging
/// Face itself derives or defaults (n_inner, head_dim, num_key_value_heads, patterns of layers),
/// dropouts and flags may be missing. Fields that do not change the computation (token ids,
/// initializer_range, torch_dtype, rope_theta, ...) are known and ignored; of a multimodal model
/// the text part is read, and the encoder of images. A model_type of another name is read as the
/// family that `architectures` names. Unknown fields that are false, 0, null or empty, or whose
/// names say that they weigh nothing (known_fields.h), are a note. Mistakes, all at once and naming
/// the field: any other unknown field, values that are not understood, shapes that do not divide,
/// extents outside 1 .. kMax*, more than kMaxParameters.
Result<Model> parse_model(const ConfigNode& node, std::string name);
/// A shipped name ("gpt3-175b"), or a path: of a config.json (any name that ends in .json), or,
/// when it contains '/', of the folder that holds config.json. The model is named after the file,
/// or after the folder when the file is called config.json. The hf_quant_config.json of ModelOpt
/// beside a config.json without quantization_config stands for it.
Result<Model> load_model(const std::string& name_or_path);

/// A ModelFile is what load_model() parses, before it does.
struct ModelFile {
  std::string name;
  ConfigNode node;
};
Result<ModelFile> load_model_file(const std::string& name_or_path);

inline constexpr std::int64_t kMaxLayers = std::int64_t{1} << 16;
/// Bounds hidden, heads and head_dim, and ffn / 8.
inline constexpr std::int64_t kMaxHidden = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxVocab = std::int64_t{1} << 28;
inline constexpr std::int64_t kMaxPositions = std::int64_t{1} << 27;
inline constexpr std::int64_t kMaxExperts = std::int64_t{1} << 20;
/// Depths of multi-token prediction.
inline constexpr std::int64_t kMaxPredictions = 64;
/// 18 bytes each still fit in Bytes.
inline constexpr std::int64_t kMaxParameters = std::int64_t{1} << 50;

/// Returns the GPT-2 architecture with an MLP of 4H, tied embedding and dropout 0.1, from the
/// numbers that tables of training runs give. Requires hidden % heads == 0 and extents as in
/// parse_model.
Model gpt_model(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                std::int64_t sequence, std::int64_t vocab);

/// Exact parameter counts, with the vocabulary as it is (not padded).
struct ParameterCount {
  std::vector<std::int64_t> per_kind;  ///< of one layer of each of layer_kinds
  std::int64_t layers = 0;             ///< of all layers
  std::int64_t embedding = 0;          ///< token table (V x H), token types, embedding norm
  std::int64_t position = 0;           ///< position table
  std::int64_t final_norm = 0;
  std::int64_t head = 0;  ///< untied output projection and its bias, else 0
  std::int64_t mtp = 0;   ///< multi-token prediction; published counts mostly leave it out
  std::int64_t total = 0;
  /// Parameters of the total that work on one token: all but the experts that are not chosen.
  std::int64_t active = 0;
  std::int64_t vision = 0;  ///< of the encoder of images and its projectors, beside the total
};
ParameterCount count_parameters(const Model& model);

/// A TensorExtent is what tensor parallelism must divide without remainder: {"attention heads",
/// 32}.
struct TensorExtent {
  std::string what;
  std::int64_t extent = 0;
  graph::Dim dim = graph::Dim::inner;
};
/// Returns what tp must divide: heads, key-value heads, MLP widths, Mamba heads and groups.
std::vector<TensorExtent> tensor_extents(const Model& model);
/// Returns what the tensor-parallel degree of experts must divide: their width. Empty for a dense
/// model.
std::vector<TensorExtent> expert_extents(const Model& model);

/// Says how tensor parallelism of degree t splits an operator's work and its saved activations.
enum class Split : std::uint8_t {
  none,      ///< every rank does all of it
  sequence,  ///< 1/t with sequence parallelism, else all of it (norms, dropout, residual)
  tensor,    ///< 1/t always (heads, MLP inner width)
};
/// Says which extent of a GEMM tensor parallelism divides.
enum class GemmSplit : std::uint8_t { none, column, row, heads };

/// Says whether selective recompute drops an operator's saved activations and runs its forward
/// again (full recompute does with every operator of a layer).
enum class RecomputeGroup : std::uint8_t { never, selective };

/// Weights says what training does with an operator's parameters (workload/plan/lora.h).
enum class Weights : std::uint8_t { trained, frozen, adapter };

/// One operator of the model for one microbatch of B sequences of S tokens on one device, before
/// splitting. FLOPs and bytes are those of the whole (t = 1) operator.
///
/// FLOPs count matrix work only (GEMMs and attention), as MFU and HFU do; element-wise work is
/// timed by its bytes. An operator with forward_kernels = 0 has no forward kernel (qkv_split
/// without bias is a view, embedding_gradient_zero exists in backward only).
///
/// Bytes of a GEMM are its operands and result at t = 1; what a split GEMM moves follows from its
/// split shape (`split` is that of its saved activations). Its backward is two GEMMs of the
/// forward's FLOPs (gradients of input and weight, or of both inputs) that are NOT in
/// backward_bytes and backward_kernels, which are 0: bias gradients and the concatenation of dQ,
/// dK, dV are with the operator that follows the GEMM forward, because they are split like it.
struct ModelOperator {
  std::string name;  ///< a label; what is done with it follows from the role
  graph::OperatorRole role = graph::OperatorRole::none;
  graph::Branch branch = graph::Branch::none;
  int depth = 0;  ///< of multi-token prediction; 0: none
  graph::OperatorKind kind = graph::OperatorKind::elementwise;
  graph::GemmShape gemm;                   ///< gemm, attention: m = tokens (or S), n = out, k = in
  GemmSplit gemm_split = GemmSplit::none;  ///< column: n/t; row: k/t; heads: batch/t
  Split split = Split::none;               ///< of bytes and saved activations
  RecomputeGroup recompute = RecomputeGroup::never;
  Flops forward_flops{0};   ///< really done (causal kernels: half the square)
  Flops model_flops{0};     ///< as MFU counts: full S^2, GEMMs and logits only; forward
  Flops backward_flops{0};  ///< really done
  Bytes forward_bytes{0};   ///< reads + writes of the forward kernel(s)
  Bytes backward_bytes{0};  ///< of the non-GEMM backward kernel(s)
  int forward_kernels = 1;
  int backward_kernels = 1;   ///< of the non-GEMM backward; 0 for a GEMM
  bool has_weight = false;    ///< backward of the GEMM: input-gradient + weight-gradient GEMM
  graph::TensorList reads{};  ///< numbers of the block's tensors, with its parameters
  graph::TensorList writes{};
  graph::TensorList saves{};  ///< kept for backward: `saved` is their bytes
  Weights weights = Weights::trained;
  /// A product that nothing divides reads all tokens, not a rank's own, since what reads its result
  /// is cut by columns.
  bool all_tokens = false;
  bool unquantized = false;  ///< stays in the compute type in quantised plans, too
  graph::AttentionLibrary library = graph::AttentionLibrary::any;  ///< of a fused attention core
  Bytes saved{0};  ///< activations kept for backward, at t = 1
  /// The operator belongs to a routed expert: split over the expert axes instead of tp. A grouped
  /// GEMM's batch is the number of experts and its m the mean number of rows that one of them gets.
  bool expert = false;
  std::int64_t experts = 0;  ///< of the model, of a routed expert's
  Bytes routed{0};  ///< of the first operator of experts: rows that come to it, T top_k H elements
  Bytes query{0};   ///< of an attention core: Q, and as much output; moved by cp (all-to-all)
  Bytes key_value{0};  ///< of an attention core: K and V; moved by cp
  /// Split by t when gemm_split is column or row, or heads of a GEMM with weights; else replicated.
  std::int64_t parameters = 0;
};

/// The operators of a block in forward order, and the tensors between them. An operator reads what
/// one before it has written, or parameters, or what enters the block.
struct ModelGraph {
  std::vector<graph::ModelTensor> tensors;
  std::vector<ModelOperator> operators;
  int output = -1;  ///< the tensor that the next block reads; -1: none
};

struct ShapeOptions {
  std::int64_t microbatch = 1;  ///< B
  std::int64_t sequence = 0;    ///< S
  /// Context-parallel degree c: a rank holds S/c tokens of each sequence. Token-wise operators have
  /// B S/c rows; attention has S/c queries per sequence against S keys (causal work is balanced).
  std::int64_t context = 1;
  graph::DataType type = graph::DataType::bf16;
  AttentionKernel attention = AttentionKernel::unfused;
  bool fused_kernels = true;         ///< bias+GeLU, bias+dropout+residual as one each
  bool fused_softmax = true;         ///< of unfused attention: scale+mask+softmax as one
  bool fused_cross_entropy = false;  ///< loss and its gradient in one kernel
  bool experts_apart = false;        ///< a GEMM per expert, whose output bias other kernels add
  bool experts_fused = false;        ///< of these: GEMMs add it and apply the activation
  bool pads_experts = false;         ///< rows are copied to and from buffers padded for each expert
  /// Ranks that a token is sent to, once each, by an exchange that merges its copies (mean); 0: all
  /// its top_k copies are made before they are sent.
  double token_copies = 0;
  std::int64_t padded_vocab = 0;  ///< V rounded up for tensor parallelism; 0 = model.vocab
  /// Lengths packed into each sequence, which do not see one another; they sum to S. Empty: one.
  /// Kernels that skip masked blocks (flash) compute the sum of their squares instead of S^2.
  std::vector<std::int64_t> documents{};
};

/// Returns one transformer layer, in forward order. T = B S tokens, F = ffn, a = heads, d =
/// head_dim:
///
///   input_norm, qkv_gemm, qkv_split, [rotary], attention core, proj_gemm, attention residual,
///   mlp_norm, fc1_gemm, bias_gelu | silu_mul, fc2_gemm, mlp residual
///
///   attention core, unfused: score_gemm (B a of S x S x d), scale_mask_softmax,
///   [attention_dropout], context_gemm (B a of S x d x S), context_transpose; flash:
///   flash_attention. This is the selective recompute group. Grouped keys and values are read in
///   place, never expanded to `heads`.
///
/// The residual operators are called {attention,mlp}[_bias][_dropout]_residual by what they do; the
/// bias is the one of proj_gemm or fc2_gemm (replicated over t). Other kinds replace the mixer or
/// the MLP (docs/models/zoo.md): experts are
///
///   mlp_norm, router_gemm, routing, expert_fc1_gemm, expert activation, expert_fc2_gemm,
///   unpermute, [shared_fc1_gemm ... shared_fc2_gemm, shared_sum], mlp residual
///
/// Saved activations of a GPT layer with dropout in 2-byte types are exactly
/// B S H (10 + 24/t + 5 a S / (H t))  bytes: 10 in Split::sequence, the rest in Split::tensor
/// (Korthikanti et al. 2022, eq. 2; eq. 4 with sequence parallelism). Requires: microbatch,
/// sequence >= 1, microbatch x sequence < 2^40. Byte counts saturate.
/// `kind` is one of layer_kinds(model).
ModelGraph layer_graph(const Model& model, const ShapeOptions& options, int kind = 0);
/// Returns the operators alone.
std::vector<ModelOperator> layer_operators(const Model& model, const ShapeOptions& options,
                                           int kind = 0);

/// Returns the names of the distinct layers of a model, such as {"dense", "moe"}; at least one.
std::vector<std::string> layer_kinds(const Model& model);
/// Returns which of them layer 0 <= layer < model.layers is.
int layer_kind(const Model& model, std::int64_t layer);
/// Kinds of the layers of one depth of multi-token prediction.
std::vector<int> prediction_layers(const Model& model);

/// Experts of a token.
graph::TokenRoute token_route(const Model& model);

/// Returns token_embedding (gather from a table split over the vocabulary: partial sums of ranks'
/// rows), embedding_gradient_zero (backward clears the table's dense gradient),
/// [position_embedding], [embedding_dropout].
ModelGraph embedding_graph(const Model& model, const ShapeOptions& options);
std::vector<ModelOperator> embedding_operators(const Model& model, const ShapeOptions& options);

/// Returns final_norm, logits_gemm (vocab-parallel; without parameters when tied), cross_entropy
/// (in fp32; saves the fp32 probabilities, 4 T V bytes); then one block "mtp_..." per depth of
/// multi-token prediction: token_embedding, hidden_norm, embedding_norm, combine_gemm, a layer,
/// final_norm, logits_gemm, cross_entropy. With t > 1 cross_entropy needs three all-reduces over tp
/// of T fp32 values each (maximum, predicted logit, sum of exponentials; Megatron-LM), which the
/// lowering adds.
ModelGraph head_graph(const Model& model, const ShapeOptions& options);
std::vector<ModelOperator> head_operators(const Model& model, const ShapeOptions& options);

/// Returns the FLOPs of forward and backward of one sequence as the published tables count them,
/// without recompute:
///
///   3 x sum of model_flops;  for GPT shapes 72 S L H^2 (1 + S/(6H) + V/(12 L H))
///
/// Of E experts the top_k of every token count; of a window twice the pairs inside (so S^2
/// without). V is `padded_vocab`, or model.vocab when 0. Source: Narayanan et al. 2021, appendix
/// (96 with full recompute instead of 72).
Flops model_flops_per_sequence(const Model& model, std::int64_t sequence,
                               std::int64_t padded_vocab = 0);

}  // namespace orrery::zoo
