// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/spmd/graph_builder.h"

namespace orrery::spmd {
namespace {

constexpr std::int64_t kNarrowElement = 2;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;

class DecoderBuilder {
 public:
  DecoderBuilder(const zoo::Model& model, const DecoderSize& size)
      : model_(model), size_(size), make_(kNarrowElement) {
    make_.graph().model = model.name;
    make_.graph().devices = size.devices;
    make_.graph().layers = size.layers;
    make_.graph().heads = model.heads;
  }

  OperatorGraph build() {
    const int tokens = make_.input("x", {size_.batch, size_.sequence});
    const int labels = make_.input("y", {size_.batch, size_.sequence});
    const int table = make_.parameter("embedding_weight", {model_.vocab, model_.hidden});
    const Shape rows{size_.batch, size_.sequence, model_.hidden};
    int x = make_.apply({"embedding", elements(rows)}, {tokens, table}, rows);
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
      make_.set_prefix(fmt::format("layers_{}_", layer));
      x = make_.elementwise("add", {x, attention(norm(x, "input_norm"))});
      x = make_.elementwise("add", {x, mlp(norm(x, "mlp_norm"), layer)});
    }
    make_.set_prefix("");
    const int logits = linear(model_.final_norm ? norm(x, "final_norm") : x, "head", model_.vocab);
    const int turned = make_.transpose(make_.elementwise("log_softmax", {logits}, 15), 1, 2);
    make_.output(
        make_.apply({"nll_loss", elements(make_.shape(turned))}, {turned, labels}, Shape{}));
    if (size_.batch % (2 * size_.devices) != 0) {
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

  int norm(int x, const std::string& name) {
    std::vector<int> inputs{x, make_.parameter(name + "_weight", {model_.hidden})};
    const bool shifts = model_.norm == zoo::NormKind::layer_norm;
    if (shifts) {
      inputs.push_back(make_.parameter(name + "_bias", {model_.hidden}));
    }
    return make_.elementwise(shifts ? "layer_norm" : "rms_norm", inputs, 10);
  }

  int linear(int x, const std::string& name, std::int64_t outputs) {
    const std::int64_t inputs = make_.shape(x).back();
    Shape extents = make_.shape(x);
    extents.back() = outputs;
    return make_.apply({"linear", 3 * elements(extents) * static_cast<double>(inputs)},
                       {x, make_.parameter(name + "_weight", {outputs, inputs})}, extents);
  }

  int attention(int x) {
    const std::int64_t keys = model_.kv_heads * model_.head_dim;
    const int q = linear(x, "query", model_.heads * model_.head_dim);
    const int k = linear(x, "key", keys);
    const int v = linear(x, "value", keys);
    const Shape extents = make_.shape(q);
    const auto length = static_cast<double>(size_.sequence);
    const int context =
        make_.apply({"causal_attention", 6 * length * elements(extents)}, {q, k, v}, extents);
    if (model_.kv_heads % size_.devices != 0) {  // no device may have a part of a head
      std::erase_if(make_.graph().nodes.back().signatures, [](const Signature& signature) {
        return signature.outputs.front() == Form::gather(2);
      });
    }
    return linear(context, "projection", model_.hidden);
  }

  int mlp(int x, std::int64_t layer) {
    const zoo::LayerKind* const kind =
        model_.kinds.empty()
            ? nullptr
            : &model_.kinds[static_cast<std::size_t>(zoo::layer_kind(model_, layer))];
    const std::int64_t width = kind != nullptr && kind->ffn > 0 ? kind->ffn : model_.ffn;
    const int wide = linear(x, "fc1", width);
    const int active = zoo::is_gated(model_.mlp)
                           ? make_.elementwise("swiglu", {wide, linear(x, "gate", width)}, 4)
                           : make_.elementwise("gelu", {wide}, 3);
    return linear(active, "fc2", model_.hidden);
  }

  const zoo::Model& model_;
  const DecoderSize& size_;
  GraphBuilder make_;
};

bool is_plain(const zoo::LayerKind& kind) {
  return kind.mixer == zoo::MixerKind::attention &&
         kind.feed_forward == zoo::FeedForwardKind::dense && kind.window == 0 && kind.chunk == 0 &&
         kind.causal && !kind.cross_attention;
}

bool is_decoder(const zoo::Model& model) {
  return std::ranges::all_of(model.kinds, is_plain) && model.input == zoo::InputKind::tokens &&
         model.head == zoo::HeadKind::next_token && model.streams == 1 && model.mtp == 0 &&
         model.norm_place == zoo::NormPlace::before && !model.parallel_residual &&
         model.experts == 0 && (model.value_dim == 0 || model.value_dim == model.head_dim);
}

}  // namespace

Result<OperatorGraph> decoder_graph(const zoo::Model& model, const DecoderSize& size) {
  Error mistakes;
  if (!is_decoder(model)) {
    mistakes.add({"--graph",
                  {},
                  model.name,
                  "a model of pre-norm layers of causal attention and a dense MLP"});
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
