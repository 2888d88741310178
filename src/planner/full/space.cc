// SPDX-License-Identifier: Apache-2.0
#include "planner/full/space.h"

#include <algorithm>
#include <array>
#include <set>
#include <type_traits>
#include <utility>

#include "base/reader.h"
#include "workload/plan/defaults.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/recompute.h"
#include "workload/plan/shard.h"

namespace orrery::planner {
namespace {

constexpr std::int64_t kMostTokens = 65536;  // of a microbatch, of a rank
constexpr std::int64_t kMostChunks = 16;
constexpr std::int64_t kLeastPiece = 128;  // tokens of one of the two pieces of a cp rank

/// Fields whose values Space chooses itself.
constexpr std::array<std::string_view, 20> kChosen{"tp",
                                                   "cp",
                                                   "pp",
                                                   "dp",
                                                   "ep",
                                                   "etp",
                                                   "microbatch",
                                                   "schedule",
                                                   "chunks",
                                                   "order",
                                                   "zero",
                                                   "recompute",
                                                   "recompute_modules",
                                                   "recompute_layers",
                                                   "cp_exchange",
                                                   "moe_dispatch",
                                                   "overlap_ep",
                                                   "offload_optimizer",
                                                   "offload_activations",
                                                   "stage_layers"};

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

Result<void> set_field(plan::Plan& plan, const std::string& field, const std::string& text,
                       const std::string& where) {
  Error mistakes;
  bool known = false;
  std::vector<std::string> names;
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    names.emplace_back(name);
    if (name != field) {
      return;
    }
    known = true;
    using T = std::decay_t<decltype(plan.*member)>;
    if (auto value = parse_value<T>(text)) {
      plan.*member = std::move(*value);
    } else {
      mistakes.add({where, field, text, value.error()});
    }
  });
  if (!known) {
    mistakes.add({where, {}, field, "a field of a plan" + did_you_mean(field, names)});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return {};
}

Space::Space(const Task& task) : task_(task) {
  plan::PlacedPlan open = task.fixed;
  for (const auto& [field, values] : task.only) {
    open.places[field] = "--only";
  }
  base_ = plan::complete(open, &task_.model, &task_.machine, task_.devices);
}

Result<Space> Space::of(const Task& task) {
  Space space(task);
  if (auto filled = space.fill(); !filled) {
    return fail(std::move(filled.error()));
  }
  return space;
}

Result<void> Space::fill() {
  Error mistakes;
  if (auto fitted = machine::with_devices(task_.machine, task_.devices); !fitted) {
    mistakes.add(std::move(fitted.error()));
  }
  for (const auto& [field, values] : task_.only) {
    for (const std::string& value : values) {
      plan::Plan trial;
      if (auto set = set_field(trial, field, value, "--only"); !set) {
        mistakes.add(std::move(set.error()));
        break;
      }
    }
    if (const auto place = task_.fixed.places.find(field); place != task_.fixed.places.end()) {
      mistakes.add({"--only", field, {}, "contradicts " + place->second + "; choose one"});
    }
    if (std::find(kChosen.begin(), kChosen.end(), field) == kChosen.end()) {
      others_.push_back({field, values});
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  fill_recompute();
  return {};
}

/// Operators of layers that run again: modules that select the same are one.
std::set<std::string> Space::selected_by(const plan::Plan& plan) const {
  std::set<std::string> names;
  if (plan.recompute == plan::Recompute::full) {
    return {"full"};
  }
  plan::Plan whole = plan;
  whole.tp = whole.cp = whole.ep = whole.etp = whole.microbatch = 1;
  const auto blocks = plan::block_operators(task_.model, whole);
  for (plan::BlockKind kind = plan::kFirstLayerBlock; kind < blocks.size(); ++kind) {
    for (const zoo::ModelOperator& op : blocks[kind]) {
      if (plan::recompute_selects(plan, op)) {
        names.insert(std::to_string(kind) + op.name);
      }
    }
  }
  return names;
}

void Space::fill_recompute() {
  std::set<std::set<std::string>> known;
  const bool whole = is_open("recompute");
  const bool parts = is_open("recompute_modules");
  for (const plan::Recompute recompute :
       values("recompute", &plan::Plan::recompute,
              {plan::Recompute::none, plan::Recompute::selective, plan::Recompute::full})) {
    const bool modules = parts && recompute != plan::Recompute::full;
    std::vector<std::string> usual{""};
    if (modules && whole) {
      usual = {"",
               "layernorm",
               "mlp",
               "layernorm,mlp",
               "moe_act",
               "moe",
               "layernorm,moe_act",
               "mla_up_proj",
               "layernorm,mla_up_proj,moe_act"};
    }
    for (const std::string& names :
         recompute == plan::Recompute::full
             ? std::vector<std::string>{""}
             : values("recompute_modules", &plan::Plan::recompute_modules, usual)) {
      plan::Plan trial = base_;
      trial.recompute = recompute;
      trial.recompute_modules = names;
      if (plan::check_recompute(trial, task_.model) && known.insert(selected_by(trial)).second) {
        recomputes_.push_back({recompute, names});
      }
    }
  }
}

bool Space::is_open(std::string_view field) const {
  return !task_.fixed.places.contains(field) && !task_.only.contains(field);
}

template <class T>
std::vector<T> Space::values(std::string_view field, T plan::Plan::*member,
                             std::vector<T> usual) const {
  if (const auto only = task_.only.find(field); only != task_.only.end()) {
    std::vector<T> chosen;
    for (const std::string& text : only->second) {
      chosen.push_back(*parse_value<T>(text));
    }
    return chosen;
  }
  return is_open(field) ? std::move(usual) : std::vector<T>{base_.*member};
}

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
      for (const std::int64_t pp :
           values("pp", &plan::Plan::pp, divisors(task_.devices / tp / cp))) {
        const std::int64_t ranks = task_.devices / tp / cp;
        if (ranks % pp != 0 || pp > task_.model.layers) {
          continue;
        }
        plan::Plan plan = base_;
        plan.tp = tp;
        plan.cp = cp;
        plan.pp = pp;
        const std::vector<std::int64_t> replicas = values("dp", &plan::Plan::dp, {ranks / pp});
        plan.dp = ranks / pp;
        if (is_open("stage_layers")) {
          plan.stage_layers = task_.model.layers % pp == 0 ? "" : "auto";
        }
        if (std::find(replicas.begin(), replicas.end(), plan.dp) != replicas.end()) {
          split_batch(plan, groups);
        }
      }
    }
  }
  return groups;
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
      next.sequence_parallel = plan.tp > 1;
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
  using plan::Schedule;
  std::vector<Schedule> usual{Schedule::one_f_one_b};
  if (plan.pp > 1) {
    usual = {Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1, Schedule::zb_v,
             Schedule::dualpipe};
  }
  const std::int64_t most = task_.model.layers / plan.pp;
  std::vector<std::int64_t> several;
  for (std::int64_t chunks = 2; chunks <= std::min(most, kMostChunks); ++chunks) {
    const bool power = (chunks & (chunks - 1)) == 0;
    if (power || task_.model.layers % (plan.pp * chunks) == 0) {
      several.push_back(chunks);
    }
  }
  for (const Schedule schedule : values("schedule", &plan::Plan::schedule, usual)) {
    const std::vector<std::int64_t> of_schedule = schedule == Schedule::interleaved ? several
                                                  : schedule == Schedule::zb_v
                                                      ? std::vector<std::int64_t>{2}
                                                      : std::vector<std::int64_t>{1};
    const std::vector<std::int64_t> allowed = values("chunks", &plan::Plan::chunks, of_schedule);
    for (const std::int64_t chunks : allowed) {
      plan::Plan next = plan;
      next.schedule = schedule;
      next.chunks = chunks;
      if (is_open("stage_layers")) {
        const bool even = task_.model.layers % (plan.pp * chunks) == 0;
        next.stage_layers = even ? "" : "auto";
      }
      exchanges(next, shapes);
    }
  }
  return shapes;
}

