// SPDX-License-Identifier: Apache-2.0
/// Vocabulary of ds_config.json that becomes no plan field. Internal to this folder.
#pragma once

#include <array>
#include <string_view>

namespace orrery::interop {

/// Keys that change neither time nor memory of a step as it is modelled.
inline constexpr auto kDeepSpeedIgnored = std::to_array<std::string_view>({
    "aio",
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
struct AutomaticKey {
  std::string_view key;
  std::string_view flag;
};
/// What fills a value that Hugging Face's Trainer sets ("auto").
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
    "allgather_bucket_size",
    "allgather_partitions",
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
    "use_multi_rank_bucket_allreduce",
    "zeropp_loco_param",
});

}  // namespace orrery::interop
