// SPDX-License-Identifier: Apache-2.0
/// Plans per second of GPT-3 175B on up to 1,024 devices, random ones that check() accepts.
///   asked 0   never: blocks and states that no plan before had are timed
///   asked 1   others: half of the plans, after the other half; most blocks and states are known
///   asked 2   these: all blocks and states are known
/// And of gpt-22b on 64 devices as a search goes through them: pieces of the planner's space in its
/// order, where neighbours have most fields in common, with a fresh estimator.
/// And of several models and machines what a search asks: the lightest saving that fits of every
/// variant of shapes all over the space, interval and memory together; of a fresh estimator, and
/// again of one that knows their blocks and states.
/// And of the same spaces the memory alone of every plan that check() accepts, fitting or not.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "estimate/estimate.h"
#include "planner/full/space.h"
#include "workload/memory/footprint.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/plan.h"

namespace {

using namespace orrery;  // NOLINT(google-build-using-namespace): a benchmark's own file

constexpr std::int64_t kMostDevices = 1024;
constexpr std::size_t kColdPlans = 500;
constexpr std::size_t kWarmPlans = 16;  // as many as the estimator keeps, or fewer

/// Draws plans from a named seed.
class Sweep {
 public:
  explicit Sweep(const zoo::Model& model) : model_(model) {}

  std::vector<plan::Plan> plans(std::size_t count) {
    std::vector<plan::Plan> valid;
    while (valid.size() < count) {
      const plan::Plan plan = any();
      const bool fits =
          plan.devices() <= kMostDevices && (plan.devices() <= 8 || plan.devices() % 8 == 0);
      if (fits && plan::check(plan, model_)) {
        valid.push_back(plan);
      }
    }
    return valid;
  }

 private:
  std::int64_t pick(const std::vector<std::int64_t>& values) {
    return values[random_() % values.size()];
  }

  plan::Plan any() {
    plan::Plan plan;
    plan.tp = pick({1, 2, 4, 8, 16});
    plan.pp = pick({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96});
    plan.dp = pick({1, 2, 4, 8, 16, 32, 64, 128});
    plan.microbatch = pick({1, 2, 4, 8});
    plan.global_batch = pick({512, 1024, 1536, 2048, 3072});
    plan.recompute = static_cast<plan::Recompute>(pick({0, 1, 2}));
    plan.sequence_parallel = plan.tp > 1 && pick({0, 1}) == 1;
    plan.zero = plan.pp > 1 ? pick({0, 1}) : pick({0, 1, 2, 3});
    plan.chunks = plan.pp > 1 ? pick({1, 2, 3, 4, 6, 12}) : 1;
    plan.schedule = plan.chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
    plan.overlap_p2p = pick({0, 1}) == 1;
    plan.order = pick({0, 1}) == 0 ? "tp-dp-pp" : "tp-pp-dp";
    return plan;
  }

  const zoo::Model& model_;
  std::mt19937_64 random_{175};
};

/// Asked says what an estimator has been asked before.
enum Asked : std::int64_t { never, others, these };

/// Runs `question` on every plan.
template <class Question>
void sweep(benchmark::State& state, Question&& question) {
  const auto machine = machine::load_machine("selene");
  const zoo::Model model = zoo::gpt_model("GPT-3 175B", 96, 12288, 96, 2048, 50257);
  const bool again = state.range(0) == these;
  const std::vector<plan::Plan> plans = Sweep(model).plans(again ? kWarmPlans : kColdPlans);
  const std::size_t half = state.range(0) == others ? plans.size() / 2 : 0;
  const auto ask = [&](estimate::Estimator& estimator, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const auto answer = question(estimator, plans[i]);
      if (!answer) {
        state.SkipWithError(answer.error().to_string().c_str());
        return;
      }
      benchmark::DoNotOptimize(*answer);
    }
  };
  estimate::Estimator kept(model, *machine);
  ask(kept, 0, again ? plans.size() : 0);
  for (auto _ : state) {
    if (again) {
      ask(kept, 0, plans.size());
      continue;
    }
    state.PauseTiming();
    estimate::Estimator fresh(model, *machine);
    ask(fresh, 0, half);
    state.ResumeTiming();
    ask(fresh, half, plans.size());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(plans.size() - half) * state.iterations());
}

void estimate(benchmark::State& state) {
  sweep(state, [](estimate::Estimator& estimator, const plan::Plan& plan) {
    return estimator.interval(plan);
  });
}
BENCHMARK(estimate)->ArgName("asked")->DenseRange(never, these)->Unit(benchmark::kMillisecond);

