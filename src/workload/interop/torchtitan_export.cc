// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "workload/interop/capabilities.h"
#include "workload/interop/text.h"
#include "workload/plan/schedule_row.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::interop {
namespace {

std::string dtype(graph::DataType type) {
  return type == graph::DataType::bf16 ? "bfloat16" : "float32";
}

class TorchtitanExport {
 public:
  TorchtitanExport(const plan::Plan& plan, const ExportOptions& options)
      : plan_(canonical(plan, options.model)), model_(options.model) {}

  std::string run() {
    table("parallelism");
    data_parallel();
    others();
    if (plan_.pp > 1) {
      pipeline();
    }
    training();
    recompute();
    kernels();
    if (plan_.optimizer == plan::Optimizer::adam_foreach) {
      table("optimizer");
      field("implementation", "foreach");
    }
    return std::move(text_);
  }

 private:
  void table(std::string_view name) {
    text_ += (text_.empty() ? "" : "\n") + fmt::format("[{}]\n", name);
  }
  void field(std::string_view name, const std::string& value) {
    text_ += fmt::format("{} = \"{}\"\n", name, value);
  }
  void field(std::string_view name, const char* value) { field(name, std::string(value)); }
  void field(std::string_view name, std::int64_t value) {
    text_ += fmt::format("{} = {}\n", name, value);
  }
  void raw(std::string_view name, std::string_view value) {
    text_ += fmt::format("{} = {}\n", name, value);
  }

  /// dp = replicas x shards; a shard group is `shards` x cp ranks.
  void data_parallel() {
    const bool sharded = plan_.zero == 3;
    const std::int64_t group = sharded && plan_.shard_params > 0 ? plan_.shard_params / plan_.cp
                               : sharded                         ? plan_.dp
                                                                 : 1;
    const std::int64_t shards = group >= 1 && plan_.dp % group == 0 ? group : plan_.dp;
    field("data_parallel_replicate_degree", plan_.dp / shards);
    field("data_parallel_shard_degree", shards);
    field("fsdp_reshard_after_forward", plan_.reshard_after_forward ? "always" : "never");
  }

  void others() {
    field("tensor_parallel_degree", plan_.tp);
    if (plan::tensor_pieces(plan_) > 1) {
      raw("enable_async_tensor_parallel", "true");
    }
    field("context_parallel_degree", plan_.cp);
    const bool gathers = plan_.cp_exchange == plan::ContextExchange::all_gather;
    if (plan_.cp > 1) {
      field("context_parallel_rotate_method", gathers ? "allgather" : "alltoall");
    }
    field("pipeline_parallel_degree", plan_.pp);
    if (plan_.ep > 1) {
      field("expert_parallel_degree", plan_.ep);
      field("expert_tensor_parallel_degree", plan_.etp == 0 ? plan_.tp : plan_.etp);
    }
    if (plan_.moe_dispatch == plan::MoeDispatch::hierarchical) {
      field("expert_parallel_comm_backend", "deepep");
    }
  }

  void pipeline() {
    const std::string_view schedule = row_of(plan_.schedule).torchtitan;
    field("pipeline_parallel_schedule", std::string(schedule.empty() ? "1F1B" : schedule));
    field("pipeline_parallel_microbatch_size", plan_.microbatch);
    if (const std::vector<std::int64_t> parts = layers_of_parts(); !parts.empty()) {
      raw("module_fqns_per_model_part", modules(parts));
    }
  }

  /// Returns the layers of each part as the plan states them, else the model's layers evenly; empty
  /// when neither says.
  std::vector<std::int64_t> layers_of_parts() const {
    const std::int64_t parts = plan_.pp * plan_.chunks;
    if (!plan_.stage_layers.empty()) {
      return number_list(plan_.stage_layers);
    }
    constexpr std::int64_t kMostParts = 4096;
    if (model_ == nullptr || parts > kMostParts || model_->layers % parts != 0) {
      return {};
    }
    return std::vector<std::int64_t>(static_cast<std::size_t>(parts), model_->layers / parts);
  }

  static std::string modules(const std::vector<std::int64_t>& parts) {
    std::string text = "[";
    std::int64_t layer = 0;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::string names = part == 0 ? "\"tok_embeddings\"" : "";
      for (std::int64_t i = 0; i < parts[part]; ++i) {
        names += fmt::format("{}\"layers.{}\"", names.empty() ? "" : ", ", layer++);
      }
      if (part + 1 == parts.size()) {
        names += std::string(names.empty() ? "" : ", ") + "\"norm\", \"output\"";
      }
      text += (part > 0 ? ",\n  [" : "\n  [") + names + "]";
    }
    return text + ",\n]";
  }

  void training() {
    table("training");
    // With stages the local batch is all of a step: the pipeline drains after it.
    field("local_batch_size", plan_.pp > 1 ? plan_.global_batch / plan_.dp : plan_.microbatch);
    field("global_batch_size", plan_.global_batch);
    if (plan_.sequence > 0) {
      field("seq_len", plan_.sequence);
    }
    field("mixed_precision_param", dtype(plan_.compute_type));
    field("mixed_precision_reduce", dtype(plan_.grad_reduce_type));
    field("dtype", dtype(plan_.master_type));
  }

  void recompute() {
    table("activation_checkpoint");
    const bool selects = plan_.recompute == plan::Recompute::none &&
                         plan_.recompute_modules == kSelectiveOp && plan_.recompute_layers == 0;
    field("mode", plan_.recompute == plan::Recompute::full ? "full"
                  : selects                                ? "selective"
                                                           : "none");
    if (selects) {
      field("selective_ac_option", "op");
    }
  }

  void kernels() {
    table("compile");
    raw("enable", plan_.fused_kernels ? "true" : "false");
    const bool tensorwise = plan_.quantization == plan::Quantization::fp8_current;
    if (tensorwise || plan_.quantization == plan::Quantization::mxfp8) {
      table("model");
      raw("converters", tensorwise ? "[\"quantize.linear.float8\"]" : "[\"quantize.linear.mx\"]");
    }
    if (tensorwise && plan_.quantized_params) {
      table("quantize.linear.float8");
      raw("enable_fsdp_float8_all_gather", "true");
    }
  }

  plan::Plan plan_;
  const zoo::Model* model_;
  std::string text_;
};

}  // namespace

Result<Exported> export_torchtitan(const plan::Plan& plan, const ExportOptions& options) {
  if (auto fits = check_degrees(plan); !fits) {
    return fail(std::move(fits.error()));
  }
  const std::string text = TorchtitanExport(plan, options).run();
  const auto again = import_torchtitan(
      text, "job.toml",
      {.devices = plan.devices(), .model = options.model, .rest = rest_of(plan.framework)});
  if (!again) {
    return fail(again.error());
  }
  Exported exported{.lost = differences(plan, again->plan, options.model)};
  give_reasons("torchtitan", plan, options.model, exported.lost);
  for (const Remark& remark : exported.lost) {
    exported.text += fmt::format("#   {}: {}\n", remark.about, remark.sentence);
  }
  if (!exported.lost.empty()) {
    exported.text = "# Not stated by torchtitan's configuration:\n" + exported.text;
  }
  exported.text += text;
  return exported;
}

}  // namespace orrery::interop
