// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/spmd/decoder_layers.h"
#include "planner/spmd/graph_builder.h"

namespace orrery::spmd {
namespace {

constexpr std::int64_t kNarrowElement = 2;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;

class DecoderBuilder {
 public:
  DecoderBuilder(const zoo::Model& model, const DecoderSize& size)
      : model_(model), size_(size), make_(kNarrowElement), write_(model_, size_, make_) {
    make_.graph().model = model.name;
    make_.graph().devices = size.devices;
    make_.graph().layers = size.layers;
    make_.graph().heads = model.heads;
    make_.graph().kv_heads = model.kv_heads;
    make_.graph().scan = {model.mamba.groups, model.mamba.state, model.mamba.chunk};
  }

  OperatorGraph build() {
    const int tokens = make_.input("x", {size_.batch, size_.sequence});
    const int labels = make_.input("y", {size_.batch, size_.sequence});
    const int table = make_.parameter("embedding_weight", {model_.vocab, model_.hidden});
    int x = embedding(tokens, table);
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
      make_.set_prefix(fmt::format("layers_{}_", layer));
      x = write_.layer(
          x, model_.kinds.empty() ? zoo::LayerKind{} : kind_of(zoo::layer_kind(model_, layer)));
    }
    make_.set_prefix("");
    const int last = model_.final_norm ? write_.norm(x, "final_norm") : x;
    const int head = make_.parameter("head_weight", {model_.vocab, model_.hidden});
    int loss = loss_of(last, head, labels);
    for (std::int64_t depth = 1; depth <= model_.mtp; ++depth) {
      make_.set_prefix(fmt::format("mtp_{}_", depth));
      x = further(x, table, depth);
      const int more = make_.input(fmt::format("y_{}", depth), {size_.batch, size_.sequence});
      const int other = loss_of(write_.norm(x, "final_norm"), head, more);
      loss = make_.apply({"sum_of_losses", 1}, {loss, other}, Shape{});
    }
    make_.output(loss);
    if (!size_.mesh && size_.batch % (2 * size_.devices) != 0) {
      keep_samples_whole();
    }
    return std::move(make_.graph());
  }

 private:
  /// No device may have a part of a sample of a half-batch.
  void keep_samples_whole() {
    const OperatorGraph& graph = make_.graph();
    const auto is_slice_of_samples = [&](int tensor, Form form) {
      const int producer = graph.tensors[static_cast<std::size_t>(tensor)].producer;
      return form == Form::gather(0) && !graph.nodes[static_cast<std::size_t>(producer)].is_load();
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

  const zoo::LayerKind& kind_of(int kind) const {
    return model_.kinds[static_cast<std::size_t>(kind)];
  }

  int embedding(int tokens, int table) {
    const Shape rows{size_.batch, size_.sequence, model_.hidden};
    return make_.apply({"embedding", elements(rows)}, {tokens, table}, rows);
  }

  /// Multi-token prediction (DeepSeek-AI 2024, "DeepSeek-V3", section 2.2): what the layers before
  /// made of a token and the embedding of one further on, both normed, projected to one; layers.
  int further(int x, int table, std::int64_t depth) {
    const int tokens = make_.input(fmt::format("x_{}", depth), {size_.batch, size_.sequence});
    const int next = write_.norm(embedding(tokens, table), "embedding_norm");
    const int before = write_.norm(x, "hidden_norm");
    Shape both = make_.shape(x);
    both.back() *= 2;
    const int joined = make_.apply({"concatenate", elements(both)}, {before, next}, both);
    int y = write_.linear(joined, "combine", model_.hidden);
    for (const int kind : zoo::prediction_layers(model_)) {
      y = write_.layer(y, model_.kinds.empty() ? zoo::LayerKind{} : kind_of(kind));
    }
    return y;
  }

  int loss_of(int x, int head, int labels) {
    Shape scores = make_.shape(x);
    const auto width = static_cast<double>(scores.back());
    scores.back() = model_.vocab;
    const int logits = make_.apply({"linear", 3 * elements(scores) * width}, {x, head}, scores);
    const int turned = make_.transpose(make_.elementwise("log_softmax", {logits}, 15), 1, 2);
    return make_.apply({"nll_loss", elements(make_.shape(turned))}, {turned, labels}, Shape{});
  }

  const zoo::Model& model_;
  const DecoderSize& size_;
  GraphBuilder make_;
  LayerWriter write_;
};

bool is_decoder(const zoo::Model& model) {
  return std::ranges::all_of(model.kinds, is_known) && model.index.chosen == 0 &&
         !model.attention_gate && model.query_key_norm != zoo::QueryKeyNorm::whole &&
         model.input == zoo::InputKind::tokens && model.head == zoo::HeadKind::next_token &&
         model.streams == 1 && model.norm_place != zoo::NormPlace::after;
}

}  // namespace

Result<OperatorGraph> decoder_graph(const zoo::Model& model, const DecoderSize& size) {
  Error mistakes;
  if (!is_decoder(model)) {
    mistakes.add(
        {"--graph",
         {},
         model.name,
         "a model of pre-norm layers of causal attention or Mamba-2, with an MLP or experts, that "
         "predicts tokens and has one residual stream"});
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
  return DecoderBuilder(model, full).build();
}

}  // namespace orrery::spmd
