// SPDX-License-Identifier: Apache-2.0
#include "planner/full/space.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <type_traits>
#include <utility>

#include "base/reader.h"
#include "machine/dimensions_only.h"
#include "workload/plan/defaults.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/recompute.h"
#include "workload/plan/shard.h"

namespace orrery::full {
namespace {

/// Fields whose values Space chooses itself.
constexpr auto kChosen = std::to_array<std::string_view>(
    {"tp", "cp", "pp", "dp", "ep", "etp", "microbatch", "schedule", "chunks", "order", "zero",
     "recompute", "recompute_modules", "cp_exchange", "moe_dispatch", "overlap_ep",
     "overlap_tensor", "offload_optimizer", "offload_activations"});

/// Names operators of layers that run again: modules that select the same are one.
std::set<std::string> selected_by(const zoo::Model& model, const plan::Plan& plan) {
  std::set<std::string> names;
  if (plan.recompute == plan::Recompute::full) {
    return {"full"};
  }
  plan::Plan whole = plan;
  whole.tp = whole.cp = whole.ep = whole.etp = whole.microbatch = 1;
  const auto blocks = plan::block_graphs(model, whole);
  for (plan::BlockKind kind = plan::kFirstLayerBlock; kind < blocks.size(); ++kind) {
    for (const zoo::ModelOperator& op : blocks[kind].operators) {
      if (plan::recompute_selects(plan, op)) {
        names.insert(std::to_string(kind) + op.name);
      }
    }
  }
  return names;
}

/// Layers of the longest chunk.
std::int64_t layers_of_chunk(const zoo::Model& model, const plan::Plan& plan) {
  std::int64_t most = 0;
  const auto parts = plan::split_layers(model, plan);
  if (!parts) {
    return 0;
  }
  for (const auto& stage : *parts) {
    most = std::max(most, *std::max_element(stage.begin(), stage.end()));
  }
  return most;
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
  if (!task.machine.parts.empty()) {
    owner_ = std::make_shared<const Task>(task);
    proportion_ = std::make_shared<parallel::Proportion>(owner_->model, owner_->machine);
  }
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

/// Returns the mistakes of check() that hold whatever else the plan says.
Error Space::out_of_range(const plan::Plan& plan) const {
  Error error;
  if (auto checked = plan::check(plan, task_.model); !checked) {
    for (Mistake& mistake : checked.error().mistakes) {
      if (mistake.expected.starts_with("a number from")) {
        error.add(std::move(mistake));
      }
    }
  }
  return error;
}

/// Returns the mistakes of values that --only gives a field.
Error Space::mistakes_of(const std::string& field, const std::vector<std::string>& values) const {
  Error mistakes;
  for (const std::string& value : values) {
    plan::Plan trial = base_;
    if (auto set = set_field(trial, field, value, "--only"); !set) {
      mistakes.add(std::move(set.error()));
      break;
    }
    for (Mistake& mistake : out_of_range(trial).mistakes) {
      if (mistake.field == field) {
        mistake.where = "--only";
        mistakes.add(std::move(mistake));
      }
    }
    if (auto named = plan::check_recompute(trial, task_.model);
        field == "recompute_modules" && trial.recompute != plan::Recompute::full && !named) {
      mistakes.add(std::move(named.error()));
    }
  }
  return mistakes;
}

Result<void> Space::fill() {
  Error mistakes;
  if (auto known = machine::check_dimensions_only(task_.machine, "plan"); !known) {
    mistakes.add(std::move(known.error()));
  }
  if (auto fitted = machine::with_devices(task_.machine, task_.devices); !fitted) {
    mistakes.add(std::move(fitted.error()));
  }
  mistakes.add(task_.fixed.placed(out_of_range(base_)));
  if (base_.fuse_communication || task_.only.contains("fuse_communication")) {
    mistakes.add(task_.fixed.placed(
        Error({"", "fuse_communication", {}, "nothing: the search tries it on its answer"})));
  }
  mistakes.add(tracked_without_tracker());
  for (const auto& [field, values] : task_.only) {
    if (values.empty()) {
      mistakes.add({"--only", field, {}, "values to try, separated by commas"});
    }
    if (field == "global_batch" || field == "sequence") {
      mistakes.add({"--only", field, {}, "one value: plans of different work are not compared"});
    }
    mistakes.add(mistakes_of(field, values));
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
  const bool has_host = task_.machine.device.memory.size() > 1;
  shares_ = values("offload_activations", &plan::Plan::offload_activations,
                   has_host ? std::vector<double>{0, 0.5, 1} : std::vector<double>{0});
  return {};
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
      usual.assign(kModulesAgain.begin(), kModulesAgain.end());
    }
    for (const std::string& names :
         parts&& recompute == plan::Recompute::full
             ? std::vector<std::string>{""}
             : values("recompute_modules", &plan::Plan::recompute_modules, usual)) {
      plan::Plan trial = base_;
      trial.recompute = recompute;
      trial.recompute_modules = names;
      std::set<std::string> again = selected_by(task_.model, trial);
      if (plan::check_recompute(trial, task_.model) && known.insert(again).second) {
        recomputes_.push_back({recompute, names, std::move(again)});
      }
    }
  }
}

bool Space::is_open(std::string_view field) const {
  return !task_.fixed.places.contains(field) && !task_.only.contains(field);
}

std::uint64_t Space::variant_count(const plan::Plan& shape) const {
  std::uint64_t count =
      recomputes_.size() * zeros(shape).size() * optimizer_places().size() * shares_.size();
  for (const Variation& variation : others_) {
    count *= variation.values.size();
  }
  return count;
}

std::vector<plan::Plan> Space::variants_to_save(const plan::Plan& shape) const {
  std::vector<plan::Plan> variants;
  for (const std::int64_t zero : zeros(shape)) {
    for (const plan::Offload place : optimizer_places()) {
      plan::Plan next = shape;
      next.zero = zero;
      next.offload_optimizer = place;
      next.recompute_layers = base_.recompute_layers;
      if (is_open("overlap_param_gather")) {
        next.overlap_param_gather = zero >= 1 && shape.dp * shape.cp > 1;
      }
      impose(next);
      std::ranges::move(with_others(next), std::back_inserter(variants));
    }
  }
  return variants;
}

plan::Plan Space::with_saving(plan::Plan variant, std::size_t saving) const {
  const Recomputing& chosen = recomputes_[saving / shares_.size()];
  variant.recompute = chosen.recompute;
  variant.recompute_modules = chosen.modules;
  if (is_open("recompute_layers")) {
    const bool some =
        chosen.recompute == plan::Recompute::full && layers_of_chunk(task_.model, variant) > 1;
    variant.recompute_layers = some ? 1 : 0;
  }
  variant.offload_activations = shares_[saving % shares_.size()];
  return variant;
}

bool Space::saves_less(std::size_t a, std::size_t b) const {
  const Recomputing& less = recomputes_[a / shares_.size()];
  const Recomputing& more = recomputes_[b / shares_.size()];
  const bool part =
      &less == &more || less.again.empty() ||
      (more.recompute != plan::Recompute::full &&
       std::includes(more.again.begin(), more.again.end(), less.again.begin(), less.again.end()));
  return a != b && part && shares_[a % shares_.size()] <= shares_[b % shares_.size()];
}

std::vector<plan::Plan> Space::variants(const plan::Plan& shape) const {
  std::vector<plan::Plan> variants;
  for (const plan::Plan& variant : variants_to_save(shape)) {
    for (std::size_t saving = 0; saving < savings(); ++saving) {
      variants.push_back(with_saving(variant, saving));
    }
  }
  return variants;
}

std::vector<plan::Plan> Space::with_others(const plan::Plan& plan) const {
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
  return made;
}

std::vector<plan::Plan> Space::frugal(const plan::Plan& shape) const {
  const auto greatest = [](const auto& values) {
    return *std::max_element(values.begin(), values.end());
  };
  plan::Plan least = shape;
  least.zero = greatest(zeros(shape));
  const std::vector<plan::Offload> places = optimizer_places();
  least.offload_optimizer = places.front();
  for (const plan::Offload place : places) {
    least.offload_optimizer = place != plan::Offload::none ? place : least.offload_optimizer;
  }
  std::vector<plan::Plan> frugal;
  for (const plan::Plan& variant : with_others(least)) {
    const std::vector<plan::Plan> most = most_saving(variant);
    frugal.insert(frugal.end(), most.begin(), most.end());
  }
  return frugal;
}

std::vector<plan::Plan> Space::most_saving(plan::Plan variant) const {
  variant.offload_activations = *std::max_element(shares_.begin(), shares_.end());
  std::vector<plan::Plan> most;
  for (auto recompute = recomputes_.rbegin(); recompute != recomputes_.rend(); ++recompute) {
    variant.recompute = recompute->recompute;
    variant.recompute_modules = recompute->modules;
    variant.recompute_layers = is_open("recompute_layers") ? 0 : base_.recompute_layers;
    most.push_back(variant);
  }
  return most;
}

std::vector<plan::Plan> Space::changes(const plan::Plan& plan) const {
  std::vector<plan::Plan> changes;
  const auto change = [&](std::string_view field, auto member, auto value) {
    if (is_open(field) && plan.*member != value) {
      changes.push_back(plan);
      changes.back().*member = value;
    }
  };
  for (std::size_t saving = 0; saving < savings(); ++saving) {  // beside contention they may gain
    const plan::Plan other = with_saving(plan, saving);
    const bool one =
        (other.recompute == plan.recompute && other.recompute_modules == plan.recompute_modules) ||
        other.offload_activations == plan.offload_activations;
    if (one && other.recompute != plan::Recompute::full && other != plan) {
      changes.push_back(other);
    }
  }
  if (plan.pp > 1) {
    change("overlap_p2p", &plan::Plan::overlap_p2p, !plan.overlap_p2p);
  }
  change("overlap_grad_reduce", &plan::Plan::overlap_grad_reduce, !plan.overlap_grad_reduce);
  change("overlap_param_gather", &plan::Plan::overlap_param_gather, !plan.overlap_param_gather);
  if (plan.pp > 1 && plan.tp > 1) {
    change("pipeline_send", &plan::Plan::pipeline_send, plan::PipelineSend::scatter_gather);
  }
  if (plan.tp > 1) {
    change("sequence_parallel", &plan::Plan::sequence_parallel, !plan.sequence_parallel);
  }
  change("fused_cross_entropy", &plan::Plan::fused_cross_entropy, true);
  if (plan.tp > 1 && plan.sequence_parallel && plan.overlap_tensor == plan::TensorOverlap::none) {
    change("tp_chunks", &plan::Plan::tp_chunks, plan.tp_chunks > 1 ? 1 : plan.tp);
  }
  const bool counted = plan.bucket_parameters > 0 || plan.bucket_parameters_per_rank > 0;
  for (const Bytes bucket : {40_MiB, 160_MiB, 640_MiB}) {
    change("bucket", &plan::Plan::bucket, counted ? plan.bucket : bucket);
  }
  return changes;
}

std::int64_t Space::layers_to_recompute(const plan::Plan& plan) const {
  const bool some = plan.recompute == plan::Recompute::full && plan.recompute_layers > 0;
  return some && is_open("recompute_layers") ? layers_of_chunk(task_.model, plan) : 0;
}

}  // namespace orrery::full
