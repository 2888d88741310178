// SPDX-License-Identifier: Apache-2.0
/// A Draft is what the lowering passes rewrite: a workload whose templates are still cut into
/// blocks (embedding, layer, head). The steps of a block are kept once per kind of block, not per
/// layer.
///
///   forward of a chunk  = forward_begin, for each block (before_forward, its forward), forward_end
///   backward of a chunk = backward_begin, for each block in reverse (before_backward, recompute,
///                         backward, after_backward), backward_end, after_weights
///   end of the step     = finish
///   end of the run      = drain, after the last step, if there is any
///
/// A step says what it reads and writes instead of naming nodes (workload/lower/step.h); assemble()
/// turns that into dependencies.
#pragma once

#include <array>
#include <vector>

#include "machine/machine.h"
#include "workload/lower/choose.h"
#include "workload/lower/step.h"
#include "workload/memory/chunk_work.h"
#include "workload/plan/axes.h"
#include "workload/plan/data_axes.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/optimizer.h"
#include "workload/plan/plan.h"
#include "workload/plan/schedule.h"
#include "workload/zoo/model.h"

namespace orrery::parallel {

using lower::BlockSteps;
using lower::collective_step;
using lower::compute_step;
using lower::kValueCount;
using lower::Moment;
using lower::Part;
using lower::Step;
using lower::takes_part;
using lower::Turn;
using lower::Value;
using lower::wait_step;
using lower::When;

/// One embedding, layer or head of a chunk.
struct Block {
  plan::BlockKind kind = plan::kFirstLayerBlock;
  bool recomputes = false;  ///< else its kind's steps of phase recompute are left out
  int layer = -1;           ///< index into its role's layers; -1: embedding or head
  std::vector<Step> before_forward{};
  std::vector<Step> before_backward{};
  std::vector<Step> after_backward{};

  friend bool operator==(const Block&, const Block&) = default;
};

struct ChunkDraft {
  std::vector<Block> blocks;
  std::vector<Step> forward_begin;
  std::vector<Step> forward_end;
  std::vector<Step> backward_begin;
  std::vector<Step> backward_end;
  std::vector<Step> after_weights;
  std::array<footprint::ChunkWork, footprint::kChunkPassCount>
      memory;  ///< by ChunkPass, without messages

  friend bool operator==(const ChunkDraft&, const ChunkDraft&) = default;
};

struct RoleDraft {
  std::vector<ChunkDraft> chunks;
  std::vector<Step> finish;
  std::vector<Step> drain{};  ///< what steps leave in flight comes to its end
  Bytes messages{0};          ///< in flight while a chunk works
  Bytes reduction{0};         ///< the bucket of gradients at the end of the step
  Bytes update{0};            ///< what the optimizer needs besides its states

  friend bool operator==(const RoleDraft&, const RoleDraft&) = default;
};

struct Draft {
  plan::RankLayout layout;
  plan::PipelineShape shape;
  std::vector<std::int64_t> shares{};  ///< microbatches by replica; empty: of all the shape's
  Time host_dispatch{0};
  std::int64_t run_steps = 1;      ///< training steps, one after the other
  bool interleaves_pairs = false;  ///< a forward beside a backward: see chunk_templates.h
  /// The operators by BlockKind; they are one rank's once the blocks have their steps.
  std::vector<std::vector<zoo::ModelOperator>> operators;
  std::vector<std::vector<graph::ModelTensor>> tensors;  ///< between them, whole
  lower::Cuts cuts{};             ///< degrees that the blocks' tensors are cut by
  std::vector<BlockSteps> steps;  ///< by BlockKind
  Step pair_ready;                ///< of a forward beside a backward: its messages are there
  std::vector<RoleDraft> roles;   ///< by stage
  std::vector<std::vector<graph::Tensor>> states;  ///< by role
  std::vector<std::vector<std::int64_t>> layers;   ///< by role: numbers of the model's layers
};

/// A Context is what every pass may read.
struct Context {
  const zoo::Model& model;
  const plan::Plan& plan;
  std::vector<std::vector<plan::ModelPart>> parts;  ///< [stage][chunk]
  const machine::Machine* machine = nullptr;        ///< that it is lowered for, if any
  std::int64_t run_steps = 1;                       ///< LowerOptions::steps
};

/// Returns the number of parameters of one rank whose gradients this block of this role
/// contributes: the trained ones. The head of a tied model keeps a copy of the embedding unless it
/// shares the stage with it.
std::int64_t block_parameters(const Draft& draft, const Context& context, plan::BlockKind kind,
                              plan::Owner owner);
std::int64_t role_parameters(const Draft& draft, const Context& context, const RoleDraft& role,
                             plan::Owner owner);
/// Returns the matrices among them.
plan::Matrices role_matrices(const Draft& draft, const RoleDraft& role, plan::Owner owner);

/// Returns the same parameters as the compute copies are stored and gathered (quantized_params);
/// for ZeRO 3 those of a block that the optimizer does not update as well.
Bytes block_parameter_bytes(const Draft& draft, const Context& context, plan::BlockKind kind,
                            plan::Owner owner);
Bytes gathered_parameter_bytes(const Draft& draft, const Context& context, plan::BlockKind kind,
                               plan::Owner owner);
Bytes role_parameter_bytes(const Draft& draft, const Context& context, const RoleDraft& role,
                           plan::Owner owner);

/// Turns the draft into a workload; pure.
graph::Workload assemble(const Draft& draft);

}  // namespace orrery::parallel
