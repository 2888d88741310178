// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "planner/spmd/decoder_signatures.h"
#include "planner/spmd/graph_builder.h"
#include "planner/spmd/kernel_shape.h"

namespace orrery::spmd {
namespace {

using graph::Branch;
using graph::Dim;
using Role = graph::OperatorRole;
using Use = graph::ModelTensor::Use;
using Operands = std::vector<Operand>;

constexpr int kColumns = 2;  // of a tensor of tokens: dimension
constexpr std::int64_t kNarrowElement = 2;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;

class Converter {
 public:
  Converter(const zoo::Model& model, const DecoderSize& size)
      : model_(model),
        size_(size),
        shapes_{.microbatch = size.batch,
                .sequence = size.sequence,
                .attention = zoo::AttentionKernel::flash},
        make_(kNarrowElement) {
    make_.graph().model = model.name;
    make_.graph().devices = size.devices;
    make_.graph().layers = size.layers;
  }

  OperatorGraph build() {
    int x = append(zoo::embedding_graph(model_, shapes_), -1);
    std::vector<zoo::ModelGraph> kinds;
    for (std::size_t kind = 0; kind < zoo::layer_kinds(model_).size(); ++kind) {
      kinds.push_back(zoo::layer_graph(model_, shapes_, static_cast<int>(kind)));
    }
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
      prefix_ = fmt::format("layers_{}_", layer);
      x = append(kinds[static_cast<std::size_t>(zoo::layer_kind(model_, layer))], x);
    }
    prefix_.clear();
    append(zoo::head_graph(model_, shapes_), x);
    make_.output(loss_);
    if (!size_.mesh && size_.batch % (2 * size_.devices) != 0) {
      keep_samples_whole();
    }
    return std::move(make_.graph());
  }

 private:
  /// Appends a block behind tensor `entering`; returns the one that leaves it.
  int append(const zoo::ModelGraph& block, int entering) {
    numbers_.assign(block.tensors.size(), -1);
    for (std::size_t i = 0; i < block.tensors.size(); ++i) {
      numbers_[i] = block.tensors[i].use == Use::input ? entering : -1;
    }
    for (const zoo::ModelOperator& op : block.operators) {
      append(block, op);
    }
    return block.output < 0 ? -1 : number(block, block.output);
  }

  void append(const zoo::ModelGraph& block, const zoo::ModelOperator& op) {
    if (!is_product(op.kind) && op.forward_kernels == 0) {  // results are parts of what it reads
      for (const int part : op.writes) {
        numbers_[static_cast<std::size_t>(part)] = number(block, op.reads.front());
      }
      return;
    }
    Operands outputs;
    std::vector<int> written;
    for (const int result : op.writes) {
      const graph::ModelTensor& tensor = block.tensors[static_cast<std::size_t>(result)];
      if (tensor.use != Use::buffer) {
        outputs.push_back({.shape = shape_of(tensor, op), .dims = dims_of(tensor, op)});
        written.push_back(result);
      }
    }
    if (outputs.empty()) {  // clears a table's gradient
      return;
    }
    const std::vector<int> made = add(op, read(block, op, outputs), outputs);
    for (std::size_t i = 0; i < made.size(); ++i) {
      numbers_[static_cast<std::size_t>(written[i])] = made[i];
    }
    if (op.role == Role::cross_entropy) {
      loss_ = loss_ < 0 ? made.front() : sum_of_losses(made.front());
    }
  }

  std::vector<int> add(const zoo::ModelOperator& op, const Operands& inputs,
                       const Operands& outputs) {
    Node node{.op = op.name,
              .name = make_.numbered(prefix_ + op.name),
              .flops = op.forward_flops * 3 / 2,
              .signatures = signatures_of(op, inputs, outputs),
              .kernel = kernel_of(op),
              .experts = op.expert || op.kind == graph::OperatorKind::permute};
    std::vector<Shape> shapes;
    for (const Operand& input : inputs) {
      node.inputs.push_back(input.tensor);
    }
    for (const Operand& output : outputs) {
      shapes.push_back(output.shape);
      node.flops += Flops(is_product(op.kind) ? 0 : elements(output.shape));
    }
    keep_parts_whole(node);
    std::vector<int> made = make_.add(std::move(node), shapes);
    for (std::size_t i = 0; i < made.size(); ++i) {
      dims_[made[i]] = outputs[i].dims;
    }
    return made;
  }

