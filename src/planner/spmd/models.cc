// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/spmd/graph_builder.h"

namespace orrery::spmd {
namespace {

constexpr std::int64_t kBytesPerElement = 4;
constexpr std::int64_t kWords = 33278;  // of WikiText-2
constexpr std::int64_t kClasses = 10;   // of CIFAR-10
constexpr std::int64_t kImage = 32;
constexpr std::int64_t kPatch = 4;
constexpr std::int64_t kColours = 3;

/// Widths are those of a model's layers.
struct Widths {
  std::int64_t hidden = 768;
  std::int64_t feed_forward = 3072;
  std::int64_t sequence = 0;
  std::int64_t experts_each = 2;  ///< of a device
};

/// The layers of HiDup's traces.
bool is_wide(ModelName model) {
  return model == ModelName::emoe || model == ModelName::dmoe;
}

Widths widths_of(ModelName model) {
  return is_wide(model)                                            ? Widths{1024, 4096, 256, 4}
         : model == ModelName::rmoe || model == ModelName::rswitch ? Widths{.sequence = 128}
                                                                   : Widths{.sequence = 64};
}

/// Slots of an expert for the tokens of a group: a factor of 5/4, doubled for two experts a token;
/// rounded up, in Emoe down.
std::int64_t capacity_of(ModelName model, std::int64_t sequence, std::int64_t experts) {
  const bool two = model == ModelName::rmoe || model == ModelName::vmoe;
  const std::int64_t numerator = sequence * (two ? 10 : 5);
  return is_wide(model) ? std::max<std::int64_t>(1, numerator / (4 * experts))
                        : (numerator + 4 * experts - 1) / (4 * experts);
}

class Builder : private GraphBuilder {
 public:
  Builder(ModelName model, const ModelSize& size)
      : GraphBuilder(kBytesPerElement),
        model_(model),
        words_(model == ModelName::rmoe || model == ModelName::rswitch),
        two_experts_(model == ModelName::rmoe || model == ModelName::vmoe),
        size_(size),
        widths_(widths_of(model)),
        batch_(32 * size.devices),
        experts_(widths_.experts_each * size.devices),
        tokens_(widths_.sequence + (has_class_token() ? 1 : 0)),
        groups_(model == ModelName::dmoe ? size.devices : batch_),
        capacity_(capacity_of(model, batch_ / groups_ * widths_.sequence, experts_)) {
    graph().model = name_of(model);
    graph().devices = size.devices;
    graph().layers = size.layers;
  }

  OperatorGraph build() {
    int labels = 0;
    int x = is_wide(model_) ? input("x", {batch_, tokens_, widths_.hidden})
            : words_        ? word_head(labels)
                            : image_head(labels);
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
      set_prefix(fmt::format("layers_{}_", layer));
      x = attention_part(x);
      x = layer % 2 == 0 ? feed_forward(x) : experts(x);
    }
    set_prefix("");
    const int loss = is_wide(model_) ? apply({"sum", elements(shape(x))}, {x}, Shape{})
                     : words_        ? word_tail(x, labels)
                                     : image_tail(x, labels);
    output(loss);
    return std::move(graph());
  }

 private:
  int linear(int x, const std::string& weight, const std::string& bias, std::int64_t outputs) {
    const std::int64_t inputs = shape(x).back();
    const int w = parameter(weight, {outputs, inputs});
    const int b = parameter(bias, {outputs});
    Shape extents = shape(x);
    extents.back() = outputs;
    return apply({"linear", 3 * elements(extents) * static_cast<double>(inputs)}, {x, w, b},
                 extents);
  }
  int dropout(int x) { return elementwise("dropout", {x}, 20); }
  int add_and_norm(int residual, int x, const std::string& norm) {
    const int sum = elementwise("add", {residual, x});
    const int w = parameter(norm + "_weight", {widths_.hidden});
    const int b = parameter(norm + "_bias", {widths_.hidden});
    return elementwise("layer_norm", {sum, w, b}, 10);
  }

  int word_head(int& labels) {
    const std::int64_t vocabulary = vocabulary_size();
    const int x = input("x", {batch_, widths_.sequence});
    labels = input("y", {batch_, widths_.sequence});
    const int table = parameter("encoder_weight", {vocabulary, widths_.hidden});
    const Shape out{batch_, widths_.sequence, widths_.hidden};
    const int rows = apply({"embedding", elements(out)}, {x, table}, out);
    const int scaled = elementwise("mul", {rows});
    return elementwise("add", {scaled, buffer("pe", {1, widths_.sequence, widths_.hidden})});
  }
  std::int64_t vocabulary_size() const { return (kWords / size_.devices + 1) * size_.devices; }

  int image_head(int& labels) {
    const int x = input("x", {batch_, kColours, kImage, kImage});
    labels = input("y", {batch_});
    const int w = parameter("patch_embed_proj_weight", {widths_.hidden, kColours, kPatch, kPatch});
    const int b = parameter("patch_embed_proj_bias", {widths_.hidden});
    constexpr std::int64_t kSide = kImage / kPatch;
    const double flops =
        3 * static_cast<double>(batch_ * kColours * widths_.hidden * kImage * kImage);
    const int patches = apply({"conv2d", flops}, {x, w, b}, {batch_, widths_.hidden, kSide, kSide});
    const Shape rows{batch_, widths_.hidden, widths_.sequence};
    const int flat = apply({"flatten", elements(rows), 2}, {patches}, rows);
    const int turned = transpose(flat, 1, 2);
    const int token = parameter("cls_token", {1, 1, widths_.hidden});
    const int all = apply({"append_cls_token", class_token_flops()}, {turned, token},
                          {batch_, tokens_, widths_.hidden});
    return elementwise("add", {all, parameter("pos_embed", {1, tokens_, widths_.hidden})});
  }
  double class_token_flops() const { return static_cast<double>(batch_ * widths_.hidden); }

