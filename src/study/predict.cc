// SPDX-License-Identifier: Apache-2.0
#include "study/predict.h"

#include <algorithm>

#include "study/energy.h"
#include "study/run.h"
#include "workload/memory/footprint.h"
#include "workload/plan/shard.h"

namespace orrery::study {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr double kTera = 1e12;
constexpr double kMillisecondsPerSecond = 1e3;

/// FLOPs of a step as Narayanan et al. (SC'21) count them: passes 4 with full recompute (eq. 3), 3
/// without. `logits` is the denominator that goes with it, 16 and 12.
double counted_flops(const zoo::Model& model, const plan::Plan& plan, double passes) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double hidden = number(model.hidden);
  const double layers = number(model.layers);
  const double sequence = number(plan::sequence_of(model, plan));
  return 24 * passes * number(plan.global_batch) * sequence * layers * hidden * hidden *
         (1 + sequence / (6 * hidden) + number(model.vocab) / (4 * passes * layers * hidden));
}

Result<Prediction> predict_step(const TableCase& run, Measure measure,
                                const machine::Machine& machine) {
  RunOptions options;
  options.allow_oom = true;
  const Result<zoo::Model> model = run.model();
  if (!model) {
    return fail(model.error());
  }
  const plan::Plan plan =
      run.names.recompute_to_fit ? least_recompute(*model, machine, run.plan) : run.plan;
  const Result<Run> result = run_step(*model, machine, plan, 0, options);
  if (!result) {
    return fail(result.error());
  }
  const double step = to_seconds(result->timeline.step_time);
  const double per_device = step * static_cast<double>(result->devices) * kTera;
  Prediction prediction{
      .value = step, .oom = !result->fits, .causes = causes_of(*model, plan, machine)};
  if (measure == Measure::step_ms) {
    prediction.value = step * kMillisecondsPerSecond;
  } else if (measure == Measure::tflops_with_recompute) {
    prediction.value = counted_flops(*model, run.plan, 4) / per_device;
  } else if (measure == Measure::model_tflops) {
    prediction.value = counted_flops(*model, run.plan, 3) / per_device;
  } else if (measure == Measure::tokens_per_device) {
    const Bytes tokens = Bytes(1) * run.plan.global_batch * plan::sequence_of(*model, run.plan);
    prediction.value = static_cast<double>(tokens.value()) * kTera / per_device;
  } else if (measure == Measure::mfu_percent) {
    prediction.value = 100 * result->mfu;
  } else if (measure == Measure::device_tflops) {
    prediction.value = result->model_flops_per_device.value() / kTera;
  } else if (measure == Measure::power_w) {
    const std::optional<StepEnergy> energy = energy_of(*result);
    if (!energy) {
      return fail(Error(Mistake{machine.name, "device.power", {}, "missing; expected watts"}));
    }
    prediction.value =
        energy->average_power(*result).value() * static_cast<double>(result->devices);
    prediction.causes = {};  // errors of time say nothing about it
  }
  return prediction;
}

double state_gib(const std::vector<footprint::StageMemory>& stages) {
  double least = 0;
  for (const footprint::StageMemory& stage : stages) {
    const Bytes state = stage[plan::MemoryCategory::parameters] +
                        stage[plan::MemoryCategory::gradients] +
                        stage[plan::MemoryCategory::optimizer];
    const double gib = static_cast<double>(state.value()) / kGibibyte;
    least = least == 0 ? gib : std::min(least, gib);
  }
  return least;
}

/// Returns the most of any device that a measure of memory counts, in its unit.
double held(const std::vector<footprint::StageMemory>& stages, const plan::Plan& plan,
            Bytes reserve, Measure measure) {
  // PyTorch does not count what captured graphs keep in a pool of their own as allocated.
  const bool captured = plan::is_pytorch(plan) && plan.cuda_graphs == plan::CudaGraphs::full &&
                        (measure == Measure::allocated_gib || measure == Measure::allocated_gb);
  double most = 0;
  for (const footprint::StageMemory& stage : stages) {
    if (captured) {
      most = std::max(most, state_gib({stage}) * kGibibyte);
      continue;
    }
    const Bytes bytes = measure == Measure::driver_gib     ? stage.total()
                        : measure == Measure::reserved_gib ? stage.tensors() + reserve
                                                           : stage.tensors();
    most = std::max(most, static_cast<double>(bytes.value()));
  }
  return most / (measure == Measure::allocated_gb ? 1e9 : kGibibyte);
}

double activation_gib(const std::vector<footprint::StageMemory>& stages) {
  return static_cast<double>(stages.front().highest[plan::MemoryCategory::activations].value()) /
         kGibibyte;
}

StepFigure figure_of(Measure measure) {
  return measure == Measure::reserved_gib ? StepFigure::reserved
         : measure == Measure::driver_gib ? StepFigure::driver
                                          : StepFigure::allocated;
}

