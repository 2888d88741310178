// SPDX-License-Identifier: Apache-2.0
#include "study/explain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "study/parallel.h"

namespace orrery::study {
namespace {

constexpr int kBisections = 4;  // of a doubling: the factor is known to 2^(1/16), 4 %
constexpr int kDoublings = 6;   // to kLargestFactor
static_assert(kLargestFactor == 1 << kDoublings);
constexpr double kFirstRun = 0.05;  // of the progress: the run with its spans

double improvement_of(const Resource& resource) {
  return is_time(resource.kind) ? 1 / (1 - kImprovement) : 1 + kImprovement;
}

/// The time of a step on a machine; of the plan only what a resource can change.
using StepTime = std::function<Result<Time>(const machine::Machine&, const plan::Plan&)>;

/// Runs variations of one step.
class Variations {
 public:
  Variations(const Explanation& base, StepTime step_time, const ExplainOptions& options)
      : machine_(base.run.machine),
        plan_(base.plan ? *base.plan : plan::Plan{}),
        step_time_(std::move(step_time)),
        options_(options),
        resources_(resources_of(machine_, plan_)),
        rounds_(options.next_bottleneck ? 1 + kDoublings + kBisections : 1) {}

  /// Effects of every resource on the step in which `from`, if any, is `factor` times as good.
  Result<std::vector<Sensitivity>> effects(const Resource* from, double factor) {
    machine::Machine machine = machine_;
    plan::Plan plan = plan_;
    if (from != nullptr) {
      scale(*from, factor, machine, plan);
    }
    std::vector<Result<Time>> times(resources_.size() + 1, Time(0));
    const auto vary = [&](std::size_t i) {
      machine::Machine varied = machine;
      plan::Plan varied_plan = plan;
      if (i > 0) {
        const Resource& resource = resources_[i - 1];
        scale(resource, improvement_of(resource), varied, varied_plan);
      }
      times[i] = step_time_(varied, varied_plan);
    };
    run_parallel(times.size(), options_.threads, vary, [&](double share) { report(share); });
    ++round_;
    return sensitivities(times);
  }

  /// Notes that effects() is called at most so many more times.
  void left(int rounds) { round_ = rounds_ - rounds; }

 private:
  void report(double share) const {
    if (options_.progress) {
      options_.progress(kFirstRun + (1 - kFirstRun) * (round_ + share) / rounds_);
    }
  }

  Result<std::vector<Sensitivity>> sensitivities(const std::vector<Result<Time>>& times) const {
    std::vector<Sensitivity> sensitivities;
    for (std::size_t i = 0; i < resources_.size(); ++i) {
      const Result<Time>& time = times[i + 1];
      if (!times[0] || !time) {
        return fail(times[0] ? time.error() : times[0].error());
      }
      const double ratio = *time / *times[0];
      sensitivities.push_back(
          {.resource = resources_[i],
           .step_time = *time,
           .change = ratio - 1,
           .elasticity = std::log(ratio) / std::log(improvement_of(resources_[i]))});
    }
    std::stable_sort(
        sensitivities.begin(), sensitivities.end(),
        [](const Sensitivity& a, const Sensitivity& b) { return a.change < b.change; });
    return sensitivities;
  }

  const machine::Machine& machine_;
  plan::Plan plan_;
  StepTime step_time_;
  const ExplainOptions& options_;
  std::vector<Resource> resources_;
  int rounds_;  ///< calls of effects() at most
  int round_ = 0;
};

/// Doubles the factor until another resource leads, then halves the interval.
class NextSearch {
 public:
  NextSearch(Variations& variations, const Resource& strongest)
      : variations_(variations), strongest_(strongest) {}

  Result<std::optional<NextBottleneck>> run() {
    double low = 1;
    while (2 * low <= kLargestFactor) {
      if (auto taken = takes_over(2 * low); !taken) {
        return fail(std::move(taken.error()));
      } else if (*taken) {
        return bisect(low, 2 * low);
      }
      low *= 2;
    }
    return std::nullopt;
  }