std::vector<plan::ContextExchange> Space::context_exchanges(const plan::Plan& group) const {
  using plan::ContextExchange;
  std::vector<ContextExchange> usual{ContextExchange::p2p};
  if (group.cp > 1) {
    usual = {ContextExchange::p2p, ContextExchange::all_gather, ContextExchange::a2a};
  }
  return values("cp_exchange", &plan::Plan::cp_exchange, usual);
}

bool Space::orders_alike(const plan::Plan& plan) const {
  const auto& network = task_.machine.network;
  const bool flat = network.size() == 2 && network.back().kind == topology::DimensionKind::switched;
  return flat && plan.tp * plan.cp % network.front().size == 0;
}

void Space::exchanges(const plan::Plan& plan, std::vector<plan::Plan>& shapes) const {
  std::vector<std::string> orders{"tp-cp-dp-pp"};
  if (plan.pp > 1 && plan.dp > 1 && !orders_alike(plan)) {
    orders.emplace_back("tp-cp-pp-dp");
  }
  std::vector<plan::MoeDispatch> dispatches{plan::MoeDispatch::all_to_all};
  std::vector<plan::OverlapExperts> besides{plan::OverlapExperts::off};
  if (plan.ep > 1) {
    if (!task_.machine.network.empty() && plan.ep * plan.etp > task_.machine.network.front().size) {
      dispatches.push_back(plan::MoeDispatch::hierarchical);
    }
    besides = {plan::OverlapExperts::shared, plan::OverlapExperts::microbatch};
  }
  for (const std::string& order : values("order", &plan::Plan::order, orders)) {
    for (const auto exchange : context_exchanges(plan)) {
      for (const auto dispatch : values("moe_dispatch", &plan::Plan::moe_dispatch, dispatches)) {
        for (const auto beside : values("overlap_ep", &plan::Plan::overlap_ep, besides)) {
          plan::Plan next = plan;
          next.order = order;
          next.cp_exchange = exchange;
          next.moe_dispatch = dispatch;
          next.overlap_ep = beside;
          next.recompute = plan::Recompute::none;
          next.recompute_modules.clear();
          next.recompute_layers = 0;
          next.zero = zeros(plan).size() > 1 ? zeros(plan)[1] : zeros(plan).front();
          next.offload_activations = 0;
          if (is_open("overlap_param_gather")) {
            next.overlap_param_gather = next.zero >= 1 && plan.dp * plan.cp > 1;
          }
          shapes.push_back(std::move(next));
        }
      }
    }
  }
}