  int sum_of_losses(int other) {
    constexpr Form kSummands = Form::reduce();
    const int sum = make_.apply({"sum_of_losses", 1}, {loss_, other}, Shape{});
    make_.graph().nodes.back().signatures = {
        {{kSummands, kSummands}, {kSummands}},
        {{Form::full(), Form::full()}, {Form::full()}},
    };
    return sum;
  }

  /// Each tensor is there once; weights of experts come first.
  Operands read(const zoo::ModelGraph& block, const zoo::ModelOperator& op,
                const Operands& outputs) {
    Operands inputs;
    if (op.role == Role::token_embedding) {
      inputs.push_back(input("tokens", op.depth));
    }
    for (const int tensor : op.reads) {
      const graph::ModelTensor& one = block.tensors[static_cast<std::size_t>(tensor)];
      Operand found = one.use == Use::parameter ? parameter(one, op, outputs.front())
                                                : activation(one, op, number(block, tensor));
      if (std::ranges::find(inputs, found.tensor, &Operand::tensor) == inputs.end()) {
        inputs.push_back(std::move(found));
      }
    }
    if (op.role == Role::cross_entropy) {
      inputs.push_back(input("labels", op.depth));
    }
    if (op.expert) {
      std::ranges::stable_partition(inputs, &Operand::parameter);
    }
    return inputs;
  }

  Operand input(const std::string& name, int depth) {
    const Shape shape{size_.batch, size_.sequence};
    const std::string full = depth == 0 ? name : fmt::format("{}_{}", name, depth);
    return {.tensor = make_.input(full, shape), .shape = shape, .dims = {Dim::batch, Dim::tokens}};
  }

  Operand activation(const graph::ModelTensor& tensor, const zoo::ModelOperator& op, int number) {
    const Shape& shape = make_.shape(number);
    std::vector<Dim>& dims = dims_[number];
    if (tensor.view_of >= 0 && tensor.columns() == shape.back()) {
      dims = dims_of(tensor, op);  // all of it, by another name
    }
    return {.tensor = number, .shape = shape, .dims = dims};
  }

  /// Returns the node's tensor that a block's tensor is, or is a part of.
  int number(const zoo::ModelGraph& block, int tensor) const {
    const auto at = static_cast<std::size_t>(tensor);
    return numbers_[at] >= 0 ? numbers_[at] : number(block, block.tensors[at].view_of);
  }

  /// Vectors are in slices of the result's columns, but for norms that scale all heads alike.
  Operand parameter(const graph::ModelTensor& tensor, const zoo::ModelOperator& op,
                    const Operand& result) {
    const bool matrix = tensor.extents[0].dim != Dim::none || tensor.columns() > 1;
    const bool looked_up = op.role == Role::token_embedding;
    Operand found{.shape = {tensor.rows() * tensor.columns()}, .dims = {}, .parameter = true};
    if (matrix && op.expert) {
      found.shape = {tensor.rows(), tensor.extents[1].size, tensor.extents[2].size};
    } else if (matrix) {
      found.shape = {tensor.columns(), tensor.rows()};
    }
    if (op.expert) {
      found.dims = {Dim::experts};
    } else if (looked_up) {
      found.shape = {tensor.rows(), tensor.columns()};
      found.dims = {Dim::vocab, Dim::hidden};
    } else if (!is_product(op.kind) && op.role != Role::norm_heads &&
               (op.role != Role::norm_gated || found.shape.front() == result.shape.back())) {
      found.dims = {result.dims.back()};
    }
    if (tensor.shared) {
      found.tensor = looked_up || model_.tied_embedding ? table_ : head_;
      return found;
    }
    const bool bias = is_product(op.kind) && !matrix;
    found.tensor = make_.parameter(make_.numbered(prefix_ + op.name + (bias ? "_bias" : "_weight")),
                                   found.shape);
    make_.graph().nodes.back().experts = op.expert;
    table_ = looked_up ? found.tensor : table_;
    head_ = op.role == Role::logits && matrix ? found.tensor : head_;
    return found;
  }

  Shape shape_of(const graph::ModelTensor& tensor, const zoo::ModelOperator& op) const {
    if (op.role == Role::cross_entropy) {
      return {};
    }
    if (tensor.extents[0].dim == Dim::rows) {
      const std::int64_t room =
          (model_.top_k * size_.sequence + model_.experts - 1) / model_.experts;
      return {size_.batch, model_.experts, room, tensor.columns()};
    }
    return {size_.batch, size_.sequence, tensor.columns()};
  }

