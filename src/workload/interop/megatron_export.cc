// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/lists.h"
#include "base/printable.h"
#include "base/split.h"
#include "workload/interop/capabilities.h"
#include "workload/interop/megatron.h"
#include "workload/interop/text.h"
#include "workload/plan/tensor_overlap.h"
#include "workload/plan/unquantized.h"

namespace orrery::interop {
namespace {

/// One plan as arguments, group by group. A field that no argument states is left to the framework
/// and found when the line is read back.
class MegatronExport {
 public:
  MegatronExport(const plan::Plan& plan, const ExportOptions& options)
      : plan_(canonical(plan, options.model)), options_(options) {}

  std::vector<std::string> run() {
    degrees();
    pipeline();
    context();
    experts();
    graphs();
    memory();
    sharding();
    types();
    quantization();
    kernels();
    return std::move(words_);
  }

 private:
  void flag(std::string_view name, bool on = true) {
    if (on) {
      words_.emplace_back(name);
    }
  }
  void add(std::string_view name, const std::string& value) {
    words_.emplace_back(name);
    words_.push_back(value);
  }
  void add(std::string_view name, std::int64_t value) { add(name, std::to_string(value)); }
  void add_unless(std::string_view name, std::int64_t value, std::int64_t standard) {
    if (value != standard) {
      add(name, value);
    }
  }

  void degrees() {
    add("--tensor-model-parallel-size", plan_.tp);
    add("--pipeline-model-parallel-size", plan_.pp);
    add_unless("--context-parallel-size", plan_.cp, 1);
    add_unless("--expert-model-parallel-size", plan_.ep, 1);
    add_unless("--expert-tensor-parallel-size", plan_.etp, 0);
    flag("--sequence-parallel", plan_.sequence_parallel);
    flag("--use-tp-pp-dp-mapping", plan_.order == "tp-cp-pp-dp");
    add("--micro-batch-size", plan_.microbatch);
    add("--global-batch-size", plan_.global_batch);
    if (plan_.sequence > 0) {
      add("--seq-length", plan_.sequence);
    }
  }

  void pipeline() {
    if (!plan_.stage_layers.empty()) {
      add("--pipeline-model-parallel-layout", layout());
    } else {
      add_unless("--num-virtual-stages-per-pipeline-rank", plan_.chunks, 1);
    }
    flag("--no-overlap-p2p-communication",
         plan_.schedule == plan::Schedule::interleaved && !plan_.overlap_p2p);
    flag("--no-scatter-gather-tensors-in-pipeline",
         plan_.pipeline_send == plan::PipelineSend::whole && plan_.tp > 1 && plan_.pp > 1 &&
             !plan_.sequence_parallel);
  }

  /// "Et*12|t*13|t*10L".
  std::string layout() const {
    std::string text = "E";
    const std::vector<std::int64_t> counts = number_list(plan_.stage_layers);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      text += i > 0 ? "|" : "";
      text += counts[i] == 0 ? "" : counts[i] == 1 ? "t" : "t*" + std::to_string(counts[i]);
    }
    return text + "L";
  }

  void context() {
    if (plan_.cp > 1) {
      const bool gathers = plan_.cp_exchange == plan::ContextExchange::all_gather;
      add("--cp-comm-type", gathers ? "allgather" : std::string(name_of(plan_.cp_exchange)));
    }
    if (plan_.cp_exchange == plan::ContextExchange::a2a_p2p) {
      add("--hierarchical-context-parallel-sizes", plan_.cp_a2a);
      words_.push_back(std::to_string(plan_.cp / std::max<std::int64_t>(plan_.cp_a2a, 1)));
    }
  }

  void experts() {
    const bool routed = options_.model != nullptr && options_.model->experts > 0;
    if (plan_.moe_dispatch == plan::MoeDispatch::hierarchical) {
      add("--moe-token-dispatcher-type", std::string("flex"));
      flag("--moe-enable-deepep");
    } else if (routed || plan_.ep > 1 || plan_.moe_dispatch != plan::MoeDispatch::all_to_all) {
      add("--moe-token-dispatcher-type", std::string(name_of(plan_.moe_dispatch)));
    }
    if (plan_.moe_capacity > 0) {
      add("--moe-expert-capacity-factor", exact_text(plan_.moe_capacity));
    }
    flag("--moe-shared-expert-overlap", plan_.overlap_ep == plan::OverlapExperts::shared);
    flag("--overlap-moe-expert-parallel-comm",
         plan_.overlap_ep == plan::OverlapExperts::microbatch);
    flag("--delay-wgrad-compute", plan_.overlap_ep == plan::OverlapExperts::microbatch);
  }

  void graphs() {
    if (plan_.cuda_graphs != plan::CudaGraphs::none) {
      const bool whole = plan_.cuda_graphs == plan::CudaGraphs::full;
      add("--cuda-graph-impl", std::string(whole ? "full_iteration" : "transformer_engine"));
    }
  }

