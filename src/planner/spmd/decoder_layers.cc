// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/decoder_layers.h"

#include <algorithm>

namespace orrery::spmd {
namespace {

/// Pairs of query and key that a sequence has, twice: of a causal square all S^2.
double twice_the_pairs(const zoo::LayerKind& kind, std::int64_t sequence) {
  const auto length = static_cast<double>(sequence);
  if (kind.window > 0) {
    const double window = std::min(length, static_cast<double>(kind.window));
    return window * (2 * length - window);
  }
  if (kind.chunk > 0) {
    const auto chunk = static_cast<double>(kind.chunk);
    const std::int64_t whole = sequence / kind.chunk;
    const std::int64_t rest = sequence % kind.chunk;
    return static_cast<double>(whole) * chunk * chunk + static_cast<double>(rest * rest);
  }
  return length * length;
}

}  // namespace

bool is_known(const zoo::LayerKind& kind) {
  using zoo::FeedForwardKind;
  using zoo::MixerKind;
  return kind.mixer != MixerKind::compressed_attention && kind.mixer != MixerKind::gated_delta &&
         kind.feed_forward != FeedForwardKind::tower && kind.causal && !kind.cross_attention;
}

int LayerWriter::layer(int x, const zoo::LayerKind& kind) {
  if (model_.parallel_residual) {
    const int in = norm(x, "input_norm");
    const int wide = model_.shared_norm ? in : norm(x, "mlp_norm");
    const int sum = add(x, mixed(in, kind));
    return add(sum, fed(wide, kind));
  }
  if (kind.mixer != zoo::MixerKind::none) {
    x = add(x, after(mixed(norm(x, "input_norm"), kind), "attention_norm"));
  }
  if (kind.feed_forward != zoo::FeedForwardKind::none) {
    x = add(x, after(fed(norm(x, "mlp_norm"), kind), "output_norm"));
  }
  return x;
}

int LayerWriter::after(int x, const std::string& name) {
  return model_.norm_place == zoo::NormPlace::around ? norm(x, name) : x;
}

int LayerWriter::mixed(int x, const zoo::LayerKind& kind) {
  return kind.mixer == zoo::MixerKind::mamba              ? mamba(x)
         : kind.mixer == zoo::MixerKind::latent_attention ? latent_attention(x, kind)
                                                          : attention(x, kind);
}

int LayerWriter::fed(int x, const zoo::LayerKind& kind) {
  return kind.feed_forward == zoo::FeedForwardKind::experts
             ? experts(x)
             : mlp(x, kind.ffn > 0 ? kind.ffn : model_.ffn);
}

int LayerWriter::norm(int x, const std::string& name) {
  const Shape width{make_.shape(x).back()};
  std::vector<int> inputs{x, make_.parameter(name + "_weight", width)};
  const bool shifts = model_.norm == zoo::NormKind::layer_norm;
  if (shifts) {
    inputs.push_back(make_.parameter(name + "_bias", width));
  }
  return make_.elementwise(shifts ? "layer_norm" : "rms_norm", inputs, 10);
}

int LayerWriter::linear(int x, const std::string& name, std::int64_t outputs) {
  const std::int64_t inputs = make_.shape(x).back();
  Shape extents = make_.shape(x);
  extents.back() = outputs;
  return make_.apply({"linear", 3 * elements(extents) * static_cast<double>(inputs)},
                     {x, make_.parameter(name + "_weight", {outputs, inputs})}, extents);
}

int LayerWriter::attention(int x, const zoo::LayerKind& kind) {
  const std::int64_t keys = model_.kv_heads * model_.head_dim;
  const int q = linear(x, "query", model_.heads * model_.head_dim);
  const int k = linear(x, "key", keys);
  return attended(q, k, linear(x, "value", keys), kind);
}

/// MLA: through latents, keys with one rotated part for all heads.
int LayerWriter::latent_attention(int x, const zoo::LayerKind& kind) {
  const zoo::LatentAttention& latent = model_.latent;
  const int narrow =
      latent.query_rank > 0 ? norm(linear(x, "query_a", latent.query_rank), "query_norm") : x;
  const int q = linear(narrow, "query", model_.heads * model_.head_dim);
  const int rotary = linear(x, "key_rotary", latent.rotary);
  const int both = norm(linear(x, "latent", latent.key_value_rank), "latent_norm");
  const int part = linear(both, "key", model_.heads * (model_.head_dim - latent.rotary));
  const int k =
      make_.apply({"append_rotary", elements(make_.shape(q))}, {part, rotary}, make_.shape(q));
  keep_whole(model_.kv_heads);
  const std::int64_t value = model_.value_dim > 0 ? model_.value_dim : model_.head_dim;
  return attended(q, k, linear(both, "value", model_.heads * value), kind);
}

int LayerWriter::attended(int q, int k, int v, const zoo::LayerKind& kind) {
  Shape extents = make_.shape(q);
  double width = static_cast<double>(extents.back());
  extents.back() = model_.heads * (model_.value_dim > 0 ? model_.value_dim : model_.head_dim);
  width += static_cast<double>(extents.back());
  const double flops =
      3 * twice_the_pairs(kind, size_.sequence) * static_cast<double>(size_.batch) * width;
  std::vector<int> inputs{q, k, v};
  if (model_.sinks) {
    inputs.push_back(make_.parameter("sink", {model_.heads}));
  }
  const bool local = kind.window > 0 || kind.chunk > 0;
  const int context =
      make_.apply({local ? "local_attention" : "causal_attention", flops}, inputs, extents);
  keep_whole(model_.kv_heads);
  return linear(context, "projection", model_.hidden);
}

int LayerWriter::mamba(int x) {
  const zoo::Mamba& m = model_.mamba;
  const int gate = linear(x, "mamba_gate", m.inner());
  const int in = linear(x, "mamba_in", m.convolved());
  const int step = linear(x, "mamba_step", m.heads);
  std::vector<int> inputs{in, make_.parameter("convolution_weight", {m.convolved(), m.kernel})};
  if (m.convolution_bias) {
    inputs.push_back(make_.parameter("convolution_bias", {m.convolved()}));
  }
  const int convolved =
      make_.elementwise("causal_convolution", inputs, 2 * static_cast<double>(m.kernel));
  const int y = scan(convolved, step);
  const int normed = make_.elementwise(
      "gated_norm", {y, gate, make_.parameter("mamba_norm_weight", {m.inner()})}, 14);
  keep_whole(m.groups);
  return linear(normed, "mamba_out", model_.hidden);
}

int LayerWriter::scan(int convolved, int step) {
  constexpr std::int64_t kScalars = 3;  // of a head: A, D and the bias of dt
  const zoo::Mamba& m = model_.mamba;
  Shape extents = make_.shape(convolved);
  const double tokens = static_cast<double>(extents[0] * extents[1]);
  extents.back() = m.inner();
  const std::int64_t products =
      2 * m.chunk * m.state * m.groups + 2 * m.chunk * m.inner() + 4 * m.state * m.inner();
  const int scalars = make_.parameter("scan_scalars", {m.heads, kScalars});
  const int y = make_.apply({"state_space_scan", tokens * 3 * static_cast<double>(products) / 2},
                            {convolved, step, scalars}, extents);
  keep_whole(m.groups);
  return y;
}

void LayerWriter::keep_whole(std::int64_t parts) {
  if (!size_.mesh && parts % size_.devices != 0) {
    std::erase_if(make_.graph().nodes.back().signatures, [](const Signature& signature) {
      return signature.outputs.front() == Form::gather(2);
    });
  }
}

int LayerWriter::mlp(int x, std::int64_t width) {
  const int wide = linear(x, "fc1", width);
  return linear(activated(wide, [&] { return linear(x, "gate", width); }), "fc2", model_.hidden);
}

template <class Gate>
int LayerWriter::activated(int wide, const Gate& gate) {
  return zoo::is_gated(model_.mlp) ? make_.elementwise("swiglu", {wide, gate()}, 4)
                                   : make_.elementwise("gelu", {wide}, 3);
}

/// Every token's top_k experts have room for it, and equally much to do: C = top_k s / E, rounded
/// up. Beside them the shared expert.
int LayerWriter::experts(int x) {
  const std::int64_t count = model_.experts;
  const std::int64_t rows = (model_.top_k * size_.sequence + count - 1) / count;
  const int router = make_.parameter("router_weight", {model_.hidden, count});
  const int chosen =
      make_.apply({"top_k_gating", 3 * elements(make_.shape(x)) * static_cast<double>(count)},
                  {x, router}, Shape{size_.batch, count, rows});
  const std::int64_t latent = model_.expert.latent;
  const int out = latent > 0 ? linear(routed(linear(x, "latent_down", latent), chosen), "latent_up",
                                      model_.hidden)
                             : routed(x, chosen);
  return model_.expert.shared_ffn > 0 ? add(out, mlp(x, model_.expert.shared_ffn)) : out;
}

/// The rows that slots choose, through the experts: as wide as they came.
int LayerWriter::routed(int x, int chosen) {
  const Shape slots = make_.shape(chosen);
  const std::int64_t count = slots[1];
  const std::int64_t width = make_.shape(x).back();
  const Shape narrow{slots[0], count, slots[2], width};
  const Shape wide{slots[0], count, slots[2], model_.expert.ffn};
  const double product = 3 * elements(wide) * static_cast<double>(width);
  const int in = make_.apply({"dispatch", elements(narrow)}, {x, chosen}, narrow);
  const auto up = [&](const char* name) {
    const int w = make_.parameter(name, {count, width, model_.expert.ffn});
    return make_.apply({"einsum edh,becd->bech", product}, {w, in}, wide);
  };
  const int active = activated(up("w1"), [&] { return up("w3"); });
  const int w2 = make_.parameter("w2", {count, model_.expert.ffn, width});
  const int down = make_.apply({"einsum ehd,bech->becd", product}, {w2, active}, narrow);
  return make_.apply({"combine", 2 * elements(narrow)}, {down, chosen}, make_.shape(x));
}

}  // namespace orrery::spmd
