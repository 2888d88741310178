// SPDX-License-Identifier: Apache-2.0
/// Plan fields under the names that training frameworks give them. Only names of equal meaning and
/// unit: what needs arithmetic (layers per virtual stage, sharded and replicated degrees) is read
/// by workload/interop.
#pragma once

#include <array>
#include <string_view>

namespace orrery::plan {

struct Alias {
  std::string_view name;
  std::string_view field;
};

inline constexpr auto kAliases = std::to_array<Alias>({
    {"batch", "global_batch"},
    {"tau", "local_steps"},
    // Megatron-LM, megatron/training/arguments.py
    {"tensor_model_parallel_size", "tp"},
    {"pipeline_model_parallel_size", "pp"},
    {"context_parallel_size", "cp"},
    {"expert_model_parallel_size", "ep"},
    {"expert_tensor_parallel_size", "etp"},
    {"data_parallel_size", "dp"},
    {"num_virtual_stages_per_pipeline_rank", "chunks"},
    {"micro_batch_size", "microbatch"},
    {"global_batch_size", "global_batch"},
    {"seq_length", "sequence"},
    {"cp_comm_type", "cp_exchange"},
    {"moe_expert_capacity_factor", "moe_capacity"},
    {"recompute_granularity", "recompute"},
    {"make_vocab_size_divisible_by", "vocab_multiple"},
    // Hugging Face: transformers.TrainingArguments, trl.SFTConfig, accelerate
    {"per_device_train_batch_size", "microbatch"},
    {"max_seq_length", "sequence"},
    {"tp_size", "tp"},
    {"cp_size", "cp"},
    {"zero_stage", "zero"},
    // DeepSpeed's configuration
    {"train_micro_batch_size_per_gpu", "microbatch"},
    {"train_batch_size", "global_batch"},
    {"zero_quantized_weights", "quantized_gather"},
    {"zero_quantized_gradients", "quantized_reduce"},
    {"zero_hpz_partition_size", "secondary_shard"},
    // torchtitan, torchtitan/config/job_config.py
    {"tensor_parallel_degree", "tp"},
    {"pipeline_parallel_degree", "pp"},
    {"context_parallel_degree", "cp"},
    {"expert_parallel_degree", "ep"},
    {"expert_tensor_parallel_degree", "etp"},
    {"pipeline_parallel_microbatch_size", "microbatch"},
    {"seq_len", "sequence"},
});

/// The plan field of a framework's name; any other name is returned as it is.
constexpr std::string_view own_name(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) {
      return alias.field;
    }
  }
  return name;
}

}  // namespace orrery::plan
