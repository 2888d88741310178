// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "base/reader.h"
#include "workload/plan/low_bandwidth.h"
#include "workload/plan/rounds.h"

namespace orrery::plan {
namespace {

constexpr std::array kLayoutAxes{Axis::tp, Axis::cp, Axis::dp, Axis::pp};

std::int64_t degree(const Plan& plan, Axis axis) {
  switch (axis) {
    case Axis::tp:
      return plan.tp;
    case Axis::cp:
      return plan.cp;
    case Axis::dp:
      return plan.dp;
    case Axis::pp:
      return plan.pp;
    default:
      return 1;
  }
}

/// Digits that follow one another in the rank number become one.
std::vector<graph::Digit> merged(const std::vector<graph::Digit>& digits) {
  std::vector<graph::Digit> result;
  for (const graph::Digit& digit : digits) {
    if (digit.size == 1) {
      continue;
    }
    if (!result.empty() && result.back().stride * result.back().size == digit.stride) {
      result.back().size *= digit.size;
    } else {
      result.push_back(digit);
    }
  }
  return result;
}

/// The innermost `count` members and the rest; nullopt when digits do not divide so.
std::optional<std::array<std::vector<graph::Digit>, 2>> split(
    const std::vector<graph::Digit>& digits, std::int64_t count) {
  std::array<std::vector<graph::Digit>, 2> parts;
  for (const graph::Digit& digit : digits) {
    const std::int64_t inner = std::gcd(digit.size, count);
    if (inner < digit.size && inner < count) {
      return std::nullopt;
    }
    if (inner > 1) {
      parts[0].push_back({inner, digit.stride});
    }
    if (inner < digit.size) {
      parts[1].push_back({digit.size / inner, digit.stride * inner});
    }
    count /= inner;
  }
  return count == 1 ? std::optional(parts) : std::nullopt;
}

RankLayout base_layout(const Plan& plan, const std::vector<Axis>& order) {
  RankLayout layout;
  for (const Axis axis : order) {
    layout.axes.push_back({axis, degree(plan, axis)});
  }
  return layout;
}

/// dp with cp, innermost first.
std::vector<graph::Digit> data_digits(const RankLayout& layout) {
  std::vector<graph::Digit> digits = layout.digits(Axis::cp);
  const std::vector<graph::Digit> dp = layout.digits(Axis::dp);
  digits.insert(digits.end(), dp.begin(), dp.end());
  std::sort(digits.begin(), digits.end(),
            [](const graph::Digit& a, const graph::Digit& b) { return a.stride < b.stride; });
  return merged(digits);
}

void add(RankLayout& layout, Axis axis, std::vector<graph::Digit> digits) {
  if (!digits.empty()) {
    layout.communicators.push_back({axis, std::move(digits)});
  }
}

/// Returns the members from number a to number b of the innermost ones, a dividing b.
std::vector<graph::Digit> between(const std::vector<graph::Digit>& digits, std::int64_t a,
                                  std::int64_t b) {
  const auto inner = split(digits, b);
  const auto parts = inner ? split((*inner)[0], a) : std::nullopt;
  return parts ? (*parts)[1] : std::vector<graph::Digit>();
}

void add_shards(RankLayout& layout, const Plan& plan, const std::vector<graph::Digit>& data) {
  const std::int64_t all = plan.dp * plan.cp;
  const ShardDegrees degrees = shard_degrees(plan);
  if (degrees.params > 1 && degrees.params < all) {
    add(layout, Axis::shard, between(data, 1, degrees.params));
  }
  if (degrees.grads > 1 && degrees.grads < all) {
    add(layout, Axis::grad_shard, between(data, 1, degrees.grads));
  }
  const std::int64_t optimizer = std::max(degrees.optimizer, degrees.grads);
  if (degrees.grads > 1 && optimizer > degrees.grads) {
    add(layout, Axis::optimizer_shard, between(data, degrees.grads, optimizer));
  } else if (degrees.grads == 1 && optimizer > 1 && optimizer < all) {
    add(layout, Axis::optimizer_shard, between(data, 1, optimizer));
  }
  const std::int64_t worker = worker_ranks(plan);
  if (worker < all) {
    add(layout, Axis::outer, between(data, worker, all));
  } else if (optimizer > 1 && optimizer < all) {
    add(layout, Axis::replica, between(data, optimizer, all));
  }
  const bool gathers = degrees.optimizer > degrees.params;
  if (gathers && (degrees.params > 1 || degrees.optimizer < all)) {
    add(layout, Axis::update, between(data, degrees.params, degrees.optimizer));
  }
}

/// Parts of the shards that lie in a node (low_bandwidth.h).
void add_near(RankLayout& layout, const Plan& plan, const std::vector<graph::Digit>& data) {
  if (plan.secondary_shard > 1) {
    add(layout, Axis::secondary, between(data, 1, plan.secondary_shard));
  }
  if (const std::int64_t near = near_ranks(plan); near > 0) {
    const ShardDegrees degrees = shard_degrees(plan);
    add(layout, Axis::reduce_near, between(data, 1, near));
    add(layout, Axis::reduce_far,
        between(data, near, degrees.grads > 1 ? degrees.grads : degrees.optimizer));
  }
}

void add_experts(RankLayout& layout, const Plan& plan, const std::vector<graph::Digit>& data) {
  if (plan.ep == 1 && expert_tensor_parallel(plan) == plan.tp) {  // any order will do
    add(layout, Axis::etp, layout.digits(Axis::tp));
    add(layout, Axis::edp, data);
    return;
  }
  const std::int64_t etp = expert_tensor_parallel(plan);
  const std::int64_t edp = expert_data_parallel(plan);
  // Stages are outermost or innermost of the axes in use: the others lie side by side.
  const std::int64_t stride = layout.stride(Axis::pp) == 1 ? plan.pp : 1;
  add(layout, Axis::etp, merged({{etp, stride}}));
  add(layout, Axis::ep, merged({{plan.ep, stride * etp}}));
  add(layout, Axis::edp, merged({{edp, stride * etp * plan.ep}}));
}

bool stages_at_one_end(const Plan& plan, const std::vector<Axis>& order) {
  std::vector<Axis> used;
  std::copy_if(order.begin(), order.end(), std::back_inserter(used),
               [&](Axis axis) { return degree(plan, axis) > 1; });
  return plan.pp == 1 || used.front() == Axis::pp || used.back() == Axis::pp;
}

void shard_mistakes(const Plan& plan, const std::vector<graph::Digit>& data, Error& error) {
  const std::int64_t all = plan.dp * plan.cp;
  const auto judge = [&](std::string_view field, std::int64_t given, std::int64_t least_stage) {
    if (given == 0) {
      return;
    }
    if (plan.zero < least_stage) {
      error.add({{},
                 std::string(field),
                 fmt::format("{}", given),
                 fmt::format("0, or zero of {} or more", least_stage)});
    } else if (given < 1 || given > all || all % given != 0 || !split(data, given)) {
      error.add({{},
                 std::string(field),
                 fmt::format("{}", given),
                 fmt::format("a divisor of dp x cp = {}", all)});
    }
  };
  judge("shard_params", plan.shard_params, 3);
  judge("shard_grads", plan.shard_grads, 2);
  judge("shard_optimizer", plan.shard_optimizer, 1);
  if (!error.empty()) {
    return;
  }
  const ShardDegrees degrees = shard_degrees(plan);
  const auto nested = [&](std::string_view field, std::int64_t inner, std::int64_t outer,
                          std::string_view of) {
    if (outer % inner != 0) {
      error.add({{},
                 std::string(field),
                 fmt::format("{}", inner),
                 fmt::format("a divisor of {} = {}: shards nest", of, outer)});
    }
  };
  nested("shard_params", degrees.params, degrees.optimizer, "shard_optimizer");
  nested("shard_grads", degrees.grads, degrees.optimizer, "shard_optimizer");
}

void expert_mistakes(const Plan& plan, const std::vector<Axis>& order, Error& error) {
  const std::int64_t ranks = plan.tp * plan.cp * plan.dp;
  const std::int64_t together = expert_tensor_parallel(plan) * plan.ep;
  if (ranks % together != 0) {
    error.add({{},
               "ep",
               fmt::format("{}", plan.ep),
               fmt::format("a degree such that etp x ep = {} divides tp x cp x dp = {}", together,
                           ranks)});
  }
  if (!stages_at_one_end(plan, order)) {
    error.add({{}, "order", plan.order, "pp as the innermost or outermost axis when ep > 1"});
  }
}

}  // namespace

Result<std::vector<Axis>> parse_order(const Plan& plan) {
  const auto wrong = [&](std::string expected) {
    return fail(Error(Mistake{{}, "order", plan.order, std::move(expected)}));
  };
  std::vector<Axis> order;
  order.reserve(kLayoutAxes.size());
  std::string_view rest = plan.order;
  while (true) {
    const std::size_t dash = rest.find('-');
    const std::string_view name = rest.substr(0, dash);
    const auto axis = std::find_if(kLayoutAxes.begin(), kLayoutAxes.end(),
                                   [&](Axis a) { return name_of(a) == name; });
    if (axis != kLayoutAxes.end()) {
      if (std::find(order.begin(), order.end(), *axis) != order.end()) {
        return wrong("every axis once");
      }
      order.push_back(*axis);
    } else if (name != "ep") {
      return wrong("tp, cp, dp and pp in some order, such as 'tp-cp-dp-pp'");
    }
    if (dash == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(dash + 1);
  }
  if (std::find(order.begin(), order.end(), Axis::cp) == order.end()) {
    const auto tp = std::find(order.begin(), order.end(), Axis::tp);
    order.insert(tp == order.end() ? order.begin() : tp + 1, Axis::cp);
  }
  for (const Axis axis : kLayoutAxes) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) {
      if (degree(plan, axis) > 1) {
        return wrong(fmt::format("an order that names {}", name_of(axis)));
      }
      order.push_back(axis);
    }
  }
  return order;
}