 private:
  Result<std::optional<NextBottleneck>> bisect(double low, double high) {
    variations_.left(kBisections);
    for (int i = 0; i < kBisections; ++i) {
      const double middle = std::sqrt(low * high);
      auto taken = takes_over(middle);
      if (!taken) {
        return fail(std::move(taken.error()));
      }
      (*taken ? high : low) = middle;
    }
    return found_;
  }

  Result<bool> takes_over(double factor) {
    auto effects = variations_.effects(&strongest_, factor);
    if (!effects) {
      return fail(std::move(effects.error()));
    }
    const Sensitivity& first = effects->front();
    if (first.resource == strongest_ || first.change >= 0) {
      return false;
    }
    found_ = NextBottleneck{factor, first.resource, base_time(first)};
    return true;
  }

  static Time base_time(const Sensitivity& effect) {
    return effect.step_time / (1 + effect.change);
  }

  Variations& variations_;
  const Resource& strongest_;
  std::optional<NextBottleneck> found_;
};

/// The rest of an explanation that has its run and plan.
Result<Explanation> explain_run(Explanation result, const StepTime& step_time,
                                const ExplainOptions& options) {
  result.path = critical_path(result.run.workload, result.run.timeline, result.run.machine);
  Variations variations(result, step_time, options);
  auto effects = variations.effects(nullptr, 1);
  if (!effects) {
    return fail(std::move(effects.error()));
  }
  result.sensitivities = std::move(*effects);
  const Sensitivity& strongest = result.sensitivities.front();
  if (options.next_bottleneck && strongest.change < 0) {
    auto next = NextSearch(variations, strongest.resource).run();
    if (!next) {
      return fail(std::move(next.error()));
    }
    result.next = std::move(*next);
  }
  return result;
}

}  // namespace

Result<Explanation> explain(const zoo::Model& model, const machine::Machine& machine,
                            const plan::Plan& plan, std::int64_t devices,
                            const ExplainOptions& options) {
  RunOptions how;
  how.allow_oom = options.allow_oom;
  how.fold = options.fold;
  how.shortcuts = options.shortcuts;
  how.network = options.network;
  RunOptions recorded = how;
  recorded.record_spans = true;
  recorded.advise = true;
  recorded.progress = [&](double share, std::uint64_t) {
    if (options.progress) {
      options.progress(kFirstRun * share);
    }
  };
  auto run = run_step(model, machine, plan, devices, recorded);
  if (!run) {
    return fail(std::move(run.error()));
  }
  const std::int64_t all = run->devices;
  const StepTime step_time = [&, all](const machine::Machine& varied,
                                      const plan::Plan& varied_plan) {
    return run_step(model, varied, varied_plan, all, how).map([](const Run& again) {
      return again.timeline.step_time;
    });
  };
  Explanation result{.run = std::move(*run),
                     .plan = plan,
                     .causes = {},
                     .path = {},
                     .sensitivities = {},
                     .next = {}};
  result.causes = causes_of(model, plan, result.run.machine);
  return explain_run(std::move(result), step_time, options);
}

Result<Explanation> explain(const std::string& name, const graph::Workload& workload,
                            const machine::Machine& machine, const ExplainOptions& options) {
  simulate::SimulateOptions how;
  how.fold = options.fold;
  how.shortcuts = options.shortcuts;
  how.network = options.network;
  simulate::SimulateOptions recorded = how;
  recorded.record_spans = true;
  recorded.progress = [&](double share, std::uint64_t) {
    if (options.progress) {
      options.progress(kFirstRun * share);
    }
  };
  auto run = run_workload(name, workload, machine, recorded);
  if (!run) {
    return fail(std::move(run.error()));
  }
  const StepTime step_time = [&](const machine::Machine& varied, const plan::Plan&) {
    return simulate::simulate(workload, varied, how).map([](const simulate::Timeline& again) {
      return again.step_time;
    });
  };
  Explanation result{.run = std::move(*run),
                     .plan = {},
                     .causes = {},
                     .path = {},
                     .sensitivities = {},
                     .next = {}};
  return explain_run(std::move(result), step_time, options);
}

}  // namespace orrery::study
