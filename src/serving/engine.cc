// SPDX-License-Identifier: Apache-2.0
#include "serving/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/collect.h"
#include "base/file.h"
#include "base/format.h"
#include "base/lists.h"
#include "base/misread.h"
#include "base/one_of.h"
#include "base/reader.h"
#include "serving/kv_tiers.h"
#include "serving/step/quantization.h"
#include "workload/plan/routing.h"

namespace orrery::serving {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;
constexpr double kMostImbalance = 1e3;
constexpr std::int64_t kMostRedundant = 1024;

/// Collects what is wrong with the values of fields, each with its path and value.
class Ranges {
 public:
  explicit Ranges(const Engine& engine) : engine_(engine) {}

  void require(bool good, std::string_view path, std::string_view expected) {
    if (!good) {
      error_.add(misread("", std::string(path), field_text(engine_, path), std::string(expected)));
    }
  }
  void from(std::string_view path, std::int64_t value, std::int64_t least,
            std::int64_t most = kMostTokens) {
    require(value >= least && value <= most, path,
            fmt::format("a whole number from {} to {}", least, most));
  }
  void from(std::string_view path, double value, double least, double most) {
    require(value >= least && value <= most, path, fmt::format("{} to {}", least, most));
  }
  void from(std::string_view path, Time value, Time most) {
    require(value >= Time(0) && value < most, path,
            fmt::format("a time from 0 to {} s", to_seconds(most)));
  }
  Error take() { return std::move(error_); }

