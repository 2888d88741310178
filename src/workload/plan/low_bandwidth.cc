// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/low_bandwidth.h"

#include <fmt/format.h>

#include <string>

#include "collective/block_quantize.h"
#include "workload/plan/layout.h"

namespace orrery::plan {
namespace {

class LowBandwidthChecker {
 public:
  explicit LowBandwidthChecker(const Plan& plan) : plan_(plan) {}

  Error run() {
    quantized();
    secondary();
    hop();
    return std::move(error_);
  }

 private:
  void require(bool ok, std::string_view field, std::string found, std::string expected) {
    if (!ok) {
      error_.add({{}, std::string(field), std::move(found), std::move(expected)});
    }
  }

  void quantized() {
    const auto needs = [&](std::string_view field, bool used, std::int64_t stage) {
      if (!used) {
        return;
      }
      require(plan_.zero >= stage, field, "true",
              fmt::format("zero of {}: others do not {}", stage == 3 ? "3" : "1 or more",
                          stage == 3 ? "gather parameters for their layers"
                                     : "scatter gradients over ranks"));
      require(plan_.quantization == Quantization::none && !plan_.quantized_params, field, "true",
              "false with quantization: the recipe's types travel");
      require(plan_.dp * plan_.cp > 1, field, "true", "false with one data-parallel rank");
      require(plan_.offload_params == Offload::none, field, "true", "false with offload_params");
    };
    needs("quantized_gather", plan_.quantized_gather, 3);
    needs("quantized_reduce", plan_.quantized_reduce, 1);
    constexpr std::int64_t kMostBlock = std::int64_t{1} << 20;
    require(plan_.quantized_block >= 16 && plan_.quantized_block <= kMostBlock, "quantized_block",
            fmt::format("{}", plan_.quantized_block),
            fmt::format("a number from 16 to {}", kMostBlock));
    require(plan_.frozen_type == FrozenType::compute_type || !plan_.quantized_gather,
            "quantized_gather", "true",
            fmt::format("false with frozen_type {}: parameters travel as they are stored",
                        name_of(plan_.frozen_type)));
    require(graph::bits_of(plan_.compute_type) == 16 || !plan_.quantized_gather, "quantized_gather",
            "true", "false, or a compute_type of 16 bits");
  }

  void secondary() {
    const std::int64_t given = plan_.secondary_shard;
    if (given == 0) {
      return;
    }
    const std::string found = fmt::format("{}", given);
    const std::int64_t shards = shard_degrees(plan_).params;
    require(plan_.zero == 3 && plan_.reshard_after_forward, "secondary_shard", found,
            "0, or zero 3 with reshard_after_forward: others gather nothing for backward");
    require(plan_.offload_params == Offload::none, "secondary_shard", found,
            "0 with offload_params");
    require(plan_.quantization == Quantization::none, "secondary_shard", found,
            "0 with quantization");
    require(plan_.zero != 3 || (given >= 2 && given < shards && shards % given == 0),
            "secondary_shard", found,
            fmt::format("a divisor of the {} ranks that share parameters, and fewer: a second copy "
                        "over all of them is the first",
                        shards));
  }

  void hop() {
    const std::int64_t given = plan_.reduce_hop;
    if (given == 0) {
      return;
    }
    const std::string found = fmt::format("{}", given);
    require(plan_.quantized_reduce, "reduce_hop", found, "0, or quantized_reduce");
    const std::int64_t all =
        plan_.zero >= 2 ? shard_degrees(plan_).grads : shard_degrees(plan_).optimizer;
    require(given >= 1 && all % given == 0, "reduce_hop", found,
            fmt::format("a divisor of the {} ranks that share gradients", all));
  }

  const Plan& plan_;
  Error error_;
};

}  // namespace

Bytes quantized_gather_bytes(const Plan& plan, Bytes stored) {
  const std::int64_t elements = stored.value() / graph::size_of(plan.compute_type).value();
  return collective::quantized_bytes(elements, kGatherBits, plan.quantized_block);
}

Bytes quantized_reduce_bytes(const Plan& plan, Bytes wire) {
  const std::int64_t elements = wire.value() / graph::size_of(plan.grad_reduce_type).value();
  return collective::quantized_bytes(elements, kReduceBits, plan.quantized_block);
}

std::int64_t near_ranks(const Plan& plan) {
  if (!plan.quantized_reduce) {
    return 0;
  }
  const ShardDegrees degrees = shard_degrees(plan);
  const std::int64_t first = degrees.grads > 1 ? degrees.grads : degrees.optimizer;
  const std::int64_t near = plan.reduce_hop > 0 ? plan.reduce_hop : plan.secondary_shard;
  return near > 1 && near < first && first % near == 0 ? near : 0;
}

std::vector<ReduceHop> reduce_hops(const Plan& plan, Axis axis, std::int64_t ranks) {
  const ShardDegrees degrees = shard_degrees(plan);
  const bool first = axis == Axis::dp || axis == Axis::grad_shard ||
                     (axis == Axis::optimizer_shard && degrees.grads == 1);
  const std::int64_t near = first ? near_ranks(plan) : 0;
  if (near == 0) {
    return {{.axis = axis, .ranks = ranks}};
  }
  return {{.axis = Axis::reduce_near, .ranks = near},
          {.axis = Axis::reduce_far, .divisor = near, .ranks = ranks / near}};
}

Error low_bandwidth_mistakes(const Plan& plan) {
  return LowBandwidthChecker(plan).run();
}

}  // namespace orrery::plan
