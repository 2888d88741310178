// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/letters.h"
#include "base/lists.h"
#include "base/reader.h"
#include "base/split.h"
#include "workload/interop/adapter_names.h"
#include "workload/interop/config_paths.h"
#include "workload/interop/framework.h"
#include "workload/interop/framework_job.h"
#include "workload/interop/framework_tables.h"
#include "workload/interop/megatron.h"
#include "workload/interop/megatron_yaml.h"
#include "workload/interop/optimizer_name.h"
#include "workload/interop/text.h"

namespace orrery::interop {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Collects what the keys say, then makes them one plan.
class FrameworkImport {
 public:
  FrameworkImport(std::string_view framework, const ImportOptions& options)
      : framework_(framework), job_{.framework = framework_, .plan = options.rest} {
    plan_.attention = zoo::AttentionKernel::flash;  // torch's scaled_dot_product_attention
    // Unless it is disabled; MaxText's remat_policy is full.
    job_.checkpoints = framework == "llama-factory" || framework == "maxtext";
    if (framework == "maxtext") {
      plan_.cp_exchange = plan::ContextExchange::all_gather;
    }
  }

  Result<Imported> run(const ConfigNode& node, std::int64_t devices) {
    table_ = framework_table(framework_);
    const std::vector<Leaf> leaves = leaves_of(node);
    if (std::ranges::none_of(leaves, [&](const Leaf& leaf) { return is_known(leaf.path); })) {
      return fail(Error(Mistake{node.where(), {}, node.shown(), "keys of " + framework_}));
    }
    for (const Leaf& leaf : leaves) {
      read(leaf);
    }
    settle(job_, devices);
    if (!job_.error.empty()) {
      return fail(std::move(job_.error));
    }
    Imported imported;
    imported.plan = std::move(job_.plan);
    imported.remarks = std::move(job_.remarks);
    return imported;
  }

 private:
  void note(const Leaf& leaf, std::string sentence) {
    const bool again = !job_.remarks.empty() && job_.remarks.back().about == leaf.path &&
                       job_.remarks.back().sentence == sentence;  // a further item of a list
    if (!again) {
      job_.remarks.push_back({leaf.path, std::move(sentence)});
    }
  }
  void reject(const Leaf& leaf, std::string expected) {
    job_.error.add({leaf.node->where(), leaf.path, leaf.node->shown(), std::move(expected)});
  }

  auto row_of(std::string_view path) const {
    return std::ranges::find_if(table_.keys,
                                [&](const FrameworkKey& key) { return is_key(path, key.name); });
  }
  bool is_known(std::string_view path) const {
    return row_of(path) != table_.keys.end() || is_without_weight(table_, path);
  }

  void read(const Leaf& leaf) {
    const auto row = row_of(leaf.path);
    if (row == table_.keys.end()) {
      unknown(leaf);
      return;
    }
    job_.places[row->meaning] = {leaf.node->where(), leaf.path, leaf.node->text, {}};
    if (is_empty(*leaf.node) && !reads_false(row->meaning)) {
      const bool zero = parse_number(leaf.node->text) == 0.0;
      if (zero && counts_sequences(row->meaning)) {
        reject(leaf, "a number above 0");
      } else if (zero && framework_ == "maxtext" && is_degree(row->meaning)) {
        reject(leaf, "1 or more, or -1: what the others leave");  // its mesh has no device
      }
      return;  // null, false and 0 ask for nothing
    }
    if (row->meaning == Meaning::refused) {
      reject(leaf, std::string(row->why));
    } else if (row->meaning == Meaning::noted) {
      note(leaf, std::string(row->why));
    } else if (!number(leaf, row->meaning) && !sharding(leaf, row->meaning) &&
               !types(leaf, row->meaning)) {
      memory(leaf, row->meaning);
    }
  }

