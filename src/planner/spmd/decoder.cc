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
    make_.graph().kv_heads = model.kv_heads;
  }

  OperatorGraph build() {
    const int tokens = make_.input("x", {size_.batch, size_.sequence});
    const int labels = make_.input("y", {size_.batch, size_.sequence});
    const int table = make_.parameter("embedding_weight", {model_.vocab, model_.hidden});
    const Shape rows{size_.batch, size_.sequence, model_.hidden};
    int x = make_.apply({"embedding", elements(rows)}, {tokens, table}, rows);
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
      make_.set_prefix(fmt::format("layers_{}_", layer));
      const zoo::LayerKind kind =
          model_.kinds.empty()
              ? zoo::LayerKind{}
              : model_.kinds[static_cast<std::size_t>(zoo::layer_kind(model_, layer))];
      const int in = norm(x, "input_norm");
      x = make_.elementwise(
          "add", {x, kind.mixer == zoo::MixerKind::latent_attention ? latent_attention(in)
                                                                    : attention(in)});
      const int wide = norm(x, "mlp_norm");
      x = make_.elementwise("add", {x, kind.feed_forward == zoo::FeedForwardKind::experts
                                           ? experts(wide)
                                           : mlp(wide, kind.ffn > 0 ? kind.ffn : model_.ffn)});
    }
    make_.set_prefix("");
    const int logits = linear(model_.final_norm ? norm(x, "final_norm") : x, "head", model_.vocab);
    const int turned = make_.transpose(make_.elementwise("log_softmax", {logits}, 15), 1, 2);
    make_.output(
        make_.apply({"nll_loss", elements(make_.shape(turned))}, {turned, labels}, Shape{}));
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

  int norm(int x, const std::string& name) {
    const Shape width{make_.shape(x).back()};
    std::vector<int> inputs{x, make_.parameter(name + "_weight", width)};
    const bool shifts = model_.norm == zoo::NormKind::layer_norm;
    if (shifts) {
      inputs.push_back(make_.parameter(name + "_bias", width));
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
    return attended(q, k, linear(x, "value", keys));
  }

  /// MLA: through latents, keys with one rotated part for all heads.
  int latent_attention(int x) {
    const zoo::LatentAttention& latent = model_.latent;
    const int narrow =
        latent.query_rank > 0 ? norm(linear(x, "query_a", latent.query_rank), "query_norm") : x;
    const int q = linear(narrow, "query", model_.heads * model_.head_dim);
    const int rotary = linear(x, "key_rotary", latent.rotary);
    const int both = norm(linear(x, "latent", latent.key_value_rank), "latent_norm");
    const int part = linear(both, "key", model_.heads * (model_.head_dim - latent.rotary));
    const int k =
        make_.apply({"append_rotary", elements(make_.shape(q))}, {part, rotary}, make_.shape(q));
    keep_heads_whole();
    return attended(q, k, linear(both, "value", model_.heads * value_width()));
  }

  int attended(int q, int k, int v) {
    Shape extents = make_.shape(q);
    const auto length = static_cast<double>(size_.sequence);
    const double flops = 3 * length * elements(extents);
    extents.back() = model_.heads * value_width();
    const int context = make_.apply({"causal_attention", flops + 3 * length * elements(extents)},
                                    {q, k, v}, extents);
    keep_heads_whole();
    return linear(context, "projection", model_.hidden);
  }
  std::int64_t value_width() const {
    return model_.value_dim > 0 ? model_.value_dim : model_.head_dim;
  }

  /// No device may have a part of a head of the last node.
  void keep_heads_whole() {
    if (!size_.mesh && model_.kv_heads % size_.devices != 0) {
      std::erase_if(make_.graph().nodes.back().signatures, [](const Signature& signature) {
        return signature.outputs.front() == Form::gather(2);
      });
    }
  }

  int mlp(int x, std::int64_t width) {
    const int wide = linear(x, "fc1", width);
    return linear(activated(wide, [&] { return linear(x, "gate", width); }), "fc2", model_.hidden);
  }
  template <class Gate>
  int activated(int wide, const Gate& gate) {
    return zoo::is_gated(model_.mlp) ? make_.elementwise("swiglu", {wide, gate()}, 4)
                                     : make_.elementwise("gelu", {wide}, 3);
  }

  /// Every token's top_k experts have room for it, and equally much to do: C = top_k s / E, rounded
  /// up. Beside them the shared expert.
  int experts(int x) {
    const std::int64_t count = model_.experts;
    const std::int64_t rows = (model_.top_k * size_.sequence + count - 1) / count;
    const Shape slots{size_.batch, count, rows};
    const Shape narrow{size_.batch, count, rows, model_.hidden};
    const Shape wide{size_.batch, count, rows, model_.expert.ffn};
    const auto hidden = static_cast<double>(model_.hidden);
    const double product = 3 * elements(wide) * hidden;
    const int router = make_.parameter("router_weight", {model_.hidden, count});
    const int chosen =
        make_.apply({"top_k_gating", 3 * elements(make_.shape(x)) * static_cast<double>(count)},
                    {x, router}, slots);
    const int in = make_.apply({"dispatch", elements(narrow)}, {x, chosen}, narrow);
    const auto up = [&](const char* name) {
      const int w = make_.parameter(name, {count, model_.hidden, model_.expert.ffn});
      return make_.apply({"einsum edh,becd->bech", product}, {w, in}, wide);
    };
    const int active = activated(up("w1"), [&] { return up("w3"); });
    const int w2 = make_.parameter("w2", {count, model_.expert.ffn, model_.hidden});
    const int down = make_.apply({"einsum ehd,bech->becd", product}, {w2, active}, narrow);
    const int out = make_.apply({"combine", 2 * elements(narrow)}, {down, chosen}, make_.shape(x));
    return model_.expert.shared_ffn > 0
               ? make_.elementwise("add", {out, mlp(x, model_.expert.shared_ffn)})
               : out;
  }

  const zoo::Model& model_;
  const DecoderSize& size_;
  GraphBuilder make_;
};

bool is_known(const zoo::LayerKind& kind) {
  return (kind.mixer == zoo::MixerKind::attention ||
          kind.mixer == zoo::MixerKind::latent_attention) &&
         (kind.feed_forward == zoo::FeedForwardKind::dense ||
          kind.feed_forward == zoo::FeedForwardKind::experts) &&
         kind.window == 0 && kind.chunk == 0 && kind.causal && !kind.cross_attention;
}

bool is_decoder(const zoo::Model& model) {
  return std::ranges::all_of(model.kinds, is_known) && model.input == zoo::InputKind::tokens &&
         model.head == zoo::HeadKind::next_token && model.streams == 1 && model.mtp == 0 &&
         model.norm_place == zoo::NormPlace::before && !model.parallel_residual &&
         model.expert.latent == 0;
}

}  // namespace

Result<OperatorGraph> decoder_graph(const zoo::Model& model, const DecoderSize& size) {
  Error mistakes;
  if (!is_decoder(model)) {
    mistakes.add(
        {"--graph",
         {},
         model.name,
         "a model of pre-norm layers of causal attention, with a dense MLP or experts, and "
         "one prediction a token"});
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
