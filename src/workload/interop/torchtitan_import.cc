// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>

#include "base/lists.h"
#include "base/reader.h"
#include "workload/interop/interop.h"
#include "workload/interop/text.h"
#include "workload/interop/toml.h"
#include "workload/interop/torchtitan_degrees.h"
#include "workload/plan/schedule_row.h"

namespace orrery::interop {
namespace {

/// Tables that change neither time nor memory of a step as it is modelled.
constexpr auto kIgnoredTables = std::to_array<std::string_view>(
    {"job", "profiling", "metrics", "lr_scheduler", "checkpoint", "comm", "memory_estimation",
     "experimental", "validation", "debug"});

using Names = std::initializer_list<std::string_view>;

class TorchtitanImport {
 public:
  TorchtitanImport(const ConfigNode& node, const ImportOptions& options)
      : read_(node), options_(options), plan_(options.rest) {
    empty_.kind = ConfigNode::Kind::map;
    empty_.source = node.source;
    empty_.line = node.line;
  }

  Result<Imported> run() {
    section("parallelism", [&](Reader& read) { parallelism(read); });
    section("training", [&](Reader& read) { training(read); });
    section("activation_checkpoint", [&](Reader& read) { recompute(read); });
    section("compile", [&](Reader& read) { compile(read); });
    section("model", [&](Reader& read) { converters(read); });
    quantization();
    section("optimizer", [&](Reader& read) { optimizer(read); });
    section("fault_tolerance", [&](Reader& read) { fault_tolerance(read); });
    for (const std::string_view table : kIgnoredTables) {
      read_.ignore(table);
    }
    settle();
    imported_.plan = plan_;
    return read_.finish(std::move(imported_));
  }

 private:
  /// Every table may be missing: then its defaults hold.
  template <class Section>
  void section(std::string_view name, Section read_section) {
    const ConfigNode* node = read_.child(name, false);
    Reader read(node == nullptr ? empty_ : *node);
    read_section(read);
    read_.absorb(read.finish(0));
  }

  static void ignore_all(Reader& read, Names names) {
    for (const std::string_view name : names) {
      read.ignore(name);
    }
  }

  static std::int64_t degree(Reader& read, std::string_view name, std::int64_t fallback = 1) {
    const auto value = read.optional<std::int64_t>(name, fallback);
    const bool fits = value == fallback || (value >= 1 && value <= kMostDegree);
    read.require(fits, name, "a number of at least 1");
    return fits ? value : 1;
  }

  void parallelism(Reader& read) {
    plan_.tp = degree(read, "tensor_parallel_degree");
    plan_.pp = degree(read, "pipeline_parallel_degree");
    plan_.cp = degree(read, "context_parallel_degree");
    plan_.ep = degree(read, "expert_parallel_degree");
    const std::int64_t inner = degree(read, "expert_tensor_parallel_degree");
    plan_.etp = plan_.ep > 1 && inner != plan_.tp ? inner : 0;  // no effect without ep
    plan_.sequence_parallel = plan_.tp > 1;                     // torchtitan's tp always is
    plan_.tp_chunks = read.optional("enable_async_tensor_parallel", false) ? plan_.tp : 1;
    data_parallel(read);
    pipeline(read);
    const std::string rotate =
        read.optional("context_parallel_rotate_method", std::string("allgather"));
    read.require(rotate == "allgather" || rotate == "alltoall", "context_parallel_rotate_method",
                 "allgather or alltoall");
    plan_.cp_exchange =
        rotate == "alltoall" ? plan::ContextExchange::p2p : plan::ContextExchange::all_gather;
    const std::string backend =
        read.optional("expert_parallel_comm_backend", std::string("standard"));
    read.require(backend == "standard" || backend == "deepep", "expert_parallel_comm_backend",
                 "standard or deepep");
    plan_.moe_dispatch =
        backend == "deepep" ? plan::MoeDispatch::hierarchical : plan::MoeDispatch::all_to_all;
    ignore_all(read,
               {"disable_loss_parallel", "enable_loss_parallel", "context_parallel_load_balancer",
                "pipeline_parallel_expert_parallel_overlap", "enable_compiled_autograd"});
  }

