// SPDX-License-Identifier: Apache-2.0
/// Vocabulary of ds_config.json that becomes no plan field. Internal to this folder.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "workload/interop/interop.h"

namespace orrery::interop {

/// Keys that change neither time nor memory of a step as it is modelled.
inline constexpr auto kDeepSpeedIgnored = std::to_array<std::string_view>({
    "aio",
    "allgather_size",
    "amp_master",
    "autotuning",
    "checkpoint",
    "comms_logger",
    "compile",
    "csv_monitor",
    "curriculum_learning",
    "data_efficiency",
    "dataloader_drop_last",
    "disable_allgather",
    "dump_state",
    "elasticity",
    "flops_profiler",
    "gradient_clipping",
    "gradient_predivide_factor",
    "graph_harvesting",
    "max_grad_norm",
    "memory_breakdown",
    "monitor_config",
    "nebula",
    "prescale_gradients",
    "scheduler",
    "seed",
    "steps_per_print",
    "tensorboard",
    "timers",
    "use_data_before_expert_parallelism",
    "use_node_local_storage",
    "vocabulary_size",
    "wall_clock_breakdown",
    "wandb",
    "weight_quantization",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
});
/// Keys at the top that say something of a plan.
inline constexpr auto kDeepSpeedRead = std::to_array<std::string_view>({
    "activation_checkpointing",
    "bf16",
    "bfloat16",
    "communication_data_type",
    "data_parallel_size",
    "data_types",
    "fp16",
    "gradient_accumulation_steps",
    "optimizer",
    "pipeline",
    "sequence_parallel_size",
    "tensor_parallel",
    "torch_autocast",
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "zero_optimization",
});
struct AutomaticKey {
  std::string_view key;
  std::string_view flag;
};
/// Rows that name the flag which fills a value that Hugging Face's Trainer sets ("auto").
inline constexpr auto kDeepSpeedAutomatic = std::to_array<AutomaticKey>({
    {"bf16.enabled", "--compute-type"},
    {"fp16.enabled", "--compute-type"},
    {"gradient_accumulation_steps", "--global-batch and --microbatch"},
    {"train_batch_size", "--global-batch"},
    {"train_micro_batch_size_per_gpu", "--microbatch"},
    {"zero_optimization.overlap_comm", "DeepSpeed's default"},
    {"zero_optimization.reduce_bucket_size", "DeepSpeed's default of 5e8 elements"},
});
/// Keys of zero_optimization that say when parameters are fetched and freed, which a plan does
/// layer by layer.
inline constexpr auto kDeepSpeedZeroIgnored = std::to_array<std::string_view>({
    "aio",
    "allgather_bucket_size",
    "allgather_partitions",
    "allgather_sequential",
    "contiguous_gradients",
    "cpu_offload_use_pin_memory",
    "elastic_checkpoint",
    "enable_sanity_checks",
    "gather_16bit_weights_on_model_save",
    "ignore_unused_parameters",
    "leaf_module",
    "legacy_stage1",
    "load_from_fp32_weights",
    "log_trace_cache_warnings",
    "max_live_parameters",
    "max_reuse_distance",
    "memory_efficient_linear",
    "model_persistence_threshold",
    "module_granularity_threshold",
    "override_module_apply",
    "param_persistence_threshold",
    "partition_stream_chunk_size",
    "pipeline_loading_checkpoint",
    "prefetch_bucket_size",
    "reduce_scatter",
    "round_robin_gradients",
    "save_muon_momentum_buffer_in_memory",
    "stage3_allgather_sequential",
    "stage3_gather_16bit_weights_on_model_save",
    "stage3_gather_fp16_weights_on_model_save",
    "stage3_max_live_parameters",
    "stage3_max_reuse_distance",
    "stage3_model_persistence_threshold",
    "stage3_module_granularity_threshold",
    "stage3_param_persistence_threshold",
    "stage3_partition_stream_chunk_size",
    "stage3_prefetch_bucket_size",
    "stage3_use_all_reduce_for_fetch_params",
    "sub_group_size",
    "use_all_reduce_for_fetch_params",
    "use_multi_rank_bucket_allreduce",
    "zeropp_loco_param",
});

/// Removes every field whose value is "auto", with a remark: the training script sets it.
void drop_automatic(ConfigNode& node, std::vector<Remark>& remarks);
/// Says whether a key at the top looks like none of DeepSpeed's, which then does not read it.
bool is_foreign(std::string_view name, const ConfigNode& node);
/// Says whether a section, or one within it, is on.
bool is_on(const ConfigNode& node);

}  // namespace orrery::interop
