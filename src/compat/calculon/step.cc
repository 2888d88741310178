// SPDX-License-Identifier: Apache-2.0
#include "compat/calculon/step.h"

#include <algorithm>

namespace orrery::calculon {
namespace {

/// Base and edge blocks of a chunk.
struct Both {
  Time base{0};
  Time edge{0};
};

class Steps {
 public:
  Steps(const Application& application, const System& system, const Execution& execution,
        const Block& block)
      : e_(execution),
        system_(system),
        block_(block),
        tensor_(net(execution.tensor_par_net)),
        pipeline_(net(execution.pipeline_par_net)),
        data_(net(execution.data_par_net)),
        blocks_((application.num_blocks + e_.pipeline_par - 1) / e_.pipeline_par),
        missing_blocks_(blocks_ * e_.pipeline_par - application.num_blocks),
        blocks_of_chunk_(blocks_ / e_.pipeline_interleaving),
        microbatches_(e_.microbatches()) {
    const bool cut = e_.tensor_par_comm_type != TensorComm::ar;
    const std::int64_t tokens = e_.microbatch_size * application.seq_size;
    const Bytes message = e_.pipeline_par > 1 ? size_of(e_.datatype) * application.hidden *
                                                    (cut ? tokens / e_.tensor_par : tokens)
                                              : Bytes(0);
    hop_ = pipeline_.time(Operation::p2p, message, 2);
  }

  Step step() {
    set_blocks();
    const std::int64_t times = blocks_ * microbatches_;
    Step step{.forward = block_.forward.taken * times,
              .backward = (block_.backward.taken + block_.weight.taken) * times,
              .optimizer = block_.optimizer.taken * blocks_,
              .forward_offload = of_chunks(forward_offload_),
              .backward_offload = of_chunks(backward_offload_),
              .recompute = block_.again.taken * times,
              .recommunication = of_chunks({block_.base.again_exposed, block_.edge.again_exposed}),
              .bubble = bubble(),
              .tensor = of_chunks({block_.base.forward_exposed + block_.base.backward_exposed,
                                   block_.edge.forward_exposed + block_.edge.backward_exposed}),
              .pipeline = e_.pipeline_par > 1
                              ? hop_ * (2 * microbatches_ * e_.pipeline_interleaving)
                              : Time(0),
              .data = replicas()};
    for (const Time part : {step.forward, step.backward, step.optimizer, step.forward_offload,
                            step.backward_offload, step.recompute, step.recommunication,
                            step.bubble, step.tensor, step.pipeline, step.data}) {
      step.total += part;
    }
    step.sample_rate = static_cast<double>(e_.batch_size) / to_seconds(step.total);
    step.efficiency = block_.useful * times / system_.matrix.peak / step.total;
    return step;
  }

 private:
  const Network& net(std::int64_t index) const {
    return system_.networks[static_cast<std::size_t>(index)];
  }
  Time of_chunk(const Both& block) const {
    return block.base * (blocks_of_chunk_ - 1) + block.edge;
  }
  Time of_chunks(const Both& block) const {
    return of_chunk(block) * (microbatches_ * e_.pipeline_interleaving);
  }

  /// Returns what a block takes beyond `alone` when so many bytes go to or from the lower memory,
  /// beside compute but not beside its kernels' own memory time.
  Time beyond(Bytes moved, Time memory, Time alone) const {
    return std::max(Time(0), system_.lower_memory.time(moved) + memory - alone);
  }

  void set_blocks() {
    const Bytes weights = e_.weight_offload ? block_.weights : Bytes(0);
    const Bytes activations = !e_.activations_offload                      ? Bytes(0)
                              : e_.activation_recompute == Recompute::full ? block_.checkpoint
                                                                           : block_.storage;
    const Bytes states = e_.optimizer_offload ? block_.optimizer_states : Bytes(0);
    const auto forward = [&](const BlockTraffic& traffic, Time hop, Time& offload) {
      const Time alone = block_.forward.taken + traffic.forward_exposed + hop;
      offload = beyond(std::max(weights, activations), block_.forward.memory, alone);
      return alone + offload;
    };
    const auto backward = [&](const BlockTraffic& traffic, Time hop, Time& offload) {
      const Time alone = block_.again.taken + traffic.again_exposed + block_.backward.taken +
                         block_.weight.taken + traffic.backward_exposed + hop;
      offload = beyond(weights + activations + states,
                       block_.backward.memory + block_.weight.memory, alone);
      return alone + offload;
    };
    forward_ = {forward(block_.base, Time(0), forward_offload_.base),
                forward(block_.edge, hop_, forward_offload_.edge)};
    backward_ = {backward(block_.base, Time(0), backward_offload_.base),
                 backward(block_.edge, hop_, backward_offload_.edge)};
  }

