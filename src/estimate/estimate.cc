// SPDX-License-Identifier: Apache-2.0
#include "estimate/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimate/chunk_cost.h"
#include "estimate/pipeline_time.h"
#include "estimate/placement.h"
#include "estimate/plan_memo.h"
#include "workload/plan/shard.h"

namespace orrery {

namespace {

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else {
    return fmt::format("{}", value);
  }
}

/// Fields that only the simulation reads must not be ignored silently.
Result<void> has_closed_form(const Plan& plan, const Model& model) {
  static const Plan plain;
  Error error;
  const auto only = [&](std::string_view field, auto member) {
    if (plan.*member != plain.*member) {
      error.add({{},
                 std::string(field),
                 shown(plan.*member),
                 shown(plain.*member) + ": others are simulated, not estimated"});
    }
  };
  only("cp", &Plan::cp);
  only("ep", &Plan::ep);
  only("shard_params", &Plan::shard_params);
  only("shard_grads", &Plan::shard_grads);
  only("shard_optimizer", &Plan::shard_optimizer);
  only("reshard_after_forward", &Plan::reshard_after_forward);
  only("recompute_modules", &Plan::recompute_modules);
  only("recompute_layers", &Plan::recompute_layers);
  only("offload_optimizer", &Plan::offload_optimizer);
  only("offload_params", &Plan::offload_params);
  only("offload_activations", &Plan::offload_activations);
  only("tp_chunks", &Plan::tp_chunks);
  only("quantization", &Plan::quantization);
  only("quantized_params", &Plan::quantized_params);
  only("lora_rank", &Plan::lora_rank);
  only("documents", &Plan::documents);
  if (plan.schedule > Schedule::interleaved) {
    error.add({{},
               "schedule",
               shown(plan.schedule),
               "gpipe, 1f1b or interleaved: others are simulated, not estimated"});
  }
  if (plan.zero >= 2 && plan.pp > 1) {
    error.add({{}, "zero", shown(plan.zero), "0 or 1 with pp > 1: others are simulated only"});
  }
  if (model.experts > 0 || layer_kinds(model).size() > 1) {
    error.add({{}, "model", model.name, "layers that are alike and dense: others are simulated"});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return {};
}

}  // namespace

class Estimator::Memo {
 public:
  Memo(Model model, Machine machine)
      : model_(std::move(model)), machine_(expand_shapes(std::move(machine))) {
    for (std::size_t d = 0; d + 1 < machine_.network.size(); ++d) {
      inside_ *= machine_.network[d].size;
    }
  }

  Result<Estimate> estimate(const Plan& plan) {
    if (auto closed = has_closed_form(plan, model_); !closed) {
      return fail(std::move(closed.error()));
    }
    return needs_whole_step(plan) ? whole_step(plan) : pipelined(plan);
  }

 private:
  Result<const Machine*> machine_of(std::int64_t devices) {
    const auto found = machines_.find(devices);
    if (found != machines_.end()) {
      return &found->second;
    }
    auto fitted = with_devices(machine_, devices);
    if (!fitted) {
      return fail(std::move(fitted.error()));
    }
    return &machines_.emplace(devices, std::move(*fitted)).first->second;
  }

  /// Makes a value that needs the machine of the plan's devices.
  template <class Make>
  auto on_machine(const Plan& plan, Make&& make) -> decltype(make(std::declval<Machine>())) {
    const auto machine = machine_of(plan.devices());
    if (!machine) {
      return fail(machine.error());
    }
    return make(**machine);
  }

  /// Tensor-parallel groups inside the inner dimensions see nothing of the machine's size.
  bool tensor_stays_inside(const Plan& plan) const {
    return plan.tp <= inside_ && plan.devices() >= inside_;
  }

  Result<const ChunkCosts*> chunks(const Plan& plan) {
    Plan key = chunk_key(plan);
    if (!tensor_stays_inside(plan)) {
      key.dp = plan.devices();
    }
    return chunks_.get(key, [&] {
      Plan sample = key;
      sample.dp = 1;
      return on_machine(
          plan, [&](const Machine& machine) { return measure_chunks(model_, sample, machine); });
    });
  }

  Result<const Placement*> placement(const Plan& plan) {
    const Plan key = placement_key(plan);
    return placements_.get(key, [&]() -> Result<Placement> {
      const Plan of_finish = finish_key(plan);
      const auto finish =
          finishes_.get(of_finish, [&] { return finish_templates(model_, of_finish); });
      if (!finish) {
        return fail(finish.error());
      }
      return on_machine(
          plan, [&](const Machine& machine) { return place(model_, key, **finish, machine); });
    });
  }

