// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "workload/plan/layout.h"
#include "workload/plan/schedule_row.h"

namespace orrery::plan {
namespace {

constexpr std::int64_t kWarmRounds = 2;  // the first updates nothing, the second may be longer
constexpr std::int64_t kRounds = 4;

bool steps_alone(const Plan& plan) {
  return plan.data_parallel_update != DataParallelUpdate::every_step;
}

void order_mistakes(const Plan& plan, Error& error) {
  if (plan.cp == 1) {
    return;
  }
  const auto order = parse_order(plan);
  const auto at = [&](Axis axis) { return std::ranges::find(*order, axis); };
  if (order && at(Axis::dp) < at(Axis::cp)) {
    error.add({{}, "order", plan.order, "cp inside dp: the parts of a sequence are one worker"});
  }
  if (plan.zero == 0) {
    error.add({{},
               "zero",
               "0",
               "1 or more with cp > 1 and a data_parallel_update of rounds: the worker's ranks "
               "share its optimizer states"});
  }
  if (worker_ranks(plan) % plan.cp != 0) {
    error.add(
        {{},
         "shard_optimizer",
         fmt::format("{}", plan.shard_optimizer),
         fmt::format("a multiple of cp = {}: the parts of a sequence are one worker", plan.cp)});
  }
}

}  // namespace

bool runs_rounds(const Plan& plan) {
  return steps_alone(plan) && workers(plan) > 1;
}

std::int64_t worker_ranks(const Plan& plan) {
  if (!steps_alone(plan)) {
    return plan.dp * plan.cp;
  }
  const auto used = [&](std::int64_t given, std::int64_t least_stage) {
    return plan.zero < least_stage ? 1 : std::max<std::int64_t>(given, 1);
  };
  return std::max({plan.cp, used(plan.shard_params, 3), used(plan.shard_grads, 2),
                   used(plan.shard_optimizer, 1)});
}

std::int64_t workers(const Plan& plan) {
  return plan.dp * plan.cp / worker_ranks(plan);
}

RoundRun round_run(const Plan& plan) {
  if (!runs_rounds(plan)) {
    return {};
  }
  return {.steps = kRounds * plan.local_steps, .warm = kWarmRounds * plan.local_steps};
}

OuterBytes outer_bytes(const Plan& plan) {
  const Bytes w = graph::size_of(plan.master_type);
  const Bytes r = graph::size_of(plan.grad_reduce_type);
  const Bytes e =
      plan.master_type == plan.compute_type ? Bytes(0) : graph::size_of(plan.compute_type);
  const bool late = plan.data_parallel_update == DataParallelUpdate::co2;
  OuterBytes bytes{.sent = r, .buffer = late ? r : Bytes(0), .passing = r};
  if (plan.data_parallel_update == DataParallelUpdate::local_sgd) {
    bytes.pack = w + r;
    bytes.update = r + w + e;
    return bytes;
  }
  bytes.pack = plan.shard_outer ? w + r : 2 * w + r;
  bytes.gap = late ? w + r : Bytes(0);
  bytes.update = plan.shard_outer ? r + 4 * w : r + 5 * w + e;
  bytes.apply = plan.shard_outer ? r + w + e : Bytes(0);
  bytes.states = plan.shard_outer && late ? 3 * w : 2 * w;
  return bytes;
}

Error round_mistakes(const Plan& plan, const zoo::Model& model) {
  constexpr std::int64_t kMostSteps = 10'000;
  Error error;
  const auto wrong = [&](std::string_view field, std::string found, std::string expected) {
    error.add({{}, std::string(field), std::move(found), std::move(expected)});
  };
  if (plan.local_steps < 1 || plan.local_steps > kMostSteps) {
    wrong("local_steps", fmt::format("{}", plan.local_steps),
          fmt::format("a number from 1 to {}", kMostSteps));
    return error;
  }
  if (!steps_alone(plan)) {
    if (plan.local_steps > 1) {
      wrong("local_steps", fmt::format("{}", plan.local_steps),
            "1, or data_parallel_update of local_sgd, slow_mo, diloco or co2");
    }
    if (plan.shard_outer) {
      wrong("shard_outer", "true", "false without a data_parallel_update that has outer states");
    }
    return error;
  }
  const std::string update(name_of(plan.data_parallel_update));
  if (plan.dp == 1) {
    wrong("data_parallel_update", update, "every_step, or dp of 2 or more: there is one worker");
  } else if (workers(plan) < 2) {
    wrong("data_parallel_update", update,
          fmt::format("every_step, or shards over fewer than dp x cp = {} ranks: those that share "
                      "states are one worker",
                      plan.dp * plan.cp));
  }
  if (plan.shard_outer && plan.data_parallel_update == DataParallelUpdate::local_sgd) {
    wrong("shard_outer", "true", "false with local_sgd, which has no outer states");
  }
  if (model.experts > 0) {
    wrong("data_parallel_update", update,
          "every_step with experts, whose replicas are not those of other parameters");
  }
  if (plan.offload_optimizer != Offload::none || plan.offload_params != Offload::none) {
    wrong("data_parallel_update", update, "every_step with offload_optimizer or offload_params");
  }
  if (plan.quantized_params || plan.lora_rank > 0) {
    wrong("data_parallel_update", update, "every_step with quantized_params or lora_rank");
  }
  if (row_of(plan.schedule).both_ends || !plan.batch_shares.empty()) {
    wrong("data_parallel_update", update,
          "every_step with batch_shares, or with a schedule that holds a stage twice");
  }
  if (plan.zero > 0 && worker_ranks(plan) == 1) {
    wrong("zero", fmt::format("{}", plan.zero),
          "0, or shard_optimizer (with zero 2 shard_grads, with zero 3 shard_params) of a worker's "
          "ranks: a worker of one rank has nobody to share with");
  }
  order_mistakes(plan, error);
  return error;
}

}  // namespace orrery::plan
