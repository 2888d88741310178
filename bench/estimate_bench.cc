// SPDX-License-Identifier: Apache-2.0
/// Plans per second of GPT-3 175B on up to 1,024 devices, random ones that check() accepts.
///   cold   every plan for the first time: templates that no plan before had are timed and mapped,
///          all are replayed
///   warm   a few plans again and again: replayed only
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "estimate/estimate.h"
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

/// Runs `question` on every plan; `warm`: with an estimator that has answered it before.
template <class Question>
void sweep(benchmark::State& state, bool warm, Question&& question) {
  const auto machine = machine::load_machine("selene");
  const zoo::Model model = zoo::gpt_model("GPT-3 175B", 96, 12288, 96, 2048, 50257);
  const std::vector<plan::Plan> plans = Sweep(model).plans(warm ? kWarmPlans : kColdPlans);
  estimate::Estimator kept(model, *machine);
  const auto ask_all = [&](estimate::Estimator& estimator) {
    for (const plan::Plan& plan : plans) {
      const auto answer = question(estimator, plan);
      if (!answer) {
        state.SkipWithError(answer.error().to_string().c_str());
        return;
      }
      benchmark::DoNotOptimize(*answer);
    }
  };
  ask_all(kept);
  for (auto _ : state) {
    if (warm) {
      ask_all(kept);
    } else {
      estimate::Estimator fresh(model, *machine);
      ask_all(fresh);
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(plans.size()) * state.iterations());
}

void estimate(benchmark::State& state) {
  sweep(state, state.range(0) == 1, [](estimate::Estimator& estimator, const plan::Plan& plan) {
    return estimator.estimate(plan);
  });
}
BENCHMARK(estimate)->ArgName("warm")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void lower_bound(benchmark::State& state) {
  sweep(state, state.range(0) == 1, [](estimate::Estimator& estimator, const plan::Plan& plan) {
    return estimator.lower_bound(plan);
  });
}
BENCHMARK(lower_bound)->ArgName("warm")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
