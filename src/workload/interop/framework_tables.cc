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

constexpr std::string_view kLiger = "kernels of Liger are not told apart";
constexpr std::string_view kOfHeads = "--cp-exchange a2a where DeepSpeed's Ulysses exchanges heads";
constexpr std::string_view kAccelerateIgnored =
    "additional_args base_job_name command_file commands compute_environment debug "
    "deepspeed_config.deepspeed_* deepspeed_config.gradient_clipping "
    "deepspeed_config.offload_optimizer_nvme_path deepspeed_config.offload_param_nvme_path "
    "deepspeed_config.seq_parallel_communication_data_type "
    "deepspeed_config.zero3_init_flag deepspeed_config.zero3_save_16bit_model downcast_bf16 "
    "ec2_instance_type enable_cpu_affinity env_vars fp8_config fsdp_config.fsdp_auto_wrap_policy "
    "fsdp_config.fsdp_backward_prefetch fsdp_config.fsdp_backward_prefetch_policy "
    "fsdp_config.fsdp_cpu_ram_efficient_loading fsdp_config.fsdp_forward_prefetch "
    "fsdp_config.fsdp_min_num_params fsdp_config.fsdp_state_dict_type "
    "fsdp_config.fsdp_sync_module_states fsdp_config.fsdp_transformer_layer_cls_to_wrap "
    "fsdp_config.fsdp_use_orig_params fsdp_config.fsdp_version gpu_ids iam_role_name image_uri "
    "ipex_config machine_rank main_process_* main_training_function "
    "megatron_lm_config.megatron_lm_gradient_clipping mpirun_* num_cpu_threads_per_process "
    "parallelism_config.parallelism_config_cp_attn_implementation "
    "parallelism_config.parallelism_config_cp_comm_strategy "
    "parallelism_config.parallelism_config_cp_seq_length_is_variable "
    "parallelism_config.parallelism_config_sp_attn_implementation "
    "parallelism_config.parallelism_config_sp_seq_length_is_variable profile py_version "
    "pytorch_version "
    "rdzv_backend region sagemaker_* same_network tpu_* use_cpu use_parallelism_config ";

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
    {"parallelism_config.parallelism_config_cp_backend", noted, kOfHeads},
    {"parallelism_config.parallelism_config_cp_size", cp},
    {"parallelism_config.parallelism_config_dp_replicate_size", replicas},
    {"parallelism_config.parallelism_config_dp_shard_size", shards},
    {"parallelism_config.parallelism_config_sp_backend", noted, kOfHeads},
    {"parallelism_config.parallelism_config_tp_size", tp},
});

constexpr std::string_view kTrainerIgnored =
    "accelerator_config adafactor adam_* assistant_only_loss auto_find_batch_size "
    "average_tokens_across_devices batch_eval_metrics beta bf16_full_eval cache_dir chat_template* "
    "completion_only_loss config_name data_* dataloader dataloader_* dataset dataset_* datasets "
    "ddp_* debug disable_* do_* dtype early_stopping eos_token eval_* evaluation_strategy fp16_* "
    "fsdp_config fsdp_transformer_layer_cls_to_wrap full_determinism generation_* "
    "gradient_checkpointing_kwargs greater_is_better group_by_length half_precision_backend hub_* "
    "ignore_* include_* kl_* label_* learning_rate length_column length_column_name "
    "liger_kernel_config load_best_model_at_end local_rank log_* logging_* lora_alpha "
    "lora_modules_to_save lora_task_type lr_* max_eval_samples max_grad_norm max_prompt_length "
    "max_steps max_train_samples metric_for_best_model model_name_or_path model_revision "
    "mp_parameters neftune_noise_alpha no_cuda num_generations num_train_epochs optim_args "
    "output_dir overwrite_* packing packing_strategy padding_free past_index "
    "per_device_eval_batch_size predict_with_generate prediction_loss_only "
    "preprocessing_num_workers project push_to_hub* ray_scope ref_model* remove_unused_columns "
    "report_to restore_callback_states_from_checkpoint resume_from_checkpoint reward_* rl_* "
    "run_name save_* seed skip_memory_metrics sortish_sampler streaming temperature tf32 "
    "tokenizer_* top_k top_p torch_compile_* torch_dtype torch_empty_cache_steps torchdynamo "
    "trackio_* train_* trust_remote_code use_cache use_cpu use_fast_tokenizer use_ipex "
    "use_mps_device validation_* wandb_* warmup_* weight_decay ";

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
    {"lora_dropout", adapter_dropout},
    {"lora_r", adapter_rank},
    {"lora_target_modules", adapter_targets},
    {"max_length", sequence},
    {"max_seq_len", sequence},
    {"max_seq_length", sequence},
    {"model_max_length", sequence},
    {"model_name_or_path", model_name},
    {"optim", optimizer},
    {"per_device_train_batch_size", microbatch},
    {"torch_compile", compiled},
    {"use_flash_attention_2", flash},
    {"use_liger", noted, kLiger},
    {"use_liger_kernel", noted, kLiger},
    {"use_peft", adapter},
    {"world_size", devices},
    {"activation_offloading", offload_activations},
});