std::vector<std::int64_t> Space::zeros(const plan::Plan& shape) const {
  std::vector<std::int64_t> usual{0};
  if (shape.dp * shape.cp > 1) {
    usual = {0, 1, 2, 3};
  }
  return values("zero", &plan::Plan::zero, usual);
}

std::vector<plan::Offload> Space::optimizer_places() const {
  std::vector<plan::Offload> usual{plan::Offload::none};
  if (task_.machine.device.memory.size() > 1) {
    usual.push_back(plan::Offload::cpu);
  }
  return values("offload_optimizer", &plan::Plan::offload_optimizer, usual);
}

std::vector<double> Space::activation_shares() const {
  std::vector<double> usual{0};
  if (task_.machine.device.memory.size() > 1) {
    usual = {0, 0.5, 1};
  }
  return values("offload_activations", &plan::Plan::offload_activations, usual);
}

std::uint64_t Space::variant_count(const plan::Plan& shape) const {
  std::uint64_t count = recomputes_.size() * zeros(shape).size() * optimizer_places().size() *
                        activation_shares().size();
  for (const Variation& variation : others_) {
    count *= variation.values.size();
  }
  return count;
}

std::vector<plan::Plan> Space::variants(const plan::Plan& shape) const {
  std::vector<plan::Plan> variants;
  for (const Recomputing& recompute : recomputes_) {
    for (const std::int64_t zero : zeros(shape)) {
      for (const plan::Offload place : optimizer_places()) {
        for (const double share : activation_shares()) {
          plan::Plan next = shape;
          next.recompute = recompute.recompute;
          next.recompute_modules = recompute.modules;
          next.recompute_layers =
              recompute.recompute == plan::Recompute::full && layers_of_chunk(shape) > 1 ? 1 : 0;
          if (!is_open("recompute_layers")) {
            next.recompute_layers = base_.recompute_layers;
          }
          next.zero = zero;
          next.offload_optimizer = place;
          next.offload_activations = share;
          if (is_open("overlap_param_gather")) {
            next.overlap_param_gather = zero >= 1 && shape.dp * shape.cp > 1;
          }
          add_others(next, variants);
        }
      }
    }
  }
  return variants;
}

void Space::add_others(const plan::Plan& plan, std::vector<plan::Plan>& variants) const {
  std::vector<plan::Plan> made{plan};
  for (const Variation& variation : others_) {
    std::vector<plan::Plan> more;
    for (const plan::Plan& one : made) {
      for (const std::string& value : variation.values) {
        more.push_back(one);
        (void)set_field(more.back(), variation.field, value, {});
      }
    }
    made = std::move(more);
  }
  variants.insert(variants.end(), made.begin(), made.end());
}

plan::Plan Space::frugal(const plan::Plan& shape) const {
  const std::vector<plan::Plan> all = variants(shape);
  plan::Plan frugal = all.back();  // every list ends with what keeps least
  frugal.recompute_layers = is_open("recompute_layers") ? 0 : base_.recompute_layers;
  return frugal;
}

std::vector<plan::Plan> Space::changes(const plan::Plan& plan) const {
  std::vector<plan::Plan> changes;
  const auto change = [&](std::string_view field, auto member, auto value) {
    if (is_open(field) && plan.*member != value) {
      changes.push_back(plan);
      changes.back().*member = value;
    }
  };
  change("overlap_p2p", &plan::Plan::overlap_p2p, !plan.overlap_p2p);
  change("overlap_grad_reduce", &plan::Plan::overlap_grad_reduce, !plan.overlap_grad_reduce);
  change("overlap_param_gather", &plan::Plan::overlap_param_gather, !plan.overlap_param_gather);
  change("pipeline_send", &plan::Plan::pipeline_send, plan::PipelineSend::scatter_gather);
  change("sequence_parallel", &plan::Plan::sequence_parallel, !plan.sequence_parallel);
  for (const Bytes bucket : {40_MiB, 160_MiB, 640_MiB}) {
    change("bucket", &plan::Plan::bucket, bucket);
  }
  return changes;
}

bool Space::recompute_more(plan::Plan& plan) const {
  if (plan.recompute != plan::Recompute::full || plan.recompute_layers == 0 ||
      !is_open("recompute_layers")) {
    return false;
  }
  ++plan.recompute_layers;
  if (plan.recompute_layers >= layers_of_chunk(plan)) {
    plan.recompute_layers = 0;
  }
  return true;
}

std::int64_t Space::layers_of_chunk(const plan::Plan& plan) const {
  std::int64_t most = 0;
  const auto parts = plan::split_layers(task_.model, plan);
  if (!parts) {
    return 0;
  }
  for (const auto& stage : *parts) {
    most = std::max(most, *std::max_element(stage.begin(), stage.end()));
  }
  return most;
}

}  // namespace orrery::planner
