// SPDX-License-Identifier: Apache-2.0
#include "planner/full/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "estimate/quick_bound.h"
#include "planner/full/fits.h"
#include "planner/full/frontier.h"
#include "study/energy.h"
#include "study/run.h"
#include "workload/memory/footprint.h"
#include "workload/plan/machine_check.h"

namespace orrery::full {
namespace {

/// How far an estimate may be off for the order of plans to be trusted.
constexpr double kMargin = 0.01;
constexpr double kWorthwhile = 1e-3;   // of the step, gained by a change
constexpr std::size_t kRefined = 3;    // of the best plans, whose other fields are varied
constexpr std::size_t kAskEvery = 16;  // steps of the search

class Search {
 public:
  Search(const Task& task, const Options& options, Space space)
      : task_(task),
        options_(options),
        space_(std::move(space)),
        bounds_(task.model, task.machine),
        estimator_(task.model, task.machine),
        score_(options.objective, task.machine, bounds_),
        open_(options.exhaustive) {
    if (!task_.machine.device.memory.empty()) {
      Bytes& capacity = task_.machine.device.memory.front().capacity;
      capacity = std::max(Bytes(0), capacity - options.reserve);
      capacity_ = capacity;
    }
  }

  Result<Answer> run() {
    const auto begin = std::chrono::steady_clock::now();
    if (auto bounded = bound_groups(); !bounded) {
      return fail(std::move(bounded.error()));
    }
    explore();
    simulate_best();
    refine();
    finish();
    if (answer_.counts.invalid == answer_.counts.all) {
      return fail(std::move(first_mistakes_));
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    answer_.wall_s = wall.count();
    return std::move(answer_);
  }

 private:
  Result<void> bound_groups() {
    for (plan::Plan& group : space_.groups()) {
      plan::Plan plain = Space::plainest(group);
      Time least = Time::max();
      for (const plan::ContextExchange exchange : space_.context_exchanges(group)) {
        plain.cp_exchange = exchange;
        const auto bound = valid(plain) ? bounds_.least_kernels(plain) : Result<Time>(Time(0));
        least = std::min(least, bound ? *bound : Time(0));
      }
      count_group(group, answer_.counts.all);
      open_.push(least, Level::group, std::move(group));
    }
    if (open_.empty()) {
      Error mistakes = space_.base_mistakes();
      mistakes.add(Error("no plan: no split of " + std::to_string(task_.devices) +
                         " devices and of the batch suits the model and what is fixed"));
      return fail(std::move(mistakes));
    }
    return {};
  }

  void count_group(const plan::Plan& group, std::uint64_t& into) const {
    for (const plan::Plan& shape : space_.shapes(group)) {
      into += space_.variant_count(shape);
    }
  }

  void split(const plan::Plan& group) {
    for (plan::Plan& shape : space_.shapes(group)) {
      if (!valid(shape)) {
        answer_.counts.invalid += space_.variant_count(shape);
        continue;
      }
      Time least = Time::max();
      plan::Plan bare = shape;
      for (const std::int64_t zero : space_.zeros(shape)) {
        bare.zero = zero;
        bare.overlap_param_gather = shape.overlap_param_gather && zero > 0;
        if (const auto bound = score_.least(bare)) {
          least = std::min(least, *bound);
        }
      }
      open_.push(least, Level::shape, std::move(shape));
    }
  }

  Time best_estimate() const {
    return candidates_.empty() ? Time::max() / 4 : candidates_[best_].score;
  }
  Time cutoff() const { return best_estimate() * (1 + kMargin); }

  void explore() {
    std::size_t steps = 0;
    while (open_.any_below(cutoff())) {
      if (answer_.counts.estimated >= options_.most_estimates) {
        break;
      }
      if (steps++ % kAskEvery == 0 && stop()) {
        break;
      }
      const Node node = open_.take();
      if (node.level == Level::group) {
        split(node.plan);
      } else if (node.level == Level::shape) {
        expand(node.plan);
      } else {
        look(node);
      }
    }
    answer_.complete = !open_.any_below(cutoff());
  }

  bool stop() {
    answer_.stopped = answer_.stopped || (options_.go_on && !options_.go_on());
    return answer_.stopped;
  }

  bool may_fit(const plan::Plan& plan) {
    const auto least = bounds_.least_memory(plan);
    return least && *least <= capacity_;
  }

  void expand(const plan::Plan& shape) {
    std::vector<plan::Plan> variants = space_.variants(shape);
    const std::vector<plan::Plan> frugal = space_.frugal(shape);
    if (std::none_of(frugal.begin(), frugal.end(),
                     [&](const plan::Plan& plan) { return may_fit(plan); })) {
      answer_.counts.by_memory += variants.size();
      for (const plan::Plan& plan : frugal) {
        remember_frugal(plan);
      }
      return;
    }
    for (plan::Plan& variant : variants) {
      if (!valid(variant)) {
        ++answer_.counts.invalid;
        continue;
      }
      bool fits = may_fit(variant);
      while (!fits && space_.recompute_more(variant)) {
        fits = may_fit(variant);
      }
      const auto bound = fits ? score_.least(variant) : Result<Time>(Time::max());
      if (!fits) {
        ++answer_.counts.by_memory;
        remember_frugal(variant);
      } else if (!bound || *bound >= cutoff()) {
        ++answer_.counts.by_bound;
        left_ = bound ? std::min(left_, *bound) : left_;
      } else {
        open_.push(*bound, Level::variant, std::move(variant));
      }
    }
  }

  bool valid(const plan::Plan& plan) {
    auto checked = plan::check(plan, task_.model);
    if (checked) {
      checked = plan::check_machine(plan, task_.machine);
    }
    if (!checked && first_mistakes_.empty()) {
      first_mistakes_ = std::move(checked.error());
    }
    return checked.has_value();
  }

  void remember_frugal(const plan::Plan& plan) {
    if (!candidates_.empty()) {
      return;
    }
    const auto least = bounds_.least_memory(plan);
    if (least && (answer_.least_memory == Bytes(0) || *least < answer_.least_memory)) {
      answer_.least_memory = *least;
      answer_.frugal = plan;
    }
  }

  void look(const Node& node) {
    const auto [fits, memory] = memory_of(task_, node.plan);
    if (!fits) {
      plan::Plan more = node.plan;
      if (space_.recompute_more(more)) {
        if (const auto bound = score_.least(more)) {
          open_.push(*bound, Level::variant, std::move(more));
          return;
        }
      }
      ++answer_.counts.by_memory;
      remember_frugal(node.plan);
      return;
    }
    const auto estimate = estimator_.estimate(node.plan);
    ++answer_.counts.estimated;
    if (!estimate) {  // beyond the range of estimated time
      left_ = std::min(left_, node.bound);
      return;
    }
    const Time score = score_.of(node.plan, estimate->step_time);
    open_.learn(node.plan, score / node.bound);
    add({node.plan, node.bound, *estimate, score, memory});
  }

  void add(Candidate candidate) {
    const bool better = candidates_.empty() || candidate.score < best_estimate();
    candidates_.push_back(std::move(candidate));
    if (better) {
      best_ = candidates_.size() - 1;
    }
  }

  /// Those whose estimates, as far off as any was, may be the best.
  void simulate_best() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.score < b.score;
                     });
    best_ = 0;
    for (Candidate& candidate : candidates_) {
      const bool enough = answer_.counts.simulated >= options_.top + kRefined;
      const Time hoped =
          candidate.score * (1 - std::max(kMargin, answer_.estimate_error));
      if ((enough && hoped > answer_.top.front().score) ||
          answer_.counts.simulated >= options_.most_simulations ||
          (answer_.counts.simulated > 0 && stop())) {
        return;
      }
      simulate(candidate);
    }
  }