void lower_bound(benchmark::State& state) {
  sweep(state, [](estimate::Estimator& estimator, const plan::Plan& plan) {
    return estimator.lower_bound(plan);
  });
}
BENCHMARK(lower_bound)->ArgName("asked")->DenseRange(never, these)->Unit(benchmark::kMillisecond);

/// Every seventh plan of the space, of which 20 pieces of 20.
std::vector<plan::Plan> pieces_of_space(const zoo::Model& model, const machine::Machine& machine,
                                        std::int64_t batch) {
  constexpr std::size_t kEvery = 7;
  constexpr std::size_t kPieces = 20;
  full::Task task{.model = model, .machine = machine, .devices = 64, .fixed = {}};
  task.fixed.plan.global_batch = batch;
  task.fixed.places["global_batch"] = "the benchmark";
  const auto space = full::Space::of(task);
  std::vector<plan::Plan> all;
  std::size_t number = 0;
  for (const plan::Plan& group : space->groups()) {
    for (const plan::Plan& shape : space->shapes(group)) {
      for (const plan::Plan& variant : space->variants_to_save(shape)) {
        for (std::size_t i = 0; i < space->savings(); ++i) {
          plan::Plan plan = space->with_saving(variant, i);
          if (number++ % kEvery == 0 && plan::check(plan, model) &&
              plan::check_machine(plan, machine)) {
            all.push_back(std::move(plan));
          }
        }
      }
    }
  }
  std::vector<plan::Plan> plans;
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    const auto from =
        all.begin() + static_cast<std::ptrdiff_t>(piece * (all.size() - kPieces) / (kPieces - 1));
    plans.insert(plans.end(), from, from + kPieces);
  }
  return plans;
}

void search(benchmark::State& state) {
  const auto machine = machine::with_devices(*machine::load_machine("dgx-a100-80g"), 64);
  const auto model = zoo::load_model("gpt-22b");
  const std::vector<plan::Plan> plans = pieces_of_space(*model, *machine, state.range(0));
  for (auto _ : state) {
    estimate::Estimator fresh(*model, *machine);
    for (const plan::Plan& plan : plans) {
      benchmark::DoNotOptimize(fresh.interval(plan));
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(plans.size()) * state.iterations());
}
BENCHMARK(search)->ArgName("batch")->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);

struct Stream {
  const char* model;
  const char* machine;
  std::int64_t devices;
  std::int64_t batch;

  std::string name() const {
    return std::string(model) + " on " + std::to_string(devices) + " of " + machine;
  }
};
constexpr Stream kStreams[] = {{"gpt-22b", "dgx-a100-80g", 64, 512},
                               {"llama-3-70b", "dgx-h100", 64, 256},
                               {"mixtral-8x7b", "dgx-h100", 64, 256},
                               {"llama-2-13b", "l40s", 8, 64}};

/// The plans that the planner asks for (full/local_search.cc): of every variant the first saving
/// that fits.
class AskedPlans {
 public:
  AskedPlans(const full::Task& task, const full::Space& space) : task_(task), space_(space) {}

  /// Returns some plans of each of shapes all over the space.
  std::vector<plan::Plan> run() {
    constexpr std::size_t kPieces = 10;
    constexpr std::size_t kOfPiece = 40;
    std::vector<plan::Plan> shapes;
    for (const plan::Plan& group : space_.groups()) {
      for (plan::Plan& shape : space_.shapes(group)) {
        shapes.push_back(std::move(shape));
      }
    }
    for (std::size_t piece = 1; piece <= kPieces; ++piece) {
      for (std::size_t at = (piece - 1) * shapes.size() / kPieces;
           at < shapes.size() && plans_.size() < piece * kOfPiece; ++at) {
        add_variants(shapes[at], piece * kOfPiece);
      }
    }
    return std::move(plans_);
  }

 private:
  void add_variants(const plan::Plan& shape, std::size_t most) {
    for (const plan::Plan& variant : space_.variants_to_save(shape)) {
      for (std::size_t i = 0; i < space_.savings() && plans_.size() < most; ++i) {
        plan::Plan plan = space_.with_saving(variant, i);
        if (plan::check(plan, task_.model) && plan::check_machine(plan, task_.machine) &&
            footprint::fullest(task_.model, plan, task_.machine).fits) {
          plans_.push_back(std::move(plan));
          break;
        }
      }
    }
  }

  const full::Task& task_;
  const full::Space& space_;
  std::vector<plan::Plan> plans_;
};

full::Task task_of(const Stream& asked) {
  full::Task task{
      .model = *zoo::load_model(asked.model),
      .machine = *machine::with_devices(*machine::load_machine(asked.machine), asked.devices),
      .devices = asked.devices,
      .fixed = {}};
  task.fixed.plan.global_batch = asked.batch;
  task.fixed.places["global_batch"] = "the benchmark";
  return task;
}

