// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "workload/interop/framework_job.h"
#include "workload/interop/text.h"
#include "workload/zoo/hub_name.h"

namespace orrery::interop {
namespace {

constexpr std::int64_t kUsualNode = 8;  // devices, where nothing says how many

std::int64_t whole(double value) {
  return value > 0 ? std::llround(value) : 1;
}

std::int64_t found_devices(const FrameworkJob& job, std::int64_t devices, std::int64_t replica) {
  if (devices > 0) {
    return devices;
  }
  if (job.devices > 0) {
    return whole(job.devices);
  }
  if (job.per_node > 0) {
    return whole(job.per_node) * whole(job.nodes);
  }
  // A mesh whose every degree is stated.
  const bool mesh = job.replicas > 0 && job.shards > 0;
  return mesh ? replica * whole(job.replicas) * whole(job.shards) : 0;
}

/// A degree of -1 is what the others leave of a node's devices (ici_ of MaxText).
void fill_degree(FrameworkJob& job, std::int64_t devices) {
  const std::int64_t node = job.per_node > 0 ? whole(job.per_node) : kUsualNode;
  for (const auto& [name, degree] : {std::pair{"tp", &job.tp}, {"cp", &job.cp}, {"ep", &job.ep}}) {
    if (*degree < 0) {
      const std::int64_t others = whole(job.tp) * whole(job.cp) * whole(job.ep);
      const std::int64_t rest = (devices > 0 ? std::min(node, devices) : node) / others;
      *degree = static_cast<double>(std::max<std::int64_t>(rest, 1));
      job.remarks.push_back({name, "-1 is read as " + std::to_string(whole(*degree)) +
                                       " of a node of " + std::to_string(node) + " devices"});
    }
  }
}

/// Fills what MaxText's base.yml states where the file, which builds on it, does not: parameters
/// are sharded over what the other axes leave.
void fill_from_base(FrameworkJob& job) {
  const auto fill = [&](double& member, double value, const char* key, const std::string& said) {
    if (member == 0) {
      member = value;
      job.remarks.push_back({key, "not stated: " + said + ", as in base.yml"});
    }
  };
  fill(job.per_device, 12, "per_device_batch_size", "12");
  fill(job.sequence, 2048, "max_target_length", "2048");
  if (std::min({job.tp, job.pp, job.cp, job.ep}) >= 0) {
    fill(job.shards, -1, "ici_fsdp_parallelism", "-1, what the other axes leave");
  }
}

/// Adds a mistake of a number, at the place where the file states it.
void reject(FrameworkJob& job, Meaning meaning, const char* name, double value,
            std::string expected) {
  const auto place = job.places.find(meaning);
  Mistake mistake =
      place != job.places.end() ? place->second : Mistake{{}, name, fmt::format("{}", value), {}};
  mistake.expected = std::move(expected);
  job.error.add(std::move(mistake));
}

/// MaxText's batch is that of every device, whatever its axis.
void spread_batch(FrameworkJob& job, std::int64_t devices) {
  const double batch = job.per_device * static_cast<double>(devices);
  const double pieces = job.pipeline_microbatches > 0 ? job.pipeline_microbatches : 1;
  job.micro = batch / static_cast<double>(job.plan.dp) / pieces;
  job.global = batch * std::max(job.accumulation, 1.0);
  if (job.micro < 1 || job.micro != std::floor(job.micro)) {
    reject(job, Meaning::batch_per_device, "per_device_batch_size", job.per_device,
           "whole sequences for each of the dp = " + std::to_string(job.plan.dp) + " replicas");
    job.micro = 1;
    job.global = static_cast<double>(job.plan.dp);
  }
}

void settle_batch(FrameworkJob& job, std::int64_t devices) {
  plan::Plan& plan = job.plan;
  if (job.per_device > 0) {
    spread_batch(job, devices);
  }
  if (job.framework == "llm-foundry") {
    job.micro *= static_cast<double>(plan.cp);  // of a device: of a sequence its part
  }
  plan.microbatch = job.micro > 0 ? whole(job.micro) : plan.microbatch;
  if (job.micro != std::floor(job.micro)) {
    reject(job, Meaning::microbatch, "microbatch", job.micro, "whole sequences of a replica");
    plan.microbatch = std::max<std::int64_t>(plan.microbatch, 1);
  }
  const std::int64_t share = whole(job.global) / plan.dp;
  if (job.framework == "llm-foundry" && job.global > 0 && share >= 1 && plan.microbatch > share) {
    job.remarks.push_back(
        {"device_train_microbatch_size",
         "reduced to " + std::to_string(share) +
             ", a device's share of global_train_batch_size, as llm-foundry does"});
    plan.microbatch = share;
  }
  const std::int64_t together = std::max<std::int64_t>(plan.microbatch * plan.dp, 1);
  if (job.global > 0) {
    plan.global_batch = whole(job.global);
  } else if (job.micro > 0 || job.accumulation > 0) {
    plan.global_batch = together * whole(job.accumulation);
  } else {
    plan.global_batch = std::max(plan.global_batch, together);
  }
  if (plan.global_batch % together != 0) {
    reject(job, Meaning::global_batch, "global batch", static_cast<double>(plan.global_batch),
           "a multiple of microbatch x dp = " + std::to_string(together));
  }
}

/// Ranks that share parameters where not all do; 0: all.
std::int64_t shard_group(FrameworkJob& job) {
  const std::int64_t ranks = job.plan.dp * job.plan.cp;
  if (job.plan.zero != 3) {
    return 0;
  }
  if (!job.hybrid) {
    const bool split = job.replicas > 1 && ranks % whole(job.replicas) == 0;
    return split ? ranks / whole(job.replicas) : 0;
  }
  const std::int64_t node = job.per_node > 0 ? whole(job.per_node)
                            : job.nodes > 0  ? std::max<std::int64_t>(ranks / whole(job.nodes), 1)
                                             : kUsualNode;
  job.remarks.push_back(
      {"HYBRID_SHARD", "shards stay within a node of " + std::to_string(node) + " devices"});
  return ranks % node == 0 && node < ranks ? node : 0;
}

void settle_sharding(FrameworkJob& job) {
  plan::Plan& plan = job.plan;
  if (!job.stated_sharding && job.shards != 0) {
    const std::int64_t left = plan.dp * plan.cp / whole(job.replicas);
    plan.zero = (job.shards < 0 ? left : whole(job.shards)) > 1 ? 3 : 0;
  }
  plan.shard_params = plan.shard_grads = plan.shard_optimizer = shard_group(job);
  plan.overlap_grad_reduce = true;
  plan.overlap_param_gather = plan.zero == 3;
  constexpr std::int64_t kBucket = 25;  // MiB, of torch's DDP
  plan.bucket = plan.zero == 3 ? Bytes(0) : 1_MiB * kBucket;
  plan.fused_grad_accumulation = false;
}

void settle_types(FrameworkJob& job) {
  plan::Plan& plan = job.plan;
  if (!job.stated_type && job.framework != "maxtext" && job.framework != "accelerate") {
    plan.compute_type = graph::DataType::fp32;
  }
  if (plan.zero == 3 && plan.compute_type != graph::DataType::fp32 &&
      job.framework != "llm-foundry" && job.framework != "maxtext") {
    plan.grad_reduce_type = plan.compute_type;  // MixedPrecision(reduce_dtype) of accelerate
  }
}

/// Returns the type of a checkpoint's weights that its name says; else as parameters are.
plan::FrozenType type_of_name(std::string_view name) {
  using plan::FrozenType;
  const std::string_view format = zoo::format_of(name);
  return format.empty()                         ? FrozenType::compute_type
         : format == "nf4"                      ? FrozenType::nf4
         : format == "fp8"                      ? FrozenType::fp8
         : format == "int8" || format == "w8a8" ? FrozenType::int8
                                                : FrozenType::int4;
}

void settle_adapters(FrameworkJob& job) {
  plan::Plan& plan = job.plan;
  if (!job.adapter) {
    plan.frozen_type = plan::FrozenType::compute_type;
    plan.lora_rank = 0;
    plan.lora_targets = "all";
    return;
  }
  const plan::FrozenType named = type_of_name(job.model_name);
  if (job.frozen == plan::FrozenType::compute_type && named != job.frozen) {
    job.frozen = named;
    job.remarks.push_back(
        {job.places[Meaning::model_name].field,
         "its name says " + std::string(name_of(named)) + ": frozen parameters are stored so"});
  }
  plan.frozen_type = job.frozen;
  const std::int64_t rank = job.by_trl ? 16 : 8;  // defaults of TRL's scripts, of PEFT
  plan.lora_rank = job.rank > 0 ? whole(job.rank) : rank;
  plan.lora_targets = job.adapter_targets.empty() ? "all" : job.adapter_targets;
  constexpr double kDropout = 0.05;
  const bool stated = job.places.contains(Meaning::adapter_dropout);
  plan.lora_dropout = job.by_trl && !stated ? kDropout : job.dropout;
}

}  // namespace

double* count_of(FrameworkJob& job, Meaning meaning) {
  struct Count {
    Meaning meaning;
    double FrameworkJob::*member;
  };
  static constexpr auto kCounts = std::to_array<Count>({
      {Meaning::devices, &FrameworkJob::devices},
      {Meaning::nodes, &FrameworkJob::nodes},
      {Meaning::devices_per_node, &FrameworkJob::per_node},
      {Meaning::microbatch, &FrameworkJob::micro},
      {Meaning::accumulation, &FrameworkJob::accumulation},
      {Meaning::global_batch, &FrameworkJob::global},
      {Meaning::sequence, &FrameworkJob::sequence},
      {Meaning::tp, &FrameworkJob::tp},
      {Meaning::pp, &FrameworkJob::pp},
      {Meaning::cp, &FrameworkJob::cp},
      {Meaning::ep, &FrameworkJob::ep},
      {Meaning::replicas, &FrameworkJob::replicas},
      {Meaning::shards, &FrameworkJob::shards},
      {Meaning::batch_per_device, &FrameworkJob::per_device},
      {Meaning::pipeline_microbatches, &FrameworkJob::pipeline_microbatches},
      {Meaning::adapter_rank, &FrameworkJob::rank},
      {Meaning::adapter_dropout, &FrameworkJob::dropout},
  });
  const auto* const row = std::ranges::find(kCounts, meaning, &Count::meaning);
  return row == kCounts.end() ? nullptr : &(job.*row->member);
}

bool counts_sequences(Meaning meaning) {
  return meaning == Meaning::microbatch || meaning == Meaning::global_batch ||
         meaning == Meaning::batch_per_device || meaning == Meaning::sequence;
}

bool is_degree(Meaning meaning) {
  return meaning >= Meaning::tp && meaning <= Meaning::shards;
}

bool reads_false(Meaning meaning) {
  return meaning == Meaning::bf16 || meaning == Meaning::fp16 || meaning == Meaning::flash ||
         meaning == Meaning::reshard || meaning == Meaning::checkpointing;
}

void settle(FrameworkJob& job, std::int64_t devices) {
  plan::Plan& plan = job.plan;
  if (job.framework == "maxtext") {
    fill_from_base(job);
  }
  fill_degree(job, devices > 0 ? devices : std::llround(std::max(job.devices, 0.0)));
  plan.tp = whole(job.tp);
  plan.pp = whole(job.pp);
  plan.cp = whole(job.cp);
  plan.ep = whole(job.ep);
  const std::int64_t replica = (Bytes(plan.tp) * plan.pp * plan.cp).value();  // saturates
  const std::int64_t found = replica > kMostDegree ? 0 : found_devices(job, devices, replica);
  if (found == 0 || found % replica != 0) {
    job.error.add({"--devices",
                   {},
                   found == 0 ? "" : std::to_string(found),
                   found == 0 ? "missing; expected the number of devices, which the file does not "
                                "say"
                              : "a multiple of tp x pp x cp = " + std::to_string(replica)});
    return;
  }
  plan.dp = found / replica;
  settle_batch(job, found);
  settle_sharding(job);
  settle_types(job);
  if (job.sequence > 0) {
    plan.sequence = whole(job.sequence);
  }
  if (job.checkpoints) {
    plan.recompute = plan::Recompute::full;
  }
  if (!job.compiled) {
    plan.fused_kernels = job.framework == "maxtext";  // XLA fuses
  }
  plan.autograd = job.framework == "maxtext"       ? plan::Autograd::engine
                  : job.framework == "llm-foundry" ? plan::Autograd::pytorch
                                                   : plan::Autograd::hugging_face;
  settle_adapters(job);
}

}  // namespace orrery::interop