  void simulate(Candidate& candidate) {
    if (candidate.simulated) {
      return;
    }
    candidate.simulated = true;
    const auto run = study::run_step(task_.model, task_.machine, candidate.plan, 0, {});
    ++answer_.counts.simulated;
    if (!run) {
      return;
    }
    const Time score = score_.of(*run);
    answer_.estimate_error =
        std::max(answer_.estimate_error, std::abs(candidate.score / score - 1));
    Found found{.plan = candidate.plan,
                .step_time = run->timeline.step_time,
                .score = score,
                .estimate = candidate.estimate,
                .memory = candidate.memory,
                .mfu = run->mfu,
                .tokens_per_s = run->tokens_per_s,
                .energy = {},
                .cost_per_million_tokens = {}};
    if (const auto energy = study::energy_of(*run)) {
      found.energy = energy->total();
    }
    if (const auto cost = study::cost_of(*run)) {
      found.cost_per_million_tokens = cost->per_million_tokens;
    }
    const auto place =
        std::upper_bound(answer_.top.begin(), answer_.top.end(), found,
                         [](const Found& a, const Found& b) { return a.score < b.score; });
    answer_.top.insert(place, std::move(found));
  }

  /// One field after the other of the best plans, as long as it helps.
  void refine() {
    for (std::size_t i = 0; i < std::min(kRefined, answer_.top.size()); ++i) {
      plan::Plan plan = answer_.top[i].plan;
      const Time time = score_.of(plan, answer_.top[i].estimate.step_time);
      for (const auto& change : space_.changes(plan)) {
        if (stop()) {
          return;
        }
        if (std::any_of(candidates_.begin(), candidates_.end(),
                        [&](const Candidate& other) { return other.plan == change; })) {
          continue;
        }
        const auto [fits, memory] = valid(change) ? memory_of(task_, change) : std::pair(false, Bytes(0));
        const auto estimate =
            fits ? estimator_.estimate(change) : Result<estimate::Estimate>(fail("does not fit"));
        const Time score = estimate ? score_.of(change, estimate->step_time) : Time::max();
        if (score < time * (1 - kWorthwhile)) {
          add({change, Time(0), *estimate, score, memory});
          simulate(candidates_.back());
        }
      }
    }
  }

