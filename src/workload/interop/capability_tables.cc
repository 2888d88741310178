// SPDX-License-Identifier: Apache-2.0
/// The rows: what each framework can run of a plan field, and what it decides itself.
#include "workload/interop/capability_tables.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/split.h"
#include "workload/interop/text.h"
#include "workload/plan/schedule_row.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::interop {
namespace {

using plan::Plan;

// --- of all frameworks

constexpr auto kCommon = std::to_array<Capability>({
    {"overlap_tensor", [](const Run& run) { return !plan::follows_tiles(run.plan.overlap_tensor); },
     "none or chunked: kernels that move finished tiles are no framework's"},
    {"fuse_communication", [](const Run& run) { return !run.plan.fuse_communication; },
     "false: stages send what their last operator makes"},
    {"offload_params",
     [](const Run& run) { return run.plan.offload_params == plan::Offload::none; },
     "none: parameters stay on the devices"},
    {"pool_collectives", [](const Run& run) { return !run.plan.pool_collectives; },
     "false: switches of remote memory are no framework's"},
    {"batch_shares", [](const Run& run) { return run.plan.batch_shares.empty(); },
     "\"\": every replica has as many microbatches"},
    {"parts", [](const Run& run) { return run.plan.parts.empty(); },
     "\"\": ranks lie as the launcher numbers them"},
    {"strategy", [](const Run& run) { return run.plan.strategy.empty(); },
     "\"\": a program of `orrery spmd` is no framework's"},
    {"data_parallel_update",
     [](const Run& run) {
       return run.plan.data_parallel_update == plan::DataParallelUpdate::every_step;
     },
     "every_step: gradients are summed in every step"},
});

// --- Megatron core

bool is_interleaved(const Plan& plan) {
  return plan.schedule == plan::Schedule::interleaved;
}

bool megatron_modules(const Run& run) {
  constexpr std::string_view kModules = "moe_act layernorm mla_up_proj mlp moe shared_experts";
  const auto known = split_at(kModules, ' ');
  return run.plan.recompute_modules.empty() ||
         (run.plan.recompute != plan::Recompute::full &&
          std::ranges::all_of(split_at(run.plan.recompute_modules, ','),
                              [&](std::string_view name) {
                                return std::ranges::find(known, name) != known.end();
                              }));
}

bool megatron_activations(const Run& run) {
  const Plan& plan = run.plan;
  if (plan.offload_activations == 0) {
    return true;
  }
  const double layers =
      run.model == nullptr ? 0 : plan.offload_activations * static_cast<double>(run.model->layers);
  return plan.pp == 1 && plan.recompute == plan::Recompute::none &&
         plan.recompute_modules.empty() && plan.offload_activations < 1 &&
         layers == std::round(layers);
}

bool megatron_experts(const Run& run) {
  const Plan& plan = run.plan;
  return plan.overlap_ep != plan::OverlapExperts::microbatch ||
         ((plan.pp == 1 || is_interleaved(plan)) && plan.recompute != plan::Recompute::full);
}

constexpr auto kMegatron = std::to_array<Capability>({
    {"schedule",
     [](const Run& run) {
       const bool one = run.plan.schedule == plan::Schedule::one_f_one_b && run.plan.chunks == 1;
       return one || (is_interleaved(run.plan) && run.plan.chunks > 1);
     },
     "1f1b, or interleaved with chunks"},
    {"overlap_p2p",
     [](const Run& run) {
       return !run.plan.overlap_p2p || run.plan.pp == 1 || is_interleaved(run.plan);
     },
     "false: messages overlap in the interleaved schedule only"},
    {"order",
     [](const Run& run) {
       return run.plan.order == "tp-cp-dp-pp" || run.plan.order == "tp-cp-pp-dp";
     },
     "tp-cp-dp-pp or tp-cp-pp-dp (--use-tp-pp-dp-mapping)"},
    {"tp_chunks",
     [](const Run& run) {
       return plan::tensor_pieces(run.plan) == 1 ||
              (plan::tensor_pieces(run.plan) == run.plan.tp && run.plan.sequence_parallel);
     },
     "1, or tp with sequence_parallel (--tp-comm-overlap)"},
    {"overlap_ep", megatron_experts,
     "microbatch with one stage or the interleaved schedule, and without full recompute"},
    {"overlap_param_gather",
     [](const Run& run) {
       return !run.plan.overlap_param_gather ||
              (run.plan.zero >= 1 && run.plan.overlap_grad_reduce);
     },
     "true beside overlap_grad_reduce and zero 1 or more"},
    {"reshard_after_forward",
     [](const Run& run) { return run.plan.reshard_after_forward || run.plan.zero == 3; },
     "false with zero 3 (--use-torch-fsdp2)"},
    {"recompute_modules", megatron_modules,
     "core_attn (recompute selective), moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts"},
    {"offload_optimizer",
     [](const Run& run) {
       return run.plan.offload_optimizer == plan::Offload::none ||
              (run.plan.offload_optimizer == plan::Offload::cpu && run.plan.zero == 1);
     },
     "none, or cpu with zero 1: the hybrid optimizer is the distributed one's"},
    {"offload_activations", megatron_activations,
     "0, or of whole layers, not of all, without stages and without recompute"},
    {"bucket",
     [](const Run& run) {
       const bool read = run.plan.bucket_parameters > 0 || run.plan.bucket_parameters_per_rank > 0;
       return run.plan.bucket == Bytes(0) || read ||
              (run.plan.overlap_grad_reduce && run.plan.zero < 3);
     },
     "a size with overlap_grad_reduce and zero below 3"},
    {"grad_reduce_type",
     [](const Run& run) { return run.plan.grad_reduce_type == run.plan.grad_type; },
     "as grad_type: one argument states both"},
    {"quantized_gather",
     [](const Run& run) { return !run.plan.quantized_gather && !run.plan.quantized_reduce; },
     "false: quantised exchanges of gradients and parameters are DeepSpeed's"},
    {"secondary_shard", [](const Run& run) { return run.plan.secondary_shard == 0; },
     "0: secondary shards are DeepSpeed's"},
});

constexpr auto kMegatronImposed = std::to_array<Imposed>({
    {"overlap_p2p",
     [](Plan& plan) { plan.overlap_p2p = plan.overlap_p2p && is_interleaved(plan); }},
    {"overlap_param_gather",
     [](Plan& plan) {
       plan.overlap_param_gather =
           plan.overlap_param_gather && plan.zero >= 1 && plan.overlap_grad_reduce;
     }},
});

// --- torchtitan

constexpr Bytes kDdpBucket =
    100_MiB;  // of PyTorch's DistributedDataParallel, as torchtitan sets it

bool torchtitan_sharding(const Run& run) {
  const Plan& plan = run.plan;
  return plan.dp * plan.cp == 1 ? plan.zero == 0
                                : plan.zero == 3 || (plan.zero == 0 && plan.cp == 1);
}

constexpr auto kTorchtitan = std::to_array<Capability>({
    {"schedule",
     [](const Run& run) {
       return run.plan.pp == 1 || !row_of(run.plan.schedule).torchtitan.empty();
     },
     "1f1b, gpipe, interleaved or zb-v"},
    {"sequence_parallel",
     [](const Run& run) { return run.plan.sequence_parallel == (run.plan.tp > 1); },
     "true with tp: its tensor parallelism always is"},
    {"order",
     [](const Run& run) {
       return run.plan.pp == 1 || run.plan.dp == 1 || run.plan.order == "tp-cp-dp-pp";
     },
     "tp-cp-dp-pp: stages are the outermost axis of its mesh"},
    {"tp_chunks",
     [](const Run& run) {
       return plan::tensor_pieces(run.plan) == 1 ||
              (plan::tensor_pieces(run.plan) == run.plan.tp && run.plan.fused_kernels);
     },
     "1, or tp with fused_kernels: asynchronous tensor parallelism is compiled"},
    {"cp_exchange",
     [](const Run& run) {
       return run.plan.cp == 1 || run.plan.cp_exchange == plan::ContextExchange::p2p ||
              run.plan.cp_exchange == plan::ContextExchange::all_gather;
     },
     "p2p or all_gather (context_parallel_rotate_method)"},
    {"moe_dispatch",
     [](const Run& run) { return run.plan.moe_dispatch != plan::MoeDispatch::all_gather; },
     "alltoall or hierarchical (deepep)"},
    {"etp",
     [](const Run& run) {
       const bool as_layer = run.plan.etp == 0 || run.plan.etp == run.plan.tp;
       return as_layer || (run.plan.ep > 1 && run.plan.etp == 1);
     },
     "tp, or 1 with ep"},
    {"overlap_ep", [](const Run& run) { return run.plan.overlap_ep == plan::OverlapExperts::off; },
     "false: nothing runs beside the exchange of tokens"},
    {"overlap_p2p", [](const Run& run) { return !run.plan.overlap_p2p || run.plan.pp == 1; },
     "false: stages are counted as waiting for their messages"},
    {"zero", torchtitan_sharding, "3 (data_parallel_shard_degree), or 0 without cp"},
    {"overlap_grad_reduce",
     [](const Run& run) { return run.plan.dp * run.plan.cp == 1 || run.plan.overlap_grad_reduce; },
     "true: FSDP and DDP reduce beside the backward pass"},
    {"overlap_param_gather",
     [](const Run& run) { return run.plan.overlap_param_gather == (run.plan.zero == 3); },
     "true with zero 3: FSDP prefetches"},
    {"bucket",
     [](const Run& run) {
       return run.plan.dp * run.plan.cp == 1 ||
              run.plan.bucket == (run.plan.zero == 3 ? Bytes(0) : kDdpBucket);
     },
     "0 with zero 3, else 100 MiB"},
    {"recompute", [](const Run& run) { return run.plan.recompute != plan::Recompute::selective; },
     "none or full"},
    {"recompute_modules",
     [](const Run& run) {
       return run.plan.recompute_modules.empty() ||
              (run.plan.recompute_modules == kSelectiveOp &&
               run.plan.recompute == plan::Recompute::none && run.plan.recompute_layers == 0);
     },
     "\"\" (whole layers), or every_other_gemm (selective_ac_option op)"},
    {"recompute_layers", [](const Run& run) { return run.plan.recompute_layers == 0; },
     "0: all layers"},
    {"offload_optimizer",
     [](const Run& run) { return run.plan.offload_optimizer == plan::Offload::none; },
     "none: enable_cpu_offload moves parameters too"},
    {"offload_activations", [](const Run& run) { return run.plan.offload_activations == 0; },
     "0: activations stay on the devices"},
    {"fused_cross_entropy", [](const Run& run) { return !run.plan.fused_cross_entropy; },
     "false: the loss is PyTorch's"},
    {"moment_type",
     [](const Run& run) {
       return run.plan.moment_type == run.plan.master_type &&
              run.plan.grad_type == run.plan.master_type;
     },
     "that of master_type and grad_type: training.dtype states all three"},
    {"quantized_gather",
     [](const Run& run) { return !run.plan.quantized_gather && !run.plan.quantized_reduce; },
     "false: quantised exchanges of gradients and parameters are DeepSpeed's"},
    {"secondary_shard", [](const Run& run) { return run.plan.secondary_shard == 0; },
     "0: secondary shards are DeepSpeed's"},
});

constexpr auto kTorchtitanImposed = std::to_array<Imposed>({
    {"sequence_parallel", [](Plan& plan) { plan.sequence_parallel = plan.tp > 1; }},
    {"overlap_p2p", [](Plan& plan) { plan.overlap_p2p = false; }},
    {"overlap_ep", [](Plan& plan) { plan.overlap_ep = plan::OverlapExperts::off; }},
    {"etp", [](Plan& plan) { plan.etp = plan.ep > 1 ? plan.etp : 0; }},
    {"overlap_grad_reduce", [](Plan& plan) { plan.overlap_grad_reduce = true; }},
    {"overlap_param_gather", [](Plan& plan) { plan.overlap_param_gather = plan.zero == 3; }},
    {"bucket", [](Plan& plan) { plan.bucket = plan.zero == 3 ? Bytes(0) : kDdpBucket; }},
});

// --- DeepSpeed, by its ds_config.json

constexpr auto kDeepSpeed = std::to_array<Capability>({
    {"cp", [](const Run& run) { return run.plan.cp == 1; },
     "1: no key of ds_config.json splits sequences"},
    {"ep", [](const Run& run) { return run.plan.ep == 1; },
     "1: no key of ds_config.json places experts"},
    {"etp", [](const Run& run) { return run.plan.etp == 0 || run.plan.etp == run.plan.tp; }, "tp"},
    {"pp", [](const Run& run) { return run.plan.pp == 1 || run.plan.tp == 1; },
     "1 with tp: pipelines have no automatic tensor parallelism"},
    {"schedule",
     [](const Run& run) {
       return run.plan.schedule == plan::Schedule::one_f_one_b && run.plan.chunks == 1;
     },
     "1f1b"},
    {"stage_layers",
     [](const Run& run) { return run.plan.pp == 1 || run.plan.stage_layers.empty(); },
     "\"\": as many layers on every stage"},
    {"order",
     [](const Run& run) {
       return run.plan.pp == 1 || run.plan.dp == 1 || run.plan.order == "tp-cp-dp-pp";
     },
     "tp-cp-dp-pp: stages are the outermost axis of its topology"},
    {"sequence_parallel", [](const Run& run) { return !run.plan.sequence_parallel; },
     "false: its tensor parallelism keeps activations whole"},
    {"tp_chunks", [](const Run& run) { return plan::tensor_pieces(run.plan) == 1; }, "1"},
    {"overlap_p2p", [](const Run& run) { return !run.plan.overlap_p2p || run.plan.pp == 1; },
     "false: stages wait for their messages"},
    {"overlap_ep",
     [](const Run& run) {
       return run.plan.ep == 1 || run.plan.overlap_ep == plan::OverlapExperts::off;
     },
     "false: nothing runs beside the exchange of tokens"},
    {"zero",
     [](const Run& run) {
       return run.plan.zero <= (run.plan.pp > 1 ? 1 : run.plan.tp > 1 ? 2 : 3);
     },
     "0 and 1 with stages, up to 2 with tp, else up to 3"},
    {"overlap_param_gather",
     [](const Run& run) {
       return run.plan.overlap_param_gather == (run.plan.overlap_grad_reduce && run.plan.zero == 3);
     },
     "as overlap_grad_reduce with zero 3 (overlap_comm), else false"},
    {"bucket", [](const Run& run) { return run.plan.bucket > Bytes(0); },
     "a size (reduce_bucket_size)"},
    {"recompute", [](const Run& run) { return run.plan.recompute != plan::Recompute::selective; },
     "none or full"},
    {"recompute_modules", [](const Run& run) { return run.plan.recompute_modules.empty(); },
     "\"\": whole layers"},
    {"recompute_layers", [](const Run& run) { return run.plan.recompute_layers == 0; },
     "0: all layers"},
    {"offload_optimizer",
     [](const Run& run) {
       return run.plan.offload_optimizer == plan::Offload::none ||
              (run.plan.offload_optimizer != plan::Offload::remote && run.plan.zero >= 1);
     },
     "none, or cpu or nvme with zero 1 or more"},
    {"offload_activations",
     [](const Run& run) {
       return run.plan.offload_activations == 0 ||
              (run.plan.offload_activations == 1 && run.plan.recompute == plan::Recompute::full);
     },
     "0, or 1 with full recompute (cpu_checkpointing)"},
    {"fused_cross_entropy", [](const Run& run) { return !run.plan.fused_cross_entropy; },
     "false: the loss is PyTorch's"},
    {"reshard_after_forward", [](const Run& run) { return run.plan.reshard_after_forward; },
     "true: stage 3 gathers again for the backward pass"},
});

constexpr auto kDeepSpeedImposed = std::to_array<Imposed>({
    {"sequence_parallel", [](Plan& plan) { plan.sequence_parallel = false; }},
    {"overlap_p2p", [](Plan& plan) { plan.overlap_p2p = false; }},
    {"etp", [](Plan& plan) { plan.etp = 0; }},
    {"overlap_param_gather",
     [](Plan& plan) { plan.overlap_param_gather = plan.overlap_grad_reduce && plan.zero == 3; }},
});

}  // namespace

std::span<const Capability> common_capabilities() {
  return kCommon;
}

CapabilityTable capability_table(std::string_view launcher) {
  const std::string_view name = launcher.substr(0, launcher.find('@'));
  if (name == "megatron" || name == "nemo") {
    return {kMegatron, kMegatronImposed};
  }
  if (name == "torchtitan") {
    return {kTorchtitan, kTorchtitanImposed};
  }
  return name == "deepspeed" ? CapabilityTable{kDeepSpeed, kDeepSpeedImposed} : CapabilityTable{};
}

}  // namespace orrery::interop