Result<Prediction> predict_memory(const TableCase& run, Measure measure,
                                  const machine::Machine& machine) {
  const Result<zoo::Model> model = run.model();
  if (!model) {
    return fail(model.error());
  }
  const auto stages_of = [&](const plan::Plan& plan) {
    return plan::check(plan, *model).and_then([&] {
      return footprint::memory_footprint(*model, plan, &machine);
    });
  };
  const auto stages =
      stages_of(run.names.recompute_to_fit ? least_recompute(*model, machine, run.plan) : run.plan);
  if (!stages) {
    return fail(stages.error());
  }
  Prediction prediction{.value = activation_gib(*stages),
                        .oom = !footprint::check_fits(*stages, machine).has_value(),
                        .causes = causes_of(*model, run.plan, machine, figure_of(measure))};
  if (is_memory(measure)) {
    prediction.value = held(*stages, run.plan, footprint::reserve_bytes(*model, run.plan), measure);
  } else if (measure == Measure::state_gib) {
    prediction.value = state_gib(*stages);
  } else if (measure == Measure::activation_percent) {
    plan::Plan keep_all = run.plan;
    keep_all.recompute = plan::Recompute::none;
    keep_all.sequence_parallel = false;
    const auto reference = stages_of(keep_all);
    if (!reference) {
      return fail(reference.error());
    }
    prediction.value *= 100 / activation_gib(*reference);
  }
  return prediction;
}

/// Says whether a plan that runs fits.
bool fits(const zoo::Model& model, const machine::Machine& machine, const plan::Plan& plan) {
  if (!plan::check(plan, model)) {
    return false;
  }
  const auto stages = footprint::memory_footprint(model, plan, &machine);
  return stages && footprint::check_fits(*stages, machine).has_value();
}

}  // namespace

plan::Plan least_recompute(const zoo::Model& model, const machine::Machine& machine,
                           const plan::Plan& given) {
  plan::Plan plan = given;
  const auto enough = [&] { return fits(model, machine, plan); };
  const bool runs = plan::check(given, model).has_value();
  if (!runs || given.recompute == plan::Recompute::full || enough()) {
    return plan;
  }
  if (given.recompute_modules.empty() && given.recompute == plan::Recompute::none) {
    std::string modules;
    for (const auto& [module, applies] :
         {std::pair{"layernorm", true}, std::pair{"moe_act", model.experts > 0},
          std::pair{"mla_up_proj", model.latent.key_value_rank > 0},
          std::pair{"core_attn", true}}) {
      modules += applies ? (modules.empty() ? "" : ",") + std::string(module) : "";
      plan.recompute_modules = modules;
      if (applies && enough()) {
        return plan;
      }
    }
  }
  plan.recompute = plan::Recompute::full;
  plan.recompute_modules.clear();
  std::int64_t too_few = 0;
  std::int64_t layers = model.layers / (plan.pp * plan::chunks_of(plan)) + 1;
  while (too_few + 1 < layers) {
    plan.recompute_layers = (too_few + layers) / 2;
    (enough() ? layers : too_few) = plan.recompute_layers;
  }
  plan.recompute_layers = layers;
  if (!enough()) {
    plan.recompute_layers = 0;
  }
  return plan;
}

Result<Prediction> predict(const TableCase& run, Measure measure, const machine::Machine& machine) {
  if (!run.names.machine.empty() && run.names.machine != machine.name) {
    const Result<machine::Machine> named =
        machine::load_machine(without_extension(run.names.machine));
    if (!named) {
      return fail(named.error());
    }
    TableCase there = run;
    there.names.machine.clear();
    return predict(there, measure, *named);
  }
  switch (measure) {
    case Measure::step_s:
    case Measure::step_ms:
    case Measure::tflops_with_recompute:
    case Measure::model_tflops:
    case Measure::tokens_per_device:
    case Measure::mfu_percent:
    case Measure::device_tflops:
    case Measure::power_w:
      return predict_step(run, measure, machine);
    case Measure::ttft_s:
    case Measure::ttft_ms:
    case Measure::tpot_ms:
    case Measure::latency_s:
    case Measure::latency_ms:
    case Measure::output_tokens_per_s:
    case Measure::total_tokens_per_s:
    case Measure::steady_tokens_per_s:
    case Measure::duration_s:
    case Measure::itl_median_ms:
    case Measure::itl_p90_ms:
    case Measure::itl_p99_ms:
    case Measure::ttft_median_ms:
    case Measure::ttft_p99_ms:
    case Measure::tpot_median_ms:
    case Measure::tpot_p99_ms:
    case Measure::j_per_token:
    case Measure::kv_tokens:
    case Measure::kv_gib:
    case Measure::weights_gib:
      return fail(Error("a measure of serving in a table of training"));
    case Measure::state_gib:
    case Measure::activation_gib:
    case Measure::activation_percent:
    case Measure::allocated_gib:
    case Measure::allocated_gb:
    case Measure::reserved_gib:
    case Measure::driver_gib:
      return predict_memory(run, measure, machine);
  }
  return fail("unknown measure");
}

}  // namespace orrery::study
