// SPDX-License-Identifier: Apache-2.0
/// Sources: accelerate 1.x, commands/config; transformers, TrainingArguments, and TRL's scripts;
/// axolotl's config reference; LLaMA-Factory, hparams; MaxText, configs/base.yml; llm-foundry,
/// scripts/train/yamls.
#include "workload/interop/framework_tables.h"

#include <array>

namespace orrery::interop {
namespace {

namespace rows {

using enum Meaning;

constexpr std::string_view kAccelerateIgnored =
    "compute_environment debug deepspeed_config.deepspeed_hostfile "
    "deepspeed_config.deepspeed_moe_layer_cls_names deepspeed_config.deepspeed_multinode_launcher "
    "deepspeed_config.gradient_clipping deepspeed_config.offload_optimizer_nvme_path "
    "deepspeed_config.offload_param_nvme_path deepspeed_config.zero3_init_flag "
    "deepspeed_config.zero3_save_16bit_model downcast_bf16 enable_cpu_affinity fp8_config "
    "fsdp_config.fsdp_auto_wrap_policy fsdp_config.fsdp_backward_prefetch "
    "fsdp_config.fsdp_backward_prefetch_policy fsdp_config.fsdp_cpu_ram_efficient_loading "
    "fsdp_config.fsdp_forward_prefetch fsdp_config.fsdp_min_num_params "
    "fsdp_config.fsdp_state_dict_type fsdp_config.fsdp_sync_module_states "
    "fsdp_config.fsdp_transformer_layer_cls_to_wrap fsdp_config.fsdp_use_orig_params "
    "fsdp_config.fsdp_version gpu_ids ipex_config machine_rank main_process_ip main_process_port "
    "main_training_function megatron_lm_config.megatron_lm_gradient_clipping "
    "parallelism_config.parallelism_config_cp_comm_strategy rdzv_backend same_network tpu_env "
    "tpu_use_cluster tpu_use_sudo use_cpu use_parallelism_config ";

constexpr auto kAccelerate = std::to_array<FrameworkKey>({
    {"distributed_type", distributed_type},
    {"dynamo_backend", noted, "kernels are fused where --fused-kernels says so"},
    {"dynamo_config", noted, "kernels are fused where --fused-kernels says so"},
    {"mixed_precision", mixed_precision},
    {"num_machines", nodes},
    {"num_processes", devices},
    {"fsdp_config.fsdp_activation_checkpointing", checkpointing},
    {"fsdp_config.fsdp_offload_params", offload_parameters},
    {"fsdp_config.fsdp_reshard_after_forward", reshard},
    {"fsdp_config.fsdp_sharding_strategy", sharding},
    {"deepspeed_config.deepspeed_config_file", deepspeed_file},
    {"deepspeed_config.gradient_accumulation_steps", accumulation},
    {"deepspeed_config.offload_optimizer_device", offload_optimizer},
    {"deepspeed_config.offload_param_device", offload_parameters},
    {"deepspeed_config.zero_stage", zero_stage},
    {"megatron_lm_config.megatron_lm_num_micro_batches", accumulation},
    {"megatron_lm_config.megatron_lm_pp_degree", pp},
    {"megatron_lm_config.megatron_lm_recompute_activations", noted,
     "--recompute says what is computed again"},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", sequence_parallel},
    {"megatron_lm_config.megatron_lm_tp_degree", tp},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", noted,
     "--zero 1 shards its states"},
    {"parallelism_config.parallelism_config_cp_size", cp},
    {"parallelism_config.parallelism_config_dp_replicate_size", replicas},
    {"parallelism_config.parallelism_config_dp_shard_size", shards},
    {"parallelism_config.parallelism_config_tp_size", tp},
});

constexpr std::string_view kTrainerIgnored =
    "adafactor adam_beta1 adam_beta2 adam_epsilon assistant_only_loss auto_find_batch_size beta "
    "bf16_full_eval chat_template completion_only_loss config_name data_seed dataloader "
    "dataloader_drop_last dataloader_num_workers dataloader_pin_memory dataset dataset_config "
    "dataset_configs dataset_kwargs dataset_mixer dataset_mixture dataset_name dataset_num_proc "
    "dataset_splits dataset_test_split dataset_text_field dataset_train_split datasets "
    "ddp_bucket_cap_mb ddp_find_unused_parameters ddp_timeout do_eval do_predict do_train dtype "
    "early_stopping eos_token eval_on_start eval_steps eval_strategy evaluation_strategy "
    "fp16_opt_level fsdp_config fsdp_transformer_layer_cls_to_wrap gradient_checkpointing_kwargs "
    "group_by_length hub_model_id hub_private_repo hub_strategy hub_token "
    "include_tokens_per_second label_smoothing_factor learning_rate load_best_model_at_end "
    "log_completions log_level logging_dir logging_first_step logging_steps logging_strategy "
    "lora_alpha lora_dropout lora_modules_to_save lora_task_type lr_scheduler_kwargs "
    "lr_scheduler_type max_grad_norm max_prompt_length max_steps metric_for_best_model "
    "model_name_or_path model_revision neftune_noise_alpha num_train_epochs optim_args output_dir "
    "overwrite_output_dir packing packing_strategy padding_free per_device_eval_batch_size "
    "preprocessing_num_workers push_to_hub push_to_hub_model_id push_to_hub_revision "
    "remove_unused_columns report_to resume_from_checkpoint run_name save_on_each_node "
    "save_only_model save_safetensors save_steps save_strategy save_total_limit seed tf32 "
    "tokenizer_name tokenizer_name_or_path torch_compile_backend torch_compile_mode torch_dtype "
    "trust_remote_code use_cache wandb_entity wandb_project warmup_ratio warmup_steps "
    "weight_decay ";

constexpr auto kTrainer = std::to_array<FrameworkKey>({
    {"attn_implementation", attention},
    {"bf16", bf16},
    {"block_size", sequence},
    {"cutoff_len", sequence},
    {"deepspeed", deepspeed_file},
    {"fp16", fp16},
    {"fsdp", fsdp_words},
    {"fsdp_config.activation_checkpointing", checkpointing},
    {"fsdp_config.reshard_after_forward", reshard},
    {"fsdp_config.offload_params", offload_parameters},
    {"gradient_accumulation_steps", accumulation},
    {"gradient_checkpointing", checkpointing},
    {"load_in_4bit", quantization},
    {"load_in_8bit", quantization},
    {"lora_r", adapter_rank},
    {"lora_target_modules", adapter_targets},
    {"max_length", sequence},
    {"max_seq_len", sequence},
    {"max_seq_length", sequence},
    {"model_max_length", sequence},
    {"optim", optimizer},
    {"per_device_train_batch_size", microbatch},
    {"torch_compile", compiled},
    {"use_flash_attention_2", flash},
    {"use_liger", noted, "kernels of Liger are not told apart"},
    {"use_liger_kernel", noted, "kernels of Liger are not told apart"},
    {"use_peft", adapter},
    {"world_size", devices},
    {"activation_offloading", offload_activations},
});

constexpr std::string_view kAxolotlIgnored =
    "adam_beta1 adam_beta2 adam_epsilon auto_resume_from_checkpoints base_model base_model_config "
    "batch_flattening chat_template chat_template_jinja cosine_min_lr_ratio "
    "dataloader_num_workers dataloader_pin_memory dataloader_prefetch_factor "
    "dataset_prepared_path dataset_processes datasets debug default_system_message "
    "early_stopping_patience ema eval_batch_size eval_max_new_tokens eval_sample_packing "
    "eval_steps eval_strategy eval_table_size evals_per_epoch experimental_skip_move_to_device "
    "flash_attn_cross_entropy flash_attn_fuse_mlp flash_attn_fuse_qkv flash_attn_rms_norm "
    "fsdp_config fsdp_config.fsdp_final_state_dict_type fsdp_final_state_dict_type "
    "gradient_checkpointing_kwargs group_by_length hf_use_auth_token hub_model_id hub_strategy "
    "is_falcon_derived_model is_llama_derived_model is_mistral_derived_model learning_rate "
    "liger_cross_entropy liger_fused_linear_cross_entropy liger_glu_activation liger_layer_norm "
    "liger_rms_norm liger_rope local_rank logging_steps lora_alpha lora_dropout "
    "lora_fan_in_fan_out lora_mlp_kernel lora_model_dir lora_modules_to_save lora_o_kernel "
    "lora_qkv_kernel loss_watchdog_patience loss_watchdog_threshold lr_scheduler "
    "lr_scheduler_kwargs max_grad_norm max_steps min_sample_len model_type num_epochs optim_args "
    "output_dir pad_to_sequence_len peft_use_dora plugins pretraining_dataset push_dataset_to_hub "
    "resume_from_checkpoint rl rl_beta rope_scaling sample_packing save_first_step "
    "save_safetensors save_steps save_strategy save_total_limit saves_per_epoch seed "
    "shuffle_merged_datasets special_tokens strict test_datasets tf32 tokenizer_config "
    "tokenizer_type tokenizer_use_fast tokens torchdistx_path train_on_inputs trust_remote_code "
    "use_tensorboard val_set_size wandb_entity wandb_log_model wandb_mode wandb_name "
    "wandb_project wandb_run_id wandb_watch warmup_ratio warmup_steps weight_decay ";

constexpr auto kAxolotl = std::to_array<FrameworkKey>({
    {"adapter", adapter},
    {"activation_offloading", offload_activations},
    {"bf16", bf16},
    {"bfloat16", bf16},
    {"context_parallel_size", cp},
    {"deepspeed", deepspeed_file},
    {"dp_replicate_size", replicas},
    {"dp_shard_size", shards},
    {"flash_attention", flash},
    {"float16", fp16},
    {"fp16", fp16},
    {"fp8", quantization},
    {"fsdp", fsdp_words},
    {"fsdp_config.fsdp_offload_params", offload_parameters},
    {"fsdp_config.offload_params", offload_parameters},
    {"fsdp_config.activation_checkpointing", checkpointing},
    {"fsdp_config.fsdp_activation_checkpointing", checkpointing},
    {"fsdp_config.fsdp_sharding_strategy", sharding},
    {"fsdp_config.sharding_strategy", sharding},
    {"fsdp_config.reshard_after_forward", reshard},
    {"fsdp_config.fsdp_reshard_after_forward", reshard},
    {"fsdp_version", fsdp},
    {"gradient_accumulation_steps", accumulation},
    {"gradient_checkpointing", checkpointing},
    {"load_in_4bit", quantization},
    {"load_in_8bit", quantization},
    {"lora_r", adapter_rank},
    {"lora_target_linear", adapter_everywhere},
    {"lora_target_modules", adapter_targets},
    {"max_packed_sequence_len", sequence},
    {"micro_batch_size", microbatch},
    {"optimizer", optimizer},
    {"s2_attention", noted, "attention is whole"},
    {"sdp_attention", flash},
    {"sequence_len", sequence},
    {"sequence_parallel_degree", cp},
    {"tensor_parallel_size", tp},
    {"torch_compile", compiled},
    {"unfrozen_parameters", noted, "all parameters are trained"},
    {"xformers_attention", flash},
});

constexpr std::string_view kLlamaFactoryIgnored =
    "adam_beta1 adam_beta2 adapter_name_or_path additional_target buffer_size cache_dir "
    "dataloader_num_workers dataset dataset_dir ddp_find_unused_parameters ddp_timeout do_eval "
    "do_predict do_train double_quantization eval_dataset eval_steps eval_strategy "
    "evaluation_strategy export_dir freeze_multi_modal_projector freeze_vision_tower fsdp_config "
    "image_max_pixels include_num_input_tokens_seen learning_rate logging_dir logging_steps "
    "lora_alpha lora_dropout loraplus_lr_ratio lr_scheduler_type mask_history max_grad_norm "
    "max_samples max_steps mix_strategy model_name_or_path moe_aux_loss_coef neat_packing "
    "num_train_epochs output_dir overwrite_cache overwrite_output_dir packing "
    "per_device_eval_batch_size plot_loss pref_beta pref_loss preprocessing_num_workers "
    "quantization_method report_to resize_vocab resume_from_checkpoint reward_model rope_scaling "
    "run_name save_only_model save_steps save_strategy save_total_limit seed stage streaming "
    "template tokenized_path train_on_prompt trust_remote_code upcast_layernorm use_dora "
    "use_rslora val_size video_max_pixels warmup_ratio warmup_steps weight_decay ";

constexpr auto kLlamaFactory = std::to_array<FrameworkKey>({
    {"bf16", bf16},
    {"cutoff_len", sequence},
    {"deepspeed", deepspeed_file},
    {"disable_gradient_checkpointing", no_checkpointing},
    {"enable_liger_kernel", noted, "kernels of Liger are not told apart"},
    {"finetuning_type", adapter},
    {"flash_attn", attention},
    {"fp16", fp16},
    {"freeze_trainable_layers", noted, "all layers are trained"},
    {"fsdp", fsdp_words},
    {"gradient_accumulation_steps", accumulation},
    {"gradient_checkpointing", checkpointing},
    {"lora_rank", adapter_rank},
    {"lora_target", adapter_targets},
    {"optim", optimizer},
    {"per_device_train_batch_size", microbatch},
    {"pure_bf16", bf16},
    {"quantization_bit", quantization},
    {"shift_attn", noted, "attention is whole"},
    {"use_unsloth", noted, "kernels of Unsloth are not told apart"},
    {"world_size", devices},
});

constexpr std::string_view kMaxTextIgnored =
    "adam_b1 adam_b2 adam_eps async_checkpointing base_config base_emb_dim base_mlp_dim "
    "base_moe_mlp_dim base_num_decoder_layers base_num_kv_heads base_num_query_heads "
    "base_output_directory checkpoint_period checkpoint_storage_concurrent_gb "
    "checkpoint_storage_use_ocdbt checkpoint_storage_use_zarr3 collect_stack_trace "
    "compile_topology compile_topology_num_slices cosine_learning_rate_final_fraction "
    "data_shuffle_seed dataset_name dataset_path dataset_type decoder_block dropout_rate "
    "enable_checkpointing enable_data_shuffling enable_dropout enable_goodput_recording "
    "enable_padding_causal_mask eval_interval eval_steps fused_mlp fused_qkv gcs_metrics "
    "grad_dtype gradient_clipping_threshold hardware head_dim hf_access_token hf_path "
    "init_weights_seed jax_cache_dir learning_rate load_balance_loss_weight load_full_state_path "
    "load_parameters_path log_config log_period logits_dot_in_fp32 logits_via_embedding megablox "
    "metrics_file mlp_activations model_name monitor_goodput monitor_step_time_deviation mu_dtype "
    "normalization_layer_epsilon normalize_embedding_logits num_epoch num_experts "
    "num_experts_per_tok num_slices packing param_scan_axis profiler profiler_steps "
    "quantize_kvcache reshape_q reuse_example_batch rope_max_timescale rope_min_timescale "
    "run_name sa_block_kv sa_block_kv_compute sa_block_kv_dkv sa_block_kv_dkv_compute "
    "sa_block_kv_dq sa_block_q sa_block_q_dkv sa_block_q_dq sa_k_layout sa_q_layout "
    "sa_use_fused_bwd_kernel sa_v_layout save_config_to_gcs scan_layers scan_pipeline_iterations "
    "set_remat_policy_on_layers_per_stage skip_first_n_steps_for_profiler "
    "skip_jax_distributed_system sparse_matmul stack_trace_interval_seconds stack_trace_to_cloud "
    "steps tensorboard_dir tokenizer_path tokenizer_type trainable_position_size "
    "upload_all_profiler_results use_iota_embed use_post_attn_norm use_post_ffw_norm "
    "use_vertex_tensorboard vocab_size warmup_steps_fraction weight_decay ";

constexpr auto kMaxText = std::to_array<FrameworkKey>({
    {"attention", attention},
    {"capacity_factor", noted, "--moe-capacity says how many tokens an expert takes"},
    {"dcn_context_parallelism", cp},
    {"dcn_data_parallelism", replicas},
    {"dcn_expert_parallelism", ep},
    {"dcn_fsdp_parallelism", shards},
    {"dcn_fsdp_transpose_parallelism", shards},
    {"dcn_pipeline_parallelism", pp},
    {"dcn_sequence_parallelism", cp},
    {"dcn_tensor_parallelism", tp},
    {"dtype", mixed_precision},
    {"gradient_accumulation_steps", accumulation},
    {"ici_context_parallelism", cp},
    {"ici_data_parallelism", replicas},
    {"ici_expert_parallelism", ep},
    {"ici_fsdp_parallelism", shards},
    {"ici_fsdp_transpose_parallelism", shards},
    {"ici_pipeline_parallelism", pp},
    {"ici_sequence_parallelism", cp},
    {"ici_tensor_parallelism", tp},
    {"ici_tensor_sequence_parallelism", tp},
    {"max_target_length", sequence},
    {"num_layers_per_pipeline_stage", noted, "layers are spread evenly over stages"},
    {"num_pipeline_microbatches", pipeline_microbatches},
    {"opt_type", optimizer},
    {"optimizer_memory_host_offload", offload_optimizer},
    {"parameter_memory_host_offload", offload_parameters},
    {"per_device_batch_size", batch_per_device},
    {"quantization", quantization},
    {"remat_policy", remat},
    {"shard_optimizer_over_data", noted, "--zero 1 shards its states"},
    {"weight_dtype", master_type},
});

constexpr std::string_view kLlmFoundryIgnored =
    "accumulate_train_batch_on_tokens algorithms autoresume callbacks console_log_interval "
    "data_local data_remote dataset device_eval_batch_size dist_timeout eval_first eval_interval "
    "eval_loader eval_loaders eval_subset_num_batches expandable_segments fsdp_config "
    "fsdp_config.activation_checkpointing_reentrant global_seed "
    "icl_max_seq_len icl_seq_len icl_subset_num_batches icl_tasks load_path "
    "load_strict_model_weights load_weights_only log_to_console loggers max_duration model "
    "model_name_or_path name optimizer progress_bar python_log_level run_name save_filename "
    "save_folder save_interval save_num_checkpoints_to_keep save_overwrite scheduler seed "
    "tokenizer tokenizer_name tp_config train_loader variables ";

constexpr auto kLlmFoundry = std::to_array<FrameworkKey>({
    {"device_train_microbatch_size", microbatch},
    {"fsdp_config.activation_checkpointing", checkpointing},
    {"fsdp_config.activation_cpu_offload", offload_activations},
    {"fsdp_config.cpu_offload", offload_parameters},
    {"fsdp_config.mixed_precision", reduce_type},
    {"fsdp_config.sharding_strategy", sharding},
    {"global_train_batch_size", global_batch},
    {"max_seq_len", sequence},
    {"model.attn_config.attn_impl", attention},
    {"model.peft_config.r", adapter_rank},
    {"model.peft_config.peft_type", adapter},
    {"model.peft_config.target_modules", adapter_targets},
    {"optimizer.name", optimizer},
    {"precision", mixed_precision},
    {"tp_config.tensor_parallel_degree", tp},
    {"compile_config", compiled},
});

struct NamedTable {
  std::string_view framework;
  FrameworkTable rows;
};
constexpr std::array kTables{
    NamedTable{"accelerate", {kAccelerate, kAccelerateIgnored}},
    NamedTable{"trainer", {kTrainer, kTrainerIgnored}},
    NamedTable{"axolotl", {kAxolotl, kAxolotlIgnored}},
    NamedTable{"llama-factory", {kLlamaFactory, kLlamaFactoryIgnored}},
    NamedTable{"maxtext", {kMaxText, kMaxTextIgnored}},
    NamedTable{"llm-foundry", {kLlmFoundry, kLlmFoundryIgnored}},
};

}  // namespace rows
}  // namespace

FrameworkTable framework_table(std::string_view framework) {
  for (const rows::NamedTable& table : rows::kTables) {
    if (table.framework == framework) {
      return table.rows;
    }
  }
  return {};
}

}  // namespace orrery::interop