  /// The least bound of what was not simulated, and what is left.
  void finish() {
    const Time best = answer_.top.empty() ? Time::max() : answer_.top.front().score;
    answer_.proved = answer_.complete;
    for (; !open_.empty(); open_.pop()) {
      const Node& node = open_.top();
      std::uint64_t plans = node.level == Level::variant ? 1 : 0;
      if (node.level == Level::group) {
        count_group(node.plan, plans);
      } else if (node.level == Level::shape) {
        plans = space_.variant_count(node.plan);
      }
      left_ = std::min(left_, node.bound);
      if (node.bound >= cutoff()) {
        answer_.counts.by_bound += plans;
      } else {
        (answer_.complete ? answer_.counts.by_family : answer_.counts.left) += plans;
        answer_.proved = false;
      }
    }
    tighten(best);
    if (candidates_.empty() && answer_.least_memory > Bytes(0)) {
      const auto stages = footprint::memory_footprint(task_.model, answer_.frugal, &task_.machine);
      if (auto fits = stages ? footprint::check_fits(*stages, task_.machine) : Result<void>();
          !fits) {
        answer_.missing = std::move(fits.error());
      }
    }
    if (!answer_.top.empty()) {
      answer_.bound = left_;
      answer_.top.resize(std::min(answer_.top.size(), options_.top));
    }
  }

  /// The bound, over what was estimated and not simulated too: the tighter bound of a candidate only
  /// where its quick one is the least of all.
  void tighten(Time best) {
    std::vector<const Candidate*> rest;
    for (const Candidate& candidate : candidates_) {
      if (!candidate.simulated) {
        rest.push_back(&candidate);
      }
    }
    std::stable_sort(rest.begin(), rest.end(), [](const Candidate* a, const Candidate* b) {
      return a->bound < b->bound;
    });
    left_ = std::min(left_, best);
    for (const Candidate* candidate : rest) {
      if (candidate->bound >= left_) {
        return;
      }
      const auto bound = estimator_.lower_bound(candidate->plan);
      const Time tight = bound ? score_.of(candidate->plan, *bound) : Time(0);
      left_ = std::min(left_, std::max(candidate->bound, tight));
    }
  }

  Task task_;
  Options options_;
  Space space_;
  estimate::QuickBound bounds_;
  estimate::Estimator estimator_;
  Score score_;
  Bytes capacity_ = Bytes::max();
  Frontier open_;
  std::vector<Candidate> candidates_;
  Error first_mistakes_;  ///< of the first plan that is none
  std::size_t best_ = 0;
  Time left_ = Time::max();  ///< least bound of what was not simulated
  Answer answer_;
};

/// The least of twice to 64 times as many devices for which some plan fits; 0: none of them.
std::int64_t enough_devices(Task task, Options options) {
  constexpr int kDoublings = 6;
  options.most_estimates = options.most_simulations = 1;
  for (int i = 0; i < kDoublings; ++i) {
    task.devices *= 2;
    auto space = Space::of(task);
    const auto answer =
        space ? Search(task, options, std::move(*space)).run() : Result<Answer>(fail("no machine"));
    if (answer && !answer->top.empty()) {
      return task.devices;
    }
  }
  return 0;
}

}  // namespace

Result<Answer> search(const Task& task, const Options& options) {
  auto space = Space::of(task);
  if (!space) {
    return fail(std::move(space.error()));
  }
  auto answer = Search(task, options, std::move(*space)).run();
  if (answer && answer->top.empty() && !answer->stopped) {
    answer->enough_devices = enough_devices(task, options);
  }
  return answer;
}

}  // namespace orrery::full
