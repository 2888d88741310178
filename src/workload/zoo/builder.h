// SPDX-License-Identifier: Apache-2.0
/// Parts from which the operator lists are made. Internal to this folder.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "workload/zoo/model.h"

namespace orrery::zoo {

using Operators = std::vector<ModelOperator>;
using Role = graph::OperatorRole;
using graph::Branch;
using graph::Dim;
using graph::Extent;
using graph::TensorList;
using Form = std::initializer_list<Extent>;

/// Extents of one microbatch and the sizes of the tensors that operators stream, at t = 1.
struct Shapes {
  Shapes(const Model& m, const ShapeOptions& o, LayerKind k = {});

  /// Returns the bytes of a rows x columns tensor of the compute type; saturates.
  Bytes tensor(std::int64_t rows, std::int64_t columns) const { return element * rows * columns; }
  /// Returns the bytes of T rows.
  Bytes wide(std::int64_t columns) const { return tensor(tokens, columns); }
  /// Returns extent T.
  Extent rows() const { return {Dim::tokens, tokens}; }
  Extent width() const { return {Dim::hidden, model.hidden}; }

  const Model& model;
  const ShapeOptions& options;
  LayerKind kind;
  std::int64_t tokens;     ///< T = B S / c
  std::int64_t queries;    ///< of one sequence: S / c
  std::int64_t head_dim;   ///< of queries and keys
  std::int64_t value_dim;  ///< of a head
  std::int64_t query;      ///< heads x head_dim
  std::int64_t key;        ///< kv_heads x head_dim
  std::int64_t value;      ///< kv_heads x value_dim; 0 where keys are the values too
  std::int64_t context;    ///< heads x value_dim: width of what attention returns
  std::int64_t ffn;        ///< inner width of this layer's dense MLP
  std::int64_t vocab;      ///< padded
  Bytes element;           ///< size of the compute type
  Bytes hidden_tensor;     ///< T x H
  Bytes hidden_mask;       ///< T x H of one byte: a dropout mask
};

/// A matrix' product with activations, Y[rows, out] = X[rows, in] W[in, out].
struct Matrix {
  std::string name;
  Role role = Role::none;
  Extent out;
  std::int64_t further = 0;  ///< parameters beside W: a bias
  bool keeps_input = true;   ///< false: an operator before keeps X
  bool shared = false;       ///< W is another block's
};

/// Tensors that an operator reads and writes, and those that it keeps for its backward.
struct Edges {
  TensorList reads{};  ///< with its parameters
  TensorList writes{};
  TensorList saves{};
};

/// A GraphBuilder puts operators and the tensors between them together. From its tensors follow an
/// operator's
///
///   parameters   elements of the parameters that it reads and that are this block's own
///   saved        bytes of the tensors that it keeps
///   gemm_split   of products: by what tensor parallelism divides of their input and result,
///                column (result), row (input; a lookup: its table) or heads (both)
///   split        tensor: it divides what is kept of a product's input, or anything that another
///                operator reads or writes, or an expert's rows; none: only a lookup's table, or
///                there are no tokens; else sequence
class GraphBuilder {
 public:
  explicit GraphBuilder(graph::DataType type) : type_(type) { graph_.tensors.reserve(64); }

  int activation(Form extents);
  int activation(Form extents, graph::DataType type);
  /// Adds a tensor of the form and type of another one.
  int like(int tensor);
  int input(Form extents);
  int buffer(Form extents, graph::DataType type);
  int parameter(Form extents, bool shared = false);
  /// Elements of another tensor that are read as one of this form.
  int view(int of, Form extents);

  /// Adds an operator. `parameters`: those that the operator has beside those of its edges.
  ModelOperator& add(ModelOperator op, Edges edges, std::int64_t parameters = 0);
  /// Adds an operator whose result has the form of the first tensor that it reads; returns it.
  int map(ModelOperator op, TensorList reads, TensorList saves = {}, std::int64_t parameters = 0);
  /// Adds a product with the columns of all of `inputs`; returns its result.
  int product(Matrix matrix, TensorList inputs);
  /// Adds a product whose result several tensors share: a view for each of the widths.
  TensorList products(Matrix matrix, int input, Form widths);

  const graph::ModelTensor& tensor(int number) const {
    return graph_.tensors[static_cast<std::size_t>(number)];
  }
  Operators& operators() { return graph_.operators; }
  ModelGraph finish(int output);

 private:
  struct Divided {
    bool input = false;
    bool result = false;
    bool parameter = false;
  };

  int push(graph::ModelTensor tensor, Form extents);
  Divided divided(const ModelOperator& op) const;
  GemmSplit gemm_split(const ModelOperator& op, const Divided& divided) const;
  Split split(const ModelOperator& op, const Divided& divided) const;