  /// No row has it: without weight, unknown, or a mistake.
  void unknown(const Leaf& leaf) {
    if (is_without_weight(table_, leaf.path)) {
      return;
    }
    if (is_empty(*leaf.node)) {
      note(leaf, "unknown, but " + (leaf.node->text.empty() ? "empty" : leaf.node->text));
    } else if (const auto guess = mistaken_key(table_, leaf.path)) {
      job_.error.add({leaf.node->where(), leaf.path, {}, "unknown key" + *guess});
    } else {
      note(leaf, "unknown: counted as without weight for time and memory");
    }
  }

  bool number(const Leaf& leaf, Meaning meaning) {
    double* const member = count_of(job_, meaning);
    if (member == nullptr) {
      return false;
    }
    if (std::exchange(counted_, leaf.path) == leaf.path) {
      reject(leaf, "one number, not a list");
      return true;
    }
    if (leaf.node->text == "auto") {
      note(leaf, "auto: taken from the plan's flags");
      return true;
    }
    std::string digits = leaf.node->text;
    std::erase(digits, '_');  // 500_000, a number of YAML 1.1
    const auto value = parse_number(digits);
    const bool share = meaning == Meaning::adapter_dropout;
    const auto most = static_cast<double>(share ? 1 : kMostDegree);
    if (!value || !(*value <= most && (*value > 0 || (*value == -1 && !share)))) {
      reject(leaf, share ? "a share" : "a number above 0");
      return true;
    }
    if (is_degree(meaning) && framework_ == "maxtext") {
      multiply(leaf, *member, *value);
    } else {
      *member = *value;
    }
    return true;
  }

  /// Degrees of an axis (ici, dcn of MaxText) multiply; one of each mesh may be -1, which stays so.
  void multiply(const Leaf& leaf, double& member, double value) {
    if (value < 0) {
      std::string& rest = leaf.path.starts_with("dcn_") ? rest_of_slices_ : rest_of_slice_;
      if (!rest.empty()) {
        return reject(leaf, "a degree above 0: " + rest + " takes what the others leave");
      }
      rest = leaf.path;
    }
    if (value < 0 && leaf.path.starts_with("dcn_")) {
      note(leaf, "-1 is read as 1: one slice has all devices");
    } else {
      member = std::min(member, value) < 0 ? -1 : member > 0 ? member * value : value;
    }
  }

  /// "ds_z3_offload_config.json", "zero2.json": the stage that a name states.
  void deepspeed_file(const Leaf& leaf, const std::string& name) {
    if (const auto stage = zero_stage_in(name)) {
      shard(*stage, plan_.reshard_after_forward);
      const bool offloads = name.find("offload") != name.npos;
      plan_.offload_optimizer = offloads ? plan::Offload::cpu : plan_.offload_optimizer;
      note(leaf, "not read: ZeRO stage " + std::to_string(*stage) +
                     (offloads ? " with the optimizer on the host" : "") +
                     ", as its name says; orrery import deepspeed reads such a file");
      return;
    }
    reject(leaf,
           "a file whose name states the stage (zero3.json); orrery import deepspeed reads it");
  }

  bool sharding(const Leaf& leaf, Meaning meaning) {
    const std::string value = lower_case(leaf.node->text);
    if (meaning == Meaning::distributed_type) {
      const std::string kind = lower_case(leaf.node->text);
      if (kind == "fsdp") {
        shard(3, true);
      } else if (kind != "multi_gpu" && kind != "no" && kind != "deepspeed" &&
                 kind != "multi_npu" && kind != "megatron_lm") {
        reject(leaf, "FSDP, DEEPSPEED, MEGATRON_LM, MULTI_GPU or NO");
      }
    } else if (meaning == Meaning::fsdp) {
      shard(3, true);
    } else if (meaning == Meaning::sharding || meaning == Meaning::fsdp_words) {
      strategy(leaf, value);
    } else if (meaning == Meaning::reshard) {
      if (value == "true" || value == "false") {
        plan_.reshard_after_forward = value == "true";
      } else {
        strategy(leaf, value);
      }
    } else if (meaning == Meaning::deepspeed_file) {
      deepspeed_file(leaf, value);
    } else if (meaning == Meaning::zero_stage) {
      const auto stage = parse_integer(value);
      if (!stage || *stage < 0 || *stage > 3) {
        reject(leaf, "0, 1, 2 or 3");
        return true;
      }
      plan_.zero = *stage;
      job_.stated_sharding = true;
    } else {
      return false;
    }
    return true;
  }