ShardDegrees shard_degrees(const Plan& plan) {
  const std::int64_t all = worker_ranks(plan);
  const auto used = [&](std::int64_t given, std::int64_t least_stage) {
    return plan.zero < least_stage ? 1 : given == 0 ? all : given;
  };
  return {used(plan.shard_params, 3), used(plan.shard_grads, 2), used(plan.shard_optimizer, 1)};
}

std::int64_t expert_tensor_parallel(const Plan& plan) {
  return plan.etp == 0 ? plan.tp : plan.etp;
}

std::int64_t expert_data_parallel(const Plan& plan) {
  return plan.tp * plan.cp * plan.dp / (expert_tensor_parallel(plan) * plan.ep);
}

RankLayout layout_of(const Plan& plan, bool experts) {
  const std::vector<Axis> order = *parse_order(plan);
  RankLayout layout = base_layout(plan, order);
  const std::vector<graph::Digit> data = data_digits(layout);
  const std::vector<graph::Digit> cp = layout.digits(Axis::cp);
  add_shards(layout, plan, data);
  add_near(layout, plan, data);
  if (plan.cp > 1) {
    add(layout, Axis::dp, data);
    if (plan.cp_exchange == ContextExchange::a2a_p2p) {
      add(layout, Axis::cp_a2a, between(cp, 1, plan.cp_a2a));
      add(layout, Axis::cp_ring, between(cp, plan.cp_a2a, plan.cp));
    }
  }
  if (experts) {
    add_experts(layout, plan, data);
  }
  return layout;
}

collective::AlgorithmChoice algorithms_of(const Plan& plan) {
  collective::AlgorithmChoice algorithms;
  algorithms.set(Axis::tp, plan.tp_algorithm);
  algorithms.set(Axis::dp, plan.dp_algorithm);
  algorithms.set(Axis::outer, plan.dp_algorithm);
  return algorithms;
}

Error layout_mistakes(const Plan& plan) {
  const auto order = parse_order(plan);
  if (!order) {
    return order.error();
  }
  Error error;
  shard_mistakes(plan, data_digits(base_layout(plan, *order)), error);
  if (plan.ep > 1 || expert_tensor_parallel(plan) != plan.tp) {
    expert_mistakes(plan, *order, error);
  }
  return error;
}

}  // namespace orrery::plan
