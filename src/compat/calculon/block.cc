// SPDX-License-Identifier: Apache-2.0
#include "compat/calculon/block.h"

#include <vector>

#include "compat/calculon/layer.h"

namespace orrery::calculon {
namespace {

/// FLOPs of an operator for each element: forward, backward, weight.
struct ElementFlops {
  double forward = 0;
  double backward = 0;
  double weight = 0;
};
constexpr ElementFlops kLayerNorm{9, 14, 7};
constexpr ElementFlops kGelu{8, 13, 0};
constexpr ElementFlops kSoftmax{5, 8, 0};
constexpr ElementFlops kDropout{1, 1, 0};
constexpr ElementFlops kResidual{1, 2, 0};
constexpr double kMultiplyAdd = 2;

/// The operators of a block, in order.
class Builder {
 public:
  Builder(const Application& application, const Execution& execution)
      : a_(application),
        e_(execution),
        full_(execution.activation_recompute == Recompute::full),
        core_again_(execution.activation_recompute != Recompute::none),
        ranks_(static_cast<double>(execution.tensor_par)),
        tokens_(static_cast<double>(execution.microbatch_size * application.seq_size)),
        hidden_(static_cast<double>(application.hidden)),
        whole_(tokens_ * hidden_),
        held_(execution.sequence_par() ? whole_ / ranks_ : whole_) {}

  std::vector<Layer> build() && {
    const auto projected = static_cast<double>(a_.attn_heads * a_.attn_size);
    enter();
    const bool gathered_again = core_again_ || e_.seq_par_ag_redo;
    if (overlaps()) {
      add(overlapped(hidden_, 3 * projected / ranks_, false, gathered_again));
    } else {
      add(exchange(false, gathered_again));
      add(fork(whole_, 3, gathered_again, !gathered_again));
      for (int query_key_value = 0; query_key_value < 3; ++query_key_value) {
        Layer& product = add(linear(hidden_, projected / ranks_));
        product.stored = false;
        product.reused = true;
      }
    }
    add_core();
    leave(projected / ranks_);
    const auto wide = static_cast<double>(a_.feedforward) / ranks_;
    enter();
    const bool regathered = full_ || e_.seq_par_ag_redo;
    if (overlaps()) {
      add(overlapped(hidden_, wide, false, regathered));
    } else {
      add(exchange(false, regathered));
      add(linear(hidden_, wide)).stored = !regathered;
    }
    Layer& gelu = add(elementwise(LayerKind::streamed, kGelu, wide * tokens_));
    if (e_.fused_activation) {
      gelu.activations = gelu.gradients = 0;
    }
    leave(wide);
    return std::move(layers_);
  }

 private:
  bool overlaps() const { return e_.tensor_par_overlap != TensorOverlap::none; }

  Layer& add(Layer layer) {
    layers_.push_back(layer);
    return layers_.back();
  }

  /// A fork for the residual, and the norm.
  void enter() {
    add(fork(held_, 2, full_, true));
    Layer& norm = add(elementwise(LayerKind::plain, kLayerNorm, held_));
    norm.weights = 2 * hidden_;
    norm.stored = false;
    norm.reused = true;
  }

  /// The last product with what sums it up, dropout and residual.
  void leave(double inner) {
    if (overlaps()) {
      add(overlapped(inner, hidden_, true, full_));
    } else {
      add(linear(inner, hidden_));
      add(exchange(true, full_)).stored = false;
    }
    add(elementwise(LayerKind::dropout, kDropout, held_));
    Layer& residual = add(elementwise(LayerKind::plain, kResidual, held_));
    residual.inputs = residual.activations = 2 * held_;
    residual.stored = false;
    residual.reused = true;
  }

  void add_core() {
    const auto sequence = static_cast<double>(a_.seq_size);
    const auto head = static_cast<double>(a_.attn_size);
    const auto heads = static_cast<double>(e_.microbatch_size * a_.attn_heads) / ranks_;
    const double scores = heads * sequence * sequence;
    Layer& by_keys = add(batched(heads * sequence, sequence * head * heads, head, scores));
    by_keys.again = core_again_;
    by_keys.output_stored = !core_again_;
    Layer& softmax = add(elementwise(LayerKind::streamed, kSoftmax, scores));
    softmax.again = core_again_;
    softmax.output_stored = !core_again_;
    Layer& dropout = add(elementwise(LayerKind::dropout, kDropout, scores));
    dropout.again = core_again_;
    dropout.stored = !core_again_;
    add(batched(heads * sequence, sequence * head * heads, sequence, heads * sequence * head));
  }

  Layer elementwise(LayerKind kind, const ElementFlops& flops, double elements) const {
    Layer layer{.kind = kind};
    layer.forward = Flops(flops.forward * elements);
    layer.backward = Flops(flops.backward * elements);
    layer.weight = Flops(flops.weight * elements);
    layer.inputs = layer.outputs = layer.activations = layer.gradients = elements;
    layer.again = full_;
    return layer;
  }

  static Layer fork(double elements, double users, bool again, bool stored) {
    Layer layer{.kind = LayerKind::fork};
    layer.backward = Flops(users * elements);
    layer.inputs = layer.activations = elements;
    layer.users = users;
    layer.again = again;
    layer.stored = stored;
    return layer;
  }