  /// FSDP shards over data_parallel_shard x cp ranks, DDP replicates.
  void data_parallel(Reader& read) {
    const std::int64_t replicas = degree(read, "data_parallel_replicate_degree");
    std::int64_t shards =
        degree(read, "data_parallel_shard_degree", degree(read, "data_parallel_degree", -1));
    const std::int64_t others = replicas * plan_.tp * std::min(plan_.pp * plan_.cp, kMostDegree);
    if (shards == -1) {
      read.require(options_.devices > 0 && options_.devices % others == 0,
                   "data_parallel_shard_degree",
                   "a degree, or --devices in a multiple of the other degrees");
      shards = std::max<std::int64_t>(options_.devices / others, 1);
    } else {
      read.require(options_.devices == 0 || options_.devices == shards * others,
                   "data_parallel_shard_degree",
                   "degrees whose product is --devices " + std::to_string(options_.devices));
    }
    plan_.dp = std::min(replicas * shards, kMostDegree);
    const std::int64_t group = shards * plan_.cp;
    plan_.zero = group > 1 ? 3 : 0;
    const std::int64_t share = group > 1 && replicas > 1 ? group : 0;
    plan_.shard_params = plan_.shard_grads = plan_.shard_optimizer = share;
    plan_.overlap_grad_reduce = true;
    plan_.overlap_param_gather = plan_.zero == 3;
    constexpr std::int64_t kBucket = 100;  // MiB, of DDP; FSDP reduces layer by layer
    plan_.bucket = plan_.zero == 3 ? Bytes(0) : 1_MiB * kBucket;
    const std::string reshard = read.optional("fsdp_reshard_after_forward", std::string("default"));
    read.require(reshard == "default" || reshard == "always" || reshard == "never",
                 "fsdp_reshard_after_forward", "default, always or never");
    plan_.reshard_after_forward = reshard == "default" ? plan_.pp == 1 : reshard == "always";
  }

  void pipeline(Reader& read) {
    const std::string name = read.optional("pipeline_parallel_schedule", std::string("1F1B"));
    const auto& rows = plan::schedules();
    const auto known = std::ranges::find_if(
        rows, [&](const auto& row) { return !name.empty() && row.torchtitan == name; });
    read.require(known != rows.end(), "pipeline_parallel_schedule",
                 "1F1B, GPipe, Interleaved1F1B or ZBVZeroBubble");
    const bool loops = known != rows.end() && known->most_chunks > 1;
    plan_.schedule =
        plan_.pp > 1 && known != rows.end() ? known->value : plan::Schedule::one_f_one_b;
    plan_.chunks = plan_.pp > 1 && loops ? 2 : 1;  // torchtitan's default
    plan_.microbatch = degree(read, "pipeline_parallel_microbatch_size");
    pieces_ = degree(read, "pipeline_parallel_microbatches", 0);
    const std::string csv = read.optional("pipeline_parallel_schedule_csv", std::string());
    read.require(csv.empty(), "pipeline_parallel_schedule_csv", "no schedule of your own");
    const bool split = read.child("pipeline_parallel_split_points", false) != nullptr;
    read.require(!split, "pipeline_parallel_split_points", "module_fqns_per_model_part instead");
    std::vector<const ConfigNode*> parts = read.take_items("module_fqns_per_model_part", false);
    const auto first = read.optional<std::int64_t>("pipeline_parallel_first_stage_less_layers", 1);
    const auto last = read.optional<std::int64_t>("pipeline_parallel_last_stage_less_layers", 1);
    const auto layers = degree(read, "pipeline_parallel_layers_per_stage", 0);
    if (plan_.pp == 1) {
      return;
    }
    if (!parts.empty()) {
      listed_parts(read, parts);
    } else {
      default_parts(read, first, last, layers);
    }
  }

  /// Counts the "layers.N" of every part.
  void listed_parts(Reader& read, const std::vector<const ConfigNode*>& parts) {
    std::vector<std::int64_t> counts;
    counts.reserve(parts.size());
    for (const ConfigNode* part : parts) {
      counts.push_back(std::count_if(
          part->items.begin(), part->items.end(),
          [](const ConfigNode& module) { return module.text.starts_with("layers."); }));
    }
    read.require(std::ssize(parts) % plan_.pp == 0, "module_fqns_per_model_part",
                 "a multiple of pipeline_parallel_degree parts");
    plan_.chunks = std::max<std::int64_t>(1, std::ssize(parts) / plan_.pp);
    plan_.stage_layers = joined(counts, ",");
  }

