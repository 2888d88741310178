// SPDX-License-Identifier: Apache-2.0
/// State memory is what a stage holds during the whole step: parameters, gradients, optimizer
/// states.
///
///   P parameters of one rank, dense or expert; e, g, w, u bytes of compute, gradient, master and
///   moment type; s_p, s_g, s_o ranks that share (layout.h; of experts all edp or 1)
///   parameters  e P / s_p; with master_params w P / s_p, and e P unless zero 3 or autocast makes
///               copies; where GEMMs are quantised also both copies of their Q weights, 2 w' Q
///               (w' bytes, quantize.h); with quantized_params only the copies. Zero 3 keeps shards
///               of one form and makes copies of what it gathers.
///               Frozen weights in frozen_type (lora.h) are there once, in that type.
///   gradients   g P / s_g; these and what follows of trained parameters alone (lora.h)
///   optimizer   (w + 2 u) P / s_o; no master (w) when its type is the compute type or fp32 compute
///               has it already; of others than Adam what plan/optimizer.h says in place of 2 u P
///   update      4 P / s_o: an fp32 copy of gradients that are narrower than a master of fp32,
///               while a device runs the optimizer; u P / s_o more, the root of adam_foreach
///   free_gradients: with one microbatch and no sharding gradients grow during backward and are
///               there at the update alone; with autograd engine shards of them, too
///   workspaces  of libraries, all the step (autograd_memory.h)
///   reduction   the bucket in which gradients travel, in a type other than the gradients'
///
/// With bf16 and fp32 gradients: 2 + 4 + 12 = 18 bytes per parameter (Megatron-LM), 6 + 12/dp with
/// a distributed optimizer; with 16-bit gradients 16 (Rajbhandari et al. 2020, section 3.1).
///
/// Rounds add their outer states and buffers (plan/rounds.h), secondary_shard its e P / s copy.
///
/// offload_optimizer moves the states to the host or to its storage, and copies the gradients to
/// the host; their accumulation buffer stays on the device (Megatron-LM's CPU offload; ZeRO-Offload
/// frees it). States in remote memory pass through the device in pieces, two of 8 at a time.
/// offload_params moves parameters and gradients to the remote memory too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/liveness.h"
#include "machine/machine.h"
#include "workload/memory/block_memory.h"
#include "workload/plan/memory_category.h"
#include "workload/plan/plan.h"

namespace orrery::footprint {

/// One chunk of a stage.
struct StageChunk {
  std::vector<plan::BlockKind> blocks;
  std::int64_t first_layer = 0;  ///< of the model

  friend bool operator==(const StageChunk&, const StageChunk&) = default;
};

std::vector<StageChunk> stage_chunks(const zoo::Model& model, const plan::Plan& plan,
                                     const std::vector<plan::ModelPart>& parts);

/// OwnedParameters are those of a rank, before sharding over data-parallel ranks.
struct OwnedParameters {
  std::int64_t dense = 0;
  std::int64_t expert = 0;
  std::int64_t quantized = 0;         ///< of dense, weights of quantised GEMMs
  std::int64_t expert_quantized = 0;  ///< of expert
  std::int64_t frozen = 0;            ///< of dense
  std::int64_t expert_frozen = 0;     ///< of expert
  std::int64_t packed = 0;            ///< of frozen, weights in frozen_type; not in quantized
  std::int64_t expert_packed = 0;     ///< of expert_frozen
  plan::Matrices matrices{};          ///< of dense
  plan::Matrices expert_matrices{};   ///< of expert
  std::int64_t largest = 0;           ///< elements of the largest weight

  std::int64_t trained() const { return dense - frozen + expert - expert_frozen; }

