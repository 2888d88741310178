// SPDX-License-Identifier: Apache-2.0
#include "study/explain.h"

#include <algorithm>
#include <cmath>

#include "study/parallel.h"

namespace orrery {
namespace {

constexpr int kBisections = 4;  // of a doubling: the factor is known to 2^(1/16), 4 %

double improvement_of(const Resource& resource) {
  return is_time(resource.kind) ? 1 / (1 - kImprovement) : 1 + kImprovement;
}

/// Runs variations of one step.
class Variations {
 public:
  Variations(const Run& base, const ExplainOptions& options)
      : base_(base), options_(options), resources_(resources_of(base.machine, base.plan)) {}

  /// Effects of every resource on the step in which `from`, if any, is `factor` times as good.
  Result<std::vector<Sensitivity>> effects(const Resource* from, double factor) const {
    Machine machine = base_.machine;
    Plan plan = base_.plan;
    if (from != nullptr) {
      scale(*from, factor, machine, plan);
    }
    std::vector<Result<Time>> times(resources_.size() + 1, Time(0));
    run_parallel(times.size(), options_.threads, [&](std::size_t i) {
      Machine varied = machine;
      Plan varied_plan = plan;
      if (i > 0) {
        const Resource& resource = resources_[i - 1];
        scale(resource, improvement_of(resource), varied, varied_plan);
      }
      times[i] = step_time(varied, varied_plan);
    });
    return sensitivities(times);
  }

 private:
  Result<Time> step_time(const Machine& machine, const Plan& plan) const {
    RunOptions options;
    options.allow_oom = options_.allow_oom;
    options.fold = options_.fold;
    options.shortcuts = options_.shortcuts;
    options.network = options_.network;
    return run_step(base_.model, machine, plan, base_.devices, options).map([](const Run& run) {
      return run.timeline.step_time;
    });
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

  const Run& base_;
  const ExplainOptions& options_;
  std::vector<Resource> resources_;
};

/// Doubles the factor until another resource leads, then halves the interval.
class NextSearch {
 public:
  NextSearch(const Variations& variations, const Resource& strongest)
      : variations_(variations), strongest_(strongest) {}

  Result<std::optional<NextBottleneck>> run() {
    double low = 1;
    for (double high = 2; high <= kLargestFactor; high *= 2) {
      if (auto taken = takes_over(high); !taken) {
        return fail(std::move(taken.error()));
      } else if (*taken) {
        return bisect(low, high);
      }
      low = high;
    }
    return std::nullopt;
  }

 private:
  Result<std::optional<NextBottleneck>> bisect(double low, double high) {
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

  const Variations& variations_;
  const Resource& strongest_;
  std::optional<NextBottleneck> found_;
};

}  // namespace

Result<Explanation> explain(const Model& model, const Machine& machine, const Plan& plan,
                            std::int64_t devices, const ExplainOptions& options) {
  RunOptions recorded;
  recorded.allow_oom = options.allow_oom;
  recorded.fold = options.fold;
  recorded.network = options.network;
  recorded.record_spans = true;
  auto run = run_step(model, machine, plan, devices, recorded);
  if (!run) {
    return fail(std::move(run.error()));
  }
  Explanation result{.run = std::move(*run), .path = {}, .sensitivities = {}, .next = {}};
  result.path = critical_path(result.run.workload, result.run.timeline, result.run.machine);
  const Variations variations(result.run, options);
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

}  // namespace orrery
