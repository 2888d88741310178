// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/defaults.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/collect.h"
#include "workload/plan/completed.h"
#include "workload/plan/framework.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/rounds.h"
#include "workload/plan/schedule_row.h"

namespace orrery::plan {
namespace {

constexpr std::int64_t kYear = 2023;  // from which the newer defaults hold

class Completion {
 public:
  Completion(const PlacedPlan& open, const zoo::Model* model, const machine::Machine* machine)
      : open_(open), model_(model), machine_(machine) {}

  Completed run(std::int64_t devices) {
    fill(devices);
    Error mistakes = found();
    if (!mistakes.empty()) {  // some choice is wrong: each by itself
      one_by_one_ = true;
      fill(devices);
      mistakes = found();
    }
    if (plan_.as_of >= kFirstYear && plan_.as_of <= kLastYear) {
      plan_.as_of = 0;
    }
    return {std::move(plan_), std::move(mistakes)};
  }

 private:
  void fill(std::int64_t devices) {
    plan_ = open_.plan;
    const std::int64_t replica = (Bytes(plan_.tp) * plan_.cp * plan_.pp).value();  // saturates
    if (is_open("dp") && devices > 0 && replica > 0) {
      plan_.dp = std::max<std::int64_t>(1, devices / replica);
    }
    const std::int64_t ends = row_of(plan_.schedule).both_ends ? 2 : 1;  // of the pipeline
    const std::int64_t batch = (Bytes(plan_.dp) * plan_.microbatch * plan_.pp * ends).value();
    const bool even = plan_.batch_shares.empty() || plan_.batch_shares == "auto";
    if (is_open("global_batch") && even && batch > 0) {
      plan_.global_batch = batch;
    }
    choose("compute_type", &Plan::compute_type, graph::DataType::fp16,
           !computes_in(graph::DataType::bf16) && computes_in(graph::DataType::fp16));
    const bool usual = plan_.strategy.empty() && (plan_.as_of == 0 || plan_.as_of >= kYear);
    if (usual) {
      choose("attention", &Plan::attention, zoo::AttentionKernel::flash,
             computes_in(graph::DataType::bf16));
      choose("sequence_parallel", &Plan::sequence_parallel, true, plan_.tp > 1);
      choose("zero", &Plan::zero, 1, shares_states());
      choose("stage_layers", &Plan::stage_layers, "auto", !layers_divide());
      choose("moe_dispatch", &Plan::moe_dispatch, MoeDispatch::hierarchical, routes_by_node());
    }
  }

  bool is_open(std::string_view field) const { return !open_.places.contains(field); }

  bool computes_in(graph::DataType type) const {
    return machine_ == nullptr ||
           machine_->device.peak[static_cast<std::size_t>(type)] > FlopRate(0);
  }

  /// Returns whether ZeRO 1 has ranks to share states: those that step alone have none (rounds.h).
  bool shares_states() const {
    if (plan_.data_parallel_update == DataParallelUpdate::every_step) {
      return plan_.dp > 1 || plan_.cp > 1;
    }
    Plan one = plan_;
    one.zero = 1;
    return worker_ranks(one) > 1;
  }

  bool layers_divide() const {
    const std::int64_t parts = (Bytes(plan_.pp) * plan_.chunks).value();
    return model_ == nullptr || parts < 1 || model_->layers % parts == 0;
  }

  bool routes_by_node() const {
    return model_ != nullptr && model_->chosen_groups < model_->expert_groups &&
           machine_ != nullptr && !machine_->network.empty() &&
           plan_.ep > machine_->network.front().size;
  }

  /// One by one not where the plan is more wrong with it.
  template <class T, class Value>
  void choose(std::string_view field, T Plan::*member, Value value, bool wanted) {
    if (!wanted || !is_open(field)) {
      return;
    }
    T other = std::exchange(plan_.*member, T(value));
    const std::size_t with = one_by_one_ ? found().mistakes.size() : 0;
    if (with > 0) {
      std::swap(plan_.*member, other);
      if (with <= found().mistakes.size()) {
        std::swap(plan_.*member, other);
      }
    }
  }

  Error found() const {
    Error mistakes;
    if (model_ != nullptr) {
      collect(check(plan_, *model_), mistakes);
    }
    if (machine_ != nullptr && mistakes.empty()) {
      collect(check_machine(plan_, *machine_), mistakes);
    }
    return mistakes;
  }

  const PlacedPlan& open_;
  Plan plan_;
  bool one_by_one_ = false;
  const zoo::Model* model_;
  const machine::Machine* machine_;
};

}  // namespace

std::string default_text(std::string_view field) {
  const auto* const open = std::ranges::find(kOpenFields, field, &OpenField::name);
  if (open != kOpenFields.end()) {
    return "default: " + std::string(open->today);
  }
  return "default " + field_text({}, field);
}

Completed completed(const PlacedPlan& filled, const zoo::Model* model,
                    const machine::Machine* machine, std::int64_t devices) {
  return Completion(filled, model, machine).run(devices);
}

Plan complete(const PlacedPlan& open, const zoo::Model* model, const machine::Machine* machine,
              std::int64_t devices) {
  PlacedPlan placed = open;
  apply_framework(placed);
  return completed(placed, model, machine, devices).plan;
}

}  // namespace orrery::plan
