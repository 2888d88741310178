// SPDX-License-Identifier: Apache-2.0
/// Parts of the Megatron-LM import. Internal to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/interop/arguments.h"
#include "workload/interop/interop.h"
#include "workload/interop/text.h"

namespace orrery::interop {

/// Flags of Megatron-DeepSpeed, once the degrees are known: the ZeRO stage, which a
/// --deepspeed_config among `documents` may state, recompute, Ulysses, types of gradients.
void read_megatron_deepspeed(Arguments& arguments,
                             const std::map<std::string, std::string>& documents, plan::Plan& plan);

/// Reads schedule, chunks and stage_layers, from the degrees in `plan`, --num-layers and the flags
/// of virtual, uneven and laid-out pipelines.
void read_megatron_pipeline(Arguments& arguments, plan::Plan& plan);

/// Returns the numbers of --noop-layers (MindSpeed), layers that do nothing, in order. Mistakes:
/// those that are no layers.
std::vector<std::int64_t> read_noop_layers(Arguments& arguments, std::int64_t layers);

/// Reads recompute, recompute_modules, recompute_layers, offload_*.
void read_megatron_memory(Arguments& arguments, plan::Plan& plan);

/// Reads zero, shards, buckets, types of gradients and optimizer states, quantization.
void read_megatron_data_parallel(Arguments& arguments, plan::Plan& plan);

/// Returns the layers of every part of "Et*3|(tt|)*2mL", in model order; m counts as no layer.
/// Mistakes: other letters, a missing embedding or loss, more than 2^16 letters.
Result<std::vector<std::int64_t>> parse_pipeline_layout(const std::string& layout);

/// Returns the Hugging Face config.json of the arguments: of the family that has exactly these
/// layers, else of fields of our own (model_type decoder). Mistakes: what no model type has,
/// arguments that are missing. Asks for every flag of the model, also after a mistake. `program`:
/// the training script; one named after BERT trains that.
Result<std::string> read_megatron_model(Arguments& arguments, std::int64_t sequence,
                                        std::string_view program = {});

/// Returns the model's arguments; the reverse of read_megatron_model. `remarks` gets what they
/// cannot say.
std::vector<std::string> megatron_model_words(const zoo::Model& model,
                                              std::vector<Remark>& remarks);

/// MegatronWords are the arguments of a plan, with those of its model, and what they do not say.
struct MegatronWords {
  std::vector<std::string> words;
  std::vector<Remark> lost;
};
/// Returns the words of Megatron-LM's command. `framework`: whose capabilities give the reasons.
/// Mistakes: as export_megatron().
Result<MegatronWords> megatron_words(std::string_view framework, const plan::Plan& plan,
                                     const ExportOptions& options);

}  // namespace orrery::interop