constexpr std::string_view kAxolotlIgnored =
    "adam_* additional_special_tokens auto_* base_model* batch_flattening bnb_config_kwargs "
    "chat_template* cls_model_config comet_* cosine_* curriculum_sampling cut_cross_entropy "
    "dataloader_* dataset_* datasets ddp_* debug default_system_message device_map dpo_* dtype "
    "early_stopping_patience ema eval_* evals_per_epoch evaluation_strategy excess_length_strategy "
    "experimental_skip_move_to_device experts_implementation field_* flash_attn_* fsdp_config "
    "fsdp_final_state_dict_type fused_attn_kernel gc_steps gemma4_hybrid_attn_impl "
    "gpu_memory_limit gradient_checkpointing_kwargs group_by_length hf_use_auth_token hub_* "
    "image_resize_algorithm image_size include_* is_* jinja_template_path kd_* kto_* learning_rate "
    "liger_* lisa_* local_rank log_* logging_* lora_alpha lora_fan_in_fan_out "
    "lora_mlp_kernel lora_model_dir lora_modules_to_save lora_o_kernel lora_on_cpu lora_qkv_kernel "
    "loraplus_* loss_watchdog_* lr_* max_grad_norm max_steps merge_lora min_sample_len mlflow_* "
    "model_config_type model_type neftune_noise_alpha noisy_embedding_alpha num_epochs optim_args "
    "optimizer_kwargs orpo_alpha output_dir overrides_of_model_config overrides_of_model_kwargs "
    "pad_to_sequence_len peft_* plugins pretrain_* pretraining_dataset processor_type profiler_* "
    "push_dataset_to_hub qat quantize_moe_experts random_init_weights ray_run_name relora* "
    "remove_unused_columns report_to resources_per_worker resume_from_checkpoint revision_of_model "
    "reward_* rl rl_* roles_to_train rope_* router_aux_loss_coef sample_pack* save_* "
    "saves_per_epoch scattermoe_* seed shuffle_* simpo_gamma skip_* special_tokens spectrum* "
    "steps_per_print streaming* strict swanlab_* test_datasets tf32 tokenizer_* tokens "
    "torch_compile_* torch_dtype torchdistx_path total_num_tokens trackio_* train_* trl "
    "trust_remote_code type_of_model use_dora use_kernels use_ray use_scattermoe use_sonicmoe "
    "use_tensorboard val_set_size vllm "
    "wandb_* warmup_* weight_decay ";

constexpr auto kAxolotl = std::to_array<FrameworkKey>({
    {"adapter", adapter},
    {"activation_offloading", offload_activations},
    {"attn_implementation", attention},
    {"base_model", model_name},
    {"bf16", bf16},
    {"bfloat16", bf16},
    {"context_parallel_size", cp},
    {"cut_cross_entropy", noted, "logits are kept"},
    {"deepspeed", deepspeed_file},
    {"dp_replicate_size", replicas},
    {"dp_shard_size", shards},
    {"expert_parallel_size", ep},
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
    {"liger_fused_linear_cross_entropy", noted, "logits are kept"},
    {"liger_glu_activation", noted, kLiger},
    {"liger_rms_norm", noted, kLiger},
    {"load_in_4bit", quantization},
    {"load_in_8bit", quantization},
    {"lora_dropout", adapter_dropout},
    {"lora_r", adapter_rank},
    {"lora_target_linear", adapter_everywhere},
    {"lora_target_modules", adapter_targets},
    {"lora_target_parameters", noted, "adapters of experts' matrices are those of lora_targets"},
    {"max_packed_sequence_len", sequence},
    {"micro_batch_size", microbatch},
    {"optimizer", optimizer},
    {"ray_num_workers", devices},
    {"s2_attention", noted, "attention is whole"},
    {"sdp_attention", flash},
    {"sequence_len", sequence},
    {"sequence_parallel_degree", cp},
    {"tensor_parallel_size", tp},
    {"tiled_mlp", noted, "an MLP keeps the activations of all tokens"},
    {"torch_compile", compiled},
    {"unfrozen_parameters", noted, "all parameters are trained"},
    {"xformers_attention", flash},
});