  OwnedParameters& operator+=(OwnedParameters other) {
    dense += other.dense;
    expert += other.expert;
    quantized += other.quantized;
    expert_quantized += other.expert_quantized;
    frozen += other.frozen;
    expert_frozen += other.expert_frozen;
    packed += other.packed;
    expert_packed += other.expert_packed;
    matrices += other.matrices;
    expert_matrices += other.expert_matrices;
    largest = std::max(largest, other.largest);
    return *this;
  }
  friend OwnedParameters operator*(OwnedParameters one, std::int64_t times) {
    return {one.dense * times,
            one.expert * times,
            one.quantized * times,
            one.expert_quantized * times,
            one.frozen * times,
            one.expert_frozen * times,
            one.packed * times,
            one.expert_packed * times,
            one.matrices * times,
            one.expert_matrices * times,
            one.largest};
  }
};
/// Returns the parameters of a block, with the head's copy of a table that stands on another stage.
OwnedParameters owned_parameters(const BlockMemories& model, const plan::Plan& plan,
                                 plan::BlockKind kind);

/// Returns whether the step is one compiled program (XLA's): gradients are values of it, and with
/// zero 3 a weight is gathered just before the product that reads it and its gradient reduced just
/// after the one that makes it, where frameworks of modules gather a whole block.
inline bool is_program(const plan::Plan& plan) {
  return plan.free_gradients && plan.autograd == plan::Autograd::engine;
}

/// Returns the bytes of parameters that zero 3 gathers for a block, in the form in which GEMMs read
/// them, of dense and of expert parameters that are really sharded. A program that gathers anew for
/// every pass holds one weight that is read and one on its way, at most twice the largest.
Bytes gathered_bytes(const plan::Plan& plan, const OwnedParameters& owned);

/// Returns what a block has gathered ahead of its pass (overlap_param_gather): nothing of a
/// program, whose weight on its way is among gathered_bytes().
inline Bytes gathered_ahead(const plan::Plan& plan, Bytes gathered) {
  return plan.overlap_param_gather && !is_program(plan) ? gathered : Bytes(0);
}

/// Returns the bytes of gradients of a block that are reduced at once, on the wire.
inline Bytes reduced_at_once(const plan::Plan& plan, const OwnedParameters& owned) {
  const std::int64_t trained = owned.trained();
  return graph::bytes_of(plan.grad_reduce_type,
                         is_program(plan) ? std::min(trained, owned.largest) : trained);
}

struct StateMemory {
  graph::MemoryBytes device;
  graph::LowerTiers lower{};
  Bytes update{0};     ///< on the device; while a round ends at least its second buffer
  Bytes reduction{0};  ///< on the device
};
StateMemory state_memory(const BlockMemories& model, const plan::Plan& plan,
                         const std::vector<StageChunk>& chunks);
/// Returns the same of what the stage owns; `largest`: gradients of its largest block, on the wire.
StateMemory state_memory(const plan::Plan& plan, const OwnedParameters& owned, Bytes largest);

/// Returns the bytes of a reduction's bucket over `all` gradients of a stage, of which the largest
/// block has `block`: both in the type on the wire. Overlapped, one fills while the one before
/// travels.
Bytes bucket_bytes(const plan::Plan& plan, Bytes all, Bytes block);

/// Returns what a device holds besides tensors (compute/device.h):
///
///   framework_memory + d + c communicator_memory + x + reserve_bytes()
///
///   d   944 MiB where PyTorch runs the step (every autograd but engine): with the 426 MiB of a
///       context the 1.36 GiB that the driver shows beyond what PyTorch 2.11 reserves (own runs on
///       an H200, CUDA 13)
///   c   communicators of more than one rank: tp, cp, dp with cp, pp, ep; with ep those inside an
///       expert (etp) and of the ranks with the same experts
///   x   buffers for the exchange of tokens over ep > 1:
///       alltoall       exchange_memory for each other rank of ep inside the node, since NCCL
///                      connects every pair
///       hierarchical   2 T n (H e + 4 E): what the n ranks of ep inside the node may send here,
///                      before the experts and after them, with a weight for every expert of the
///                      layer; T: the rank's tokens of a microbatch, H: width of a routed row
///
/// Ignores: what such libraries stage for messages between nodes.
/// Source:  deepseek-ai/DeepEP, hybrid-ep (buffers of dispatch and combine, one for all layers).
Bytes framework_bytes(const zoo::Model& model, const plan::Plan& plan,
                      const machine::Machine& machine);

/// Returns what PyTorch's allocator keeps beyond the tensors of the fullest moment: the hole that
/// logits in the compute type leave, since no tensor behind them fits into it. e T V / t with an
/// eager loss; e V H / t, a gradient of the table, with a fused one. With zero 3 also the tables of
/// both ends, which stay gathered, and the pool in which they are gathered: 2 e V H / t (2 + 1 / N)
/// on N ranks (FSDP2 of torchtitan). 0 with autograd engine and
/// transformer_engine, whose buffers are allocated once.
///
/// Ignores:  pools of other streams; a first run's autotuning, which may leave more.
/// Source:   own runs on an H200 (PyTorch 2.11): 1.98 GiB against 1.957 at T = 8192.
Bytes reserve_bytes(const zoo::Model& model, const plan::Plan& plan);

}  // namespace orrery::footprint
