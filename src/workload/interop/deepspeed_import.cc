// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <span>

#include "base/letters.h"
#include "base/reader.h"
#include "workload/interop/deepspeed_keys.h"
#include "workload/interop/interop.h"
#include "workload/interop/optimizer_name.h"
#include "workload/interop/text.h"

namespace orrery::interop {
namespace {

void ignore_all(Reader& read, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    read.ignore(name);
  }
}

/// Returns a whole number, also in the form 5e8 that DeepSpeed's examples use.
std::optional<std::int64_t> whole(Reader& read, std::string_view name, std::int64_t least) {
  constexpr double kMost = 1e12;
  const auto number = read.maybe<double>(name);
  if (!number) {
    return std::nullopt;
  }
  if (*number != std::floor(*number) || *number < static_cast<double>(least) || *number > kMost) {
    read.reject(name, "a whole number of at least " + std::to_string(least));
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

class DeepSpeedImport {
 public:
  DeepSpeedImport(const ConfigNode& node, const ImportOptions& options)
      : node_(without_automatic(node)), read_(node_), options_(options), plan_(options.rest) {}

  Result<Imported> run() {
    types();
    zero();
    tensor_parallel();
    activation_checkpointing();
    optimizer();
    switches();
    batch();
    ignore_all(read_, kDeepSpeedIgnored);
    leave_unknown();
    imported_.plan = plan_;
    return read_.finish(std::move(imported_));
  }

 private:
  ConfigNode without_automatic(ConfigNode node) {
    drop_automatic(node, imported_.remarks);
    return node;
  }

  /// `read_section` reads a nested map, whose unknown keys are mistakes too.
  template <class Section>
  void section(std::string_view name, Section read_section) {
    if (const ConfigNode* node = read_.child(name, false)) {
      Reader read(*node);
      read_section(read);
      read_.absorb(read.finish(0));
    }
  }

  /// Returns whether drop_automatic() took the field away.
  bool is_automatic(const Reader& read, std::string_view name) const {
    const std::string path = read.node().path + "." + std::string(name);
    return std::any_of(imported_.remarks.begin(), imported_.remarks.end(),
                       [&](const Remark& remark) { return remark.about == path; });
  }

  void types() {
    bool bf16 = false;
    bool fp16 = false;
    bool automatic = false;
    bool narrow_master = false;
    for (const std::string_view name : {"bf16", "bfloat16"}) {
      section(name, [&](Reader& read) {
        automatic = automatic || is_automatic(read, "enabled");
        bf16 = read.optional("enabled", false) || bf16;
        narrow_master = read.optional("bf16_master_weights_and_grads", false);
        narrow_moments_ = read.optional("bf16_optimizer_states", false);
        read.ignore("immediate_grad_update");
        for (const std::string_view other :
             {"check_grad_overflow", "auto_cast", "loss_scale", "initial_scale_power",
              "loss_scale_window", "hysteresis", "min_loss_scale"}) {
          read.ignore(other);
        }
      });
    }
    section("fp16", [&](Reader& read) {
      automatic = automatic || is_automatic(read, "enabled");
      fp16 = read.optional("enabled", false);
      narrow_master = read.optional("fp16_master_weights_and_grads", narrow_master);
      for (const std::string_view name :
           {"auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
            "consecutive_hysteresis", "min_loss_scale", "fused_mode"}) {
        read.ignore(name);
      }
    });
    section("torch_autocast", [&](Reader& read) {
      const std::string type = read.optional("dtype", std::string("bfloat16"));
      read.require(type.ends_with("16") || type.ends_with("half"), "dtype", "bfloat16 or float16");
      if (read.optional("enabled", false)) {
        (type.find("bf") == type.npos ? fp16 : bf16) = true;
        imported_.remarks.push_back(
            {"torch_autocast", "parameters are counted in its type, with fp32 masters"});
      }
      read.ignore("lower_precision_safe_modules");
    });
    if (bf16 && fp16) {
      read_.reject("fp16", "only one of bf16 and fp16 enabled");
    }
    if (bf16 || fp16 || !automatic) {
      plan_.compute_type = bf16   ? graph::DataType::bf16
                           : fp16 ? graph::DataType::fp16
                                  : graph::DataType::fp32;
    }
    plan_.master_type = narrow_master ? plan_.compute_type : graph::DataType::fp32;
    plan_.moment_type = narrow_moments_ ? plan_.compute_type : graph::DataType::fp32;
  }

  void zero() {
    const ConfigNode* whole_section = node_.find("zero_optimization");
    if (whole_section != nullptr && whole_section->kind == ConfigNode::Kind::scalar) {
      plan_.zero = read_.optional("zero_optimization", false) ? 1 : 0;  // of the first releases
      settle_reduction();
      return;
    }
    section("zero_optimization", [&](Reader& read) {
      plan_.zero = read.optional<std::int64_t>("stage", 0);
      read.require(plan_.zero >= 0 && plan_.zero <= 3, "stage", "0, 1, 2 or 3");
      elements_ = whole(read, "reduce_bucket_size", 1).value_or(elements_);
      overlap_ = read.optional("overlap_comm", plan_.zero == 3);
      offload(read);
      shards(read);
      quantized(read);
      ignore_all(read, kDeepSpeedZeroIgnored);
    });
    settle_reduction();
  }

  void settle_reduction() {
    gradient_types();
    plan_.bucket = graph::bytes_of(plan_.grad_reduce_type, elements_);
    plan_.overlap_grad_reduce = overlap_;
    plan_.overlap_param_gather = overlap_ && plan_.zero == 3;  // stages 1, 2 gather after the step
  }

  void offload(Reader& read) {
    if (read.optional("cpu_offload", false)) {
      plan_.offload_optimizer = plan::Offload::cpu;
    }
    if (read.optional("cpu_offload_param", false) || read.optional("cpu_offload_params", false)) {
      note_parameters("zero_optimization.cpu_offload_param");
    }
    if (const ConfigNode* node = read.child("offload_optimizer", false)) {
      Reader nested(*node);
      plan_.offload_optimizer = nested.optional("device", plan::Offload::none);
      nested.require(plan_.offload_optimizer != plan::Offload::remote, "device",
                     "none, cpu or nvme");
      nested.require(nested.optional("ratio", 1.0) == 1.0, "ratio",
                     "1: a plan offloads all states or none");
      for (const std::string_view name :
           {"nvme_path", "buffer_count", "pin_memory", "pipeline_read", "pipeline_write",
            "pipeline", "fast_init", "convert_grad_on_cpu", "cpuadam_cores_perc"}) {
        nested.ignore(name);
      }
      read.absorb(nested.finish(0));
    }
    if (const ConfigNode* node = read.child("offload_param", false)) {
      const ConfigNode* device = node->find("device");
      if (device != nullptr && device->text != "none") {
        note_parameters("zero_optimization.offload_param");
      }
    }
  }

  void note_parameters(const std::string& key) {
    imported_.remarks.push_back(
        {key,
         "parameters are counted on the devices, sharded by zero 3: a plan moves them to a "
         "machine's remote memory only; the host's link and the memory saved are left out"});
  }

  void shards(Reader& read) {
    const auto mics = read.optional<std::int64_t>("mics_shard_size", -1);
    const auto secondary = whole(read, "zero_hpz_partition_size", 0).value_or(1);
    plan_.quantized_gather = read.optional("zero_quantized_weights", false);
    plan_.quantized_reduce = read.optional("zero_quantized_gradients", false);
    read.ignore("mics_hierarchical_params_gather");
    if (mics > 0) {
      read.require(plan_.zero == 3, "mics_shard_size", "-1, or stage 3");
      plan_.shard_params = plan_.shard_grads = plan_.shard_optimizer = mics;
    } else if (secondary > 1) {
      read.require(plan_.zero == 3, "zero_hpz_partition_size", "1, or stage 3");
      plan_.secondary_shard = secondary;
    }
  }

  static void quantized(Reader& read) {
    constexpr std::string_view kFrozen = "zero_quantized_nontrainable_weights";
    read.require(!read.optional(kFrozen, false), kFrozen,
                 "false: frozen weights are stored in 8 or 4 bits only as frozen_type says");
    const ConfigNode* zenflow = read.child("zenflow", false);
    read.require(zenflow == nullptr, "zenflow", "no such section (not modelled)");
  }

  /// The type of the accumulation buffer and of the network: the parameters', but for bf16 without
  /// ZeRO (DeepSpeedEngine.get_data_types, communication_data_type).
  void gradient_types() {
    const bool keeps_fp32 = plan_.compute_type == graph::DataType::bf16 && plan_.zero == 0;
    plan_.grad_type = keeps_fp32 ? graph::DataType::fp32 : plan_.compute_type;
    section("data_types", [&](Reader& read) {
      plan_.grad_type = read.optional("grad_accum_dtype", plan_.grad_type);
    });
    plan_.grad_reduce_type = read_.optional("communication_data_type", plan_.compute_type);
    read_.ignore("seq_parallel_comm_data_type");
    read_.ignore("seq_parallel_communication_data_type");
  }

  void tensor_parallel() {
    if (const auto ulysses = whole(read_, "sequence_parallel_size", 1); ulysses && *ulysses > 1) {
      plan_.cp = std::min(*ulysses, kMostDegree);
      plan_.cp_exchange = plan::ContextExchange::a2a;
    }
    replicas_ = whole(read_, "data_parallel_size", 1);
    section("tensor_parallel", [&](Reader& read) {
      plan_.tp = whole(read, "autotp_size", 0).value_or(1);
      plan_.tp = std::max<std::int64_t>(plan_.tp, 1);
      read.require(plan_.tp <= kMostDegree, "autotp_size", "a number of devices");
      plan_.overlap_tp = read.optional("tp_overlap_comm", plan_.overlap_tp);
      for (const std::string_view name :
           {"tp", "partition_config", "injection_policy_tuple", "keep_module_on_host",
            "replace_with_kernel_inject", "preset_model"}) {
        read.ignore(name);
      }
    });
  }

  void activation_checkpointing() {
    section("activation_checkpointing", [&](Reader& read) {
      const bool partition = read.optional("partition_activations", false);
      if (partition && plan_.tp > 1) {
        imported_.remarks.push_back({"activation_checkpointing.partition_activations",
                                     "every tp rank keeps its inputs whole"});
      }
      if (read.optional("cpu_checkpointing", false)) {
        plan_.offload_activations = 1;
      }
      for (const std::string_view name : {"contiguous_memory_optimization", "number_checkpoints",
                                          "synchronize_checkpoint_boundary", "profile"}) {
        read.ignore(name);
      }
    });
    section("pipeline", [&](Reader& read) {
      const auto interval = whole(read, "activation_checkpoint_interval", 0).value_or(0);
      read.require(interval <= 1, "activation_checkpoint_interval", "0 or 1 (every layer)");
      plan_.recompute = interval == 1 ? plan::Recompute::full : plan_.recompute;
      plan_.pp = whole(read, "stages", 1).value_or(plan_.pp);
      for (const std::string_view name :
           {"partition", "seed_layers", "pipe_partitioned", "grad_partitioned", "use_reentrant"}) {
        read.ignore(name);
      }
    });
  }

  void optimizer() {
    section("optimizer", [&](Reader& read) {
      const std::string type = read.optional("type", std::string("AdamW"));
      const auto known = optimizer_named(lower_case(type));
      plan_.optimizer = known.value_or(plan::Optimizer::adam);
      if (!known) {
        imported_.remarks.push_back(
            {"optimizer.type", type + ": counted as Adam, with two moments per parameter"});
      }
      read.ignore("params");
      read.ignore("legacy_fusion");
    });
  }

  /// DeepSpeed looks up the keys that it knows: others at the top are the training script's, but
  /// for one that looks like DeepSpeed's.
  void leave_unknown() {
    for (const std::string& sentence : read_.pass_unknown(is_foreign)) {
      imported_.remarks.push_back({"DeepSpeed does not read", sentence});
    }
  }

  /// Whole features that a plan does not have.
  void switches() {
    for (const std::string_view name :
         {"amp", "sparse_attention", "progressive_layer_drop", "eigenvalue", "quantize_training",
          "compression_training", "hybrid_engine", "sparse_gradients"}) {
      const ConfigNode* node = read_.child(name, false);
      read_.require(node == nullptr || !is_on(*node), name, "not enabled (not modelled)");
    }
  }

  /// train_batch_size = micro-batch x accumulation steps x dp; one of them may be missing.
  void batch() {
    const std::int64_t replica = (Bytes(plan_.tp) * plan_.pp * plan_.cp).value();  // saturates
    const auto train = whole(read_, "train_batch_size", 1);
    auto micro = whole(read_, "train_micro_batch_size_per_gpu", 1);
    auto steps = whole(read_, "gradient_accumulation_steps", 1);
    read_.ignore("managed_gradient_accumulation");
    if (!find_ranks(train, micro, steps, replica)) {
      return;
    }
    if (!micro && train) {
      micro = *train / (plan_.dp * steps.value_or(1));
    }
    plan_.microbatch = micro.value_or(plan_.microbatch);
    if (train) {
      plan_.global_batch = *train;
    } else if (micro || steps) {
      plan_.global_batch = plan_.microbatch * steps.value_or(1) * plan_.dp;
    }
    const std::int64_t together = std::max<std::int64_t>(plan_.microbatch * plan_.dp, 1);
    const std::int64_t found = plan_.global_batch / together;
    read_.require(
        plan_.microbatch >= 1 && plan_.global_batch % together == 0 && (!steps || *steps == found),
        "train_batch_size",
        "train_micro_batch_size_per_gpu x gradient_accumulation_steps x dp; dp = " +
            std::to_string(plan_.dp) + (train ? "" : ". Give --microbatch and --global-batch"));
  }

  /// dp from the devices, else from a batch whose three numbers are stated, else as in `rest`.
  bool find_ranks(std::optional<std::int64_t> train, std::optional<std::int64_t> micro,
                  std::optional<std::int64_t> steps, std::int64_t replica) {
    // tp, pp and cp may come from `rest`, which nobody has checked.
    if (std::min({plan_.tp, plan_.pp, plan_.cp, plan_.dp}) < 1 || replica > kMostDegree) {
      read_.reject("tensor_parallel",
                   "degrees tp, pp, cp and dp of 1 or more, tp x pp x cp at most " +
                       std::to_string(kMostDegree) + " devices");
      return false;
    }
    if (options_.devices > 0) {
      read_.require(options_.devices % replica == 0, "tensor_parallel",
                    "tp x pp x cp = " + std::to_string(replica) + " that divides --devices " +
                        std::to_string(options_.devices));
      plan_.dp = std::max<std::int64_t>(options_.devices / replica, 1);
    } else if (train && micro && steps && *train % *micro == 0 && *train / *micro % *steps == 0) {
      plan_.dp = *train / *micro / *steps;
    } else if (replicas_) {
      plan_.dp = std::min(*replicas_, kMostDegree);
    }
    read_.require(!replicas_ || *replicas_ == plan_.dp, "data_parallel_size",
                  "the dp of the devices, " + std::to_string(plan_.dp));
    return plan_.dp <= kMostDegree && plan_.microbatch <= kMostDegree;
  }

  Imported imported_;
  ConfigNode node_;
  Reader read_;
  const ImportOptions& options_;
  plan::Plan plan_;
  std::int64_t elements_ = 500'000'000;  ///< of a bucket
  bool overlap_ = false;
  bool narrow_moments_ = false;
  std::optional<std::int64_t> replicas_;  ///< data_parallel_size
};

}  // namespace

Result<Imported> import_deepspeed(const ConfigNode& node, const ImportOptions& options) {
  return DeepSpeedImport(node, options).run();
}

}  // namespace orrery::interop
