// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "planner/full/space.h"
#include "workload/interop/capabilities.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/rounds.h"
#include "workload/plan/schedule_row.h"
#include "workload/plan/shard.h"

namespace orrery::full {
namespace {

constexpr std::int64_t kMostTokens = 65536;  // of a microbatch, of a rank
constexpr std::int64_t kMostChunks = 16;
constexpr std::int64_t kLeastPiece = 128;  // tokens of one of the two pieces of a cp rank

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> result;
  for (std::int64_t d = 1; d <= number / d; ++d) {
    if (number % d == 0) {
      result.push_back(d);
      if (d != number / d) {
        result.push_back(number / d);
      }
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

std::vector<plan::Plan> Space::groups() const {
  std::vector<plan::Plan> groups;
  const auto divides = [&](std::int64_t tp) {
    const auto extents = zoo::tensor_extents(task_.model);
    return std::all_of(extents.begin(), extents.end(),
                       [&](const zoo::TensorExtent& extent) { return extent.extent % tp == 0; });
  };
  const std::int64_t tokens = plan::sequence_of(task_.model, base_);
  const auto& network = task_.machine.network;
  const bool nodes = !network.empty() && network.front().size > 0;
  const std::int64_t widest = nodes ? 2 * network.front().size : task_.devices;
  for (const std::int64_t tp : values("tp", &plan::Plan::tp, divisors(task_.devices))) {
    if (task_.devices % tp != 0 || !divides(tp) || (is_open("tp") && tp > widest)) {
      continue;
    }
    for (const std::int64_t cp : values("cp", &plan::Plan::cp, divisors(task_.devices / tp))) {
      const bool few = cp > 1 && is_open("cp") && tokens / (2 * cp) < kLeastPiece;
      if (task_.devices / tp % cp != 0 || few) {
        continue;
      }
      plan::Plan plan = base_;
      plan.tp = tp;
      plan.cp = cp;
      split_stages(plan, groups);
    }
  }
  return groups;
}

void Space::split_stages(plan::Plan plan, std::vector<plan::Plan>& groups) const {
  const std::int64_t ranks = task_.devices / plan.tp / plan.cp;
  for (const std::int64_t pp : values("pp", &plan::Plan::pp, divisors(ranks))) {
    if (ranks % pp != 0 || pp > task_.model.layers) {
      continue;
    }
    plan.pp = pp;
    plan.dp = ranks / pp;
    const std::vector<std::int64_t> replicas = values("dp", &plan::Plan::dp, {plan.dp});
    if (is_open("stage_layers")) {
      plan.stage_layers = task_.model.layers % pp == 0 ? "" : "auto";
    }
    if (std::find(replicas.begin(), replicas.end(), plan.dp) != replicas.end()) {
      split_batch(plan, groups);
    }
  }
}

plan::Plan Space::plainest(plan::Plan group) {
  const plan::Plan plain;
  group.schedule = plain.schedule;
  group.chunks = plain.chunks;
  group.stage_layers = group.pp > 1 ? "auto" : "";
  group.recompute = plan::Recompute::none;
  group.recompute_modules.clear();
  group.recompute_layers = 0;
  group.offload_activations = 0;
  group.overlap_ep = plan::OverlapExperts::off;
  group.overlap_tensor = plan::TensorOverlap::none;
  return group;
}

Error Space::base_mistakes() const {
  Error mistakes;
  if (auto checked = plan::check(base_, task_.model); !checked) {
    mistakes.add(std::move(checked.error()));
  }
  if (auto checked = plan::check_machine(base_, task_.machine); !checked) {
    mistakes.add(std::move(checked.error()));
  }
  for (interop::Remark& remark : task_.launcher.empty()
                                     ? std::vector<interop::Remark>()
                                     : interop::incapable(task_.launcher, base_, &task_.model)) {
    if (!is_open(remark.about)) {
      mistakes.add({{}, remark.about, {}, std::move(remark.sentence)});
    }
  }
  return mistakes;
}

void Space::impose(plan::Plan& plan) const {
  if (!task_.launcher.empty()) {
    interop::impose(task_.launcher, plan, [&](std::string_view field) { return is_open(field); });
  }
}

bool Space::can_launch(const plan::Plan& plan) const {
  return task_.launcher.empty() || interop::can_run(task_.launcher, plan, &task_.model);
}

void Space::split_batch(const plan::Plan& plan, std::vector<plan::Plan>& groups) const {
  if (plan.global_batch % plan.dp != 0) {
    return;
  }
  for (const std::int64_t microbatch :
       values("microbatch", &plan::Plan::microbatch, divisors(plan.global_batch / plan.dp))) {
    const std::int64_t tokens = microbatch * plan::sequence_of(task_.model, plan) / plan.cp;
    if (microbatch > 1 && tokens > kMostTokens && is_open("microbatch")) {
      continue;
    }
    plan::Plan next = plan;
    next.microbatch = microbatch;
    if (is_open("sequence_parallel")) {
      const std::int64_t sequence = plan::sequence_of(task_.model, plan);
      next.sequence_parallel = plan.tp > 1 && sequence % (plan.tp * plan.cp) == 0;
    }
    if (is_open("overlap_p2p")) {
      next.overlap_p2p = plan.pp > 1;
    }
    if (is_open("overlap_grad_reduce")) {
      next.overlap_grad_reduce = plan.dp * plan.cp > 1;
    }
    split_experts(next, groups);
  }
}

void Space::split_experts(const plan::Plan& plan, std::vector<plan::Plan>& groups) const {
  if (task_.model.experts == 0) {
    groups.push_back(plan);
    return;
  }
  std::vector<std::int64_t> cuts{1};
  if (plan.tp > 1) {
    cuts.push_back(plan.tp);
  }
  for (const std::int64_t etp : values("etp", &plan::Plan::etp, cuts)) {
    for (const std::int64_t ep : values("ep", &plan::Plan::ep, divisors(task_.model.experts))) {
      const std::int64_t ranks = plan.tp * plan.cp * plan.dp;
      if (ranks % (ep * std::max<std::int64_t>(etp, 1)) == 0) {
        plan::Plan next = plan;
        next.etp = etp;
        next.ep = ep;
        groups.push_back(std::move(next));
      }
    }
  }
}

std::vector<plan::Plan> Space::shapes(const plan::Plan& plan) const {
  std::vector<plan::Plan> shapes;
  std::vector<plan::Schedule> usual;
  for (const plan::ScheduleRow& row : plan::schedules()) {
    if (row.searched && plan.pp >= row.least_stages) {
      usual.push_back(row.value);
    }
  }
  const std::int64_t most = task_.model.layers / plan.pp;
  std::vector<std::int64_t> several;
  for (std::int64_t chunks = 2; chunks <= std::min(most, kMostChunks); ++chunks) {
    const bool power = (chunks & (chunks - 1)) == 0;
    if (power || task_.model.layers % (plan.pp * chunks) == 0) {
      several.push_back(chunks);
    }
  }
  for (const plan::Schedule schedule : values("schedule", &plan::Plan::schedule, usual)) {
    const plan::ScheduleRow& row = row_of(schedule);
    const std::vector<std::int64_t> of_schedule =
        row.least_chunks < row.most_chunks ? several : std::vector{row.least_chunks};
    const std::vector<std::int64_t> allowed = values("chunks", &plan::Plan::chunks, of_schedule);
    for (const std::int64_t chunks : allowed) {
      plan::Plan next = plan;
      next.schedule = schedule;
      next.chunks = chunks;
      for (const std::string& layers : layer_splits(next)) {
        next.stage_layers = layers;
        share_batch(next, shapes);
      }
    }
  }
  return shapes;
}

void Space::share_batch(const plan::Plan& plan, std::vector<plan::Plan>& shapes) const {
  for (const std::string& shares : batch_splits(plan)) {
    plan::Plan next = plan;
    next.batch_shares = shares;
    exchanges(next, shapes);
  }
}

/// Even, fewer layers beside embedding and head, and in proportion to what each stage's devices do.
std::vector<std::string> Space::layer_splits(plan::Plan plan) const {
  if (!is_open("stage_layers")) {
    return {plan.stage_layers};
  }
  const bool even = task_.model.layers % (plan.pp * plan.chunks) == 0;
  plan.stage_layers = even ? "" : "auto";
  std::vector<std::string> splits{plan.stage_layers};
  if (even && plan.pp > 1 && !proportion_) {  // else "auto" is the split in proportion
    const auto plain = plan::split_layers(task_.model, plan);
    plan.stage_layers = "auto";
    const auto weighed = plan::split_layers(task_.model, plan);
    if (plain && weighed && *plain != *weighed) {
      splits.push_back(plan.stage_layers);
    }
  }
  if (plan.pp > 1 && proportion_) {
    plan.stage_layers = "auto";
    const std::string split = proportion_->of(plan).stage_layers;
    if (std::ranges::find(splits, split) == splits.end()) {
      splits.push_back(split);
    }
    if (!even) {  // that is it
      splits.erase(splits.begin());
    }
  }
  return splits;
}

std::vector<std::string> Space::batch_splits(plan::Plan plan) const {
  std::vector<std::string> splits{plan.batch_shares};
  if (is_open("batch_shares") && proportion_ && plan.dp > 1 && plan.ep == 1) {
    plan.batch_shares = "auto";
    const std::string split = proportion_->of(plan).batch_shares;
    if (!split.empty()) {
      splits.push_back(split);
    }
  }
  return splits;
}

std::vector<plan::ContextExchange> Space::context_exchanges(const plan::Plan& group) const {
  using plan::ContextExchange;
  std::vector<ContextExchange> usual{ContextExchange::p2p};
  if (group.cp > 1) {
    usual = {ContextExchange::p2p, ContextExchange::all_gather, ContextExchange::a2a};
  }
  return values("cp_exchange", &plan::Plan::cp_exchange, usual);
}

std::vector<plan::MoeDispatch> Space::dispatches(const plan::Plan& group) const {
  std::vector<plan::MoeDispatch> usual{plan::MoeDispatch::all_to_all};
  if (group.ep > 1) {
    usual.push_back(plan::MoeDispatch::hierarchical);  // merges copies inside a node as well
  }
  return values("moe_dispatch", &plan::Plan::moe_dispatch, usual);
}

std::vector<plan::TensorOverlap> Space::tensor_overlaps(const plan::Plan& group) const {
  std::vector<plan::TensorOverlap> usual{plan::TensorOverlap::none};
  if (group.tp > 1 && group.tp_chunks == 1 && task_.machine.device.tracker) {
    usual.push_back(plan::TensorOverlap::tracked_mca);
  }
  return values("overlap_tensor", &plan::Plan::overlap_tensor, usual);
}

Error Space::tracked_without_tracker() const {
  Error mistakes;
  const auto only = task_.only.find("overlap_tensor");
  if (only == task_.only.end() || task_.machine.device.tracker) {
    return mistakes;
  }
  for (const std::string& value : only->second) {
    if (value.starts_with("tracked")) {
      mistakes.add({"--only", "overlap_tensor", value,
                    "none or cu_split: the device of " + task_.machine.name +
                        " states no tracker (device.tracker), which is hypothetical hardware"});
    }
  }
  return mistakes;
}

namespace {

/// Returns whether dp and pp may change places without changing what any group runs on.
bool orders_alike(const machine::Machine& machine, const plan::Plan& plan) {
  const auto& network = machine.network;
  const bool flat = network.size() == 2 && network.back().kind == topology::DimensionKind::switched;
  return flat && plan.tp * plan.cp % network.front().size == 0;
}

}  // namespace

std::vector<std::string> Space::orders(const plan::Plan& group) const {
  std::vector<std::string> usual{"tp-cp-dp-pp"};
  if (group.pp > 1 && group.dp > 1 && !orders_alike(task_.machine, group)) {
    usual.emplace_back("tp-cp-pp-dp");
  }
  return values("order", &plan::Plan::order, usual);
}

void Space::exchanges(const plan::Plan& plan, std::vector<plan::Plan>& shapes) const {
  std::vector<plan::OverlapExperts> besides{plan::OverlapExperts::off};
  if (plan.ep > 1) {
    besides = {plan::OverlapExperts::shared, plan::OverlapExperts::microbatch};
    if (!task_.launcher.empty()) {  // which may have neither
      besides.insert(besides.begin(), plan::OverlapExperts::off);
    }
  }
  plan::Plan usual = plan;
  usual.recompute = plan::Recompute::none;
  usual.recompute_modules.clear();
  usual.recompute_layers = 0;
  usual.zero = zeros(plan).size() > 1 ? zeros(plan)[1] : zeros(plan).front();
  usual.offload_activations = 0;
  if (is_open("overlap_param_gather")) {
    usual.overlap_param_gather = usual.zero >= 1 && plan.dp * plan.cp > 1;
  }
  auto all = with_each({usual}, &plan::Plan::order, orders(plan));
  all = with_each(all, &plan::Plan::cp_exchange, context_exchanges(plan));
  all = with_each(all, &plan::Plan::moe_dispatch, dispatches(plan));
  all = with_each(all, &plan::Plan::overlap_ep,
                  values("overlap_ep", &plan::Plan::overlap_ep, besides));
  all = with_each(all, &plan::Plan::overlap_tensor, tensor_overlaps(plan));
  for (plan::Plan& shape : all) {
    impose(shape);
    const bool known = !task_.launcher.empty() && std::ranges::find(shapes, shape) != shapes.end();
    if (can_launch(shape) && !known) {
      shapes.push_back(std::move(shape));
    }
  }
}

std::vector<std::int64_t> Space::zeros(const plan::Plan& shape) const {
  std::vector<std::int64_t> usual{0};
  plan::Plan sharded = shape;
  sharded.zero = 3;
  if (plan::worker_ranks(sharded) > 1) {
    usual = {0, 1, 2, 3};
  }
  std::vector<std::int64_t> zeros = values("zero", &plan::Plan::zero, usual);
  if (!task_.launcher.empty() && zeros.size() > 1) {
    const std::vector<std::int64_t> all = zeros;
    std::erase_if(zeros, [&](std::int64_t zero) {
      plan::Plan with = shape;
      with.zero = zero;
      impose(with);
      return !can_launch(with);
    });
    zeros = zeros.empty() ? all : zeros;
  }
  return zeros;
}

std::vector<plan::Offload> Space::optimizer_places() const {
  std::vector<plan::Offload> usual{plan::Offload::none};
  if (task_.machine.device.memory.size() > 1) {
    usual.push_back(plan::Offload::cpu);
  }
  return values("offload_optimizer", &plan::Plan::offload_optimizer, usual);
}

}  // namespace orrery::full
