// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/state_memory.h"

#include <algorithm>
#include <array>

#include "workload/plan/data_axes.h"
#include "workload/plan/layout.h"
#include "workload/plan/lora.h"
#include "workload/plan/low_bandwidth.h"
#include "workload/plan/quantize.h"
#include "workload/plan/rounds.h"
#include "workload/plan/schedule.h"
#include "workload/plan/shard.h"
#include "workload/plan/update_pieces.h"

namespace orrery::footprint {
namespace {

/// Bytes of trained elements, which `dense` and `expert` ranks share.
Bytes shared(graph::DataType type, OwnedParameters owned, std::int64_t dense, std::int64_t expert) {
  return graph::bytes_of(type, owned.dense - owned.frozen) / dense +
         graph::bytes_of(type, owned.expert - owned.expert_frozen) / expert;
}

/// Returns whether parameters are stored in the recipe's type alone.
bool stores_quantized(const plan::Plan& plan) {
  return plan.quantized_params && plan::recipe_of(plan.quantization).transposable;
}

/// Returns whether the optimizer keeps parameters of its own.
bool has_master(const plan::Plan& plan) {
  return !plan.master_params &&
         graph::bits_of(plan.compute_type) < graph::bits_of(graph::DataType::fp32) &&
         (plan.master_type != plan.compute_type || stores_quantized(plan));
}

/// StoredForms are those of parameters of which GEMMs read `quantized` in the recipe's type.
struct StoredForms {
  Bytes stored{0};  ///< the form that the optimizer writes
  Bytes copy{0};    ///< one copy for GEMMs
};
StoredForms forms(const plan::Plan& plan, std::int64_t parameters, std::int64_t quantized,
                  std::int64_t packed) {
  const Bytes frozen = plan::packed_bytes(plan, packed);
  parameters -= packed;
  if (plan.quantization == plan::Quantization::none) {
    return {graph::bytes_of(plan.compute_type, parameters) + frozen, Bytes(0)};
  }
  const Bytes copy = Bytes(quantized) * plan::recipe_of(plan.quantization).element_bytes();
  return stores_quantized(plan)
             ? StoredForms{graph::bytes_of(plan.compute_type, parameters - quantized) + copy +
                               frozen,
                           copy}
             : StoredForms{graph::bytes_of(plan.compute_type, parameters) + frozen, copy};
}

/// Stored parameters, and their copies unless they are gathered.
Bytes resident_bytes(const plan::Plan& plan, const OwnedParameters& owned) {
  if (plan.master_params) {
    const std::int64_t shards = plan::shard_degrees(plan).params;
    const std::int64_t experts = plan.zero == 3 ? plan::expert_data_parallel(plan) : 1;
    const Bytes stored = graph::bytes_of(plan.master_type, owned.dense) / shards +
                         graph::bytes_of(plan.master_type, owned.expert) / experts;
    const bool copied = plan.zero < 3 && !plan.autocast;
    return stored +
           (copied ? graph::bytes_of(plan.compute_type, owned.dense + owned.expert) : Bytes(0));
  }
  const StoredForms dense = forms(plan, owned.dense, owned.quantized, owned.packed);
  const StoredForms expert = forms(plan, owned.expert, owned.expert_quantized, owned.expert_packed);
  const std::int64_t shards = plan::shard_degrees(plan).params;
  const std::int64_t expert_shards = plan.zero == 3 ? plan::expert_data_parallel(plan) : 1;
  // The stored form is a copy itself, and frozen weights have no other: they are read as they are.
  const int copies = !stores_quantized(plan) ? 2 : plan.lora_rank > 0 ? 0 : 1;
  const Bytes secondary = plan.secondary_shard > 0 ? dense.stored / plan.secondary_shard : Bytes(0);
  return dense.stored / shards + secondary + expert.stored / expert_shards +
         copies * ((shards == 1 ? dense.copy : Bytes(0)) +
                   (expert_shards == 1 ? expert.copy : Bytes(0)));
}

/// States and buffers of rounds (plan/rounds.h).
void add_outer(const plan::Plan& plan, const OwnedParameters& owned, std::int64_t shards,
               StateMemory& state) {
  if (!plan::runs_rounds(plan)) {
    return;
  }
  const plan::OuterBytes each = plan::outer_bytes(plan);
  const std::int64_t own = (owned.trained() + shards - 1) / shards;
  state.device[plan::MemoryCategory::optimizer] +=
      each.states * own / (plan.shard_outer ? plan::workers(plan) : 1);
  state.device[plan::MemoryCategory::buffers] += each.buffer * own;
  state.update = each.passing * own;
}

/// Moments of the optimizer, which `dense` and `expert` ranks share.
Bytes moments(const plan::Plan& plan, const OwnedParameters& owned, std::int64_t dense,
              std::int64_t expert) {
  if (plan::is_adam(plan)) {
    return 2 * shared(plan.moment_type, owned, dense, expert);
  }
  return plan::moment_bytes(plan, owned.dense - owned.frozen, owned.matrices) / dense +
         plan::moment_bytes(plan, owned.expert - owned.expert_frozen, owned.expert_matrices) /
             expert;
}

/// Returns the bytes that PyTorch takes beyond the context; none unless it runs the step.
Bytes beyond_context(const plan::Plan& plan) {
  return plan.autograd == plan::Autograd::engine ? Bytes(0) : Bytes(944) * (1024 * 1024);
}

/// Buffers for the exchange of tokens.
Bytes exchange_bytes(const zoo::Model& model, const plan::Plan& plan,
                     const machine::Machine& machine) {
  if (plan.ep == 1) {
    return Bytes(0);
  }
  const std::int64_t node = machine.network.empty() ? 0 : machine.network.front().size;
  const std::int64_t near = node > 0 ? std::min(plan.ep, node) : plan.ep;
  if (plan.moe_dispatch == plan::MoeDispatch::all_to_all) {
    return machine.device.exchange_memory * (near - 1);
  }
  if (plan.moe_dispatch == plan::MoeDispatch::hierarchical) {
    const std::int64_t width = model.expert.latent > 0 ? model.expert.latent : model.hidden;
    const std::int64_t tokens =
        plan.microbatch * plan::sequence_of(model, plan) / (plan.cp * plan.tp);
    const Bytes row = graph::size_of(plan.compute_type) * width +
                      graph::size_of(graph::DataType::fp32) * model.experts;
    return row * tokens * near * 2;
  }
  return Bytes(0);
}

}  // namespace

std::vector<StageChunk> stage_chunks(const zoo::Model& model, const plan::Plan& plan,
                                     const std::vector<plan::ModelPart>& parts) {
  std::vector<StageChunk> chunks;
  chunks.reserve(parts.size());
  for (const plan::ModelPart& part : parts) {
    chunks.push_back({plan::blocks_of(model, plan, part), part.first_layer});
  }
  return chunks;
}

OwnedParameters owned_parameters(const BlockMemories& model, const plan::Plan& plan,
                                 plan::BlockKind kind) {
  const BlockMemory& block = model.blocks[kind];
  const std::int64_t copy =
      kind == plan::kHeadBlock && !plan::ends_meet(plan) ? model.tied_copy : 0;
  return {block.parameters - block.expert_parameters + copy,
          block.expert_parameters,
          block.quantized,
          block.expert_quantized,
          block.frozen + (plan.lora_rank > 0 ? copy : 0),
          block.expert_frozen,
          block.packed,
          block.expert_packed,
          block.matrices,
          block.expert_matrices,
          block.largest};
}

Bytes gathered_bytes(const plan::Plan& plan, const OwnedParameters& owned) {
  if (plan.zero < 3) {
    return Bytes(0);
  }
  // Anew for every pass: the copy that the pass reads; else both. The stored form is the first.
  const int copies = plan.reshard_after_forward && !stores_quantized(plan) ? 1 : 2;
  const auto of = [&](bool sharded, std::int64_t parameters, std::int64_t quantized,
                      std::int64_t packed) {
    const StoredForms form = forms(plan, parameters, quantized, packed);
    const int made = copies - (stores_quantized(plan) ? 1 : 0);
    const Bytes arrived =
        plan.quantized_gather ? plan::quantized_gather_bytes(plan, form.stored) : Bytes(0);
    return sharded ? form.stored + made * form.copy + arrived : Bytes(0);
  };
  const bool elsewhere = plan.offload_params != plan::Offload::none;
  const Bytes all = of(elsewhere || plan::shard_degrees(plan).params > 1, owned.dense,
                       owned.quantized, owned.packed) +
                    of(elsewhere || plan::expert_data_parallel(plan) > 1, owned.expert,
                       owned.expert_quantized, owned.expert_packed);
  const bool by_weight = is_program(plan) && plan.reshard_after_forward;
  return by_weight ? std::min(all, graph::bytes_of(plan.compute_type, 2 * owned.largest)) : all;
}

Bytes bucket_bytes(const plan::Plan& plan, Bytes all, Bytes block) {
  const Bytes size = plan::bucket_size(plan);
  if (!plan.overlap_grad_reduce && size == Bytes(0)) {
    return all;  // one buffer
  }
  return std::min(all, std::max(block, size) * (plan.overlap_grad_reduce ? 2 : 1));
}

StateMemory state_memory(const BlockMemories& model, const plan::Plan& plan,
                         const std::vector<StageChunk>& chunks) {
  OwnedParameters owned;
  Bytes largest{0};
  for (const StageChunk& chunk : chunks) {
    for (const plan::BlockKind kind : chunk.blocks) {
      const OwnedParameters block = owned_parameters(model, plan, kind);
      owned += block;
      largest = std::max(largest, reduced_at_once(plan, block));
    }
  }
  StateMemory state = state_memory(plan, owned, largest);
  state.device[plan::MemoryCategory::buffers] += model.workspaces;
  return state;
}

StateMemory state_memory(const plan::Plan& plan, const OwnedParameters& owned, Bytes largest) {
  const plan::ShardDegrees degrees = plan::shard_degrees(plan);
  const std::int64_t experts = plan::expert_data_parallel(plan);
  const auto of = [&](graph::DataType type, std::int64_t dense, int stage) {
    return shared(type, owned, dense, plan.zero >= stage ? experts : 1);
  };
  StateMemory state;
  // A program has shards of gradients at its end alone.
  const bool whole_step = is_program(plan) && plan.pp == 1 && plan.microbatches() == 1;
  const bool come_and_go = plan::gradients_come_and_go(plan) || whole_step;
  const Bytes all_gradients = of(plan.grad_type, degrees.grads, 2);
  const Bytes gradients = come_and_go ? Bytes(0) : all_gradients;
  if (plan.offload_params == plan::Offload::none) {
    state.device[plan::MemoryCategory::parameters] = resident_bytes(plan, owned);
    state.device[plan::MemoryCategory::gradients] = gradients;
  } else {
    state.lower[graph::kRemoteLower] = resident_bytes(plan, owned) + gradients;
  }
  const Bytes states = moments(plan, owned, degrees.optimizer, plan.zero >= 1 ? experts : 1) +
                       (has_master(plan) ? of(plan.master_type, degrees.optimizer, 1) : Bytes(0));
  add_outer(plan, owned, degrees.optimizer, state);
  const bool narrow = graph::bits_of(plan.grad_type) < graph::bits_of(graph::DataType::fp32);
  if (plan.offload_optimizer == plan::Offload::none) {
    state.device[plan::MemoryCategory::optimizer] += states;
    state.update = std::max(state.update, narrow && has_master(plan)
                                              ? of(graph::DataType::fp32, degrees.optimizer, 1)
                                              : Bytes(0));
    if (plan.optimizer == plan::Optimizer::adam_foreach) {
      state.update += of(plan.moment_type, degrees.optimizer, 1);
    }
  } else if (plan.offload_optimizer == plan::Offload::remote) {
    state.lower[graph::kRemoteLower] += states;
    const bool with_gradients = plan.offload_params != plan::Offload::none;
    state.update = (states + (with_gradients ? gradients : Bytes(0))) * 2 / plan::kUpdatePieces;
  } else {
    state.lower[plan.offload_optimizer == plan::Offload::cpu ? 0 : 1] = states;
    state.lower[0] += of(plan.grad_type, degrees.optimizer, 1);
  }
  state.update += all_gradients - gradients;
  if (plan::worker_ranks(plan) > 1 && plan.zero < 2 && plan.grad_reduce_type != plan.grad_type) {
    const Bytes all = graph::bytes_of(plan.grad_reduce_type, owned.trained());
    state.reduction = bucket_bytes(plan, all, largest);
  }
  return state;
}

Bytes reserve_bytes(const zoo::Model& model, const plan::Plan& plan) {
  if (!plan::is_pytorch(plan)) {
    return Bytes(0);
  }
  const std::int64_t vocab = plan::shape_options(model, plan).padded_vocab / plan.tp;
  const std::int64_t tokens = plan.microbatch * plan::sequence_of(model, plan) / plan.cp;
  const std::int64_t rows = plan.fused_cross_entropy ? model.hidden : tokens;
  const Bytes hole = graph::size_of(plan.compute_type) * vocab * rows;
  if (plan.zero < 3) {
    return hole;
  }
  // Both tables stay gathered, and the pool of gathers keeps them once more with its shards.
  const Bytes tables = graph::size_of(plan.compute_type) * vocab * model.hidden * 2;
  return hole + 2 * tables + tables / std::max<std::int64_t>(1, plan.dp * plan.cp);
}

Bytes framework_bytes(const zoo::Model& model, const plan::Plan& plan,
                      const machine::Machine& machine) {
  const compute::Device& device = machine.device;
  const bool experts = plan.ep > 1;
  const std::array<std::int64_t, 7> ranks{plan.tp,
                                          plan.cp,
                                          plan.dp * plan.cp,
                                          plan.pp,
                                          plan.ep,
                                          experts ? plan::expert_tensor_parallel(plan) : 1,
                                          experts ? plan::expert_data_parallel(plan) : 1};
  return device.framework_memory + beyond_context(plan) +
         device.communicator_memory *
             std::count_if(ranks.begin(), ranks.end(), [](std::int64_t size) { return size > 1; }) +
         exchange_bytes(model, plan, machine) + reserve_bytes(model, plan);
}

}  // namespace orrery::footprint