  void memory() {
    if (plan_.recompute == plan::Recompute::full) {
      add("--recompute-granularity", std::string("full"));
      add("--recompute-method", std::string(plan_.recompute_layers > 0 ? "block" : "uniform"));
      add("--recompute-num-layers", std::max<std::int64_t>(plan_.recompute_layers, 1));
    } else if (plan_.recompute == plan::Recompute::selective || !plan_.recompute_modules.empty()) {
      add("--recompute-granularity", std::string("selective"));
      modules();
    }
    flag("--optimizer-cpu-offload", plan_.offload_optimizer == plan::Offload::cpu);
    if (plan_.offload_activations > 0 && options_.model != nullptr) {
      const double layers = plan_.offload_activations * static_cast<double>(options_.model->layers);
      add("--cpu-offloading-num-layers", std::llround(layers));
    }
  }

  void modules() {
    if (plan_.recompute_modules.empty()) {
      return;  // core_attn alone is the default
    }
    flag("--recompute-modules");
    flag("core_attn", plan_.recompute == plan::Recompute::selective);
    for (const std::string_view module : split_at(plan_.recompute_modules, ',')) {
      words_.emplace_back(module);
    }
  }

  void sharding() {
    const bool muon = plan_.optimizer == plan::Optimizer::muon;
    if (muon || plan_.optimizer == plan::Optimizer::lion ||
        plan_.optimizer == plan::Optimizer::sgd) {
      const std::string name(name_of(plan_.optimizer));
      add("--optimizer", muon && plan_.zero == 1 ? "dist_" + name : name);
    }
    if (plan_.zero == 1 && plan_.shard_params == 0) {
      flag("--use-distributed-optimizer", !muon);
    } else if (plan_.zero == 3 && !plan_.reshard_after_forward) {
      flag("--use-torch-fsdp2");
      flag("--torch-fsdp2-no-reshard-after-forward");
      return;  // which overlaps by itself
    } else if (plan_.zero >= 2) {
      flag("--use-megatron-fsdp");
      add("--data-parallel-sharding-strategy",
          std::string(plan_.zero == 2 ? "optim_grads" : "optim_grads_params"));
      add("--ckpt-format", std::string("fsdp_dtensor"));
    }
    copies();
    flag("--overlap-grad-reduce", plan_.overlap_grad_reduce);
    flag("--overlap-param-gather", plan_.overlap_param_gather);
    const std::int64_t element = graph::size_of(plan_.grad_type).value();
    if (plan_.bucket > Bytes(0) && plan_.overlap_grad_reduce && plan_.zero < 3) {
      add("--ddp-bucket-size", std::max<std::int64_t>(plan_.bucket.value() / element, 1));
    }
  }

  void copies() {
    const std::int64_t shards = plan_.zero >= 3   ? plan_.shard_params
                                : plan_.zero == 2 ? plan_.shard_grads
                                                  : plan_.shard_optimizer;
    if (shards > 1) {
      add("--num-distributed-optimizer-instances", plan_.dp * plan_.cp / shards);
      flag("--enable-full-sharding-in-hsdp", plan_.zero >= 2 && plan_.shard_optimizer == 0);
    }
  }

  void types() {
    flag("--bf16", plan_.compute_type == graph::DataType::bf16);
    flag("--fp16", plan_.compute_type == graph::DataType::fp16);
    const bool narrow = plan_.grad_type == plan_.compute_type;
    flag("--grad-reduce-in-bf16", narrow && plan_.compute_type == graph::DataType::bf16);
    flag("--accumulate-allreduce-grads-in-fp32",
         !narrow && plan_.compute_type != graph::DataType::fp32);
    const bool wide =
        plan_.master_type == graph::DataType::fp32 && plan_.moment_type == graph::DataType::fp32;
    flag("--use-precision-aware-optimizer", !wide || plan_.offload_optimizer == plan::Offload::cpu);
    if (!wide) {
      add("--main-params-dtype", std::string(name_of(plan_.master_type)));
      add("--exp-avg-dtype", std::string(name_of(plan_.moment_type)));
      add("--exp-avg-sq-dtype", std::string(name_of(plan_.moment_type)));
    }
    flag("--no-gradient-accumulation-fusion", !plan_.fused_grad_accumulation);
  }

  void quantization() {
    const bool fp4 = plan_.quantization == plan::Quantization::nvfp4;
    switch (plan_.quantization) {
      case plan::Quantization::none:
        return;
      case plan::Quantization::nvfp4:
        add("--fp4-format", std::string("e2m1"));
        break;
      default:
        add("--fp8-format", std::string("hybrid"));
        add("--fp8-recipe", recipe());
    }
    flag(fp4 ? "--fp4-param-gather" : "--fp8-param-gather", plan_.quantized_params);
    if (plan::has_unquantized_layers(plan_)) {
      flag("--first-last-layers-bf16", true);
      add("--num-layers-at-start-in-bf16", plan_.unquantized_start_layers);
      add("--num-layers-at-end-in-bf16", plan_.unquantized_end_layers);
    }
  }

