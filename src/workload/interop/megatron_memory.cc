// SPDX-License-Identifier: Apache-2.0
/// Recompute, offload, data parallelism and number types of Megatron-LM.
#include <algorithm>
#include <array>
#include <string_view>

#include "workload/interop/adapter_names.h"
#include "workload/interop/megatron.h"

namespace orrery::interop {
namespace {

void read_recompute(Arguments& arguments, plan::Plan& plan) {
  const auto method = arguments.word("--recompute-method");
  const auto layers = arguments.number("--recompute-num-layers", 0);
  plan.recompute = plan::Recompute::full;
  arguments.require(method.has_value(), "--recompute-method",
                    "uniform or block, beside --recompute-granularity full");
  if (method == "block") {
    // N layers of every chunk; 0 is none.
    plan.recompute_layers = std::min(layers.value_or(0), kMostDegree);
    plan.recompute = plan.recompute_layers == 0 ? plan::Recompute::none : plan::Recompute::full;
    return;
  }
  arguments.require(!method || method == "uniform", "--recompute-method", "uniform or block");
  if (layers.value_or(1) != 1) {
    arguments.note("--recompute-num-layers",
                   "units of several layers: a plan keeps the input of every layer");
  }
}

/// A plan has Megatron's names of modules, but core_attn, which is its `selective`.
void read_modules(Arguments& arguments, plan::Plan& plan) {
  constexpr std::array<std::string_view, 6> kModules{"moe_act", "layernorm", "mla_up_proj",
                                                     "mlp",     "moe",       "shared_experts"};
  std::vector<std::string> modules = arguments.words("--recompute-modules");
  if (!arguments.has("--recompute-modules")) {
    modules = {"core_attn"};
  }
  if (arguments.flag("--moe-layer-recompute")) {
    modules.emplace_back("moe");
  }
  std::string list;
  for (const std::string& module : modules) {
    if (module == "core_attn") {
      plan.recompute = plan::Recompute::selective;
    } else if (std::find(kModules.begin(), kModules.end(), module) != kModules.end()) {
      list += (list.empty() ? "" : ",") + module;
    } else {
      arguments.reject("--recompute-modules",
                       "core_attn, moe_act, layernorm, mla_up_proj, mlp, moe or shared_experts");
    }
  }
  plan.recompute_modules = list;
}

void read_offload(Arguments& arguments, plan::Plan& plan) {
  plan.offload_optimizer =
      arguments.flag("--optimizer-cpu-offload") ? plan::Offload::cpu : plan::Offload::none;
  const double share = arguments.real("--optimizer-offload-fraction").value_or(1);
  if (share != 1 && plan.offload_optimizer != plan::Offload::none) {
    arguments.require(share >= 0 && share <= 1, "--optimizer-offload-fraction", "0 to 1");
    plan.offload_optimizer = share > 0 ? plan::Offload::cpu : plan::Offload::none;
    arguments.note("--optimizer-offload-fraction", "a plan offloads all states or none: read as " +
                                                       std::string(share > 0 ? "all" : "none"));
  }
  arguments.flag("--use-torch-optimizer-for-cpu-offload");
  arguments.flag("--no-pin-cpu-grads");
  arguments.flag("--no-pin-cpu-params");
  constexpr std::string_view kLayers = "--cpu-offloading-num-layers";
  if (const std::int64_t layers = arguments.number(kLayers).value_or(0); layers > 0) {
    const std::int64_t all = arguments.number("--num-layers", 1).value_or(0);
    arguments.require(plan.pp == 1, kLayers, "no pipeline: Megatron-LM offloads without one only");
    arguments.require(layers <= all, kLayers, "at most --num-layers");
    plan.offload_activations =
        layers <= all ? static_cast<double>(layers) / static_cast<double>(all) : 0;
  }
}

/// The ZeRO stage of Megatron's FSDP, torch's FSDP2 or the distributed optimizer.
void read_sharding(Arguments& arguments, plan::Plan& plan) {
  constexpr std::string_view kStrategy = "--data-parallel-sharding-strategy";
  constexpr std::array<std::string_view, 4> kStages{"no_shard", "optim", "optim_grads",
                                                    "optim_grads_params"};
  const std::string strategy = arguments.word(kStrategy).value_or("no_shard");
  const auto* const stage = std::find(kStages.begin(), kStages.end(), strategy);
  arguments.require(stage != kStages.end(), kStrategy,
                    "no_shard, optim, optim_grads or optim_grads_params");
  const bool distributed = arguments.flag("--use-distributed-optimizer");
  const bool torch = arguments.flag("--use-torch-fsdp2");
  plan.reshard_after_forward = !arguments.flag("--torch-fsdp2-no-reshard-after-forward");
  // dist_muon spreads whole matrices over the ranks.
  const bool spread = arguments.word("--optimizer").value_or("").starts_with("dist_");
  plan.zero = distributed || spread ? 1 : 0;
  constexpr std::string_view kOuter = "--outer-dp-sharding-strategy";
  arguments.require(arguments.word(kOuter).value_or("no_shard") == "no_shard", kOuter,
                    "no_shard; --num-distributed-optimizer-instances says how many copies");
  if (arguments.flag("--use-megatron-fsdp")) {
    plan.zero = std::min<std::int64_t>(stage - kStages.begin(), 3);
  } else if (torch) {
    plan.zero = 3;
  }
}

/// Copies of the optimizer states: each is spread over dp x cp / copies ranks.
void read_shards(Arguments& arguments, plan::Plan& plan) {
  constexpr std::string_view kCopies = "--num-distributed-optimizer-instances";
  const std::int64_t copies = arguments.number_or(kCopies, 1);
  const bool full = arguments.flag("--enable-full-sharding-in-hsdp");
  const std::int64_t ranks = plan.dp * plan.cp;
  if (copies == 1) {
    return;
  }
  if (ranks % copies != 0) {
    arguments.reject(kCopies, "a divisor of dp x cp = " + std::to_string(ranks));
    return;
  }
  const std::int64_t shards = ranks / copies;
  plan.shard_params = plan.zero >= 3 ? shards : 0;
  plan.shard_grads = plan.zero >= 2 ? shards : 0;
  plan.shard_optimizer = plan.zero >= 1 && !full ? shards : 0;
}

/// Reads low-rank adapters of ms-swift, which are 8 wide unless the line says otherwise.
void read_adapters(Arguments& arguments, plan::Plan& plan) {
  const std::string kind = arguments.word("--train-type").value_or("full");
  const std::int64_t rank = arguments.number_or("--lora-rank", 8);
  const std::vector<std::string> targets = arguments.words("--target-modules");
  arguments.require(kind == "full" || kind == "lora", "--train-type", "full or lora");
  std::string known;
  const bool all_known = std::ranges::all_of(
      targets, [&](const std::string& module) { return add_adapter_target(module, known); });
  arguments.require(all_known, "--target-modules",
                    "all-linear or modules such as linear_qkv; of others --lora-targets of the "
                    "command");
  plan.lora_targets = kind == "lora" && !known.empty() ? known : plan.lora_targets;
  arguments.require(!arguments.flag("--freeze-llm"), "--freeze-llm",
                    "false: a plan trains all parameters of the language model, or adapters");
  plan.lora_rank = kind == "lora" ? rank : plan.lora_rank;
}

/// Gradients are in fp32 unless the parameters' type is asked for (bf16) or not avoided (fp16).
void read_types(Arguments& arguments, plan::Plan& plan) {
  const bool bf16 = arguments.flag("--bf16");
  const bool fp16 = arguments.flag("--fp16");
  arguments.require(!bf16 || !fp16, "--fp16", "not together with --bf16");
  plan.compute_type = bf16   ? graph::DataType::bf16
                      : fp16 ? graph::DataType::fp16
                             : graph::DataType::fp32;
  const bool in_fp32 = arguments.flag("--accumulate-allreduce-grads-in-fp32");
  const std::string main_grads = arguments.word("--main-grads-dtype").value_or("fp32");
  const bool in_bf16 = arguments.flag("--grad-reduce-in-bf16") || main_grads == "bf16";
  const bool narrow = (bf16 && in_bf16) || (fp16 && !in_fp32);
  plan.grad_type = plan.grad_reduce_type = narrow ? plan.compute_type : graph::DataType::fp32;
  const auto type = [&](std::string_view name) {
    const std::string text = arguments.word(name).value_or("fp32");
    const auto found = value_of<graph::DataType>(text);
    arguments.require(
        found && (*found == graph::DataType::fp32 || *found == graph::DataType::fp16 ||
                  *found == graph::DataType::bf16 || *found == graph::DataType::fp8),
        name, "fp32, fp16, bf16 or fp8");
    return found.value_or(graph::DataType::fp32);
  };
  plan.master_type = type("--main-params-dtype");
  plan.moment_type = type("--exp-avg-dtype");
  arguments.require(type("--exp-avg-sq-dtype") == plan.moment_type, "--exp-avg-sq-dtype",
                    "the same as --exp-avg-dtype");
}

void read_quantization(Arguments& arguments, plan::Plan& plan) {
  const auto fp8 = arguments.word("--fp8-format");
  const auto fp4 = arguments.word("--fp4-format");
  const std::string recipe = arguments.word("--fp8-recipe").value_or("delayed");
  const std::string small = arguments.word("--fp4-recipe").value_or("nvfp4");
  const bool gather8 = arguments.flag("--fp8-param-gather");
  const bool gather4 = arguments.flag("--fp4-param-gather");
  plan.quantization = plan::Quantization::none;
  if (fp4) {
    arguments.require(small == "nvfp4", "--fp4-recipe", "nvfp4");
    arguments.require(!fp8, "--fp8-format", "not together with --fp4-format");
    plan.quantization = plan::Quantization::nvfp4;
  } else if (fp8) {
    plan.quantization = recipe == "delayed"      ? plan::Quantization::fp8_delayed
                        : recipe == "tensorwise" ? plan::Quantization::fp8_current
                        : recipe == "blockwise"  ? plan::Quantization::fp8_block
                                                 : plan::Quantization::mxfp8;
    arguments.require(recipe == "mxfp8" || plan.quantization != plan::Quantization::mxfp8,
                      "--fp8-recipe", "delayed, tensorwise, blockwise or mxfp8");
  }
  plan.quantized_params = (fp8 && gather8) || (fp4 && gather4);
  const bool ends = arguments.flag("--first-last-layers-bf16");
  const std::int64_t start = arguments.number("--num-layers-at-start-in-bf16", 0).value_or(1);
  const std::int64_t end = arguments.number("--num-layers-at-end-in-bf16", 0).value_or(1);
  arguments.require(!ends || plan.quantization != plan::Quantization::none,
                    "--first-last-layers-bf16", "--fp8-format or --fp4-format beside it");
  plan.unquantized_start_layers = ends ? start : 0;
  plan.unquantized_end_layers = ends ? end : 0;
}

void read_buckets(Arguments& arguments, plan::Plan& plan) {
  plan.overlap_grad_reduce = arguments.flag("--overlap-grad-reduce");
  plan.overlap_param_gather = arguments.flag("--overlap-param-gather");
  if (arguments.has("--use-torch-fsdp2")) {
    plan.overlap_grad_reduce = plan.overlap_param_gather = true;  // FSDP2 always prefetches
  }
  arguments.require(!plan.overlap_param_gather || plan.zero >= 1, "--overlap-param-gather",
                    "--use-distributed-optimizer or --use-megatron-fsdp beside it");
  // Megatron core: parameters per bucket; without overlap there is one bucket.
  constexpr std::int64_t kLeast = 40'000'000;
  constexpr std::int64_t kPerRank = 1'000'000;
  const std::int64_t standard = std::max(kLeast, kPerRank * plan.dp * plan.cp);
  const std::int64_t size = arguments.number_or("--ddp-bucket-size", standard);
  const bool layers = plan.zero == 3;  // FSDP gathers and reduces layer by layer
  plan.bucket =
      plan.overlap_grad_reduce && !layers ? graph::bytes_of(plan.grad_type, size) : Bytes(0);
}

}  // namespace

void read_megatron_memory(Arguments& arguments, plan::Plan& plan) {
  const auto granularity = arguments.word("--recompute-granularity");
  const bool selective =
      arguments.flag("--recompute-activations") || arguments.has("--moe-layer-recompute");
  plan.recompute = plan::Recompute::none;
  if (granularity == "full" && !selective) {
    read_recompute(arguments, plan);
  } else if (granularity == "selective" || selective) {
    read_modules(arguments, plan);
  } else if (granularity) {
    arguments.reject("--recompute-granularity", "full or selective");
  }
  for (const std::string_view unused :
       {"--recompute-method", "--recompute-num-layers", "--recompute-modules"}) {
    arguments.has(unused);  // of another granularity
  }
  read_offload(arguments, plan);
}

void read_megatron_data_parallel(Arguments& arguments, plan::Plan& plan) {
  read_sharding(arguments, plan);
  read_shards(arguments, plan);
  read_types(arguments, plan);
  read_adapters(arguments, plan);
  read_quantization(arguments, plan);
  read_buckets(arguments, plan);
  const bool asked = arguments.flag("--gradient-accumulation-fusion");
  const bool apart = arguments.flag("--no-gradient-accumulation-fusion");
  arguments.require(!asked || !apart, "--no-gradient-accumulation-fusion",
                    "not together with --gradient-accumulation-fusion");
  plan.fused_grad_accumulation = !apart && !arguments.has("--use-torch-fsdp2");
}

}  // namespace orrery::interop
