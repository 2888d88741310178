// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "planner/full/search_state.h"
#include "planner/full/unusual.h"

namespace orrery::full {
namespace {

constexpr int kRounds = 6;
constexpr std::size_t kTries = 64;       // estimates of a round
constexpr std::size_t kCertified = 4;    // simulations of a round
constexpr std::size_t kSimple = 6;       // simulations of simpler plans
constexpr double kUnsure = 1.01;         // of the limit, by which estimates may be off
constexpr std::int64_t kWideStep = 4;    // of one degree alone
constexpr std::int64_t kNarrowStep = 3;  // of two degrees at once

/// Returns how far a degree is from another: 0 equal, 1 a narrow step, 2 a wide one, 3 farther.
int distance(std::int64_t a, std::int64_t b) {
  const std::int64_t less = std::max<std::int64_t>(1, std::min(a, b));
  const std::int64_t more = std::max(a, b);
  return a == b ? 0 : more <= less * kNarrowStep ? 1 : more <= less * kWideStep ? 2 : 3;
}

/// Returns whether one degree differs, or two by a narrow step; dp is what is left.
bool is_near(const plan::Plan& a, const plan::Plan& b) {
  const int steps[] = {distance(a.tp, b.tp),
                       distance(a.cp, b.cp),
                       distance(a.pp, b.pp),
                       distance(a.ep, b.ep),
                       a.etp == b.etp || (a.tp != b.tp && (a.etp > 1) == (b.etp > 1)) ? 0 : 1,
                       distance(a.microbatch, b.microbatch)};
  const auto changed = std::count_if(std::begin(steps), std::end(steps), [](int s) { return s; });
  const int widest = *std::max_element(std::begin(steps), std::end(steps));
  return (changed <= 1 && widest <= 2) || (changed == 2 && widest <= 1);
}

bool same_degrees(const plan::Plan& a, const plan::Plan& b) {
  return a.tp == b.tp && a.cp == b.cp && a.pp == b.pp && a.ep == b.ep && a.etp == b.etp &&
         a.microbatch == b.microbatch;
}

/// Returns whether they exchange and lie alike, as far as both have something to exchange.
bool exchanges_alike(const plan::Plan& a, const plan::Plan& b) {
  const bool context = std::min(a.cp, b.cp) <= 1 || a.cp_exchange == b.cp_exchange;
  const bool experts = std::min(a.ep, b.ep) <= 1 ||
                       (a.moe_dispatch == b.moe_dispatch && a.overlap_ep == b.overlap_ep);
  const bool tensor = std::min(a.tp, b.tp) <= 1 || a.overlap_tensor == b.overlap_tensor;
  return context && experts && tensor && (std::min(a.pp, b.pp) <= 1 || a.order == b.order);
}

class LocalSearch {
 public:
  explicit LocalSearch(SearchState& search)
      : search_(search), left_(search.options.most_estimates) {}

  void run() {
    for (int round = 0; round < kRounds && left_ > 0 && !search_.answer.top.empty(); ++round) {
      const Time before = search_.answer.top.front().score;
      step(Found(search_.answer.top.front()));
      if (search_.answer.top.front().score >= before) {
        return;
      }
    }
  }

  void simplify() {
    const Found best = search_.answer.top.front();
    const Time limit = best.score * (1 + search_.options.simple_within);
    left_ = kTries / 2;
    std::vector<Neighbour> near;
    for (const plan::Plan& group : search_.groups) {
      if (same_degrees(group, best.plan)) {
        for (const plan::Plan& shape : search_.space.shapes(group)) {
          add_variants(shape, best, limit, near);
        }
      }
    }
    std::stable_sort(near.begin(), near.end(), by_expectation);
    for (Neighbour& one : near) {
      if (is_simpler(search_.space.with_saving(one.savings.variant(), 0), best.plan) && left_ > 0 &&
          !search_.stop()) {
        estimate_lightest(search_, one.savings, limit, left_);
      }
    }
    simulate_simplest(limit);
  }

 private:
  struct Neighbour {
    Time expected{0};
    Savings savings;
  };
  static bool by_expectation(const Neighbour& a, const Neighbour& b) {
    return a.expected < b.expected;
  }