  std::string recipe() const {
    return plan_.quantization == plan::Quantization::fp8_delayed   ? "delayed"
           : plan_.quantization == plan::Quantization::fp8_current ? "tensorwise"
           : plan_.quantization == plan::Quantization::fp8_block   ? "blockwise"
                                                                   : "mxfp8";
  }

  std::string backend() const {
    return !zoo::is_fused(plan_.attention) ? "unfused"
           : plan_.attention == zoo::AttentionKernel::cudnn ||
                   plan_.attention == zoo::AttentionKernel::cudnn_fp8
               ? "fused"
               : "flash";
  }

  void kernels() {
    add("--attention-backend", backend());
    for (const std::string_view fusion :
         {"--no-masked-softmax-fusion", "--no-bias-gelu-fusion", "--no-bias-swiglu-fusion",
          "--no-bias-dropout-fusion", "--no-rope-fusion"}) {
      flag(fusion, !plan_.fused_kernels);
    }
    flag("--no-persist-layer-norm", !plan_.persistent_norm);
    flag("--cross-entropy-loss-fusion", plan_.fused_cross_entropy);
    flag("--no-async-tensor-model-parallel-allreduce", !plan_.overlap_tp);
    flag("--tp-comm-overlap", plan::tensor_pieces(plan_) > 1 && plan_.sequence_parallel);
    add_unless("--make-vocab-size-divisible-by", plan_.vocab_multiple, 128);
    if (plan_.host_sync) {
      add("--timing-log-level", 2);
    }
  }

  plan::Plan plan_;
  const ExportOptions& options_;
  std::vector<std::string> words_;
};

std::vector<std::string> launcher(const plan::Plan& plan, const ExportOptions& options) {
  const std::int64_t devices = plan.devices();
  if (options.devices_per_node < 1) {
    return {"torchrun", "--nproc-per-node", std::to_string(devices), "pretrain_gpt.py"};
  }
  // As many on every node: 12 devices on nodes of 8 are 3 x 4.
  const std::int64_t per_node = std::gcd(options.devices_per_node, devices);
  const std::int64_t nodes = devices / per_node;
  return {"torchrun",
          "--nnodes",
          std::to_string(nodes),
          "--nproc-per-node",
          std::to_string(per_node),
          "pretrain_gpt.py"};
}

/// Returns a flag and its values a line, continued with backslashes.
std::string command_text(const std::vector<std::string>& line,
                         const std::vector<std::string>& words) {
  std::string text = joined(line, " ");
  for (const std::string& word : words) {
    text += (word.starts_with("--") ? " \\\n  " : " ") + shell_quoted(word);
  }
  return text + "\n";
}

std::string comments(const std::vector<Remark>& lost) {
  std::string text;
  for (const Remark& remark : lost) {
    text += fmt::format("#   {}: {}\n", remark.about, remark.sentence);
  }
  return text.empty() ? "" : "# Not stated by Megatron-LM's arguments:\n" + text;
}

}  // namespace

Result<MegatronWords> megatron_words(std::string_view framework, const plan::Plan& plan,
                                     const ExportOptions& options) {
  if (auto fits = check_degrees(plan); !fits) {
    return fail(std::move(fits.error()));
  }
  MegatronWords exported;
  std::vector<std::string>& words = exported.words;
  words = MegatronExport(plan, options).run();
  const ImportOptions back{.devices = plan.devices(), .rest = rest_of(plan.framework)};
  std::vector<std::string> read = words;
  if (plan.sequence == 0 && options.model == nullptr) {
    read.insert(read.end(), {"--seq-length", "1"});  // required; the loss is named below
  }
  if (options.model != nullptr) {
    const auto model = megatron_model_words(*options.model, exported.lost);
    words.insert(words.begin(), model.begin(), model.end());
    read.insert(read.begin(), model.begin(), model.end());
  }
  const auto again = import_megatron(read, back);
  if (!again) {
    return fail(again.error());
  }
  for (Remark& remark : differences(plan, again->plan, options.model)) {
    if (plan.sequence != 0 || options.model != nullptr || remark.about != "sequence") {
      exported.lost.push_back(std::move(remark));
    }
  }
  give_reasons(framework, plan, options.model, exported.lost);
  return exported;
}

Result<Exported> export_megatron(const plan::Plan& plan, const ExportOptions& options) {
  return megatron_words("megatron", plan, options).map([&](const MegatronWords& exported) {
    return Exported{
        .text = comments(exported.lost) + command_text(launcher(plan, options), exported.words),
        .lost = exported.lost};
  });
}

}  // namespace orrery::interop
