// SPDX-License-Identifier: Apache-2.0
#include "planner/full/evaluations.h"

#include <algorithm>
#include <utility>

#include "study/energy.h"
#include "study/run.h"

namespace orrery::full {
namespace {

/// Answers that are kept for a question which may still come, for each thread.
constexpr std::size_t kKeptAhead = 16;

/// The rank that computes most, and the parts of its step.
void add_parts(const simulate::Timeline& timeline, Simulated& found) {
  for (const simulate::Breakdown& rank : timeline.by_rank) {
    Time computed{0};
    for (std::size_t row = 0; row < timeline.categories.size(); ++row) {
      computed += timeline.categories.is_phase(row) ? rank.time[row] : Time(0);
    }
    const Time tail = rank.time[static_cast<std::size_t>(plan::StepPhase::optimizer)];
    if (computed - tail > found.compute) {
      found.compute = computed - tail;
      found.bubble = rank.time[timeline.categories.bubble()];
      found.tail = tail;
    }
  }
  found.exposed = found.step_time - found.compute - found.bubble - found.tail;
}

/// Simulates a plan whose memory has been measured.
std::optional<Simulated> simulation(const Task& task, const Score& score, const plan::Plan& plan) {
  const auto run = study::run_step(task.model, task.machine, plan, 0, {.skip = {"memory"}});
  if (!run) {
    return std::nullopt;
  }
  Simulated found{.step_time = run->timeline.step_time,
                  .score = score.of(*run),
                  .mfu = run->mfu,
                  .tokens_per_s = run->tokens_per_s,
                  .energy = {},
                  .cost_per_million_tokens = {}};
  add_parts(run->timeline, found);
  if (const auto energy = study::energy_of(*run)) {
    found.energy = energy->total();
  }
  if (const auto cost = study::cost_of(*run)) {
    found.cost_per_million_tokens = cost->per_million_tokens;
  }
  return found;
}

std::pair<bool, Bytes> memory_of(estimate::Estimator& estimator, const plan::Plan& plan) {
  const auto memory = estimator.memory(plan);
  return memory ? std::pair(memory->fits, memory->total) : std::pair(false, Bytes::max());
}

}  // namespace

Evaluations::Evaluations(const Task& task, const Score& score, int threads)
    : task_(task), score_(score) {
  const int all = std::max(threads, 1);
  estimators_.reserve(static_cast<std::size_t>(all));
  for (int i = 0; i < all; ++i) {
    estimators_.emplace_back(task.model, task.machine);
  }
  for (std::size_t i = 1; i < estimators_.size(); ++i) {
    threads_.emplace_back([this, i] { work(estimators_[i]); });
  }
}

Evaluations::~Evaluations() {
  {
    const std::lock_guard guard(lock_);
    ended_ = true;
  }
  changed_.notify_all();
}

Result<estimate::Interval> Evaluations::estimate(const plan::Plan& plan) {
  return estimators_.front().interval(plan);
}

Result<Time> Evaluations::lower_bound(const plan::Plan& plan) {
  return *take(Question::lower_bound, plan).bound;
}

std::pair<bool, Bytes> Evaluations::memory(const plan::Plan& plan) {
  return memory_of(estimators_.front(), plan);
}

std::optional<Simulated> Evaluations::simulate(const plan::Plan& plan) {
  const auto known = simulated_.find(plan);
  return known != simulated_.end()
             ? known->second
             : simulated_.emplace(plan, take(Question::simulation, plan).simulated).first->second;
}

void Evaluations::expect(Question question, const std::vector<plan::Plan>& plans) {
  if (threads_.empty()) {
    return;
  }
  {
    const std::lock_guard guard(lock_);
    std::erase_if(jobs_, [&](const Job& job) {
      return job.question == question && job.state == State::waiting;
    });
    for (const plan::Plan& plan : plans) {
      if (find(question, plan) == jobs_.end()) {
        jobs_.emplace_back(question, plan);
      }
    }
  }
  changed_.notify_all();
}

Evaluations::Jobs::iterator Evaluations::find(Question question, const plan::Plan& plan) {
  return std::find_if(jobs_.begin(), jobs_.end(),
                      [&](const Job& job) { return job.question == question && job.plan == plan; });
}

void Evaluations::compute(Job& job, estimate::Estimator& estimator) const {
  if (job.question == Question::lower_bound) {
    job.bound = estimator.lower_bound(job.plan);
  } else {
    job.simulated = simulation(task_, score_, job.plan);
  }
}

/// Another thread's answer, once it has it; nothing: none has begun.
std::optional<Evaluations::Job> Evaluations::found_ahead(Question question,
                                                         const plan::Plan& plan) {
  std::unique_lock guard(lock_);
  const auto known = find(question, plan);
  if (known == jobs_.end()) {
    return std::nullopt;
  }
  std::optional<Job> job;
  if (known->state != State::waiting) {
    known->wanted = true;
    changed_.wait(guard, [&] { return known->state == State::done; });
    job = std::move(*known);
  }
  jobs_.erase(known);
  return job;
}

Evaluations::Job Evaluations::take(Question question, const plan::Plan& plan) {
  if (!threads_.empty()) {
    if (auto job = found_ahead(question, plan)) {
      return std::move(*job);
    }
  }
  Job job(question, plan);
  compute(job, estimators_.front());
  return job;
}

/// The oldest answers that nobody has asked for.
void Evaluations::forget_old() {
  const auto is_done = [](const Job& job) { return job.state == State::done && !job.wanted; };
  auto left = static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), is_done));
  const std::size_t most = kKeptAhead * threads_.size();
  for (auto job = jobs_.begin(); left > most; --left) {
    job = jobs_.erase(std::find_if(job, jobs_.end(), is_done));
  }
}

void Evaluations::work(estimate::Estimator& estimator) {
  std::unique_lock guard(lock_);
  const auto next = [&] {
    return std::find_if(jobs_.begin(), jobs_.end(),
                        [](const Job& job) { return job.state == State::waiting; });
  };
  for (;;) {
    changed_.wait(guard, [&] { return ended_ || next() != jobs_.end(); });
    if (ended_) {
      return;
    }
    Job& job = *next();
    job.state = State::running;
    guard.unlock();
    compute(job, estimator);
    guard.lock();
    job.state = State::done;
    forget_old();
    changed_.notify_all();
  }
}

}  // namespace orrery::full
