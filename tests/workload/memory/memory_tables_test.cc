// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/memory_tables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "machine/machine.h"
#include "workload/memory/footprint.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/schedule.h"

namespace orrery::footprint {
namespace {

/// Random plans of one model over every field that memory depends on, and some others.
class Draws {
 public:
  Draws(const zoo::Model& model, std::uint64_t seed) : model_(model), random_(seed) {}

  /// One that check() accepts, every other time like the one before but for some fields; nothing:
  /// none of many is.
  std::optional<plan::Plan> next() {
    constexpr int kTries = 400;
    for (int i = 0; i < kTries; ++i) {
      const std::uint64_t changed = coin() ? random_() % 5 : 5;
      plan::Plan plan = changed < 5 ? last_ : plan::Plan{};
      const auto draw = [&](std::uint64_t number, void (Draws::*fields)(plan::Plan&)) {
        if (changed == number || changed == 5) {
          (this->*fields)(plan);
        }
      };
      draw(0, &Draws::degrees);
      draw(1, &Draws::pipeline);
      draw(2, &Draws::states);
      draw(3, &Draws::activations);
      draw(4, &Draws::kernels);
      if (plan::check(plan, model_)) {
        return last_ = plan;
      }
    }
    return std::nullopt;
  }

 private:
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  std::int64_t pick(std::initializer_list<std::int64_t> values) {
    return values.begin()[random_() % values.size()];
  }
  template <class Enum>
  Enum any() {
    return kNames<Enum>[random_() % kNames<Enum>.size()].value;
  }
  bool rarely(std::uint64_t often) { return random_() % often == 0; }
  bool coin() { return rarely(2); }

  void degrees(plan::Plan& plan) {
    plan.tp = pick({1, 1, 2, 4});
    plan.pp = pick({1, 2, 2, 4, 4, 8, 16});
    plan.dp = pick({1, 2, 4, 8});
    plan.cp = rarely(4) ? 2 : 1;
    plan.cp_exchange = any<plan::ContextExchange>();
    plan.cp_a2a = plan.cp > 1 && plan.cp_exchange == plan::ContextExchange::a2a_p2p ? 2 : 1;
    plan.sequence_parallel = plan.tp > 1 && (model_.experts > 0 || coin());
    plan.order = pick<const char*>({"tp-cp-dp-pp", "tp-cp-pp-dp"});
    if (model_.experts > 0) {
      plan.ep = pick({1, 2, 4});
      plan.etp = coin() ? 1 : 0;
      plan.moe_dispatch = any<plan::MoeDispatch>();
      plan.moe_capacity = rarely(4) ? 1.25 : 0;
      plan.moe_spread = plan.moe_capacity == 0 && rarely(4) ? 0.5 : 0;
      plan.expert_gemms = any<plan::ExpertGemms>();
    }
    plan.microbatch = pick({1, 1, 2, 3});
    plan.sequence = pick({512, 1024});
  }

  void pipeline(plan::Plan& plan) {
    plan.schedule = any<plan::Schedule>();
    plan.schedule = plan.pp == 1 && plan.schedule != plan::Schedule::gpipe
                        ? plan::Schedule::one_f_one_b
                        : plan.schedule;
    plan.chunks = plan.schedule == plan::Schedule::interleaved ? pick({2, 3, 4})
                  : plan.schedule == plan::Schedule::zb_v      ? 2
                                                               : 1;
    plan.stage_layers = coin() ? "auto" : "";
    plan.overlap_ep = any<plan::OverlapExperts>();
    const std::int64_t rounds = pick({1, 2, 3, 7, 8, 50});
    plan.global_batch = plan.dp * plan.microbatch * plan.pp * rounds;
    if (plan.schedule != plan::Schedule::interleaved && rarely(3)) {
      plan.global_batch = plan.dp * plan.microbatch * 2 * pick({1, 2, 3, 5, 11});
    }
    plan.pipeline_send = any<plan::PipelineSend>();
  }

