// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/full/search_state.h"
#include "workload/memory/footprint.h"

namespace orrery::full {
namespace {

constexpr double kWorthwhile = 1e-3;  // of the step, gained by a change
constexpr std::size_t kShare = 4;     // of all simulations for the best estimates, one in so many
constexpr std::size_t kRefined = 3;   // of the best plans, whose other fields are varied
constexpr std::size_t kFills = 4;     // estimates for each plan that the answer lacks

class Certifier {
 public:
  explicit Certifier(SearchState& search) : search_(search) {}

  void run() {
    simulate_best();
    local_search(search_);
    refine();
    fill();
    raise_bounds(search_);
    finish();
    fuse();
  }

 private:
  /// Simulates the candidates whose estimates, as far off as any was, may be the best.
  void simulate_best() {
    sort_candidates();
    const std::size_t few = search_.options.top + kRefined;
    const std::size_t most = std::max(std::min(few, search_.options.most_simulations),
                                      search_.options.most_simulations / kShare);
    for (std::size_t i = 0; i < search_.candidates.size(); ++i) {
      Candidate& candidate = search_.candidates[i];
      const bool enough = search_.answer.counts.simulated >= few;
      const Time hoped = candidate.score * (1 - std::max(kMargin, search_.answer.estimate_error));
      if ((enough && hoped > search_.answer.top.front().score) ||
          search_.answer.counts.simulated >= most ||
          (search_.answer.counts.simulated > 0 && search_.stop())) {
        return;
      }
      expect_simulations(i + 1);
      simulate(search_, candidate);
    }
  }

  /// Expects the simulations of the candidates from here on.
  void expect_simulations(std::size_t first) {
    const std::size_t last =
        std::min(first + search_.estimator.worthwhile(), search_.candidates.size());
    std::vector<plan::Plan> next;
    for (std::size_t i = first; i < last; ++i) {
      next.push_back(search_.candidates[i].plan);
    }
    search_.estimator.expect(Question::simulation, next);
  }

  /// One field after the other of the best plans, as long as it helps.
  void refine() {
    for (std::size_t i = 0; i < std::min(kRefined, search_.answer.top.size()); ++i) {
      const plan::Plan plan = search_.answer.top[i].plan;
      const Time time = search_.score.of(plan, search_.answer.top[i].estimate.step_time);
      std::vector<plan::Plan> changes = search_.space.changes(plan);
      std::erase_if(changes, [&](const plan::Plan& change) {
        const auto bound = search_.valid(change) ? search_.least(change) : Time::max();
        return !bound || *bound >= time * (1 - kWorthwhile) || search_.knows(change);
      });
      search_.estimator.expect(Question::estimate, changes, search_.slowest());
      for (const plan::Plan& change : changes) {
        if (search_.stop()) {
          return;
        }
        const auto [fits, memory] = search_.estimator.memory(change);
        const auto estimate = fits ? search_.estimator.estimate(change, search_.slowest())
                                   : Result<estimate::Estimate>(fail("does not fit"));
        const Time score = estimate ? search_.score.of(change, estimate->step_time) : Time::max();
        if (score < time * (1 - kWorthwhile)) {
          search_.add({change, Time(0), *estimate, score, memory});
          simulate(search_, search_.candidates.back());
        }
      }
    }
  }

  /// Where fewer were simulated than are asked for: the next by their estimates, though far behind.
  void fill() {
    const bool complete = search_.answer.complete;
    const std::size_t most_estimates = search_.options.most_estimates;
    for (const double share : {1.05, 1.25, 2.0}) {
      if (search_.answer.top.empty() || search_.answer.top.size() >= search_.options.top ||
          search_.stop()) {
        break;
      }
      search_.wanted = search_.answer.top.front().score * share;
      search_.options.most_estimates =
          std::min(most_estimates, search_.answer.counts.estimated + kFills * search_.options.top);
      explore(search_);
      simulate_next();
    }
    search_.wanted = Time(0);
    search_.options.most_estimates = most_estimates;
    search_.answer.complete = complete;
  }

  /// The best estimates of those not simulated, until the answer has as many plans as are asked
  /// for.
  void simulate_next() {
    sort_candidates();
    for (std::size_t i = 0; i < search_.candidates.size(); ++i) {
      if (search_.answer.top.size() >= search_.options.top ||
          search_.answer.counts.simulated >= search_.options.most_simulations) {
        return;
      }
      Candidate& next = search_.candidates[i];
      const bool known = std::any_of(search_.answer.top.begin(), search_.answer.top.end(),
                                     [&](const Found& other) { return other.plan == next.plan; });
      if (!next.simulated && !known) {
        expect_simulations(i + 1);
        simulate(search_, next);
      }
    }
  }