  /// The simplest first, of those that are simpler than any simulated one below the limit.
  void simulate_simplest(Time limit) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < search_.candidates.size(); ++i) {
      if (!search_.candidates[i].simulated && search_.candidates[i].value <= limit * kUnsure) {
        order.push_back(i);
      }
    }
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const Candidate& one = search_.candidates[a];
      const Candidate& other = search_.candidates[b];
      const bool simpler = is_simpler(one.plan, other.plan);
      return simpler != is_simpler(other.plan, one.plan) ? simpler : one.value < other.value;
    });
    std::size_t left = kSimple;
    for (const std::size_t i : order) {
      const bool gains = std::ranges::none_of(search_.answer.top, [&](const Found& found) {
        return found.score <= limit && !is_simpler(search_.candidates[i].plan, found.plan);
      });
      const bool may = search_.answer.counts.simulated < search_.options.most_simulations;
      if (gains && may && left > 0 && !search_.stop()) {
        simulate(search_, search_.candidates[i]);
        --left;
      }
    }
  }

  void step(const Found& best) {
    std::vector<Neighbour> near = neighbours(best);
    std::stable_sort(near.begin(), near.end(), by_expectation);
    const std::size_t first = search_.candidates.size();
    const std::size_t enough = left_ > kTries ? left_ - kTries : 0;
    for (Neighbour& one : near) {
      if (left_ <= enough || search_.stop()) {
        break;
      }
      estimate_lightest(search_, one.savings, best.score, left_);
    }
    simulate_promising(search_, first, kCertified);
  }

  std::vector<Neighbour> neighbours(const Found& best) {
    std::vector<Neighbour> near;
    for (const plan::Plan& group : search_.groups) {
      if (!is_near(group, best.plan)) {
        continue;
      }
      const bool same = same_degrees(group, best.plan);
      for (const plan::Plan& shape : search_.space.shapes(group)) {
        if (same || exchanges_alike(shape, best.plan)) {
          add_variants(shape, best, best.score, near);
        }
      }
    }
    return near;
  }

  void add_variants(const plan::Plan& shape, const Found& best, Time limit,
                    std::vector<Neighbour>& near) {
    const bool same = same_degrees(shape, best.plan) && shape.schedule == best.plan.schedule &&
                      shape.chunks == best.plan.chunks;
    const std::vector<std::int64_t> zeros = search_.space.zeros(shape);
    const bool has_zero = std::find(zeros.begin(), zeros.end(), best.plan.zero) != zeros.end();
    for (plan::Plan& variant : search_.space.variants_to_save(shape)) {
      const bool alike = variant.offload_optimizer == best.plan.offload_optimizer &&
                         (variant.zero == best.plan.zero || !has_zero);
      const plan::Plan lightest = search_.space.with_saving(variant, 0);
      if ((!same && !alike) || !search_.runs(lightest)) {
        continue;
      }
      const auto bound = search_.least(lightest);
      if (bound && *bound < limit) {
        near.push_back(
            {search_.open.expected(*bound, lightest), Savings(search_.space, std::move(variant))});
      }
    }
  }

  SearchState& search_;
  std::size_t left_;  ///< estimates
};

}  // namespace

Candidate* SearchState::candidate(const plan::Plan& plan) {
  const auto found = std::ranges::find(candidates, plan, &Candidate::plan);
  return found == candidates.end() ? nullptr : &*found;
}

void estimate_lightest(SearchState& search, Savings& savings, Time limit, std::size_t& left) {
  const Space& space = search.space;
  for (std::size_t i = savings.next(space); i < space.savings() && left > 0;
       i = savings.next(space)) {
    plan::Plan plan = savings.plan(space, i);
    const auto memory = search.runs(plan) ? fit(search, plan) : std::nullopt;
    if (!memory) {
      savings.fail(i);
      continue;
    }
    const auto bound = search.least(plan);
    if (!bound || *bound >= limit || search.candidate(plan) != nullptr) {
      continue;
    }
    --left;
    (void)search.estimate(plan, *bound, *memory);
  }
}

void local_search(SearchState& search) {
  if (search.best() != search.best_of_its_like) {
    LocalSearch(search).run();
    search.best_of_its_like = search.best();
  }
}

void simplify(SearchState& search) {
  if (search.options.simple_within > 0 && !search.answer.top.empty() &&
      !unusual_means(search.answer.top.front().plan).empty()) {
    LocalSearch(search).simplify();
  }
}

}  // namespace orrery::full
