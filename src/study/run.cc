// SPDX-License-Identifier: Apache-2.0
#include "study/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/collect.h"
#include "machine/device_groups.h"
#include "simulate/simulate.h"
#include "study/fit_advice.h"
#include "study/overflow.h"
#include "study/strategy_step.h"
#include "study/tensor_overlap.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/proportion.h"
#include "workload/parallel/step_clock.h"
#include "workload/plan/layout.h"
#include "workload/plan/lora.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/quantize.h"
#include "workload/plan/recompute.h"
#include "workload/plan/rounds.h"
#include "workload/plan/shard.h"

namespace orrery::study {
namespace {

class Stopwatch {
 public:
  /// Seconds since the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Returns the devices of the plan, or nothing when a degree or their product is outside of what
/// check() allows anyway.
std::int64_t devices_of(const plan::Plan& plan) {
  const std::int64_t devices = (Bytes(plan.tp) * plan.cp * plan.pp * plan.dp).value();  // saturates
  const bool sane =
      std::min({plan.tp, plan.cp, plan.pp, plan.dp}) >= 1 && devices <= machine::kMostDevices;
  return sane ? devices : 0;
}

void check_device_count(const Run& run, Error& mistakes) {
  const std::int64_t needed = devices_of(run.plan);
  if (needed == 0 || needed == run.devices) {
    return;
  }
  std::string expected = fmt::format("tp x cp x pp x dp = {} x {} x {} x {} = {}", run.plan.tp,
                                     run.plan.cp, run.plan.pp, run.plan.dp, needed);
  const std::int64_t replica = needed / run.plan.dp;
  if (run.devices > 0 && run.devices % replica == 0) {
    expected += fmt::format(", or dp {} in the plan", run.devices / replica);
  }
  mistakes.add({{}, "devices", std::to_string(run.devices), std::move(expected)});
}

/// Checks the descriptions against each other and fits the machine to the devices.
Result<void> prepare(Run& run) {
  Error mistakes;
  collect_into(run.machine, machine::arranged(run.machine, run.plan.parts), mistakes);
  run.plan = parallel::in_proportion(std::move(run.plan), run.model, run.machine);
  if (!run.plan.strategy.empty()) {
    mistakes.add(strategy_mistakes(run.plan));
  } else if (auto ok = plan::check(run.plan, run.model); !ok) {
    mistakes.add(std::move(ok.error()));
  } else {
    mistakes.add(nothing_to_overlap(run.model, run.plan));
  }
  run.devices = run.devices == 0 ? devices_of(run.plan) : run.devices;
  check_device_count(run, mistakes);
  if (run.plan.clocks == plan::Clocks::boost) {
    run.machine = machine::at_boost(std::move(run.machine));
  }
  collect(plan::check_machine(run.plan, run.machine), mistakes);
  if (run.devices != 0) {
    collect_into(run.machine, machine::with_devices(run.machine, run.devices), mistakes);
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  parallel::set_clocks(run.machine, run.model, run.plan);
  return {};
}

void add_advice(const Run& run, const RunOptions& options, Error& error) {
  constexpr std::size_t kMost = 3;
  const auto progress = [&](double share) {
    if (options.progress) {
      options.progress(share, 0);
    }
  };
  const std::vector<FitChange> advice =
      fit_advice(run.model, run.machine, run.plan, kMost, progress);
  for (const FitChange& change : advice) {
    error.add(Error("fits with " + to_string(change)));
  }
  if (advice.empty()) {
    error.add(
        Error("does not fit with more recompute, smaller microbatches, ZeRO, offload, nor 8 "
              "times as many tensor- or context-parallel ranks or stages"));
    if (const std::int64_t tokens = fitting_sequence(run.model, run.machine, run.plan)) {
      error.add(Error(fmt::format("fits with sequence: {} instead of {}", tokens,
                                  plan::sequence_of(run.model, run.plan))));
    }
  }
}

/// Checks that the memory that run.memory asks for is there.
Result<void> check_memory(Run& run, const RunOptions& options) {
  run.capacity =
      run.machine.device.memory.empty() ? Bytes(0) : run.machine.device.memory.front().capacity;
  auto fits = footprint::check_fits(run.memory, run.machine);
  run.fits = fits.has_value();
  if (!run.fits && !options.allow_oom) {
    if (options.advise && run.plan.strategy.empty()) {
      add_advice(run, options, fits.error());
    }
    return fits;
  }
  return {};
}

Result<void> measure_memory(Run& run, const RunOptions& options) {
  auto memory = footprint::memory_footprint(run.model, run.plan, &run.machine);
  if (!memory) {
    return fail(std::move(memory.error()));
  }
  run.memory = std::move(*memory);
  return check_memory(run, options);
}

/// Whole rounds where the plan has them and nobody asks for so many steps.
RunOptions with_rounds(RunOptions options, const plan::Plan& plan) {
  if (options.steps == 1) {
    const plan::RoundRun whole = plan::round_run(plan);
    options.steps = whole.steps;
    options.warm_steps = whole.warm;
  }
  return options;
}

Result<void> lower_plan(Run& run, const RunOptions& how) {
  parallel::LowerOptions options{.skip = how.skip,
                                 .observe = {},
                                 .machine = &run.machine,
                                 .fuse_communication = how.fuse,
                                 .steps = how.steps};
  Stopwatch watch;
  if (how.verify_passes) {
    options.observe = [&](const std::string& pass, const graph::Workload&) {
      run.passes.push_back({pass, watch.lap()});
    };
  }
  auto workload = parallel::lower(run.model, run.plan, options);
  if (!how.verify_passes) {
    run.passes.push_back({"lower", watch.lap()});
  }
  if (!workload) {
    return fail(std::move(workload.error()));
  }
  run.workload = std::move(*workload);
  return {};
}

/// Workload and memory of a plan that is a program of `orrery spmd`.
Result<void> write_strategy(Run& run, const RunOptions& options) {
  Error mistakes;
  for (const auto& [flag, given] :
       {std::pair("--skip", !options.skip.empty()), std::pair("--fuse", options.fuse),
        std::pair("--steps", options.steps > 1)}) {
    if (given) {
      mistakes.add({flag, {}, {}, "contradicts a plan's strategy, which no pass makes"});
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  Stopwatch watch;
  auto step = strategy_step(run.model, run.plan, run.machine);
  if (!step) {
    return fail(std::move(step.error()));
  }
  run.passes.push_back({"lower", watch.lap()});
  run.workload = std::move(step->workload);
  run.memory = {std::move(step->memory)};
  return check_memory(run, options);
}

Result<void> simulate_step(Run& run, const RunOptions& options) {
  run.algorithms = plan::algorithms_of(run.plan);
  const simulate::SimulateOptions how{.fold = options.fold,
                                      .record_spans = options.record_spans,
                                      .shortcuts = options.shortcuts,
                                      .record_messages = options.record_messages,
                                      .warm_steps = options.warm_steps,
                                      .faults = options.faults,
                                      .network = options.network,
                                      .algorithms = run.algorithms,
                                      .progress = options.progress};
  Stopwatch watch;
  auto timeline = simulate_in_range(run.workload, run.machine, how);
  if (!timeline) {
    return fail(std::move(timeline.error()));
  }
  run.timeline = std::move(*timeline);
  run.passes.push_back({"simulate", watch.lap()});
  return {};
}

/// Forward FLOPs that recompute does again for one sequence.
Flops recomputed_flops(const Run& run, bool skipped) {
  const auto parts = plan::split_model(run.model, run.plan);
  if (skipped || !parts) {
    return Flops(0);
  }
  plan::Plan sequence = run.plan;  // one of them, whole, as model_flops_per_sequence counts it
  sequence.microbatch = sequence.cp = 1;
  sequence.documents.clear();
  std::vector<Flops> again;  // of one layer, by BlockKind
  for (const zoo::ModelGraph& block : plan::block_graphs(run.model, sequence)) {
    again.emplace_back(0);
    for (const zoo::ModelOperator& op : block.operators) {
      const bool selected =
          run.plan.recompute == plan::Recompute::full || plan::recompute_selects(run.plan, op);
      again.back() += selected ? op.model_flops : Flops(0);
    }
  }
  Flops sum{0};
  std::int64_t layers = 0;
  for (const std::vector<plan::ModelPart>& stage : *parts) {
    for (const plan::ModelPart& part : stage) {
      std::int64_t layer = 0;
      for (const plan::BlockKind kind : plan::blocks_of(run.model, run.plan, part)) {
        const bool is_layer = kind >= plan::kFirstLayerBlock;
        sum += is_layer && plan::recomputes_layer(run.plan, layer) ? again[kind] : Flops(0);
        layer += is_layer ? 1 : 0;
      }
      layers += layer;
    }
  }
  // A schedule with two copies of the model gives each half of the microbatches.
  return sum * (static_cast<double>(run.model.layers) / static_cast<double>(layers));
}

void compute_rates(Run& run, bool recompute_skipped) {
  const double seconds = to_seconds(run.timeline.step_time);
  if (seconds <= 0) {
    return;
  }
  const auto sequences = static_cast<double>(run.plan.global_batch);
  const Flops useful =
      zoo::model_flops_per_sequence(run.model, plan::sequence_of(run.model, run.plan)) *
      plan::model_flops_share(run.plan);
  const double per_device = sequences / static_cast<double>(run.devices) / seconds;
  run.peak_type = plan::gemm_type(run.plan);
  const FlopRate peak = run.machine.device.peak[static_cast<std::size_t>(run.peak_type)];
  run.tokens_per_s =
      sequences * static_cast<double>(plan::sequence_of(run.model, run.plan)) / seconds;
  run.model_flops_per_device = FlopRate(useful.value() * per_device);
  run.hardware_flops_per_device =
      FlopRate((useful + recomputed_flops(run, recompute_skipped)).value() * per_device);
  run.mfu = run.model_flops_per_device / peak;
  run.hfu = run.hardware_flops_per_device / peak;
}

}  // namespace

Error plan_mistakes(const zoo::Model& model, const machine::Machine& machine,
                    const plan::Plan& plan, std::int64_t devices) {
  Run run;
  run.model = model;
  run.machine = machine;
  run.plan = plan;
  run.devices = devices;
  const Result<void> ok = prepare(run);
  return ok ? Error() : ok.error();
}

Result<Run> run_step(const zoo::Model& model, const machine::Machine& machine,
                     const plan::Plan& plan, std::int64_t devices, const RunOptions& given) {
  Stopwatch watch;
  Run run;
  run.name = model.name;
  run.model = model;
  run.machine = machine;
  run.plan = plan;
  run.devices = devices;
  run.network = given.network;
  Result<void> ok = prepare(run);
  const RunOptions options = ok ? with_rounds(given, run.plan) : given;
  run.warm_steps = options.warm_steps;
  if (ok && !plan.strategy.empty()) {
    ok = write_strategy(run, options);
  } else if (ok) {
    ok = measure_memory(run, options).and_then([&] { return lower_plan(run, options); });
  }
  if (ok) {
    ok = simulate_step(run, options);
  }
  if (!ok) {
    return fail(std::move(ok.error()));
  }
  compute_rates(run, options.skip.contains("recompute"));
  run.wall_s = watch.lap();
  return run;
}

}  // namespace orrery::study
