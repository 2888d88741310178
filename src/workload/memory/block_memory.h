// SPDX-License-Identifier: Apache-2.0
/// BlockMemory is what one embedding, layer or head takes on one rank: the parts of which
/// memory_timeline.h makes a step. The same for every plan that agrees in the fields that shape
/// operators (tp, cp, ep, etp, sequence_parallel, microbatch, sequence, recompute*, moe_*, kernels
/// and types), so a planner keeps it.
///
///   T = B S / c tokens of a rank, e bytes of the compute type, t = tp, E experts
///
///   parameters   dense: 1/t of matrices; experts: 1/(ep etp)
///   kept         per microbatch, from forward to backward: each operator's `saved`, sharded as the
///                plan says; without what recompute drops. A recomputed layer keeps its input, T H
///                e (1/t with sequence parallelism). Routed experts hold load etp/t T top_k rows:
///                their share of the rows of etp x ep ranks; load: plan::expert_load
///                when dropless. For GPT shapes with dropout: Korthikanti et al. 2022, table 2.
///                What quantised GEMMs, and attention and activations beside them, keep:
///                quantize.h.
///   recomputed   `saved` of what recompute drops (recompute.h): there only while the block's
///                backward runs
///   logits       fp32, 4 T V / t, from the head's forward to its backward; while one of the two
///                runs also in the compute type: e T V / t
///   held         where weight gradients are pieces of work of their own: inputs and output
///                gradients of the GEMMs with weights, from input gradient to weight gradient. For
///                GPT shapes 32 S B H (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", table 1)
///   work         what exists only while a pass of the block runs, the largest of its operators:
///                  sequence parallelism: the gathered T H e
///                  cp: ring, two more of the rank's keys and values, and in backward two of their
///                    gradients; all_gather: all c (backward: and their gradients); a2a: Q, K, V
///                    and the output once more
///                  experts: the rows sent (T top_k H e / t) and the rows received, in front of the
///                    sort or behind the last GEMM; allgather: the tokens of etp x ep ranks
///                  backward: gradients of a GEMM's input and output, the widest; of experts, if
///                    more, the rows of their exchange beside the gradient of fc1's result, which
///                    its weight gradient still needs; the gradient of the block's largest weight
///                    in e, unless fused_grad_accumulation
///
/// Ignores:  workspaces of GEMMs and of the communication libraries; alignment.
/// Sources:  Korthikanti et al. 2022 (arXiv:2205.05198), section 4 and table 2; Rajbhandari et al.
///           2020 (arXiv:1910.02054); Liu et al. 2023 (ring attention); Jacobs et al. 2023
///           (Ulysses).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/optimizer.h"
#include "workload/plan/plan.h"
#include "workload/plan/plan_key.h"
#include "workload/zoo/model.h"

namespace orrery::footprint {

struct BlockMemory {
  std::int64_t parameters = 0;  ///< of one rank; the head without the copy of a tied embedding
  std::int64_t expert_parameters = 0;  ///< of these, in routed experts
  std::int64_t frozen = 0;             ///< dense parameters that are not trained (lora.h)
  std::int64_t expert_frozen = 0;      ///< the same of routed experts
  std::int64_t quantized = 0;          ///< dense weights that GEMMs read in fewer bits
  std::int64_t expert_quantized = 0;   ///< the same of routed experts
  std::int64_t largest = 0;            ///< elements of its largest weight
  std::int64_t packed = 0;             ///< dense weights stored in frozen_type; not in quantized
  std::int64_t expert_packed = 0;      ///< the same of routed experts
  plan::Matrices matrices{};           ///< dense
  plan::Matrices expert_matrices{};
  Bytes kept{0};    ///< per microbatch, without logits
  Bytes logits{0};  ///< per microbatch
  Bytes logits_work{0};
  Bytes recomputed{0};
  Bytes held{0};            ///< per microbatch
  Bytes held_gradients{0};  ///< of these, output gradients
  Bytes forward_work{0};
  Bytes backward_work{0};  ///< of input gradients
  Bytes weight_work{0};    ///< of weight gradients
};
struct BlockMemories {
  std::vector<BlockMemory> blocks;  ///< by BlockKind, with the plan's recompute
  std::vector<BlockMemory> plain;   ///< by BlockKind, of layers that recompute leaves out
  std::int64_t tied_copy = 0;       ///< of the table, by a head (or its predictions) elsewhere
  Bytes workspaces{0};              ///< of a rank's libraries, all the step (autograd_memory.h)
  Bytes boundary{0};                ///< T H of the compute type, of every residual stream
};
BlockMemories block_memories(const zoo::Model& model, const plan::Plan& plan);

/// The same for who asks of very many plans of one model: by the fields that shape blocks, all but
/// those that are known not to; a new one is among them.
class BlockMemoryTable {
 public:
  /// Returns the memory of blocks, valid until the next of().
  const BlockMemories& of(const zoo::Model& model, const plan::Plan& plan) {
    return table_.get(plan, [&] { return block_memories(model, plan); });
  }

 private:
  using Fields = plan::AllFieldsBut<
      &plan::Plan::pp, &plan::Plan::dp, &plan::Plan::schedule, &plan::Plan::chunks,
      &plan::Plan::global_batch, &plan::Plan::overlap_ep, &plan::Plan::zero, &plan::Plan::optimizer,
      &plan::Plan::shard_params, &plan::Plan::shard_grads, &plan::Plan::shard_optimizer,
      &plan::Plan::reshard_after_forward, &plan::Plan::recompute_layers,
      &plan::Plan::offload_optimizer, &plan::Plan::offload_params, &plan::Plan::offload_activations,
      &plan::Plan::order, &plan::Plan::stage_layers, &plan::Plan::batch_shares,
      &plan::Plan::pipeline_send, &plan::Plan::overlap_tp, &plan::Plan::overlap_p2p,
      &plan::Plan::overlap_grad_reduce, &plan::Plan::overlap_param_gather, &plan::Plan::bucket,
      &plan::Plan::tp_algorithm, &plan::Plan::dp_algorithm>;
  static constexpr std::size_t kMost = 16384;  // some 50 MB
  plan::PlanTable<Fields, BlockMemories, kMost> table_;
};

}  // namespace orrery::footprint