  int attention_part(int x) {
    const int q = transpose(x, 0, 1);
    const int k = transpose(x, 0, 1);
    const int v = transpose(x, 0, 1);
    std::vector<int> inputs{q, k, v};
    inputs.push_back(parameter("self_attn_in_proj_weight", {3 * widths_.hidden, widths_.hidden}));
    inputs.push_back(parameter("self_attn_in_proj_bias", {3 * widths_.hidden}));
    inputs.push_back(parameter("self_attn_out_proj_weight", {widths_.hidden, widths_.hidden}));
    inputs.push_back(parameter("self_attn_out_proj_bias", {widths_.hidden}));
    if (words_) {  // the mask is never sliced
      inputs.push_back(
          load(NodeKind::buffer, numbered("src_mask"), {tokens_, tokens_}, load_signatures(0)));
    }
    const auto pairs = static_cast<double>(tokens_ * tokens_ * batch_);
    const Shape weights{batch_, tokens_, tokens_};
    const int y = apply({"attention", (6 * static_cast<double>(widths_.hidden) + 5) * pairs},
                        inputs, {shape(q), weights}, "multi_head_attention_forward")
                      .front();
    return add_and_norm(x, dropout(transpose(y, 0, 1)), "norm1");
  }

  int feed_forward(int x) {
    const int wide = linear(x, "linear1_weight", "linear1_bias", widths_.feed_forward);
    const int kept = dropout(elementwise("relu", {wide}));
    const int narrow = linear(kept, "linear2_weight", "linear2_bias", widths_.hidden);
    return add_and_norm(x, dropout(narrow), "norm2");
  }

  int experts(int x) {
    const std::int64_t tokens = batch_ / groups_ * tokens_;
    const Shape slots{groups_, tokens, experts_, capacity_};
    const int gate = parameter("gate_weight", {widths_.hidden, experts_});
    const std::string gating = two_experts_ ? "top_2_gating" : "top_1_gating";
    const double hidden = static_cast<double>(widths_.hidden);
    const int rows = regrouped(x, {groups_, tokens, widths_.hidden});
    const auto chosen =
        apply({gating, 10 * elements(slots) * hidden}, {rows, gate}, {slots, slots}, gating);
    const Shape sent{groups_, experts_, capacity_, widths_.hidden};
    const Shape wide{groups_, experts_, capacity_, widths_.feed_forward};
    const double exchange = 3 * elements(slots) * hidden;
    const double product = 3 * elements(wide) * hidden;
    const int in = apply({"einsum bsd,bsec->becd", exchange}, {rows, chosen[0]}, sent);
    const int w1 = parameter("w1", {experts_, widths_.hidden, widths_.feed_forward});
    const int up = apply({"einsum edh,becd->bech", product}, {w1, in}, wide);
    const int active = elementwise("relu", {up});
    const int w2 = parameter("w2", {experts_, widths_.feed_forward, widths_.hidden});
    const int down = apply({"einsum ehd,bech->becd", product}, {w2, active}, sent);
    const int out = apply({"einsum becd,bsec->bsd", exchange}, {down, chosen[1]}, shape(rows));
    return add_and_norm(x, regrouped(out, shape(x)), "norm2");
  }

  /// Regroups the same elements; nothing where the shape is the same.
  int regrouped(int x, const Shape& extents) {
    return shape(x) == extents ? x : apply({"regroup", 0}, {x}, extents);
  }

  int word_tail(int x, int labels) {
    const int scores = linear(x, "decoder_weight", "decoder_bias", vocabulary_size());
    const int turned = transpose(elementwise("log_softmax", {scores}, 15), 1, 2);
    return loss(turned, labels);
  }
  int image_tail(int x, int labels) {
    const int token = apply({"get_cls_token", class_token_flops()}, {x}, {batch_, widths_.hidden});
    const int scores = linear(token, "decoder_weight", "decoder_bias", kClasses);
    return loss(elementwise("log_softmax", {scores}, 15), labels);
  }
  int loss(int scores, int labels) {
    return apply({"nll_loss", elements(shape(scores))}, {scores, labels}, {});
  }

  bool has_class_token() const { return !words_ && !is_wide(model_); }

  ModelName model_;
  bool words_;
  bool two_experts_;
  ModelSize size_;
  Widths widths_;
  std::int64_t batch_;
  std::int64_t experts_;
  std::int64_t tokens_;
  std::int64_t groups_;  ///< of tokens, each with its own slots
  std::int64_t capacity_;
};

}  // namespace

Result<OperatorGraph> build_model(ModelName model, const ModelSize& size) {
  Error mistakes;
  if (size.devices < 1 || size.devices > kMostDevices) {
    mistakes.add({"--devices", {}, std::to_string(size.devices), "a number from 1 to 65536"});
  }
  if (size.layers < 1 || size.layers > kMostLayers) {
    mistakes.add({"--layers", {}, std::to_string(size.layers), "a number from 1 to 4096"});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return Builder(model, size).build();
}

}  // namespace orrery::spmd