 private:
  const Engine& engine_;
  Error error_;
};

void check_fleet_fields(Ranges& ranges, const Engine& engine) {
  constexpr std::int64_t kMostEngines = 4096;
  constexpr double kMostRate = 1e9;
  constexpr Time kLongest = from_seconds(1e5);
  ranges.from("fleet.most_requests", engine.most_requests, 0);
  ranges.from("fleet.replicas", engine.replicas, 1, kMostEngines);
  ranges.from("fleet.prefill", engine.prefill, 0, kMostEngines);
  ranges.from("fleet.prefill_tp", engine.prefill_tp, 0);
  ranges.from("fleet.prefill_pp", engine.prefill_pp, 0);
  ranges.from("fleet.prefill_dp", engine.prefill_dp, 0);
  ranges.from("fleet.prefill_ep", engine.prefill_ep, 0);
  ranges.from("fleet.prefill_cp", engine.prefill_cp, 0);
  ranges.from("fleet.admit_rate", engine.admit_rate, 0, kMostRate);
  ranges.from("fleet.admit_burst", engine.admit_burst, 1);
  ranges.require(!engine.scales() || (engine.most_replicas >= engine.replicas &&
                                      engine.most_replicas <= kMostEngines),
                 "fleet.most_replicas", fmt::format("replicas to {}", kMostEngines));
  ranges.require(engine.scales() == (engine.target_requests != 0), "fleet.target_requests",
                 "a number from 1 on with most_replicas, and only there");
  ranges.from("fleet.target_requests", engine.target_requests, 0);
  ranges.from("fleet.start_up", engine.start_up, kLongest);
  ranges.from("fleet.cool_down", engine.cool_down, kLongest);
}

void check_waits(Ranges& ranges, const Engine& engine) {
  ranges.from("scheduler.recv_interval", engine.recv_interval, 1);
  ranges.from("scheduler.batch_wait_iters", engine.batch_wait_iters, 0);
  ranges.from("scheduler.batch_wait_ratio", engine.batch_wait_ratio, 0, 1);
}

void check_speculation(Ranges& ranges, const Engine& engine) {
  using scheduler::Policy;
  constexpr std::int64_t kMostDrafts = 64;
  ranges.from("speculation.tokens", engine.draft_tokens, 1, kMostDrafts);
  ranges.from("speculation.acceptance", engine.acceptance, 0, 1);
  ranges.require((engine.speculation == Speculation::model) != engine.draft_model.empty(),
                 "speculation.model", "the smaller model of method: model, and only there");
  ranges.require(engine.drafts() == 0 || engine.policy == Policy::vllm_v1 ||
                     engine.policy == Policy::sarathi || engine.policy == Policy::trtllm ||
                     engine.policy == Policy::max_utilization,
                 "speculation.method",
                 "none, but for the policies vllm_v1, sarathi, trtllm, max_utilization");
}

void check_apart(Ranges& ranges, const Engine& engine) {
  constexpr std::int64_t kMostMicroBatches = 64;
  ranges.from("parallel.ffn", engine.ffn, 0, kMostRedundant);
  ranges.require(engine.ffn == 0 || engine.drafts() == 0, "parallel.ffn", "0 with speculation");
  if (engine.ffn > 0) {
    ranges.from("parallel.micro_batches", engine.micro_batches, 1, kMostMicroBatches);
  } else {
    ranges.require(engine.micro_batches == Engine{}.micro_batches, "parallel.micro_batches",
                   "none without ffn");
  }
}

void check_adapters(Ranges& ranges, const Engine& engine) {
  constexpr std::int64_t kMostAdapters = 4096;
  ranges.from("lora.slots", engine.adapter_slots, 0, kMostAdapters);
  ranges.from("lora.rank", engine.adapter_rank, 1, kMostAdapters);
  ranges.require(!engine.whole_adapters || (engine.adapter_slots > 0 && engine.drafts() == 0),
                 "lora.whole", "false without slots, and with speculation");
}

Error check(const Engine& engine) {
  constexpr std::int64_t kMostQuanta = 1'000'000;
  constexpr double kMostScaleBits = 16;
  constexpr double kMostLag = 10;
  constexpr Time kLongest = from_seconds(1000);
  Ranges ranges(engine);
  ranges.from("parallel.tp", engine.tp, 1);
  ranges.from("parallel.pp", engine.pp, 1);
  ranges.from("parallel.dp", engine.dp, 1);
  ranges.from("parallel.ep", engine.ep, 1);
  ranges.from("parallel.cp", engine.cp, 1);
  ranges.from("parallel.moe_imbalance", engine.moe_imbalance, 1, kMostImbalance);
  ranges.from("parallel.moe_spread", engine.moe_spread, 0, kMostImbalance);
  ranges.from("parallel.redundant_experts", engine.redundant_experts, 0, kMostRedundant);
  ranges.from("parallel.moe_bias", engine.moe_bias, 0, plan::Routing::kMostBias);
  ranges.require(engine.moe_imbalance == 1 || engine.moe_spread == 0, "parallel.moe_spread",
                 "0 with moe_imbalance");
  ranges.require(engine.moe_bias == 0 || (engine.moe_imbalance == 1 && engine.moe_spread == 0),
                 "parallel.moe_bias", "0 with moe_imbalance or moe_spread");
  ranges.require(value_of<collective::CollectiveAlgorithm>(engine.all_reduce).has_value(),
                 "parallel.all_reduce", one_of<collective::CollectiveAlgorithm>(engine.all_reduce));
  ranges.from("precision.scale_bits", engine.scale_bits, 0, kMostScaleBits);
  ranges.from("scheduler.max_num_seqs", engine.max_num_seqs, 0);
  ranges.from("scheduler.max_num_batched_tokens", engine.max_num_batched_tokens, 0);
  ranges.from("scheduler.max_model_len", engine.max_model_len, 0);
  ranges.from("scheduler.long_prefill_token_threshold", engine.long_prefill_token_threshold, 0);
  ranges.require(engine.watermark >= 0 && engine.watermark < 1, "scheduler.watermark",
                 "a share from 0 on, below 1");
  ranges.from("scheduler.quantum", engine.quantum, 1, kMostQuanta);
  ranges.from("scheduler.quantum_tokens", engine.quantum_tokens, 0,
              static_cast<double>(kMostTokens));
  ranges.from("cache.block_size", engine.block_size, 1);
  ranges.from("cache.blocks", engine.blocks, 0);
  ranges.from("cache.null_blocks", engine.null_blocks, 0);
  ranges.require(engine.memory_utilization > 0 && engine.memory_utilization <= 1,
                 "cache.memory_utilization", "a share above 0, at most 1");
  ranges.require(engine.tiers.empty() || engine.prefix, "cache.tiers",
                 "none, or prefix: true beside them");
  ranges.from("weights.window", engine.weight_window, 0);
  ranges.from("weights.retain", engine.weight_retain, 0);
  ranges.require(engine.weight_retain == 0 || engine.weight_window > 0, "weights.retain",
                 "0 without a window");
  ranges.require(engine.weight_window == 0 || engine.drafts() == 0, "weights.window",
                 "0 with speculation");
  ranges.from("kernels.fp4_lag", engine.fp4_lag, 0, kMostLag);
  ranges.from("graphs.largest", engine.largest_graph, 0);
  ranges.from("host.front_end", engine.front_end, kLongest);
  ranges.from("host.step", engine.step, kLongest);
  ranges.from("host.per_request", engine.per_request, kLongest);
  ranges.from("host.gap", engine.gap, kLongest);
  ranges.from("host.gap_per_request", engine.gap_per_request, kLongest);
  ranges.from("host.launch", engine.launch, kLongest);
  ranges.from("host.handover", engine.handover, kLongest);
  check_adapters(ranges, engine);
  check_apart(ranges, engine);
  check_waits(ranges, engine);
  check_speculation(ranges, engine);
  check_fleet_fields(ranges, engine);
  return ranges.take();
}

/// Returns 0, or the mistakes of values with their places in the file.
Result<int> checked_ranges(const Engine& engine, const ConfigNode& node) {
  Error wrong = located(check(engine), engine);
  for (Mistake& mistake : wrong.mistakes) {
    mistake.where = mistake.where.empty() ? node.where() : mistake.where;
  }
  return or_mistakes(0, std::move(wrong));
}

/// Reads what one section of the file states, and where.
Result<int> read_section(std::string_view section, const ConfigNode& node, Engine& engine) {
  Reader read(node);
  Engine::fields([&](std::string_view of, std::string_view field, auto member, std::string_view) {
    if (of != section) {
      return;
    }
    engine.*member = read.optional(field, engine.*member);
    if (const ConfigNode* stated = node.find(field)) {
      engine.stated.emplace_back(fmt::format("{}.{}", section, field), stated->where());
    }
  });
  if (section == "cache") {
    read.require(named_tiers(engine.tiers).has_value(), "tiers",
                 "names, each with a size or without, such as 'host:100 GB,nvme'");
  }
  return read.finish(0);
}

}  // namespace

