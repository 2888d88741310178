// SPDX-License-Identifier: Apache-2.0
/// Keys of training frameworks as data. Internal to this folder.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace orrery::interop {

/// Meaning says what a key's value is for a plan.
enum class Meaning : std::uint8_t {
  noted,
  refused,
  // how many
  devices,
  nodes,
  devices_per_node,
  microbatch,
  accumulation,
  global_batch,
  sequence,
  tp,
  pp,
  cp,
  ep,
  replicas,
  shards,
  batch_per_device,
  pipeline_microbatches,
  // how
  distributed_type,
  fsdp,        ///< any value: parameters are sharded
  fsdp_words,  ///< "full_shard auto_wrap offload", or a list of them
  sharding,    ///< FULL_SHARD, SHARD_GRAD_OP ...
  reshard,     ///< true, false, or a strategy
  zero_stage,
  deepspeed_file,   ///< a DeepSpeed configuration: what its name says
  mixed_precision,  ///< no, fp16, bf16, fp8, amp_bf16
  bf16,
  fp16,
  master_type,
  reduce_type,
  checkpointing,
  no_checkpointing,
  remat,
  flash,
  attention,
  compiled,
  quantization,
  optimizer,
  offload_optimizer,
  offload_parameters,
  offload_activations,
  sequence_parallel,
  adapter,
  adapter_rank,
  adapter_targets,
  adapter_everywhere,
};

struct FrameworkKey {
  std::string_view name;  ///< dotted path, or that of a section around it
  Meaning meaning = Meaning::noted;
  std::string_view why{};  ///< of what is noted or refused
};

struct FrameworkTable {
  std::span<const FrameworkKey> keys{};
  std::string_view ignored{};  ///< names of keys and sections without weight, with blanks between
};
/// The table of a framework; of an unknown name an empty one.
FrameworkTable framework_table(std::string_view framework);

}  // namespace orrery::interop