  Time bubble() const {
    const Time chunk = of_chunk(forward_) + of_chunk(backward_);
    const Both block{forward_.base + backward_.base, forward_.edge + backward_.edge};
    const Time shorter = blocks_of_chunk_ > 1 ? (block.base + block.edge) * missing_blocks_ / 2.0
                                              : block.edge * missing_blocks_;
    const std::int64_t rest = microbatches_ % e_.pipeline_par;
    const std::int64_t more =
        rest == 0 ? 0 : (e_.pipeline_interleaving - 1) * (e_.pipeline_par - rest);
    return chunk * (e_.pipeline_par - 1 + more) - shorter;
  }

  /// Returns the time of one block's reduction.
  Time reduction() const {
    if (!e_.optimizer_sharding) {
      return data_.time(Operation::all_reduce, block_.weights, e_.data_par);
    }
    return data_.time(Operation::reduce_scatter, block_.weights, e_.data_par) +
           data_.time(Operation::all_gather, block_.weights, e_.data_par);
  }

  Time replicas() const {
    if (e_.data_par == 1) {
      return Time(0);
    }
    const Time one = reduction();
    return e_.data_par_overlap ? one + exposed_chunks(one) + exposed_last(one) : one * blocks_;
  }

  /// Time of the backward pass beside which replicas may communicate.
  Both window() const {
    const Time memory = block_.backward.memory + block_.weight.memory + block_.again.memory;
    Both window{backward_.base - memory + optimizer_window(),
                backward_.edge - memory + optimizer_window()};
    if (&data_ == &tensor_) {
      window.base -= block_.base.again + block_.base.backward;
      window.edge -= block_.edge.again + block_.edge.backward;
    }
    return window;
  }
  Time optimizer_window() const {
    return e_.optimizer_sharding ? Time(0) : block_.optimizer.taken - block_.optimizer.memory;
  }
  /// Compute of a block that the network slows.
  Time compute() const {
    return block_.backward.compute + block_.weight.compute + block_.again.compute +
           (e_.optimizer_sharding ? Time(0) : block_.optimizer.compute);
  }

  /// Returns the exposed time of all chunks but the last: beside as many microbatches as there are
  /// stages.
  Time exposed_chunks(Time one) const {
    const Time chunk = one * blocks_of_chunk_;
    Time hops(0);
    if (&data_ == &pipeline_) {
      const std::int64_t rest = microbatches_ % e_.pipeline_par;
      const std::int64_t most = rest == 0 ? e_.pipeline_par : rest;
      const Time pass = std::max(of_chunk(backward_), Time(1));
      hops = hop_ * std::min(chunk.value() / pass.value(), most);
    }
    const Time slowed = compute() * (blocks_of_chunk_ * e_.pipeline_par) * data_.processor_usage;
    const Time excess = chunk - (of_chunk(window()) * e_.pipeline_par - hops) + slowed;
    return (excess > Time(0) ? excess : chunk * data_.processor_usage) *
           (e_.pipeline_interleaving - 1);
  }

  /// Returns the exposed time of the last chunk: beside the blocks after the first.
  Time exposed_last(Time one) const {
    const Time rest = one * (blocks_of_chunk_ - 1);
    Time beside(0);
    if (blocks_of_chunk_ > 1) {
      beside =
          of_chunk(window()) - hop_ - (backward_.base + backward_.edge) / 2.0 + optimizer_window();
    }
    const Time excess = rest + compute() * data_.processor_usage - beside;
    return excess > Time(0) ? excess : rest * data_.processor_usage;
  }

  const Execution& e_;
  const System& system_;
  const Block& block_;
  const Network& tensor_;
  const Network& pipeline_;
  const Network& data_;
  std::int64_t blocks_;  ///< of a stage
  std::int64_t missing_blocks_;
  std::int64_t blocks_of_chunk_;
  std::int64_t microbatches_;
  Time hop_{0};  ///< a message to the next stage
  Both forward_;
  Both backward_;
  Both forward_offload_;
  Both backward_offload_;
};

}  // namespace

Step step_of(const Application& application, const System& system, const Execution& execution,
             const Block& block) {
  return Steps(application, system, execution, block).step();
}

}  // namespace orrery::calculon