Result<Engine> parse_engine(const ConfigNode& node,
                            const std::optional<step::Precision>& checkpoint) {
  Reader read(node);
  Engine engine;
  const std::string name = read.optional<std::string>("engine", "vllm@0.20");
  const auto& table = engines();
  const auto row = std::find_if(table.begin(), table.end(), [&](const EngineDefaults& entry) {
    return entry.name == name || entry.name.substr(0, entry.name.find('@')) == name;
  });
  if (row == table.end()) {
    const std::vector<std::string> names = mapped<std::string>(table, &EngineDefaults::name);
    read.reject("engine", one_of(name, names));
    return read.finish(engine);
  }
  row->set(engine);
  engine.name = row->name;
  if (checkpoint) {
    engine.weights = checkpoint->weights;
    engine.activations = checkpoint->activations;
    engine.kv = checkpoint->kv;
    engine.block_scaled = checkpoint->block_scaled;
    engine.narrow = checkpoint->narrow;
    engine.scale_bits = checkpoint->scale_bits;
    engine.experts_fp4 = checkpoint->experts_fp4;
  }
  std::map<std::string, const ConfigNode*, std::less<>> sections;
  Engine::fields([&](std::string_view section, std::string_view, auto, std::string_view) {
    if (!sections.contains(section)) {
      sections.emplace(section, read.child(section, false));
    }
  });
  for (const auto& [section, child] : sections) {
    if (child != nullptr) {
      read.absorb(read_section(section, *child, engine));
    }
  }
  const auto states = [&](std::string_view field) {
    return std::ranges::any_of(engine.stated, [&](const auto& one) { return one.first == field; });
  };
  if ((states("parallel.moe_imbalance") || states("parallel.moe_spread")) &&
      !states("parallel.moe_bias")) {
    engine.moe_bias = 0;  // a release's own
  }
  if (read.ok()) {
    read.absorb(checked_ranges(engine, node));
  }
  return read.finish(engine);
}

Result<ConfigNode> engine_node(const std::string& name_or_path) {
  const bool path = name_or_path.find('/') != std::string::npos || name_or_path == "-" ||
                    name_or_path.ends_with(".yaml") || name_or_path.ends_with(".yml") ||
                    name_or_path.ends_with(".json");
  if (path) {
    return load_config(name_or_path);
  }
  ConfigNode name;
  name.kind = ConfigNode::Kind::scalar;
  name.text = name_or_path;
  ConfigNode root;
  root.kind = ConfigNode::Kind::map;
  root.fields.push_back({"engine", name});
  return root;
}

namespace {

Result<Engine> load_with(const std::string& name_or_path,
                         const std::optional<step::Precision>& checkpoint) {
  const auto node = engine_node(name_or_path);
  if (!node) {
    return fail(node.error());
  }
  auto engine = parse_engine(*node, checkpoint);
  if (!engine && node->source == nullptr) {
    for (Mistake& mistake : engine.error().mistakes) {
      mistake.field.clear();
      mistake.where.clear();
      mistake.expected += ", or a file";
    }
  }
  return engine;
}

}  // namespace

Result<Engine> load_engine(const std::string& name_or_path) {
  return load_with(name_or_path, std::nullopt);
}

Result<Engine> load_engine_for(const zoo::ModelFile& model, const std::string& name_or_path) {
  return step::quantization_of(model.node).and_then([&](const auto& checkpoint) {
    return load_with(name_or_path, checkpoint);
  });
}

Error located(Error error, const Engine& engine) {
  for (Mistake& mistake : error.mistakes) {
    const auto found =
        std::find_if(engine.stated.begin(), engine.stated.end(), [&](const auto& stated) {
          return mistake.where.empty() &&
                 (stated.first == mistake.field || stated.first.ends_with("." + mistake.field));
        });
    if (found != engine.stated.end()) {
      std::tie(mistake.field, mistake.where) = *found;
    }
  }
  return error;
}

}  // namespace orrery::serving