  void states(plan::Plan& plan) {
    plan.zero = pick({0, 1, 2, 3, 3});
    plan.reshard_after_forward = plan.zero < 3 || coin();
    plan.overlap_param_gather = plan.zero >= 1 && coin();
    plan.overlap_grad_reduce = coin();
    plan.bucket = rarely(3) ? pick({1_MiB, 100_MiB, 10_GiB}) : 0_B;
    const std::int64_t all = plan.dp * plan.cp;
    if (plan.zero > 0 && all >= 4 && rarely(3)) {
      plan.shard_optimizer = all / 2;
      plan.shard_grads = plan.zero >= 2 ? pick({1, all / 2}) : 0;
      plan.shard_params = plan.zero >= 3 ? pick({1, all / 2}) : 0;
    }
    plan.offload_optimizer = rarely(3) ? any<plan::Offload>() : plan::Offload::none;
    if (plan.zero == 3 && rarely(3)) {
      plan.offload_params = plan.offload_optimizer = plan::Offload::remote;
      plan.reshard_after_forward = true;
      plan.shard_optimizer = plan.shard_grads = plan.shard_params = 0;
    }
    plan.grad_type = pick({graph::DataType::fp32, graph::DataType::bf16});
    plan.grad_reduce_type = pick({graph::DataType::fp32, graph::DataType::bf16});
    plan.moment_type = pick({graph::DataType::fp32, graph::DataType::bf16, graph::DataType::fp8});
    plan.master_type = rarely(4) ? plan.compute_type : graph::DataType::fp32;
  }

  void activations(plan::Plan& plan) {
    plan.recompute = any<plan::Recompute>();
    plan.recompute_modules =
        plan.recompute != plan::Recompute::full && coin()
            ? pick<const char*>({"layernorm", "moe_act", "mlp", "layernorm,moe_act", "core_attn"})
            : "";
    plan.recompute_layers = rarely(3) ? pick({1, 2, 5}) : 0;
    plan.offload_activations = rarely(3) ? pick({0.5, 1.0, 0.3}) : 0.0;
  }

  void kernels(plan::Plan& plan) {
    plan.attention =
        plan.cp > 1 || coin() ? zoo::AttentionKernel::flash : zoo::AttentionKernel::unfused;
    plan.compute_type = rarely(8) ? graph::DataType::fp32 : graph::DataType::bf16;
    plan.quantization = rarely(3) ? any<plan::Quantization>() : plan::Quantization::none;
    const bool quantizes = plan.quantization != plan::Quantization::none;
    plan.quantized_params = quantizes && plan.zero >= 1 && coin();
    if (quantizes && plan.quantization != plan::Quantization::fp8_delayed && coin()) {
      plan.unquantized_start_layers = pick({0, 1, 3});
      plan.unquantized_end_layers = pick({0, 1});
      plan.unquantized_modules = coin() ? "attention" : "";
    }
    plan.lora_rank = rarely(6) ? 8 : 0;
    plan.fused_grad_accumulation = coin();
    plan.fused_kernels = coin();
    plan.fused_cross_entropy = coin();
    plan.persistent_norm = coin();
    plan.vocab_multiple = pick({1, 128, 1000});
    plan.host_dispatch = pick({0_us, 5_us});
    plan.overlap_p2p = coin();
    if (plan.attention == zoo::AttentionKernel::flash && rarely(6)) {
      plan.documents = fmt::format("{0},{0}", plan.sequence / 2);
    }
  }