  Result<Estimate> whole_step(const Plan& plan) {
    const Plan key = whole_step_key(plan);
    const auto step = whole_steps_.get(key, [&] {
      return on_machine(
          plan, [&](const Machine& machine) { return measure_whole_step(model_, key, machine); });
    });
    const auto costs = chunks(plan);
    if (!step || !costs) {
      return fail(step ? costs.error() : step.error());
    }
    const ChunkCost all = (*costs)->first.with_layers((*costs)->layer, model_.layers - 1, true);
    Estimate estimate{.step_time = step_time(**step, model_.layers, plan.microbatches())};
    estimate.compute = (all.forward.kernels + all.backward.kernels) * plan.microbatches();
    estimate.exposed = estimate.step_time - estimate.compute;
    return estimate;
  }

  /// A message as one rank sends it.
  Bytes message(const Plan& plan) const {
    const bool shared =
        plan.sequence_parallel || plan.pipeline_send == PipelineSend::scatter_gather;
    const Bytes whole = boundary_bytes(model_, plan);
    return shared ? whole / plan.tp : whole;
  }

  static void add_exposed(PassCost& pass, Time communication) {
    pass.work += communication;
    pass.latency += communication;
  }

  /// With several chunks every pass but one has messages at both ends.
  static void set_synchronised(const ChunkCost& middle, ChunkCost& work) {
    work.forward.begins_synchronised = middle.forward.begins_synchronised;
    work.forward.ends_synchronised = middle.forward.ends_synchronised;
    work.backward.begins_synchronised = middle.backward.begins_synchronised;
    work.backward.ends_synchronised = middle.backward.ends_synchronised;
  }

  void fill_stages(const Plan& plan, const ChunkCosts& costs, const Placement& placement) {
    const std::int64_t chunks = plan.schedule == Schedule::interleaved ? plan.chunks : 1;
    const Bytes bytes = message(plan);
    stages_.resize(placement.layers.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const bool as_before =
          s > 1 && s + 1 < stages_.size() && placement.layers[s] == placement.layers[s - 1];
      stages_[s] = as_before ? stages_[s - 1] : stage_of(costs, placement, s, chunks);
      stages_[s].next = stages_.size() > 1 ? placement.boundaries[s].time(bytes) : Time(0);
    }
  }

  StageTime stage_of(const ChunkCosts& costs, const Placement& placement, std::size_t s,
                     std::int64_t chunks) const {
    const bool ends = s == 0 || s + 1 == stages_.size();
    const ChunkCost& end = s == 0 ? costs.first : costs.last;
    const std::int64_t each = placement.layers[s] / chunks;
    const std::int64_t rest = placement.layers[s] - each * (chunks - 1);
    const ChunkCost own = (ends ? end : costs.middle).with_layers(costs.layer, rest - 1, s == 0);
    StageTime stage{.work = own, .edge = own};
    if (chunks > 1) {
      stage.edge = costs.middle.with_layers(costs.layer, each - 1, false);
      stage.work = {own.forward.and_apart(stage.edge.forward, chunks - 1),
                    own.backward.and_apart(stage.edge.backward, chunks - 1)};
      set_synchronised(costs.middle, stage.work);
    }
    add_exposed(stage.work.forward, placement.finish[s].forward);
    add_exposed(stage.work.backward, placement.finish[s].backward);
    return stage;
  }

  Result<Estimate> pipelined(const Plan& plan) {
    const auto costs = chunks(plan);
    const auto placed = placement(plan);
    if (!costs || !placed) {
      return fail(costs ? placed.error() : costs.error());
    }
    fill_stages(plan, **costs, **placed);
    const PipelineShape shape = pipeline_shape(plan);
    time_pipeline(stages_, shape, {!plan.overlap_p2p, (*costs)->message_contention}, pipeline_);
    const Time late = late_gathers(**costs, **placed, shape.chunks);
    const Time pipeline = pipeline_.total + late;
    Estimate estimate{.step_time = finish(**costs, **placed) + late};
    estimate.compute = pipeline_.kernels;
    estimate.exposed = pipeline_.busy - pipeline_.kernels;
    estimate.bubble = pipeline - pipeline_.busy;
    estimate.tail = estimate.step_time - pipeline;
    return estimate;
  }