  void shard(std::int64_t stage, bool reshard) {
    plan_.zero = stage;
    plan_.reshard_after_forward = reshard;
    job_.stated_sharding = true;
  }

  /// FSDP's strategies by name or number, of one word or within several.
  void strategy(const Leaf& leaf, const std::string& value) {
    if (has(value, "offload")) {
      note(leaf, "offload: parameters are counted on the devices");
    }
    if (has(value, "hybrid_shard_zero2") || value == "5" || has(value, "_hybrid_shard_zero2")) {
      shard(3, false);
      job_.hybrid = true;
    } else if (has(value, "hybrid") || value == "4") {
      shard(3, true);
      job_.hybrid = true;
    } else if (has(value, "shard_grad_op") || value == "2") {
      shard(3, false);
    } else if (has(value, "no_shard") || value == "3") {
      shard(0, true);
    } else if (has(value, "full_shard") || value == "1") {
      shard(3, true);
    } else if (value != "auto_wrap" && value != "offload") {
      reject(leaf, "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD or HYBRID_SHARD_ZERO2");
    }
  }

  void read_optimizer(const Leaf& leaf, const std::string& value) {
    const auto known = optimizer_named(value);
    plan_.optimizer = known.value_or(plan::Optimizer::adam);
    if (!known) {
      note(leaf, value + ": counted as Adam, with two moments per parameter");
    } else if (has(value, "8bit") && known != plan::Optimizer::adamw_8bit) {
      note(leaf, value + ": its moments are counted in moment_type");
    }
  }

  bool types(const Leaf& leaf, Meaning meaning) {
    const std::string value = lower_case(leaf.node->text);
    if (meaning == Meaning::mixed_precision || meaning == Meaning::quantization) {
      const bool fp8 = has(value, "fp8") || (leaf.path == "fp8" && value == "true");
      plan_.quantization = fp8 ? plan::Quantization::fp8_current : plan_.quantization;
      plan_.compute_type = has(value, "fp16") || has(value, "float16")
                               ? (has(value, "bf") ? graph::DataType::bf16 : graph::DataType::fp16)
                           : has(value, "bf16") || fp8 || has(value, "bfloat16")
                               ? graph::DataType::bf16
                           : meaning == Meaning::mixed_precision ? graph::DataType::fp32
                                                                 : plan_.compute_type;
      job_.stated_type = true;
      if (meaning == Meaning::quantization && !fp8) {
        const bool eight = value.find('8') != std::string::npos || has(leaf.path, "8bit");
        job_.frozen = eight ? plan::FrozenType::int8 : plan::FrozenType::nf4;
      }
    } else if (meaning == Meaning::bf16 || meaning == Meaning::fp16) {
      const bool on = value == "true" || value == "auto" || value == "full";
      const auto type = meaning == Meaning::bf16 ? graph::DataType::bf16 : graph::DataType::fp16;
      plan_.compute_type = on && value != "auto" ? type : plan_.compute_type;
      job_.stated_type = job_.stated_type || on;
    } else if (meaning == Meaning::master_type || meaning == Meaning::reduce_type) {
      const auto type = has(value, "bf") || value == "pure" ? graph::DataType::bf16
                        : has(value, "16")                  ? graph::DataType::fp16
                                                            : graph::DataType::fp32;
      (meaning == Meaning::master_type ? plan_.master_type : plan_.grad_reduce_type) = type;
    } else if (meaning == Meaning::optimizer || meaning == Meaning::optimizer_switch) {
      read_optimizer(leaf, meaning == Meaning::optimizer ? value : leaf.path);
    } else if (meaning == Meaning::quantized_params) {
      plan_.quantized_params = value == "true";
    } else {
      return false;
    }
    return true;
  }

