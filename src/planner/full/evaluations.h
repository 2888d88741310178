// SPDX-License-Identifier: Apache-2.0
/// Estimates, bounds and simulations of plans, of which other threads may have computed the latter
/// two ahead.
///
/// A search says what it will probably ask next; threads of its own compute that while it goes on.
/// What they compute is a function of the plan alone, and what was not needed is thrown away, so a
/// search asks and learns the same with any number of threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimate/estimate.h"
#include "planner/full/objective.h"
#include "planner/full/search.h"
#include "planner/full/space.h"
#include "workload/plan/plan_key.h"

namespace orrery::full {

enum class Question : std::uint8_t { lower_bound, simulation };

class Evaluations {
 public:
  /// Makes evaluations of a task by a score, which both stay where they are. `threads` with the one
  /// that asks; below 1: one.
  Evaluations(const Task& task, const Score& score, int threads);
  ~Evaluations();
  Evaluations(const Evaluations&) = delete;
  Evaluations& operator=(const Evaluations&) = delete;

  /// Estimates as Estimator does. Only the thread that searches calls it and the other functions.
  Result<estimate::Interval> estimate(const plan::Plan& plan);
  Result<Time> lower_bound(const plan::Plan& plan);
  /// Returns whether the plan fits the task's machine, and the memory of its fullest stage, to the
  /// byte.
  std::pair<bool, Bytes> memory(const plan::Plan& plan);
  /// Returns nothing where the simulator refuses the plan.
  std::optional<Simulated> simulate(const plan::Plan& plan);

  /// Expects what will probably be asked next, in this order, instead of what was expected before
  /// of this question and nobody has begun.
  void expect(Question question, const std::vector<plan::Plan>& plans);
  /// Returns how many plans it is worth to expect; 0: there are no other threads.
  std::size_t worthwhile() const { return 2 * threads_.size(); }

 private:
  enum class State : std::uint8_t { waiting, running, done };
  struct Job {
    Job(Question asked, const plan::Plan& of_plan) : question(asked), plan(of_plan) {}

    Question question;
    plan::Plan plan;
    State state = State::waiting;
    bool wanted = false;  ///< the search waits for it
    std::optional<Result<Time>> bound;
    std::optional<Simulated> simulated;
  };
  using Jobs = std::list<Job>;

  void compute(Job& job, estimate::Estimator& estimator) const;
  Job take(Question question, const plan::Plan& plan);
  std::optional<Job> found_ahead(Question question, const plan::Plan& plan);
  Jobs::iterator find(Question question, const plan::Plan& plan);
  void forget_old();
  void work(estimate::Estimator& estimator);

  const Task& task_;
  const Score& score_;
  std::unordered_map<plan::Plan, std::optional<Simulated>, plan::PlanHash>
      simulated_;                                ///< that were asked for; never iterated over
  std::vector<estimate::Estimator> estimators_;  ///< of the thread that asks, then of the others
  std::mutex lock_;
  std::condition_variable changed_;
  Jobs jobs_;
  bool ended_ = false;
  std::vector<std::jthread> threads_;  ///< last: they end before what they use
};

}  // namespace orrery::full
