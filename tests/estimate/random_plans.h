// SPDX-License-Identifier: Apache-2.0
/// Random plans over every field, for several models and machines, always the same for one seed.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "cases.h"
#include "machine/machine.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::testing {

inline const std::vector<std::string> kSwitchedMachines{
    "dgx-a100-80g", "selene", "dgx-h100",        "dgx-b200",   "gb200-nvl72",
    "mi300x",       "l40s",   "rtx4080-pcie4-8", "dgx-1-v100", "frontier"};
inline const std::vector<std::string> kTorusMachines{"tpu-v3", "tpu-v4"};

/// Draws models, machines and plans that check() and check_machine() accept and that fill the
/// machine's dimensions. At most `devices` devices: a run that does not fold simulates all of them.
class RandomPlans {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::vector<std::string> machines;
    std::int64_t devices = 64;
    std::vector<std::string> models{
        "gpt2-medium",  "gpt-7.5b",         "llama-3-8b",    "gpt-22b",    "llama-2-13b",
        "mixtral-8x7b", "deepseek-v2-lite", "nemotron-h-8b", "gemma-2-9b", "qwen3-30b-a3b"};
    bool in_pairs = false;  ///< exchanges of tokens run beside another microbatch
  };
  explicit RandomPlans(Options options)
      : options_(std::move(options)), random_(options_.seed), overlaps_(options_.seed) {}

  struct Drawn {
    Case plan;
    machine::Machine machine;  ///< of the plan's devices
  };

  Drawn next() {
    for (;;) {
      Case c;
      c.model = model(pick(options_.models));
      c.machine = pick(options_.machines);
      draw(c);
      c.plan.overlap_ep = options_.in_pairs ? plan::OverlapExperts::microbatch : c.plan.overlap_ep;
      if (c.plan.devices() > options_.devices || !plan::check(c.plan, c.model)) {
        continue;
      }
      auto fitted = machine::with_devices(machine(c.machine), c.plan.devices());
      if (!fitted || !plan::check_machine(c.plan, *fitted)) {
        continue;
      }
      c.name = c.model.name + " on " + c.machine;
      return {std::move(c), std::move(*fitted)};
    }
  }

 private:
  std::string pick(const std::vector<std::string>& values) {
    return values[random_() % values.size()];
  }
  std::int64_t pick(const std::vector<std::int64_t>& values) {
    return values[random_() % values.size()];
  }
  /// True once in `often`.
  bool rarely(std::uint64_t often) { return random_() % often == 0; }

  const zoo::Model& model(const std::string& name) {
    auto found = models_.find(name);
    if (found == models_.end()) {
      found = models_.emplace(name, *zoo::load_model(name)).first;
    }
    return found->second;
  }
  const machine::Machine& machine(const std::string& name) {
    auto found = machines_.find(name);
    if (found == machines_.end()) {
      found = machines_.emplace(name, *machine::load_machine(name)).first;
    }
    return found->second;
  }

  void draw(Case& c) {
    degrees(c);
    pipeline(c);
    memory(c);
    kernels(c);
  }

  void degrees(Case& c) {
    plan::Plan& plan = c.plan;
    plan.tp = pick({1, 1, 2, 4, 8});
    plan.pp = pick({1, 2, 2, 4, 4, 8});
    plan.dp = pick({1, 2, 2, 4, 8});
    plan.cp = rarely(4) ? pick({2, 4}) : 1;
    plan.sequence_parallel = plan.tp > 1 && (c.model.experts > 0 || rarely(2));
    plan.microbatch = pick({1, 1, 2, 4});
    plan.sequence = pick({1024, 2048});
    plan.order = pick({"tp-cp-dp-pp", "tp-cp-dp-pp", "tp-cp-pp-dp", "dp-tp-cp-pp", "pp-tp-cp-dp"});
    if (c.model.experts > 0) {
      plan.ep = pick({1, 2, 4, 8});
      plan.etp = rarely(2) ? 1 : 0;
      plan.moe_dispatch = static_cast<plan::MoeDispatch>(pick({0, 0, 1, 2}));
      plan.moe_capacity = rarely(4) ? 1.25 : 0;
      plan.moe_imbalance = plan.moe_capacity == 0 && rarely(4) ? 1.5 : 1;
      plan.overlap_ep = rarely(2) ? plan::OverlapExperts::shared : plan::OverlapExperts::off;
    }
    if (plan.cp > 1) {
      plan.cp_exchange = static_cast<plan::ContextExchange>(pick({0, 0, 1, 2, 3}));
      plan.cp_a2a = plan.cp_exchange == plan::ContextExchange::a2a_p2p ? 2 : 1;
    }
  }

  void pipeline(Case& c) {
    plan::Plan& plan = c.plan;
    plan.schedule = static_cast<plan::Schedule>(pick({0, 1, 1, 2, 2, 3, 4, 5}));
    plan.schedule = plan.pp == 1 ? plan::Schedule::one_f_one_b : plan.schedule;
    plan.chunks = plan.schedule == plan::Schedule::interleaved ? pick({2, 3, 4, 8})
                  : plan.schedule == plan::Schedule::zb_v      ? 2
                                                               : 1;
    plan.global_batch = plan.dp * plan.microbatch * plan.pp * pick({1, 2, 3, 4, 8});
    plan.pipeline_send = static_cast<plan::PipelineSend>(pick({0, 0, 1}));
    plan.overlap_p2p = rarely(2);
    plan.overlap_tp = !rarely(3);
    plan.tp_chunks = plan.tp > 1 && rarely(4) ? pick({2, 4}) : 1;
    const auto overlap = overlaps_() % 6;  // of its own, so that other draws stay
    if (plan.tp > 1 && plan.tp_chunks == 1 && overlap < 3) {
      plan.overlap_tensor = static_cast<plan::TensorOverlap>(1 + overlap);
    }
    if (rarely(6) && plan.chunks == 1 && plan.schedule < plan::Schedule::zb_v && plan.pp > 1 &&
        c.model.layers > 2 * plan.pp) {
      uneven(c);
    }
  }

  /// One layer from the last stage to the first.
  static void uneven(Case& c) {
    plan::Plan& plan = c.plan;
    const std::int64_t each = c.model.layers / plan.pp;
    for (std::int64_t s = 0; s < plan.pp; ++s) {
      const std::int64_t more = s < c.model.layers % plan.pp ? 1 : 0;
      const std::int64_t moved = s == 0 ? 1 : s + 1 == plan.pp ? -1 : 0;
      plan.stage_layers += (s > 0 ? "," : "") + std::to_string(each + more + moved);
    }
  }

  void memory(Case& c) {
    plan::Plan& plan = c.plan;
    plan.zero = pick({0, 0, 1, 1, 2, 3});
    plan.recompute = static_cast<plan::Recompute>(pick({0, 1, 2}));
    plan.recompute_layers = plan.recompute == plan::Recompute::full && rarely(4) ? 1 : 0;
    plan.recompute_modules = plan.recompute == plan::Recompute::none && rarely(4) ? "norm,mlp" : "";
    plan.reshard_after_forward = plan.zero < 3 || rarely(2);
    plan.offload_optimizer = static_cast<plan::Offload>(rarely(8) ? 1 : 0);
    plan.offload_activations = rarely(8) ? 0.5 : 0;
    plan.overlap_grad_reduce = rarely(2);
    plan.overlap_param_gather = plan.zero >= 1 && rarely(2);
    plan.bucket = rarely(3) ? 100_MiB : 0_B;
    const std::int64_t all = plan.dp * plan.cp;
    if (plan.zero > 0 && all >= 4 && rarely(3)) {
      plan.shard_optimizer = all / 2;
      plan.shard_grads = plan.zero >= 2 ? all / 2 : 0;
      plan.shard_params = plan.zero >= 3 ? all / 2 : 0;
    }
    plan.lora_rank = rarely(16) ? 16 : 0;
  }

  void kernels(Case& c) {
    plan::Plan& plan = c.plan;
    plan.attention =
        plan.cp > 1 || rarely(2) ? zoo::AttentionKernel::flash : zoo::AttentionKernel::unfused;
    plan.compute_type = rarely(3) ? graph::DataType::fp16 : graph::DataType::bf16;
    plan.quantization = rarely(8) ? plan::Quantization::fp8_delayed : plan::Quantization::none;
    if (plan.quantization != plan::Quantization::none && rarely(2)) {
      plan.quantization = plan::Quantization::fp8_block;
      plan.unquantized_start_layers = pick({0, 1});
      plan.unquantized_end_layers = pick({0, 1, 2});
      plan.unquantized_modules = rarely(2) ? "attention" : "";
    }
    plan.quantized_params =
        plan.quantization != plan::Quantization::none && plan.zero >= 1 && rarely(2);
    plan.grad_reduce_type = rarely(3) ? plan.compute_type : graph::DataType::fp32;
    plan.fused_grad_accumulation = rarely(2);
    plan.fused_kernels = !rarely(3);
    plan.persistent_norm = !rarely(4);
    plan.fused_cross_entropy = rarely(4);
    plan.host_dispatch = 5_us * pick({0, 0, 1, 2, 8});
    plan.batch_kernels = rarely(4) ? 14 : 0;
    plan.host_sync = rarely(4);
    plan.p2p_host_sync = rarely(4);
    plan.tp_algorithm = static_cast<collective::CollectiveAlgorithm>(pick({0, 0, 0, 1, 2}));
    plan.dp_algorithm = static_cast<collective::CollectiveAlgorithm>(pick({0, 0, 0, 1, 8}));
    plan.cuda_graphs = static_cast<plan::CudaGraphs>(pick({0, 0, 1, 2}));
    plan.expert_gemms = static_cast<plan::ExpertGemms>(pick({0, 1, 2}));
    if (plan.attention == zoo::AttentionKernel::flash && rarely(6)) {
      plan.documents = std::to_string(plan.sequence / 2) + "," + std::to_string(plan.sequence / 2);
    }
  }

  Options options_;
  std::mt19937_64 random_;
  std::mt19937_64 overlaps_;
  std::map<std::string, zoo::Model> models_;
  std::map<std::string, machine::Machine> machines_;
};

}  // namespace orrery::testing
