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
/// A step says what it reads and writes instead of naming nodes; assemble() turns that into
/// dependencies: a step waits for the last writer of what it reads, and, as with torch.distributed,
/// a collective or send also waits for the compute issued before it.
#pragma once

#include <array>
#include <vector>

#include "machine/machine.h"
#include "workload/memory/chunk_work.h"
#include "workload/plan/axes.h"
#include "workload/plan/data_axes.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/plan/schedule.h"
#include "workload/zoo/model.h"

namespace orrery::parallel {

/// A Value is what flows between the steps of one template.
enum class Value : std::uint8_t {
  none,
  flow,     ///< activations forward, their gradient backward
  input,    ///< the saved input of a GEMM, gathered again for its weight gradient
  message,  ///< a message or reduction that only a wait reads
  beside,   ///< what runs beside an exchange: the shared expert
  even,     ///< what arrives in even steps of a ring or pieces of a gather
  odd,      ///< and in odd ones
  shards,   ///< of parameters that were loaded from remote memory
  stored,   ///< gradients on their way to remote memory, and when all of them are there
};
inline constexpr int kValueCount = 9;

/// In which instances of its template a step takes part.
enum class When : std::uint8_t { always, first_microbatch, last_microbatch };

/// In which steps of a run a step takes part: number `at`, and every `every`-th after it.
struct Turn {
  std::int32_t every = 1;
  std::int32_t at = 0;

  bool holds(std::int64_t step) const { return step >= at && (step - at) % every == 0; }

  friend bool operator==(const Turn&, const Turn&) = default;
};

/// An instance of a template as far as steps ask: its place among its step's microbatches, and the
/// number of its step.
struct Moment {
  Moment(When place, std::int64_t step_number = 0) : when(place), step(step_number) {}

  When when;
  std::int64_t step;
};

/// Which part of its operator's work a step is.
enum class Part : std::uint8_t { other, forward, input_gradient, weight_gradient, accumulate };

struct Step {
  graph::Node node;  ///< `after` is filled by assemble()
  Value reads = Value::none;
  Value writes = Value::none;
  When when = When::always;
  Turn turn{};
  Part part = Part::other;
  int source = -1;             ///< index into the block's operators
  bool after_compute = false;  ///< waits for the compute issued before it, as collectives do
  int gathers_block = -1;      ///< brings the parameters of this block of the chunk
  int before_block = -1;       ///< a kernel that waits for the gathers of this block of the chunk

  friend bool operator==(const Step&, const Step&) = default;
};

inline bool takes_part(const Step& step, const Moment& moment) {
  return (step.when == When::always || step.when == moment.when) && step.turn.holds(moment.step);
}

struct BlockSteps {
  std::vector<Step> forward;
  std::vector<Step> recompute;  ///< before the whole backward
  std::vector<Step> backward;
};

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

/// How the ranks of a plan split the tensors of its blocks.
struct TensorSplit {
  std::int64_t tp = 1;
  bool sequence = false;   ///< sequence parallelism
  std::int64_t etp = 1;    ///< tp of experts
  double expert_rows = 1;  ///< share of the rows of experts that those of one rank get
};

struct Draft {
  plan::RankLayout layout;
  plan::PipelineShape shape;
  std::vector<std::int64_t> shares{};  ///< microbatches by replica; empty: of all the shape's
  Time host_dispatch{0};
  std::int64_t run_steps = 1;      ///< training steps, one after the other
  bool interleaves_pairs = false;  ///< a forward beside a backward: see chunk_templates.h
  std::vector<std::vector<zoo::ModelOperator>> operators;  ///< of one rank, by BlockKind
  std::vector<std::vector<graph::ModelTensor>> tensors;    ///< between them, whole
  TensorSplit split{};
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

/// Node makers with the stream that belongs to the kind.
Step collective_step(plan::Axis axis, graph::CollectiveKind kind, Bytes bytes,
                     plan::StepPhase phase);
Step compute_step(graph::Operator op, plan::StepPhase phase);
/// Holds the compute stream until what it reads is there.
Step wait_step(std::string name, Value reads, plan::StepPhase phase);

/// Parameters of one rank whose gradients this block of this role contributes: the trained ones.
/// The head of a tied model keeps a copy of the embedding unless it shares the stage with it.
std::int64_t block_parameters(const Draft& draft, const Context& context, plan::BlockKind kind,
                              plan::Owner owner);
std::int64_t role_parameters(const Draft& draft, const Context& context, const RoleDraft& role,
                             plan::Owner owner);

/// The same parameters as the compute copies are stored and gathered (quantized_params); for ZeRO 3
/// those of a block that the optimizer does not update as well.
Bytes block_parameter_bytes(const Draft& draft, const Context& context, plan::BlockKind kind,
                            plan::Owner owner);
Bytes gathered_parameter_bytes(const Draft& draft, const Context& context, plan::BlockKind kind,
                               plan::Owner owner);
Bytes role_parameter_bytes(const Draft& draft, const Context& context, const RoleDraft& role,
                           plan::Owner owner);

/// Turns the draft into a workload; pure.
graph::Workload assemble(const Draft& draft);

}  // namespace orrery::parallel