  /// Embedding and head count as `first` and `last` layers; the first parts take what is over.
  void default_parts(Reader& read, std::int64_t first, std::int64_t last, std::int64_t layers) {
    constexpr std::int64_t kMostParts = 4096;
    if (options_.model == nullptr || first < 0 || last < 0 || plan_.pp > kMostParts ||
        first + last > kMostParts) {
      read.reject("pipeline_parallel_degree",
                  "1, or --model: how torchtitan splits depends on its layers");
      return;
    }
    const std::int64_t all = options_.model->layers + first + last;
    if (layers > 0) {
      const std::int64_t parts = (all + layers - 1) / layers;
      read.require(parts % plan_.pp == 0, "pipeline_parallel_layers_per_stage",
                   "a multiple of pp parts; this makes " + std::to_string(parts));
      plan_.chunks = std::max<std::int64_t>(1, parts / plan_.pp);
    }
    const std::int64_t parts = plan_.pp * plan_.chunks;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), all / parts);
    for (std::int64_t i = 0; i < all % parts; ++i) {
      ++counts[static_cast<std::size_t>(i)];
    }
    counts.front() -= first;
    counts.back() -= last;
    read.require(counts.front() >= 0 && counts.back() >= 0, "pipeline_parallel_degree",
                 "fewer parts than layers");
    const bool even = std::count(counts.begin(), counts.end(), counts.front()) == parts;
    plan_.stage_layers = even ? "" : joined(counts, ",");
  }

  void training(Reader& read) {
    local_ = read.optional<std::int64_t>("local_batch_size",
                                         read.optional<std::int64_t>("batch_size", 8));
    global_ = read.optional<std::int64_t>("global_batch_size", -1);
    plan_.sequence = degree(read, "seq_len", 2048);
    const auto type = [&](std::string_view name, graph::DataType fallback) {
      const std::string text = read.optional(name, std::string());
      read.require(text.empty() || text == "bfloat16" || text == "float32", name,
                   "bfloat16 or float32");
      return text.empty()         ? fallback
             : text == "bfloat16" ? graph::DataType::bf16
                                  : graph::DataType::fp32;
    };
    plan_.compute_type = type("mixed_precision_param", graph::DataType::bf16);
    plan_.grad_reduce_type = type("mixed_precision_reduce", graph::DataType::fp32);
    const graph::DataType held =
        type("dtype", graph::DataType::fp32);  // parameters, gradients and states
    plan_.grad_type = plan_.master_type = plan_.moment_type = held;
    read.require(!read.optional("enable_cpu_offload", false), "enable_cpu_offload",
                 "false: it offloads parameters too, which a plan keeps on the devices");
    eager_ = !read.optional("compile", false);
    read.require(local_ >= 1 && local_ <= kMostDegree, "local_batch_size", "at least 1");
    ignore_all(read, {"dataset", "dataset_path", "max_norm", "steps", "gc_freq", "gc_debug", "seed",
                      "deterministic", "dataloader", "warmup_steps", "debug_moe_force_load_balance",
                      "mock_data"});
  }

  void recompute(Reader& read) {
    const std::string mode = read.optional("mode", std::string("selective"));
    const std::string option = read.optional("selective_ac_option", std::string("2"));
    plan_.recompute = mode == "full" ? plan::Recompute::full : plan::Recompute::none;
    read.require(mode == "full" || mode == "none" || mode == "selective", "mode",
                 "none, selective or full");
    if (mode == "selective" && option == "op") {
      plan_.recompute_modules = kSelectiveOp;  // attention and every second GEMM are kept
    } else if (mode == "selective") {
      every_nth(read, option);
    }
    ignore_all(read, {"per_op_sac_force_recompute_mm_shapes_by_fqns", "early_stop", "memory_budget",
                      "visualize_memory_budget_pareto", "preserve_rng_state", "determinism_check",
                      "debug"});
  }

  /// Every n-th layer is recomputed: of a chunk as many of its first ones.
  void every_nth(Reader& read, const std::string& option) {
    const auto step = parse_integer(option);
    if (!step || *step < 1) {
      read.reject("selective_ac_option", "op or a number of layers");
      return;
    }
    read.require(*step == 1 || options_.model != nullptr, "selective_ac_option",
                 "1 or op, or --model: how many layers are recomputed depends on it");
    plan_.recompute = plan::Recompute::full;
    if (*step > 1 && options_.model != nullptr) {
      const std::int64_t parts = plan_.pp * plan_.chunks;
      plan_.recompute_layers = options_.model->layers / parts / *step;
      plan_.recompute = plan_.recompute_layers > 0 ? plan::Recompute::full : plan::Recompute::none;
    }
  }

  void compile(Reader& read) {
    eager_ = !read.optional("enable", !eager_);
    ignore_all(read, {"components", "backend"});
  }

  void converters(Reader& read) {
    const ConfigNode* node = read.child("converters", false);
    if (node != nullptr) {
      const std::vector<ConfigNode> one{*node};
      for (const ConfigNode& item : node->kind == ConfigNode::Kind::sequence ? node->items : one) {
        float8_ = float8_ || item.text.ends_with("float8");
        mx_ = mx_ || item.text.ends_with("mx");
      }
    }
    ignore_all(read, {"name", "flavor", "tokenizer_path", "hf_assets_path", "tokenizer_name",
                      "print_after_conversion", "norm_type", "tokenizer_type", "use_flex_attn",
                      "attn_mask_type"});
  }