  static std::vector<Dim> dims_of(const graph::ModelTensor& tensor, const zoo::ModelOperator& op) {
    const Dim named = tensor.extents[1].dim;
    const Dim columns = graph::is_divided(named) ? kDivided : named;
    return op.role == Role::cross_entropy ? std::vector<Dim>{}
           : tensor.extents[0].dim == Dim::rows
               ? std::vector{Dim::batch, Dim::experts, Dim::rows, columns}
               : std::vector{Dim::batch, Dim::tokens, columns};
  }

  NodeKernel kernel_of(const zoo::ModelOperator& op) const {
    const std::int64_t parts = is_product(op.kind)              ? 0
                               : op.branch == Branch::mamba     ? model_.mamba.groups
                               : op.branch == Branch::attention ? model_.kv_heads
                                                                : 0;
    return {.kind = op.kind,
            .gemm = op.gemm,
            .flops = op.forward_flops,
            .bytes = op.forward_bytes,
            .kernels = std::max(1, op.forward_kernels),
            .parts = parts};
  }

  /// No device may have a part of a head or group.
  void keep_parts_whole(Node& node) const {
    if (!size_.mesh && node.kernel->parts % size_.devices != 0) {
      std::erase_if(node.signatures, [](const Signature& signature) {
        return signature.outputs.front() == Form::gather(kColumns);
      });
    }
  }

  /// No device may have a part of a sample of a half-batch.
  void keep_samples_whole() {
    const OperatorGraph& graph = make_.graph();
    const auto is_slice_of_samples = [&](int tensor, Form form) {
      return form == Form::gather(0) && !graph.producer(tensor).is_load();
    };
    for (Node& node : make_.graph().nodes) {
      std::erase_if(node.signatures, [&](const Signature& signature) {
        bool slices = false;
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
          slices = slices || is_slice_of_samples(node.inputs[k], signature.inputs[k]);
        }
        for (std::size_t k = 0; k < node.outputs.size(); ++k) {
          slices = slices || is_slice_of_samples(node.outputs[k], signature.outputs[k]);
        }
        return slices;
      });
    }
  }

  const zoo::Model& model_;
  const DecoderSize& size_;
  zoo::ShapeOptions shapes_;
  GraphBuilder make_;
  std::string prefix_;
  std::vector<int> numbers_;              ///< of the block's tensors; -1: not made
  std::map<int, std::vector<Dim>> dims_;  ///< of the graph's tensors
  int table_ = -1;
  int head_ = -1;
  int loss_ = -1;
};

bool is_decoder(const zoo::Model& model) {
  const auto is_known = [](const zoo::LayerKind& kind) {
    return kind.mixer != zoo::MixerKind::compressed_attention &&
           kind.feed_forward != zoo::FeedForwardKind::tower && !kind.cross_attention;
  };
  return std::ranges::all_of(model.kinds, is_known) && model.index.chosen == 0 &&
         model.input == zoo::InputKind::tokens && model.head == zoo::HeadKind::next_token &&
         model.streams == 1;
}

}  // namespace

Result<OperatorGraph> decoder_graph(const zoo::Model& model, const DecoderSize& size) {
  Error mistakes;
  if (!is_decoder(model)) {
    mistakes.add({"--graph",
                  {},
                  model.name,
                  "a model that predicts the tokens of a text, of one residual stream, whose "
                  "attention sees keys as they are"});
  }
  DecoderSize full = size;
  full.batch = size.batch == 0 ? 2 * size.devices : size.batch;
  full.sequence = size.sequence == 0 ? model.max_positions : size.sequence;
  full.layers = size.layers == 0 ? model.layers : size.layers;
  const auto check = [&](const char* flag, std::int64_t value, std::int64_t most) {
    if (value < 1 || value > most) {
      mistakes.add({flag, {}, std::to_string(value), fmt::format("a number from 1 to {}", most)});
    }
  };
  check("--devices", full.devices, kMostDevices);
  check("--layers", full.layers, kMostLayers);
  check("--sequence", full.sequence, kMostTokens);
  check("--batch", full.batch, kMostTokens / std::max<std::int64_t>(full.sequence, 1));
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return Converter(model, full).build();
}

}  // namespace orrery::spmd