  void sort_candidates() {
    std::stable_sort(search_.candidates.begin(), search_.candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    search_.best = 0;
  }

  /// The least bound of what was not simulated, and what is left.
  void finish() {
    const Time best = search_.answer.top.empty() ? Time::max() : search_.answer.top.front().score;
    search_.answer.proved = search_.answer.complete;
    const Time closed = std::min(search_.cutoff(), search_.sure());
    for (; !search_.open.empty(); search_.open.pop()) {
      const Node& node = search_.open.top();
      std::uint64_t plans = node.savings ? 1 : 0;  // others have been estimated
      if (node.level == Level::group) {
        plans = search_.count_of(node.plan);
      } else if (node.level == Level::shape) {
        plans = search_.space.variant_count(node.plan);
      }
      search_.left = std::min(search_.left, node.bound);
      if (node.bound >= closed) {
        search_.answer.counts.by_bound += plans;
      } else {
        (search_.answer.complete ? search_.answer.counts.by_family : search_.answer.counts.left) +=
            plans;
        search_.answer.proved = false;
      }
    }
    search_.left = std::min(search_.left, best);
    if (search_.candidates.empty() && search_.answer.least_memory > Bytes(0)) {
      const auto stages = footprint::memory_footprint(search_.task.model, search_.answer.frugal,
                                                      &search_.task.machine);
      if (auto fits =
              stages ? footprint::check_fits(*stages, search_.task.machine) : Result<void>();
          !fits) {
        search_.answer.missing = std::move(fits.error());
      }
    }
    if (!search_.answer.top.empty()) {
      search_.answer.bound = search_.left;
      search_.answer.top.resize(std::min(search_.answer.top.size(), search_.options.top));
    }
  }

  /// Only where stages send sums of tensor-parallel ranks can there be anything to fuse: with
  /// sequence parallelism they send slices.
  void fuse() {
    for (Found& found : search_.answer.top) {
      plan::Plan plan = found.plan;
      if (plan.tp < 2 || plan.pp < 2 || plan.sequence_parallel || search_.stop()) {
        continue;
      }
      plan.fuse_communication = true;
      const auto with = search_.estimator.simulate(plan);
      if (with && with->score < found.score) {
        found.unfused = found.step_time;
        found.plan = std::move(plan);
        found.step_time = with->step_time;
        found.score = with->score;
        found.mfu = with->mfu;
        found.tokens_per_s = with->tokens_per_s;
        found.energy = with->energy;
        found.cost_per_million_tokens = with->cost_per_million_tokens;
      }
    }
    std::stable_sort(search_.answer.top.begin(), search_.answer.top.end(),
                     [](const Found& a, const Found& b) { return a.score < b.score; });
    if (!search_.answer.top.empty()) {
      search_.answer.bound = std::min(search_.answer.bound, search_.answer.top.front().score);
    }
  }

  SearchState& search_;
};

}  // namespace

void simulate(SearchState& search, Candidate& candidate) {
  if (candidate.simulated) {
    return;
  }
  candidate.simulated = true;
  const auto found = search.estimator.simulate(candidate.plan);
  ++search.answer.counts.simulated;
  if (!found) {
    return;
  }
  if (!candidate.estimate.rough) {
    search.answer.estimate_error =
        std::max(search.answer.estimate_error, std::abs(candidate.score / found->score - 1));
  }
  const auto place =
      std::upper_bound(search.answer.top.begin(), search.answer.top.end(), found->score,
                       [](Time score, const Found& other) { return score < other.score; });
  search.answer.top.insert(place, {.plan = candidate.plan,
                                   .step_time = found->step_time,
                                   .score = found->score,
                                   .unfused = {},
                                   .estimate = candidate.estimate,
                                   .memory = candidate.memory,
                                   .mfu = found->mfu,
                                   .tokens_per_s = found->tokens_per_s,
                                   .energy = found->energy,
                                   .cost_per_million_tokens = found->cost_per_million_tokens});
}

void certify(SearchState& search) {
  Certifier(search).run();
}

}  // namespace orrery::full