  /// [quantize.linear.float8], in earlier releases [float8]; in force when [model] converts to it.
  void quantization() {
    const ConfigNode* linear = read_.child("quantize", false);
    linear = linear == nullptr ? nullptr : linear->find("linear");
    const ConfigNode* early = read_.child("float8", false);
    read_.ignore("mx");
    const ConfigNode* table = linear != nullptr ? linear->find("float8") : early;
    const auto text = [&](std::string_view name) {
      const ConfigNode* field = table == nullptr ? nullptr : table->find(name);
      return field == nullptr ? std::string() : field->text;
    };
    plan_.quantization = mx_       ? plan::Quantization::mxfp8
                         : float8_ ? plan::Quantization::fp8_current
                                   : plan::Quantization::none;
    plan_.quantized_params = float8_ && text("enable_fsdp_float8_all_gather") == "true";
    const std::string recipe = text("recipe_name");
    if (float8_ && !recipe.empty() && recipe != "tensorwise") {
      imported_.remarks.push_back({"quantize.linear.float8.recipe_name",
                                   recipe + ": read as fp8 with one scale per tensor"});
    }
  }

  void optimizer(Reader& read) {
    const std::string name = read.optional("name", std::string("AdamW"));
    read.require(name == "Adam" || name == "AdamW", "name",
                 "Adam or AdamW (two moments per parameter)");
    if (read.optional("early_step_in_backward", false)) {
      imported_.remarks.push_back({"optimizer.early_step_in_backward",
                                   "the optimizer runs after the last backward pass here"});
    }
    const std::string kernels = read.optional("implementation", std::string());
    const bool fused = read.optional("fused", kernels.empty() || kernels == "fused");
    if (!kernels.empty() || read.node().find("fused") != nullptr) {
      plan_.optimizer = fused ? plan::Optimizer::adam : plan::Optimizer::adam_foreach;
    }
    ignore_all(read, {"lr", "beta1", "beta2", "eps", "weight_decay"});
  }

  static void fault_tolerance(Reader& read) {
    read.require(!read.optional("enable", false), "enable", "false (not modelled)");
    for (const ConfigField& field : read.node().fields) {
      read.ignore(field.name);
    }
  }

  /// Settles the fields that follow from several tables.
  void settle() {
    if (plan_.attention == zoo::AttentionKernel::unfused) {  // else its framework says which
      plan_.attention = zoo::AttentionKernel::flash;
    }
    plan_.fused_kernels = !eager_;
    plan_.fused_grad_accumulation = false;
    plan_.global_batch = global_ > 0 ? global_ : local_ * plan_.dp;
    const bool pipelined = plan_.pp > 1;
    if (pipelined && pieces_ > 0) {
      read_.require(local_ % pieces_ == 0, "training",
                    "local_batch_size in a multiple of pipeline_parallel_microbatches");
      plan_.microbatch = std::max<std::int64_t>(local_ / pieces_, 1);
    }
    plan_.microbatch =
        pipelined ? plan_.microbatch : std::clamp<std::int64_t>(local_, 1, kMostDegree);
    const std::int64_t together = plan_.dp * plan_.microbatch;
    if (plan_.global_batch % together != 0 ||
        (pipelined && plan_.global_batch != local_ * plan_.dp)) {
      read_.reject("training",
                   pipelined ? "global_batch_size = local_batch_size x dp: the pipeline drains "
                               "after every local batch"
                             : "global_batch_size in a multiple of local_batch_size x dp = " +
                                   std::to_string(together));
    }
  }

  Reader read_;
  ConfigNode empty_;  ///< of a table that is missing
  const ImportOptions& options_;
  plan::Plan plan_;
  Imported imported_;
  std::int64_t local_ = 8;
  std::int64_t global_ = -1;
  std::int64_t pieces_ = 0;  ///< microbatches of a local batch; 0 = by their size
  bool eager_ = true;
  bool float8_ = false;
  bool mx_ = false;
};

}  // namespace

Result<Imported> import_torchtitan(std::string_view text, const std::string& file,
                                   const ImportOptions& options) {
  return parse_toml(text, file).and_then([&](ConfigNode node) {
    return import_torchtitan(std::move(node), options);
  });
}

Result<Imported> import_torchtitan(ConfigNode node, const ImportOptions& options) {
  move_degrees(node);
  return TorchtitanImport(node, options).run();
}

}  // namespace orrery::interop