constexpr std::string_view kCountedAsAdam = "counted as Adam, with two moments per parameter";

constexpr std::string_view kLlamaFactoryIgnored =
    "adapter_name_or_path add_special_tokens add_tokens additional_target apollo_* audio_* badam_* "
    "buffer_size compute_accuracy crop_to_patches dft_alpha double_quantization dpo_* "
    "early_stopping_steps enable_thinking export_* fake_quant_* fp8_backend freeze_* galore_* "
    "generating_args hf_* image_* infer_* init_special_tokens interleave_probs kt_* kto_* ld_alpha "
    "loraplus_* low_cpu_mem_usage mask_history max_new_tokens max_samples media_dir mix_strategy "
    "mixture_of_depths moe_aux_loss_coef ms_hub_token neat_packing new_special_tokens_config "
    "num_beams om_hub_token pissa_* placement_strategy plot_loss ppo_* pref_* print_param_status "
    "qat_* quantization_method ray_* resize_vocab resources_per_worker rope_* sglang_* shuffle "
    "simpo_gamma stage swanlab_* template tokenized_path tool_format upcast_layernorm "
    "use_audio_in_video use_dora use_kt* use_llama_pro use_rslora use_swanlab use_v1_kernels "
    "val_size video_* vllm_* ";

constexpr auto kLlamaFactory = std::to_array<FrameworkKey>({
    {"bf16", bf16},
    {"cutoff_len", sequence},
    {"deepspeed", deepspeed_file},
    {"disable_gradient_checkpointing", no_checkpointing},
    {"enable_liger_kernel", noted, kLiger},
    {"enable_qat", noted, "rounding as if quantised takes no time"},
    {"finetuning_type", adapter},
    {"flash_attn", attention},
    {"fp16", fp16},
    {"fp8", quantization},
    {"fp8_enable_fsdp_float8_all_gather", quantized_params},
    {"freeze_trainable_layers", noted, "all layers are trained"},
    {"fsdp", fsdp_words},
    {"gradient_accumulation_steps", accumulation},
    {"gradient_checkpointing", checkpointing},
    {"lora_dropout", adapter_dropout},
    {"lora_rank", adapter_rank},
    {"lora_target", adapter_targets},
    {"model_name_or_path", model_name},
    {"optim", optimizer},
    {"per_device_train_batch_size", microbatch},
    {"pure_bf16", bf16},
    {"quantization_bit", quantization},
    {"ray_num_workers", devices},
    {"sequence_parallel_mode", noted, kOfHeads},
    {"sequence_parallel_size", cp},
    {"shift_attn", noted, "attention is whole"},
    {"use_adam_mini", noted, kCountedAsAdam},
    {"use_apollo", noted, kCountedAsAdam},
    {"use_badam", noted, kCountedAsAdam},
    {"use_galore", noted, kCountedAsAdam},
    {"use_kt", refused, "false: KTransformers computes experts on the hosts"},
    {"use_muon", optimizer_switch},
    {"use_unsloth", noted, "kernels of Unsloth are not told apart"},
    {"world_size", devices},
});

