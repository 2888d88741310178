// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/full/search_state.h"
#include "planner/full/unusual.h"
#include "workload/memory/footprint.h"

namespace orrery::full {
namespace {

constexpr double kWorthwhile = 1e-3;  // of the step, gained by a change
constexpr std::size_t kRefined = 3;   // of the best plans, whose other fields are varied
constexpr std::size_t kChanges = 4;   // simulations of changes of one of them
constexpr std::size_t kFills = 4;     // estimates for each plan that the answer lacks

Time simple_below(const Answer& answer, const Options& options) {
  return answer.top.front().score * (1 + options.simple_within);
}

class Certifier {
 public:
  explicit Certifier(SearchState& search) : search_(search) {}

  void run() {
    simulate_promising(search_, 0, search_.options.top + kRefined);
    local_search(search_);
    refine();
    fill();
    simplify(search_);
    raise_bounds(search_);
    finish();
    fuse();
    put_simple_first(search_.answer, search_.options);
  }

 private:
  /// One field after the other of the best plans.
  void refine() {
    for (std::size_t i = 0; i < std::min(kRefined, search_.answer.top.size()); ++i) {
      const Found best = search_.answer.top[i];
      const std::size_t first = search_.candidates.size();
      for (const plan::Plan& change : search_.space.changes(best.plan)) {
        const auto bound = search_.runs(change) ? search_.least(change) : Time::max();
        if (!bound || *bound >= best.score * (1 - kWorthwhile) ||
            search_.candidate(change) != nullptr) {
          continue;
        }
        if (search_.stop()) {
          return;
        }
        const auto [fits, memory] = search_.estimator.memory(change);
        if (fits) {
          (void)search_.estimate(change, *bound, memory);
        }
      }
      simulate_promising(search_, first, kChanges);
    }
  }

  /// Simulates the next plans, though far behind, where fewer were simulated than are asked for.
  void fill() {
    const bool complete = search_.answer.complete;
    const std::size_t most_estimates = search_.options.most_estimates;
    for (const double share : {1.05, 1.25, 2.0}) {
      if (search_.answer.top.empty() || search_.has_enough() || search_.stop()) {
        break;
      }
      search_.wanted = search_.answer.top.front().score * share;
      search_.options.most_estimates =
          std::min(most_estimates, search_.answer.counts.estimated + kFills * search_.options.top);
      explore(search_);
    }
    search_.wanted = Time(0);
    search_.options.most_estimates = most_estimates;
    search_.answer.complete = complete;
  }

  /// The least bound of what was not simulated, and what is left.
  void finish() {
    const Time best = search_.answer.top.empty() ? Time::max() : search_.answer.top.front().score;
    search_.answer.proved = search_.answer.complete;
    const Time closed = search_.sure();
    for (; !search_.open.empty(); search_.open.pop()) {
      const Node& node = search_.open.top();
      const std::uint64_t plans = node.value ? 0 : node.plans;  // else it has been estimated
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
      keep_best();
    }
  }

  /// Keeps as many plans as are asked for, and the simplest that is as good.
  void keep_best() {
    std::vector<Found>& top = search_.answer.top;
    const Time below = simple_below(search_.answer, search_.options);
    const auto simplest = std::ranges::min_element(top, [&](const Found& a, const Found& b) {
      const bool in_a = a.score <= below;
      return in_a != (b.score <= below) ? in_a : in_a && is_simpler(a.plan, b.plan);
    });
    const auto at = static_cast<std::size_t>(simplest - top.begin());
    if (at >= search_.options.top && search_.options.simple_within > 0) {
      std::rotate(top.begin() + static_cast<std::ptrdiff_t>(search_.options.top), simplest,
                  simplest + 1);
      top.resize(search_.options.top + 1);
    } else {
      top.resize(std::min(top.size(), search_.options.top));
    }
  }

  /// Tries fused communication. Only where stages send sums of tensor-parallel ranks can there be
  /// anything to fuse: with sequence parallelism they send slices.
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
        static_cast<Simulated&>(found) = *with;
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

void put_simple_first(Answer& answer, const Options& options) {
  std::vector<Found>& top = answer.top;
  answer.fastest.reset();
  if (top.empty() || options.simple_within <= 0) {
    return;
  }
  const Time below = simple_below(answer, options);
  std::size_t simplest = 0;
  for (std::size_t i = 1; i < top.size() && top[i].score <= below; ++i) {
    simplest = is_simpler(top[i].plan, top[simplest].plan) ? i : simplest;
  }
  if (simplest > 0) {
    answer.fastest = top.front();
    const auto place = top.begin() + static_cast<std::ptrdiff_t>(simplest);
    std::rotate(top.begin(), place, place + 1);
  }
  top.resize(std::min(top.size(), options.top));
}

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
  search.open.learn_simulation(candidate.plan, found->score / candidate.value);
  search.answer.estimate_error =
      std::max(search.answer.estimate_error, std::abs(candidate.value / found->score - 1));
  const auto place =
      std::upper_bound(search.answer.top.begin(), search.answer.top.end(), found->score,
                       [](Time score, const Found& other) { return score < other.score; });
  search.answer.top.insert(place,
                           {*found, candidate.plan, {}, candidate.estimate, candidate.memory});
}

void simulate_promising(SearchState& search, std::size_t first, std::size_t most) {
  const auto expected = [&](std::size_t i) {
    const Candidate& candidate = search.candidates[i];
    return search.open.expected_of_value(candidate.value, candidate.plan);
  };
  for (std::size_t done = 0; done < most; ++done) {
    std::vector<std::size_t> order;
    for (std::size_t i = first; i < search.candidates.size(); ++i) {
      if (!search.candidates[i].simulated && expected(i) < search.cutoff()) {
        order.push_back(i);
      }
    }
    if (order.empty() || search.answer.counts.simulated >= search.options.most_simulations ||
        (!search.answer.top.empty() && search.stop())) {
      return;
    }
    std::ranges::stable_sort(order, {}, expected);
    std::vector<plan::Plan> next;
    for (std::size_t i = 1;
         i < std::min({order.size(), most - done, 1 + search.estimator.worthwhile()}); ++i) {
      next.push_back(search.candidates[order[i]].plan);
    }
    search.estimator.expect(Question::simulation, next);
    simulate(search, search.candidates[order.front()]);
  }
}

void certify(SearchState& search) {
  Certifier(search).run();
}

}  // namespace orrery::full
