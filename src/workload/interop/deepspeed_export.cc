// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workload/interop/capabilities.h"
#include "workload/interop/text.h"

namespace orrery::interop {
namespace {

std::int64_t microbatches(const plan::Plan& plan) {
  return plan.global_batch / std::max<std::int64_t>(plan.dp * plan.microbatch, 1);
}

JsonObject zero_section(const plan::Plan& plan) {
  JsonObject zero;
  zero.field("stage", plan.zero);
  zero.field("overlap_comm", plan.overlap_grad_reduce);
  if (plan.bucket > Bytes(0)) {
    const std::int64_t element = graph::size_of(plan.grad_reduce_type).value();
    zero.field("reduce_bucket_size", std::max<std::int64_t>(plan.bucket.value() / element, 1));
  }
  if (plan.shard_params > 0) {
    zero.field("mics_shard_size", plan.shard_params);
  }
  if (plan.secondary_shard > 0) {
    zero.field("zero_hpz_partition_size", plan.secondary_shard);
  }
  if (plan.quantized_gather) {
    zero.field("zero_quantized_weights", true);
  }
  if (plan.quantized_reduce) {
    zero.field("zero_quantized_gradients", true);
  }
  if (plan.offload_optimizer == plan::Offload::cpu ||
      plan.offload_optimizer == plan::Offload::nvme) {
    JsonObject offload;
    offload.field("device", name_of(plan.offload_optimizer));
    zero.raw("offload_optimizer", offload.text("    "));
  }
  return zero;
}

void write_types(JsonObject& config, const plan::Plan& plan) {
  JsonObject on;
  on.field("enabled", true);
  if (plan.compute_type == graph::DataType::bf16) {
    if (plan.master_type == graph::DataType::bf16) {
      on.field("bf16_master_weights_and_grads", true);
    }
    if (plan.moment_type == graph::DataType::bf16) {
      on.field("bf16_optimizer_states", true);
    }
    config.field("bf16", on);
  } else if (plan.compute_type == graph::DataType::fp16) {
    if (plan.master_type == graph::DataType::fp16) {
      on.field("fp16_master_weights_and_grads", true);
    }
    config.field("fp16", on);
  }
  const auto written = [](graph::DataType type) {
    return type == graph::DataType::fp32 || type == graph::DataType::bf16 ||
           type == graph::DataType::fp16;
  };
  if (written(plan.grad_type)) {
    JsonObject types;
    types.field("grad_accum_dtype", name_of(plan.grad_type));
    config.field("data_types", types);
  }
  if (written(plan.grad_reduce_type)) {
    config.field("communication_data_type", name_of(plan.grad_reduce_type));
  }
}

/// Returns DeepSpeed's name of an optimizer; empty where it is Adam, or one that DeepSpeed lacks.
std::string_view optimizer_type(plan::Optimizer optimizer) {
  return optimizer == plan::Optimizer::lion   ? "Lion"
         : optimizer == plan::Optimizer::muon ? "Muon"
         : optimizer == plan::Optimizer::sgd  ? "SGD"
                                              : "";
}

std::string deepspeed_text(const plan::Plan& plan) {
  JsonObject config;
  config.field("train_batch_size", plan.global_batch);
  config.field("train_micro_batch_size_per_gpu", plan.microbatch);
  config.field("gradient_accumulation_steps", microbatches(plan));
  config.field("zero_optimization", zero_section(plan));
  write_types(config, plan);
  if (const std::string_view type = optimizer_type(plan.optimizer); !type.empty()) {
    JsonObject optimizer;
    optimizer.field("type", type);
    config.field("optimizer", optimizer);
  }
  if (plan.tp > 1) {
    JsonObject tensor;
    tensor.field("autotp_size", plan.tp);
    if (!plan.overlap_tp) {
      tensor.field("tp_overlap_comm", false);
    }
    config.field("tensor_parallel", tensor);
  }
  if (plan.pp > 1) {
    JsonObject pipeline;
    pipeline.field("stages", plan.pp);
    pipeline.field("activation_checkpoint_interval",
                   plan.recompute == plan::Recompute::full ? 1 : 0);
    config.field("pipeline", pipeline);
  }
  if (plan.offload_activations == 1) {
    JsonObject activations;
    activations.field("cpu_checkpointing", true);
    config.field("activation_checkpointing", activations);
  }
  return config.text() + "\n";
}

}  // namespace

Result<Exported> export_deepspeed(const plan::Plan& plan, const ExportOptions& options) {
  if (auto fits = check_degrees(plan); !fits) {
    return fail(std::move(fits.error()));
  }
  Exported exported{.text = deepspeed_text(canonical(plan, options.model))};
  const auto node = parse_config(exported.text, "ds_config.json", ConfigSyntax::json);
  if (!node) {
    return fail(node.error());
  }
  // No key states cp: the ranks that share a sequence count once.
  const auto again = import_deepspeed(
      *node, {.devices = plan.devices() / plan.cp, .rest = rest_of(plan.framework)});
  if (!again) {
    return fail(again.error());
  }
  exported.lost = differences(plan, again->plan, options.model);
  give_reasons("deepspeed", plan, options.model, exported.lost);
  return exported;
}

}  // namespace orrery::interop