constexpr std::string_view kMaxTextIgnored =
    "*_calibration_method *_for_audio *_for_vit act_quantization_* activations_in_float32 adam_* "
    "allow_split_physical_axes ar_* async_checkpointing attention_type autoregressive_* base_* "
    "beta* cast_logits_to_fp32 checkpoint_* collect_stack_trace compile_* "
    "compiled_trainstep_file context context_parallel_load_balance cosine_* custom_mesh data_* "
    "dataset_* dcn_autoregressive_parallelism dcn_context_autoregressive_parallelism decode_* "
    "decoder_block dpo_* dropout_rate dtype_mm dump_* elastic_* enable_* engram_* eos_id eval_* "
    "expansion_factor_real_data expert_shard_attention_option final_logits_soft_cap "
    "first_num_dense_layers float32_* force_unroll fused_mlp fused_qkv gcs_* generate_* "
    "global_parameter_scale goodput_* grad_dtype gradient_clipping_threshold grain_* grpo_* "
    "hardware head_dim heartbeat_* hf_* hide_profiler_step_metric ici_autoregressive_parallelism "
    "ici_context_autoregressive_parallelism inference_* init_* input_data_sharding_logical_axes "
    "interleave_* internal_compile* jax_* kv_lora_rank kv_quant_* learning_rate* load_* local_* "
    "log_* logical_axis_rules logits_* lora_* matmul_precision max_checkify max_corpus_chars "
    "max_position_embeddings max_prefill_predict_length max_segments_per_seq megablox mesh_axes "
    "metrics_* mla_* mlp_* model_name moe_* monitor_* mscale mtp_* mu_* multi_* n_routing_groups "
    "nope_layer_interval norm_topk_prob normalization_layer_epsilon normalize* num_* opt_state_* "
    "optimize_mesh_for_* original_max_position_embeddings packing parallel_* param_* "
    "partial_rotary_factor per_device_batch_size_increment per_device_batch_size_start "
    "per_expert_* pipeline_parallel_layers prefill_* profil* prometheus_port prompt q_lora_rank "
    "qk_* quantization_local_shard_count quantize_kvcache query_pre_attn_scalar record_* "
    "replicate_* report_* reshape_q return_log_prob reuse_example_batch rope_* routed_* run_name "
    "sa_* save_* scan_layers scan_pipeline_iterations set_remat_policy_* shard_mode "
    "sharding_tolerance share_kv_projections shared_experts sink_* skip_* sliding_window_size "
    "source_checkpoint* sparse_matmul stack_* steps tensorboard_* tensors_* tile_* tiny_* "
    "tokenize* topk_routing_group train_* trainable_position_size upload_* use_chat_template "
    "use_dpo use_grpo use_iota_embed use_multimodal use_post_* use_qk_norm use_random_routing "
    "use_ring_of_experts use_sft use_tokamax_* use_untrainable_positional_embedding "
    "use_vertex_tensorboard using_pipeline_parallelism v_head_dim vertex_* vocab_size warmup_* "
    "weight_decay wi_tile_* wo_tile_* wsd_* yarn* z_loss_multiplier ";

constexpr auto kMaxText = std::to_array<FrameworkKey>({
    {"attention", attention},
    {"capacity_factor", noted, "--moe-capacity says how many tokens an expert takes"},
    {"context_parallel_strategy", ring},
    {"dcn_context_parallelism", cp},
    {"dcn_data_parallelism", replicas},
    {"dcn_expert_parallelism", ep},
    {"dcn_fsdp_parallelism", shards},
    {"dcn_fsdp_transpose_parallelism", shards},
    {"dcn_pipeline_parallelism", pp},
    {"dcn_sequence_parallelism", cp},
    {"dcn_tensor_parallelism", tp},
    {"dcn_tensor_sequence_parallelism", tp},
    {"dcn_tensor_transpose_parallelism", tp},
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
    {"ici_tensor_transpose_parallelism", tp},
    {"max_target_length", sequence},
    {"num_layers_per_pipeline_stage", noted, "layers are spread evenly over stages"},
    {"num_pipeline_microbatches", pipeline_microbatches},
    {"num_pipeline_repeats", noted, "the layers of a stage are one chunk"},
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
    "accumulate_train_batch_on_tokens algorithms allow_* autoresume callbacks code_paths "
    "console_log_interval data_* dataset device_eval_batch_size dist_timeout eval_* "
    "expandable_segments fsdp_config global_seed hf_* icl_* load_* log_* loggers max_duration "
    "max_split_size_mb metadata mlflow_* model model_name_or_path name only_* optimizer profiler "
    "progress_bar python_log_level run_name save_* scheduler seed spin_dataloaders stop_on* "
    "tokenizer* torch_* tp_config train_loader variables ";

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
    {"model.attn_config.seq_parallel_world_size", cp},
    {"model.converted_config_overrides.attn_config.seq_parallel_world_size", cp},
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
    NamedTable{"llama-factory", {kLlamaFactory, kLlamaFactoryIgnored, kTrainerIgnored}},
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
