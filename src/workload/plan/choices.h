// SPDX-License-Identifier: Apache-2.0
/// The choices that a plan takes by name, each with the sentence that help texts print.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/listed_names.h"
#include "base/names.h"

namespace orrery::plan {

/// The enumeration names the schedules that the code asks for; others have a row alone
/// (schedule_row.h).
enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zb_h1, zb_v, dualpipe };
constexpr ListedNames<Schedule> named_values(Schedule /*any*/) {
  return {};
}
const std::vector<Named<Schedule>>& listed_values(Schedule any);
enum class Recompute : std::uint8_t { none, selective, full };
constexpr auto named_values(Recompute) {
  return std::to_array<Named<Recompute>>({
      {Recompute::none, "none", "keep every activation"},
      {Recompute::selective, "selective", "drop and recompute the attention core"},
      {Recompute::full, "full", "keep only each layer's input"},
  });
}
enum class PipelineSend : std::uint8_t { whole, scatter_gather };
constexpr auto named_values(PipelineSend) {
  return std::to_array<Named<PipelineSend>>({
      {PipelineSend::whole, "whole", "every tp rank sends the whole boundary tensor"},
      {PipelineSend::scatter_gather, "scatter_gather",
       "each sends 1/tp, all-gather at the receiver"},
  });
}
/// Says how the parts of a sequence see each other's keys and values (Megatron's cp_comm_type).
enum class ContextExchange : std::uint8_t { p2p, all_gather, a2a, a2a_p2p };
constexpr auto named_values(ContextExchange) {
  return std::to_array<Named<ContextExchange>>({
      {ContextExchange::p2p, "p2p", "ring attention: keys and values travel round the cp ranks"},
      {ContextExchange::all_gather, "all_gather", "keys and values are gathered before attention"},
      {ContextExchange::a2a, "a2a", "Ulysses: all-to-all from tokens to heads and back"},
      {ContextExchange::a2a_p2p, "a2a+p2p", "all-to-all among cp_a2a ranks, a ring over the rest"},
  });
}
/// Says how tokens reach their experts.
enum class MoeDispatch : std::uint8_t { all_to_all, all_gather, hierarchical };
constexpr auto named_values(MoeDispatch) {
  return std::to_array<Named<MoeDispatch>>({
      {MoeDispatch::all_to_all, "alltoall", "each token's copies go to the ranks of its experts"},
      {MoeDispatch::all_gather, "allgather", "every rank gets every token and keeps its experts'"},
      {MoeDispatch::hierarchical, "hierarchical",
       "one copy per node, and per rank inside it (DeepEP, HybridEP)"},
  });
}
/// ExpertGemms says what multiplies the experts' matrices.
enum class ExpertGemms : std::uint8_t { grouped, per_expert, fused };
constexpr auto named_values(ExpertGemms) {
  return std::to_array<Named<ExpertGemms>>({
      {ExpertGemms::grouped, "grouped", "one kernel for the tiles of all experts of a rank"},
      {ExpertGemms::per_expert, "per_expert",
       "a GEMM per expert on several streams; biases and padding apart (TEGroupedMLP)"},
      {ExpertGemms::fused, "fused",
       "one kernel with biases, activation and the conversion of its result (its op fuser)"},
  });
}
/// OverlapExperts says what the exchange of tokens runs beside.
enum class OverlapExperts : std::uint8_t { off, shared, microbatch };
constexpr auto named_values(OverlapExperts) {
  return std::to_array<Named<OverlapExperts>>({
      {OverlapExperts::off, "false", "nothing"},
      {OverlapExperts::shared, "true", "the shared expert; in dualpipe also the other microbatch"},
      {OverlapExperts::microbatch, "microbatch",
       "another microbatch: after the warm-up forwards and backwards run in pairs"},
  });
}
/// CudaGraphs says what the host launches as captured graphs instead of kernel by kernel.
enum class CudaGraphs : std::uint8_t { none, layers, full };
constexpr auto named_values(CudaGraphs) {
  return std::to_array<Named<CudaGraphs>>({
      {CudaGraphs::none, "none", "nothing"},
      {CudaGraphs::layers, "layers", "layers but for routed experts, whose shapes change"},
      {CudaGraphs::full, "full", "the whole step; experts in buffers of fixed size"},
  });
}
/// Names the clocks at which matrix kernels run.
enum class Clocks : std::uint8_t { sustained, boost };
constexpr auto named_values(Clocks) {
  return std::to_array<Named<Clocks>>({
      {Clocks::sustained, "sustained", "as a job of minutes keeps them under the power cap"},
      {Clocks::boost, "boost", "as kernels alone and for a moment run"},
  });
}
/// Quantization names the recipe that runs GEMMs in fewer than 16 bits.
enum class Quantization : std::uint8_t { none, fp8_delayed, fp8_current, fp8_block, mxfp8, nvfp4 };
constexpr auto named_values(Quantization) {
  return std::to_array<Named<Quantization>>({
      {Quantization::none, "none", "GEMMs in compute_type"},
      {Quantization::fp8_delayed, "fp8-delayed", "fp8, one scale per tensor from earlier steps"},
      {Quantization::fp8_current, "fp8-current", "fp8, one scale per tensor from its own maximum"},
      {Quantization::fp8_block, "fp8-block", "fp8, scales of 1 x 128 and 128 x 128 blocks"},
      {Quantization::mxfp8, "mxfp8", "fp8, a power-of-two scale per 32 elements"},
      {Quantization::nvfp4, "nvfp4", "4-bit, an fp8 scale per 16 elements"},
  });
}
/// TensorOverlap says what a collective over tp does while the product beside it still runs.
enum class TensorOverlap : std::uint8_t { none, cu_split, tracked, tracked_mca, chunked };
constexpr auto named_values(TensorOverlap) {
  return std::to_array<Named<TensorOverlap>>({
      {TensorOverlap::none, "none", "it waits for the whole product"},
      {TensorOverlap::cu_split, "cu_split", "kernels move finished tiles and take units from it"},
      {TensorOverlap::tracked, "tracked",
       "T3: a tracker in memory has engines move finished tiles; hypothetical hardware"},
      {TensorOverlap::tracked_mca, "tracked_mca",
       "T3-MCA: the same, and memory serves the product first; hypothetical hardware"},
      {TensorOverlap::chunked, "chunked",
       "products and their gathers and sums in tp_chunks pieces, tp unless stated: userbuffers, "
       "async TP"},
  });
}
/// Autograd says which software keeps tensors from forward to backward (block_memory.h).
enum class Autograd : std::uint8_t { engine, transformer_engine, pytorch, hugging_face };
constexpr auto named_values(Autograd) {
  return std::to_array<Named<Autograd>>({
      {Autograd::engine, "engine", "hand-written kernels, without workspaces"},
      {Autograd::transformer_engine, "transformer_engine", "Megatron-Core's with those of NVIDIA"},
      {Autograd::pytorch, "pytorch", "PyTorch's: eager, or compiled by blocks with fused_kernels"},
      {Autograd::hugging_face, "hugging_face", "PyTorch's, eager, over modules of transformers"},
  });
}
enum class Offload : std::uint8_t { none, cpu, nvme, remote };
constexpr auto named_values(Offload) {
  return std::to_array<Named<Offload>>({
      {Offload::none, "none", "in device memory"},
      {Offload::cpu, "cpu", "in the host's memory: the device's second memory tier"},
      {Offload::nvme, "nvme", "on local storage: the device's third memory tier"},
      {Offload::remote, "remote", "in the machine's remote memory"},
  });
}
/// Optimizer names the rule that updates parameters (workload/plan/optimizer.h).
enum class Optimizer : std::uint8_t { adam, adamw_8bit, adafactor, lion, muon, sgd, adam_foreach };
constexpr auto named_values(Optimizer) {
  return std::to_array<Named<Optimizer>>({
      {Optimizer::adam, "adam", "two moments in moment_type; AdamW moves as much"},
      {Optimizer::adamw_8bit, "adamw_8bit", "two moments of 8 bits with scales (bitsandbytes)"},
      {Optimizer::adafactor, "adafactor", "sums of rows and columns of squared gradients"},
      {Optimizer::lion, "lion", "one moment, whose sign is the update"},
      {Optimizer::muon, "muon", "one moment, orthogonalised, of layers' matrices; else adam"},
      {Optimizer::sgd, "sgd", "one moment: momentum"},
      {Optimizer::adam_foreach, "adam_foreach", "adam in PyTorch's kernels of one operator each"},
  });
}
/// DataParallelUpdate says how data-parallel workers come to one model (workload/plan/rounds.h).
enum class DataParallelUpdate : std::uint8_t { every_step, local_sgd, slow_mo, diloco, co2 };
constexpr auto named_values(DataParallelUpdate) {
  return std::to_array<Named<DataParallelUpdate>>({
      {DataParallelUpdate::every_step, "every_step", "gradients are summed in every step"},
      {DataParallelUpdate::local_sgd, "local_sgd", "parameters are averaged every local_steps"},
      {DataParallelUpdate::slow_mo, "slow_mo", "averages feed an outer momentum"},
      {DataParallelUpdate::diloco, "diloco", "outer gradients feed an outer Nesterov momentum"},
      {DataParallelUpdate::co2, "co2",
       "slow_mo whose all-reduce runs beside the next round and is applied at its end"},
  });
}
/// FrozenType says in what frozen parameters are stored (lora_rank).
enum class FrozenType : std::uint8_t { compute_type, fp8, int8, int4, nf4 };
constexpr auto named_values(FrozenType) {
  return std::to_array<Named<FrozenType>>({
      {FrozenType::compute_type, "compute_type", "as all parameters are"},
      {FrozenType::fp8, "fp8", "8 bits that GEMMs read; one copy where `quantization` is fp8"},
      {FrozenType::int8, "int8", "8 bits with a scale per row; dequantised before every GEMM"},
      {FrozenType::int4, "int4", "4 bits with a 16-bit scale per 64; dequantised"},
      {FrozenType::nf4, "nf4", "4 bits, scales per 64 quantised again (QLoRA); dequantised"},
  });
}

}  // namespace orrery::plan
