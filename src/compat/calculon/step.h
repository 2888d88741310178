// SPDX-License-Identifier: Apache-2.0
/// One step as Calculon counts it: blocks in chunks, chunks in 1F1B with interleaving, replicas.
///
///   a chunk   blocks within (base) and one at its end (edge), which sends to the next stage
///   step      forward, backward and repeated work of all blocks and microbatches, exposed
///             communication of tensor and pipeline parallelism, what offload adds, and
///   bubble    (stages - 1) chunks forward and backward, more where stages do not divide the
///             microbatches
///   replicas  a reduction of every block's weights; with overlap what exceeds the backward pass of
///             as many microbatches as there are stages, of all chunks but the last, and the last
///             one's
///   offload   what a block moves to and from the lower memory beyond its own kernels' time
///
/// Source: Calculon (Isaev et al., SC'23), its published program, with all that it does.
#pragma once

#include "base/result.h"
#include "compat/calculon/block.h"

namespace orrery::calculon {

struct Footprint {
  Bytes weights{0};
  Bytes activations{0};
  Bytes checkpoints{0};
  Bytes gradients{0};
  Bytes weight_gradients{0};
  Bytes optimizer{0};
  Bytes first_tier{0};   ///< of all these what the device's memory holds
  Bytes second_tier{0};  ///< and the lower one

  template <class V>
  static void fields(V&& visit) {
    using F = Footprint;
    visit("weights", &F::weights, "of a device");
    visit("activations", &F::activations, "kept and worked on");
    visit("checkpoints", &F::checkpoints, "inputs of blocks that run again");
    visit("gradients", &F::gradients, "of activations, one block");
    visit("weight_gradients", &F::weight_gradients, "of weights");
    visit("optimizer", &F::optimizer, "states");
    visit("first_tier", &F::first_tier, "in the device's memory");
    visit("second_tier", &F::second_tier, "in the lower memory");
  }
};

/// Parts add up to the total.
struct Step {
  Time forward{0};
  Time backward{0};
  Time optimizer{0};
  Time forward_offload{0};
  Time backward_offload{0};
  Time recompute{0};
  Time recommunication{0};
  Time bubble{0};
  Time tensor{0};
  Time pipeline{0};
  Time data{0};
  Time total{0};
  double sample_rate = 0;
  double efficiency = 0;

  template <class V>
  static void fields(V&& visit) {
    using S = Step;
    visit("forward", &S::forward, "kernels of the forward pass");
    visit("backward", &S::backward, "kernels of the backward pass");
    visit("optimizer", &S::optimizer, "the optimizer's step");
    visit("forward_offload", &S::forward_offload, "what offload adds to the forward pass");
    visit("backward_offload", &S::backward_offload, "what offload adds to the backward pass");
    visit("recompute", &S::recompute, "kernels that run again");
    visit("recommunication", &S::recommunication, "what is sent again, exposed");
    visit("bubble", &S::bubble, "of the pipeline");
    visit("tensor", &S::tensor, "tensor-parallel communication, exposed");
    visit("pipeline", &S::pipeline, "messages between stages, exposed");
    visit("data", &S::data, "reductions over replicas, exposed");
    visit("total", &S::total, "the step");
    visit("sample_rate", &S::sample_rate, "sequences per second");
    visit("efficiency", &S::efficiency, "useful FLOPs of the matrix peak");
  }
};

/// The parts below require an execution that check() accepts and the block_of() it.

/// Returns whether networks are there, large enough and, where they must be, filled, and stages
/// have the 3 blocks that offload needs.
bool can_run(const Application& application, const System& system, const Execution& execution);

Footprint footprint_of(const Application& application, const Execution& execution,
                       const Block& block);
/// Returns whether both memories hold it.
bool fits(const System& system, const Footprint& footprint);

Step step_of(const Application& application, const System& system, const Execution& execution,
             const Block& block);

struct Run {
  Step step;
  Footprint footprint;
};
/// Runs all of it. Mistakes: an execution that cannot run; memory that is not there.
Result<Run> run(const Application& application, const System& system, const Execution& execution);

}  // namespace orrery::calculon
