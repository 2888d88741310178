// SPDX-License-Identifier: Apache-2.0
/// This file reads what Megatron-DeepSpeed's flags say beside those of Megatron-LM.
/// Source: Megatron-DeepSpeed, megatron/arguments.py and megatron/training.py.
#include <algorithm>

#include "base/config_node.h"
#include "base/reader.h"
#include "workload/interop/megatron.h"

namespace orrery::interop {
namespace {

/// Returns the ZeRO stage of a ds_config.json that the script writes; nothing where it states none.
std::optional<std::int64_t> stage_of(const std::string& text, const std::string& file) {
  const auto node = parse_config(text, file, ConfigSyntax::json);
  const ConfigNode* zero = node ? node->find("zero_optimization") : nullptr;
  const ConfigNode* stage = zero == nullptr ? nullptr : zero->find("stage");
  const auto number = stage == nullptr ? parse_integer("none") : parse_integer(stage->text);
  return number ? std::optional(*number) : std::nullopt;
}

/// The configuration wins over --zero-stage: DeepSpeed's engine reads it alone.
void read_stage(Arguments& arguments, const std::map<std::string, std::string>& documents,
                plan::Plan& plan) {
  constexpr std::string_view kConfig = "--deepspeed-config";
  const auto flag = arguments.number("--zero-stage");
  const auto file = arguments.word(kConfig);
  std::optional<std::int64_t> stage = flag;
  if (file) {
    const auto written = documents.find(*file);
    const auto found = written == documents.end() ? std::nullopt : stage_of(written->second, *file);
    if (found) {
      stage = found;
    } else {
      arguments.note(kConfig, *file + " is not read: the ZeRO stage is that of --zero-stage, " +
                                  std::to_string(flag.value_or(0)) +
                                  "; orrery import deepspeed reads such a file");
    }
  }
  arguments.require(stage.value_or(0) <= 3, "--zero-stage", "0, 1, 2 or 3");
  plan.zero = std::clamp<std::int64_t>(stage.value_or(plan.zero), 0, 3);
}

/// DeepSpeed reduces in the compute type and accumulates in it, but for bf16 without ZeRO.
void read_engine(Arguments& arguments, const std::map<std::string, std::string>& documents,
                 plan::Plan& plan) {
  const bool engine = arguments.has("--deepspeed") || arguments.has("--deepspeed-config");
  read_stage(arguments, documents, plan);
  if (!engine) {
    return;
  }
  constexpr std::int64_t kElements = 500'000'000;  // of a bucket, DeepSpeed's default
  const bool keeps_fp32 = plan.compute_type == graph::DataType::bf16 && plan.zero == 0;
  plan.grad_type = keeps_fp32 ? graph::DataType::fp32 : plan.compute_type;
  plan.grad_reduce_type = plan.compute_type;
  plan.overlap_grad_reduce = plan.overlap_param_gather = plan.zero == 3;
  plan.bucket = graph::bytes_of(plan.grad_reduce_type, kElements);
  arguments.require(!arguments.has("--no-pipeline-parallel") || plan.pp == 1,
                    "--no-pipeline-parallel", "--pipeline-model-parallel-size 1 beside it");
}

}  // namespace

void read_megatron_deepspeed(Arguments& arguments,
                             const std::map<std::string, std::string>& documents,
                             plan::Plan& plan) {
  read_engine(arguments, documents, plan);
  const bool checkpoints = arguments.flag("--checkpoint-activations");
  const bool by_engine = arguments.flag("--deepspeed-activation-checkpointing");
  if (checkpoints || (by_engine && arguments.has("--deepspeed"))) {
    plan.recompute = checkpoints ? plan::Recompute::full : plan.recompute;
  }
  if (arguments.flag("--checkpoint-in-cpu") && plan.recompute != plan::Recompute::none) {
    plan.offload_activations = 1;
  }
  for (const std::string_view name :
       {"--synchronize-each-layer", "--split-transformers", "--scattered-embeddings"}) {
    arguments.flag(name);
  }
  const std::string remote = arguments.word("--remote-device").value_or("none");
  arguments.require(remote == "none", "--remote-device",
                    "none: a plan keeps parameters on the devices (zero 3 shards them)");
}

}  // namespace orrery::interop