  /// Lost by kernels that run beside `communication`, over at most `kernels`.
  static Time slowed(Time communication, Time kernels, double contention) {
    return std::min(communication, kernels * contention) * (1 - 1 / contention);
  }

  /// First forwards that wait for their parameters or run beside their gathers. All gathers of a
  /// stage follow one another from the start of the step. The first microbatch comes to stage s
  /// when it has passed those before; the last layer of a chunk begins when its gather is done at
  /// the latest. What runs meanwhile is slowed down.
  Time late_gathers(const ChunkCosts& costs, const Placement& placement,
                    std::int64_t chunks) const {
    if (placement.finish.front().gather == Time(0)) {
      return Time(0);
    }
    Time round{0};
    for (const StageTime& stage : stages_) {
      round += stage.edge.forward.work + stage.next;
    }
    Time late{0};
    Time arrival{0};
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageFinish& finish = placement.finish[s];
      const Time of_chunk = finish.gather * (placement.layers[s] / chunks);
      const Time but_last = stages_[s].edge.forward.work - costs.layer.forward.work;
      for (std::int64_t c = 0; c < chunks; ++c) {
        const Time ready = finish.end_gather + of_chunk * (c + 1);
        late = std::max(late, ready - arrival - round * c - (c == 0 ? but_last : Time(0)));
      }
      const Time idle = arrival + (s == 0 ? finish.end_gather : Time(0));
      const Time beside = finish.end_gather + of_chunk * chunks - idle;
      late =
          std::max(late, idle - arrival + std::max(Time(0), beside) * (1 - 1 / costs.contention));
      arrival += stages_[s].edge.forward.work + stages_[s].next;
    }
    return late;
  }

  /// Last backwards that their reductions slow down; each delays those of the stages before it.
  void slow_last_backwards(const ChunkCosts& costs, const Placement& placement) {
    Time slower{0};
    for (std::size_t s = stages_.size(); s-- > 0;) {
      const Time kernels = stages_[s].edge.backward.kernels - costs.layer.backward.kernels;
      slower += slowed(placement.finish[s].hidden, kernels, costs.contention);
      pipeline_.end[s] += slower;
    }
  }

  /// Reductions beside the last backward passes: what is left when those are done.
  Time not_hidden(const StageFinish& finish, std::size_t stage) const {
    const Time beside = stages_[stage].work.backward.work;
    return std::max(finish.last_bucket, finish.hidden - beside);
  }

  Time finish(const ChunkCosts& costs, const Placement& placement) {
    slow_last_backwards(costs, placement);
    std::vector<Time>& ready = pipeline_.end;
    for (std::size_t s = 0; s < ready.size(); ++s) {
      const StageFinish& stage = placement.finish[s];
      ready[s] += stage.reduce + not_hidden(stage, s);
    }
    const Time embedding = placement.finish.front().embedding;
    if (embedding > Time(0)) {
      ready.front() = ready.back() = std::max(ready.front(), ready.back()) + embedding;
    }
    Time norm{0};
    Time update{0};
    for (std::size_t s = 0; s < ready.size(); ++s) {
      norm = std::max(norm, ready[s] + placement.finish[s].norm);
      update = std::max(update, placement.finish[s].update);
    }
    return norm + placement.finish.front().sum + update;
  }

  Model model_;
  Machine machine_;
  std::int64_t inside_ = 1;
  std::unordered_map<std::int64_t, Machine> machines_;  // by devices
  PlanMemo<ChunkCosts> chunks_;
  PlanMemo<FinishTemplates> finishes_;
  PlanMemo<Placement> placements_;
  PlanMemo<WholeStep> whole_steps_;
  // Of the plan at hand; kept for their memory.
  std::vector<StageTime> stages_;
  PipelineTime pipeline_;
};

Estimator::Estimator(Model model, Machine machine)
    : memo_(std::make_unique<Memo>(std::move(model), std::move(machine))) {}
Estimator::~Estimator() = default;
Estimator::Estimator(Estimator&&) noexcept = default;
Estimator& Estimator::operator=(Estimator&&) noexcept = default;

Result<Estimate> Estimator::estimate(const Plan& plan) {
  if (splits_backward(plan.schedule)) {
    return fail(Error(Mistake{{},
                              "schedule",
                              std::string(name_of(plan.schedule)),
                              "gpipe, 1f1b or interleaved: the others have no closed form here; "
                              "simulate them"}));
  }
  return memo_->estimate(plan);
}

}  // namespace orrery