  ModelGraph graph_;
  graph::DataType type_;
};

/// Gives operators from `first` on to the branch, but for those that one has already.
void mark(Operators& operators, std::size_t first, Branch branch);

/// Returns the width of the token table's rows.
inline std::int64_t table_width(const Model& model) {
  return model.table_width > 0 ? model.table_width : model.hidden;
}

/// Returns the layer kind with this index. Requires 0 <= kind < number of layer_kinds(model).
LayerKind kind_of(const Model& model, int kind);

/// Returns how many of the model's layers are of each kind.
std::vector<std::int64_t> layers_by_kind(const Model& model);

/// Traffic is what a memory-bound operator reads and writes, in all its kernels.
struct Traffic {
  Bytes forward{0};
  int forward_kernels = 0;
  Bytes backward{0};
  int backward_kernels = 0;
};

/// Returns a memory-bound operator.
ModelOperator streaming(std::string name, Role role, graph::OperatorKind kind,
                        const Traffic& traffic);

/// The functions below append the parts of a block. They take the numbers of the tensors that enter
/// a part and return that of its result: T rows, of H columns where nothing else is said.

/// Appends LayerNorm or RMSNorm over rows of `width`; over H with the sum of the two gradients that
/// meet at its input, the residual branch's and its own. Returns its result.
int append_norm(GraphBuilder& block, const Shapes& shapes, std::string name, Role role, int x);
int append_norm(GraphBuilder& block, const Shapes& shapes, std::string name, Role role, int x,
                std::int64_t width);
/// Returns the operator of a norm over rows of `width`.
ModelOperator norm(std::string name, Role role, const Shapes& shapes, std::int64_t width);
/// Returns the number of parameters of a norm over `width` elements.
std::int64_t norm_parameters(const Model& model, std::int64_t width);

/// Returns the kernels of the activation between the matrices of an MLP of inner width `width`, for
/// `rows` tokens.
ModelOperator activation(const Shapes& shapes, std::int64_t rows, std::int64_t width, bool bias);
/// Appends it behind x, which holds what it is applied to; returns its result. `kept`: beside x.
int append_activation(GraphBuilder& block, const Shapes& shapes, ModelOperator op, int x,
                      TensorList kept = {});

/// Heads are what attention reads: queries, keys, values (-1: keys are the values too), and further
/// tensors.
struct Heads {
  int query = -1;
  int key = -1;
  int value = -1;
  TensorList further{};

  TensorList all() const;
};
/// Appends the attention core: from Q, K, V (saved by who made them) to the input of the output
/// projection.
int append_attention(GraphBuilder& block, const Shapes& shapes, const Heads& heads);
/// Appends what leads from the norm's output to Q, K, V of multi-head latent attention.
Heads append_latent_projections(GraphBuilder& block, const Shapes& shapes, int x);
/// Appends what leads from the norm's output to H: projections, compressor, indexer, attention,
/// output projections.
int append_compressed_attention(GraphBuilder& block, const Shapes& shapes, int x);
/// Appends what leads from the norm's output to H: projections, convolution, scan, gated norm.
int append_mamba(GraphBuilder& block, const Shapes& shapes, int x);
/// Appends what leads from the norm's output to H: router, dispatch, experts, combine, shared
/// expert.
int append_experts(GraphBuilder& block, const Shapes& shapes, int x);
/// Appends fc1, activation and fc2 of inner width `ffn`, of the MLP or the shared expert
/// ("shared_fc1_gemm").
int append_mlp(GraphBuilder& block, const Shapes& shapes, int x, Branch branch, std::int64_t ffn,
               bool keeps_input = true);

/// Appends the matrices of LayerKind::widths, after the interaction when there is one.
int append_tower(GraphBuilder& block, const Shapes& shapes);

/// Returns the number of query-key pairs of one head and sequence that a kernel which skips masked
/// blocks computes.
double visible_pairs(const Shapes& shapes);
/// Masks have a byte an element.
inline constexpr graph::DataType kMask = graph::DataType::fp8;
/// Returns the pairs that an indexer scores: of a query and every compressed key before it.
double indexed_pairs(const Shapes& shapes);

/// Residual streams X (T x n x H) and the weights with which they are summed and mixed.
struct Streams {
  int values = -1;
  int weights = -1;
};
/// Appends what stands in front of a branch with hyper-connections (Model::streams n > 1): its
/// mixing weights from the n streams, and their weighted sum, which is returned. `branch`: prefix
/// of the names.
int append_collapse(GraphBuilder& block, const Shapes& shapes, const std::string& branch,
                    Streams& streams);
/// Appends what stands after the branch: the mixed streams plus the weighted result y of the
/// branch.
int append_expand(GraphBuilder& block, const Shapes& shapes, const std::string& branch,
                  const Streams& streams, int y);
/// Appends n copies of the embedding.
int append_stream_copies(GraphBuilder& block, const Shapes& shapes, int x);
/// Appends one weighted sum of n streams in front of the final norm.
int append_stream_head(GraphBuilder& block, const Shapes& shapes, int x);
/// Appends the norms and projections of a depth of multi-token prediction: the hidden states' n
/// streams and the embedding have a matrix each.
int append_stream_combine(GraphBuilder& block, const Shapes& shapes, int x, int embedding);
/// Appends what enters a block: T x H, or T x n x H.
int append_input(GraphBuilder& block, const Shapes& shapes);
/// Appends one layer behind x. Requires that x has that form.
int append_layer(GraphBuilder& block, const Shapes& shapes, int x);

/// Returns the number of parameters of a hyper-connection around one branch, and of the one in
/// front of the output; 0 without streams.
std::int64_t stream_parameters(const Model& model);
std::int64_t stream_head_parameters(const Model& model);

}  // namespace orrery::zoo
