// SPDX-License-Identifier: Apache-2.0
/// Keys of training frameworks as data. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
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
  quantized_params,
  optimizer,
  optimizer_switch,  ///< true: the one that the key names
  offload_optimizer,
  offload_parameters,
  offload_activations,
  sequence_parallel,
  ring,  ///< of context parallelism: all_gather or ring
  adapter,
  adapter_rank,
  adapter_dropout,
  adapter_targets,
  adapter_everywhere,
  model_name,  ///< of a checkpoint, which may say the type of its weights
};

struct FrameworkKey {
  std::string_view name;  ///< dotted path, or that of a section around it
  Meaning meaning = Meaning::noted;
  std::string_view why{};  ///< of what is noted or refused
};

struct FrameworkTable {
  std::span<const FrameworkKey> keys{};
  /// Names of keys and sections without weight, with blanks between; `wandb_*`: all that begin so,
  /// `*_for_vit`: all that end so.
  std::string_view ignored{};
  std::string_view also{};  ///< those of a program that it is built on
};
/// Returns the table of a framework; of an unknown name an empty one.
FrameworkTable framework_table(std::string_view framework);

/// Says whether the path is the key, or lies within the section of that name.
bool is_key(std::string_view path, std::string_view key);
bool is_without_weight(const FrameworkTable& table, std::string_view path);
/// Returns a guess (" (did you mean ...)") for a path that no row has, or "" where a word of it
/// names what a plan is made of (parallel, batch, offload, precision ...), so that it must not be
/// left out. None: it may.
std::optional<std::string> mistaken_key(const FrameworkTable& table, std::string_view path);

}  // namespace orrery::interop