void stream(benchmark::State& state) {
  const Stream& asked = kStreams[state.range(0)];
  const full::Task task = task_of(asked);
  const std::vector<plan::Plan> plans = AskedPlans(task, *full::Space::of(task)).run();
  const auto ask = [&](estimate::Estimator& estimator) {
    for (const plan::Plan& plan : plans) {
      benchmark::DoNotOptimize(estimator.interval(plan));
      benchmark::DoNotOptimize(estimator.memory(plan));
    }
  };
  estimate::Estimator kept(task.model, task.machine);
  if (state.range(1) == these) {
    ask(kept);
  }
  for (auto _ : state) {
    if (state.range(1) == these) {
      ask(kept);
    } else {
      estimate::Estimator fresh(task.model, task.machine);
      ask(fresh);
    }
  }
  state.SetLabel(asked.name());
  state.SetItemsProcessed(static_cast<std::int64_t>(plans.size()) * state.iterations());
}
BENCHMARK(stream)
    ->ArgNames({"stream", "asked"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::ssize(kStreams) - 1, 1), {never, these}})
    ->Unit(benchmark::kMillisecond);

/// Returns every checked plan of shapes all over the space, in a search's order.
std::vector<plan::Plan> checked_plans(const full::Task& task, const full::Space& space) {
  constexpr std::ptrdiff_t kPieces = 40;
  constexpr std::ptrdiff_t kOfPiece = 50;
  const std::vector<plan::Plan> groups = space.groups();
  std::vector<plan::Plan> plans;
  const auto add = [&](const plan::Plan& variant, std::ptrdiff_t most) {
    for (std::size_t i = 0; i < space.savings() && std::ssize(plans) < most; ++i) {
      plan::Plan plan = space.with_saving(variant, i);
      if (plan::check(plan, task.model) && plan::check_machine(plan, task.machine)) {
        plans.push_back(std::move(plan));
      }
    }
  };
  for (std::ptrdiff_t piece = 0; piece < kPieces; ++piece) {
    std::vector<plan::Plan> shapes =
        space.shapes(groups[static_cast<std::size_t>(piece * std::ssize(groups) / kPieces)]);
    std::ranges::rotate(shapes, shapes.begin() + std::ssize(shapes) * (piece % 8) / 8);
    for (const plan::Plan& shape : shapes) {
      for (const plan::Plan& variant : space.variants_to_save(shape)) {
        add(variant, (piece + 1) * kOfPiece);
      }
    }
  }
  return plans;
}

/// Many stages, and chunks of many sorts.
constexpr Stream kLarge[] = {{"llama-3.1-405b", "dgx-h100", 16384, 2048},
                             {"deepseek-v3", "dgx-h100", 2048, 15360},
                             {"nemotron-h-8b", "dgx-h100", 64, 256}};

/// asked 0: nothing before; 1: every other plan of these, so that most parts are known. 2: by the
/// issue lists of each plan, without checking it.
void memory(benchmark::State& state) {
  constexpr std::int64_t kSmall = std::ssize(kStreams);
  const Stream& asked =
      state.range(0) < kSmall ? kStreams[state.range(0)] : kLarge[state.range(0) - kSmall];
  const full::Task task = task_of(asked);
  const std::vector<plan::Plan> plans = checked_plans(task, *full::Space::of(task));
  const std::size_t step = state.range(1) == never ? 1 : 2;
  for (auto _ : state) {
    state.PauseTiming();
    estimate::Estimator estimator(task.model, task.machine);
    for (std::size_t i = 1; i < plans.size() && state.range(1) == others; i += step) {
      benchmark::DoNotOptimize(estimator.memory(plans[i]));
    }
    state.ResumeTiming();
    for (std::size_t i = 0; i < plans.size(); i += step) {
      if (state.range(1) == these) {
        benchmark::DoNotOptimize(footprint::fullest(task.model, plans[i], task.machine));
      } else {
        benchmark::DoNotOptimize(estimator.memory(plans[i]));
      }
    }
  }
  state.SetLabel(asked.name());
  state.SetItemsProcessed(static_cast<std::int64_t>((plans.size() + step - 1) / step) *
                          state.iterations());
}
BENCHMARK(memory)
    ->ArgNames({"stream", "asked"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::ssize(kStreams) + std::ssize(kLarge) - 1, 1),
                   benchmark::CreateDenseRange(never, these, 1)})
    ->Unit(benchmark::kMillisecond);

}  // namespace