  void memory(const Leaf& leaf, Meaning meaning) {
    const std::string value = lower_case(leaf.node->text);
    const bool on = value == "true";
    switch (meaning) {
      case Meaning::checkpointing:
        job_.checkpoints = on || (!value.empty() && value != "false");
        break;
      case Meaning::no_checkpointing:
        job_.checkpoints = !on && job_.checkpoints;
        break;
      case Meaning::remat:
        remat(leaf, value);
        break;
      case Meaning::flash:
        plan_.attention = on ? zoo::AttentionKernel::flash : plan_.attention;
        break;
      case Meaning::attention:
        plan_.attention = value == "eager" || value == "disabled" || value == "dot_product"
                              ? zoo::AttentionKernel::unfused
                              : zoo::AttentionKernel::flash;
        break;
      case Meaning::compiled:
        plan_.fused_kernels = on || value == "auto";
        job_.compiled = true;
        break;
      case Meaning::offload_optimizer:
        plan_.offload_optimizer = value == "nvme"                     ? plan::Offload::nvme
                                  : value == "cpu" || value == "true" ? plan::Offload::cpu
                                                                      : plan::Offload::none;
        break;
      case Meaning::offload_parameters:
        if (value != "none") {
          note(leaf, "parameters are counted on the devices; optimizer states are on the host");
          plan_.offload_optimizer = plan::Offload::cpu;
        }
        break;
      case Meaning::offload_activations:
        plan_.offload_activations = on || value == "legacy" || value == "disk" ? 1 : 0;
        break;
      case Meaning::ring:
        plan_.cp_exchange = value == "ring" ? plan::ContextExchange::p2p : plan_.cp_exchange;
        break;
      case Meaning::sequence_parallel:
        plan_.sequence_parallel = on;
        break;
      default:
        adapters(leaf, meaning, value);
    }
  }

  void remat(const Leaf& leaf, const std::string& value) {
    job_.checkpoints = value == "full";
    if (value.starts_with("minimal") || value.starts_with("save_")) {
      plan_.recompute = plan::Recompute::selective;
      note(leaf, value + ": read as selective, which recomputes the attention core alone");
    } else if (value != "full" && value != "none" && value != "custom") {
      note(leaf, value + ": activations are kept");
    }
  }

  void adapters(const Leaf& leaf, Meaning meaning, const std::string& value) {
    if (meaning == Meaning::adapter) {
      job_.adapter = value == "lora" || value == "qlora" || value == "dora" || value == "true";
      job_.by_trl = leaf.path == "use_peft";
      if (value == "qlora") {
        job_.frozen = plan::FrozenType::nf4;
      } else if (!job_.adapter && value != "full" && value != "none") {
        reject(leaf, "lora, qlora or full");
      }
    } else if (meaning == Meaning::adapter_targets) {
      for (const std::string_view module : split_at(value, ',')) {
        if (!add_adapter_target(module, job_.adapter_targets)) {
          note(leaf, std::string(module) + ": no target of adapters is known by this name");
        }
      }
    } else if (meaning == Meaning::model_name) {
      job_.model_name = value;
    } else if (meaning == Meaning::adapter_everywhere) {
      job_.adapter_targets = "all";
    }
  }

  const std::string framework_;
  FrameworkJob job_;
  plan::Plan& plan_ = job_.plan;
  FrameworkTable table_;
  std::string counted_;         ///< path of the number read last
  std::string rest_of_slice_;   ///< the axis of MaxText's ici_ mesh that is -1
  std::string rest_of_slices_;  ///< of its dcn_ mesh
};

}  // namespace

Result<Imported> import_framework(std::string_view name, ConfigNode node,
                                  const std::vector<std::string>& overrides,
                                  const ImportOptions& options) {
  auto prepared = with_overrides(std::move(node), overrides);
  if (!prepared) {
    return fail(std::move(prepared.error()));
  }
  if (prepared->kind != ConfigNode::Kind::map) {
    return fail(Error(Mistake{prepared->where(), {}, prepared->shown(), "a map of keys"}));
  }
  if (name == "nemo" || name == "primus") {
    return import_megatron_yaml(name, *prepared, options);
  }
  return FrameworkImport(name, options).run(*prepared, options.devices);
}

}  // namespace orrery::interop