  const zoo::Model& model_;
  std::mt19937_64 random_;
  plan::Plan last_;
};

std::uint64_t seed() {
  const char* given = std::getenv("ORRERY_RANDOM_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261126;
}

/// Returns a machine with little memory of every sort, so that plans fail in each.
machine::Machine small_machine() {
  machine::Machine machine;
  machine.network.resize(1);
  machine.network.front().size = 8;
  machine.device.memory.resize(3);
  machine.device.memory[0].capacity = 24_GiB;
  machine.device.memory[1].capacity = 40_GiB;
  machine.device.memory[2].capacity = 80_GiB;
  machine.device.framework_memory = 1000_B;
  machine.device.communicator_memory = 10_B;
  machine.device.exchange_memory = 100_B;
  return machine;
}

/// Returns what memory_footprint() says of each stage and category.
Fullest by_footprint(const zoo::Model& model, const plan::Plan& plan,
                     const machine::Machine& machine) {
  const auto stages = memory_footprint(model, plan, &machine);
  Fullest fullest{.total = Bytes(0), .fits = check_fits(*stages, machine).has_value()};
  for (const StageMemory& stage : *stages) {
    fullest.total = std::max(fullest.total, stage.total());
  }
  return fullest;
}

/// Returns what of a plan has code of its own in tables.
std::vector<std::string> features(const zoo::Model& model, const plan::Plan& plan) {
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  std::vector<std::string> found{std::string(name_of(plan.schedule))};
  const auto add = [&](bool has, std::string name) {
    if (has) {
      found.push_back(std::move(name));
    }
  };
  const bool dualpipe = plan.schedule == plan::Schedule::dualpipe;
  add(shape.pairs, "pairs");
  add(dualpipe && plan.overlap_ep != plan::OverlapExperts::off, "both ways beside each other");
  add(shape.microbatches > 5 * plan.pp, "many microbatches");
  add(shape.microbatches < plan.pp, "few microbatches");
  add(!plan.reshard_after_forward, "resident parameters");
  add(!plan.reshard_after_forward && plan::splits_backward(plan.schedule), "resident and split");
  add(plan.zero >= 2 && plan.dp * plan.cp > 1, "unreduced gradients");
  add(plan.overlap_param_gather && plan.zero == 3, "gathers ahead");
  add(plan.offload_activations > 0, "activations on the host");
  add(plan.offload_activations > 0 && shape.chunks > 1, "those of chunks");
  add(plan.offload_params != plan::Offload::none, "remote parameters");
  add(plan.recompute_layers > 0, "some layers repeated");
  add(plan.unquantized_start_layers > 0, "unquantized layers");
  add(plan.pipeline_send == plan::PipelineSend::scatter_gather && plan.tp > 1, "scattered");
  add(plan.lora_rank > 0, "adapters");
  const auto parts = plan::split_model(model, plan);
  const auto is_empty = [](const plan::ModelPart& part) {
    return part.layers == 0 && !part.embedding && !part.head;
  };
  add(std::ranges::any_of(*parts,
                          [&](const auto& stage) { return std::ranges::any_of(stage, is_empty); }),
      "a chunk without blocks");
  return found;
}
constexpr std::size_t kFeatures = 6 + 16;

/// Random plans of model after model, and how many had what.
class Comparison {
 public:
  void compare(const zoo::Model& model, int plans) {
    MemoryTables tables(model);
    Draws draws(model, seed() + static_cast<std::uint64_t>(plans_));
    for (int i = 0; i < plans && !::testing::Test::HasFailure(); ++i) {
      if (const auto plan = draws.next()) {
        compare(model, *plan, tables);
      }
    }
  }

  void has_had_all() const {
    fmt::print("{} plans, of which {} fit\n", plans_, fitting_);
    EXPECT_GE(plans_, 1000);
    EXPECT_GE(fitting_, plans_ / 20);
    EXPECT_LE(fitting_, plans_ - plans_ / 20);
    EXPECT_EQ(drawn_.size(), kFeatures);
    for (const auto& [feature, count] : drawn_) {
      EXPECT_GE(count, 10) << feature;
    }
  }

 private:
  void compare(const zoo::Model& model, const plan::Plan& plan, MemoryTables& tables) {
    ++plans_;
    for (const std::string& feature : features(model, plan)) {
      ++drawn_[feature];
    }
    const Fullest expected = by_footprint(model, plan, machine_);
    const Fullest found = tables.fullest(plan, machine_);
    const Fullest walked = fullest(model, plan, machine_);
    const std::string told = model.name + "\n" + plan::to_yaml(plan);
    EXPECT_EQ(found.total, expected.total) << told;
    EXPECT_EQ(found.fits, expected.fits) << told;
    EXPECT_EQ(walked.total, expected.total) << told;
    EXPECT_EQ(walked.fits, expected.fits) << told;
    fitting_ += expected.fits ? 1 : 0;
  }

  machine::Machine machine_ = small_machine();
  int plans_ = 0;
  int fitting_ = 0;
  std::map<std::string, int> drawn_;
};

TEST(MemoryTables, SayWhatTheFootprintSaysWhateverWasAskedBefore) {
  Comparison comparison;
  for (const std::string& name : list_configs("models")) {
    if (const auto model = zoo::load_model(name)) {
      comparison.compare(*model, 20);
    }
  }
  // Predictions count as layers of the last part, so that parts before it may have none.
  zoo::Model predicts = zoo::gpt_model("predicts", 16, 1024, 16, 2048, 51200);
  predicts.mtp = 3;
  comparison.compare(predicts, 400);
  comparison.has_had_all();
}

TEST(MemoryTables, AsMuchAsCannotBeCountedIsAllTheSame) {
  // 65,536 layers of 2^31 tokens of 2^16 numbers: some 2^69 bytes, whose sums saturate.
  const zoo::Model model = zoo::gpt_model("huge", 65536, 65536, 64, std::int64_t{1} << 31, 51200);
  const plan::Plan plan{};
  ASSERT_TRUE(plan::check(plan, model));
  MemoryTables tables(model);
  const Fullest found = tables.fullest(plan, small_machine());
  EXPECT_EQ(found.total, Bytes::max());
  EXPECT_FALSE(found.fits);
}

}  // namespace
}  // namespace orrery::footprint