  Layer linear(double in, double out) const {
    Layer layer{.kind = LayerKind::product};
    layer.forward = layer.backward = layer.weight = Flops(kMultiplyAdd * tokens_ * in * out);
    layer.inputs = layer.activations = tokens_ * in;
    layer.outputs = layer.gradients = tokens_ * out;
    layer.weights = in * out;
    layer.again = full_;
    return layer;
  }

  /// Products of `rows` x depth by `right` elements, of all heads.
  Layer batched(double rows, double right, double depth, double outputs) const {
    Layer layer{.kind = LayerKind::product};
    layer.forward = Flops(kMultiplyAdd * outputs * depth);
    layer.backward = layer.forward * 2;
    layer.inputs = layer.activations = rows * depth + right;
    layer.outputs = layer.gradients = outputs;
    layer.again = full_;
    return layer;
  }

  Layer exchange(bool conjugate, bool again_sent) const {
    Layer layer{.kind = LayerKind::exchange};
    layer.conjugate = conjugate;
    layer.again_sent = again_sent;
    if (e_.tensor_par > 1) {
      (conjugate ? layer.forward : layer.backward) = Flops(whole_ * (ranks_ - 1) / ranks_);
      layer.inputs = layer.outputs = layer.activations = layer.gradients = whole_;
    }
    return layer;
  }

  /// Returns a product with its communication, of a rank: `in` x `out` after the cut.
  Layer overlapped(double in, double out, bool conjugate, bool again_sent) const {
    Layer layer = linear(in, out);
    layer.kind = LayerKind::overlapped;
    layer.conjugate = conjugate;
    layer.again_sent = again_sent;
    if (e_.sequence_par()) {
      (conjugate ? layer.gradients : layer.activations) /= ranks_;
      layer.gradients += conjugate ? layer.gradients : 0;
    } else if (conjugate) {
      layer.activations = 0;
      layer.gradients *= 2;
    } else {
      layer.gradients = 0;
    }
    return layer;
  }

  const Application& a_;
  const Execution& e_;
  bool full_;
  bool core_again_;
  double ranks_;
  double tokens_;
  double hidden_;
  double whole_;  ///< elements of a microbatch's activations
  double held_;   ///< of those of a rank between the products
  std::vector<Layer> layers_;
};

void add_pass(BlockPass& pass, const LayerTime& time) {
  pass.taken += time.taken;
  pass.compute += time.compute;
  pass.memory += time.memory;
}

void add_traffic(BlockTraffic& traffic, const LayerCost& cost, const Layer& layer, Place place) {
  const bool alone = layer.kind == LayerKind::exchange;
  const auto exposed = [&](Pass pass, Time link) {
    return alone ? link : cost.time(layer, pass).exposed;
  };
  const Time forward = cost.link(layer, Pass::forward, place);
  const Time backward = cost.link(layer, Pass::backward, place);
  traffic.forward += forward;
  traffic.backward += backward;
  traffic.forward_exposed += exposed(Pass::forward, forward);
  traffic.backward_exposed += exposed(Pass::backward, backward);
  if (layer.again_sent) {
    const Time again = cost.link(layer, Pass::weight, place);
    traffic.again += again;
    traffic.again_exposed += exposed(Pass::forward, again);
  }
}

void add_spaces(Block& block, const LayerCost& cost, const Layer& layer) {
  const Bytes activations = cost.activations(layer);
  block.weights += cost.weights(layer);
  block.working += layer.reused ? Bytes(0) : activations;
  block.storage += layer.stored ? activations : Bytes(0);
  block.storage -= layer.output_stored ? Bytes(0) : cost.outputs(layer);
  block.gradients += cost.gradients(layer);
  block.weight_gradients += cost.weight_gradients(layer);
  block.whole_weight_gradients += cost.whole_weight_gradients(layer);
  block.optimizer_states += cost.optimizer(layer);
}

}  // namespace

Block block_of(const Application& application, const System& system, const Execution& execution) {
  const LayerCost cost(system, execution);
  Block block;
  for (const Layer& layer : Builder(application, execution).build()) {
    const LayerTime forward = cost.time(layer, Pass::forward);
    add_pass(block.forward, forward);
    if (layer.again) {
      add_pass(block.again, {.taken = forward.taken,
                             .compute = block.forward.compute,
                             .memory = block.forward.memory});
    }
    add_pass(block.backward, cost.time(layer, Pass::backward));
    add_pass(block.weight, cost.time(layer, Pass::weight));
    add_pass(block.optimizer, cost.time(layer, Pass::optimizer));
    if (layer.kind == LayerKind::exchange || layer.kind == LayerKind::overlapped) {
      add_traffic(block.base, cost, layer, Place::base);
      add_traffic(block.edge, cost, layer, Place::edge);
    }
    add_spaces(block, cost, layer);
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight, Pass::optimizer}) {
      block.useful += cost.flops(layer, pass);
    }
  }
  if (execution.activation_recompute == Recompute::full) {
    block.storage = Bytes(0);
    block.checkpoint = Bytes(execution.microbatch_size * application.seq_size) *
                       application.hidden * size_of(execution.datatype).value();
  }
  return block;
}

}  // namespace orrery::calculon
