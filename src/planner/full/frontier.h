// SPDX-License-Identifier: Apache-2.0
/// A Frontier is what a search has still to look at, the most promising first, and what it has
/// found.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "base/units.h"
#include "estimate/estimate.h"
#include "planner/full/savings.h"
#include "workload/plan/plan.h"

namespace orrery::full {

enum class Level : std::uint8_t { group, shape, variant };

struct Node {
  Time bound{0};
  Time expected{0};  ///< by which they are looked at
  Level level = Level::group;
  std::uint64_t number = 0;  ///< order of making, which breaks ties
  plan::Plan plan;
  std::shared_ptr<Savings> savings;  ///< of a variant: those that it is one of
  std::size_t saving = 0;
  bool tight = false;  ///< it fits, and its bound is that of its issue lists
};
struct Later {
  bool operator()(const Node& a, const Node& b) const {
    return std::pair(a.expected, a.number) > std::pair(b.expected, b.number);
  }
};

/// A plan that fits.
struct Candidate {
  plan::Plan plan;
  Time bound{0};
  estimate::Estimate estimate;
  Time score{0};  ///< of the estimate
  Bytes memory{0};
  bool simulated = false;
};

/// Plans alike enough for what their bounds leave out to be alike too.
using Family = std::array<std::int64_t, 12>;
/// Copies of all activations cost much more beyond the bound than those of half.
inline std::int64_t share_of(const plan::Plan& plan) {
  return static_cast<std::int64_t>(std::ceil(4 * plan.offload_activations));
}
/// Whether layers and shares of the batch follow devices that differ.
inline std::int64_t proportion_of(const plan::Plan& plan) {
  return (plan.batch_shares.empty() ? 0 : 1) + (plan.stage_layers.size() > 4 ? 2 : 0);
}
inline Family family_of(const plan::Plan& plan) {
  return {plan.tp,
          plan.cp,
          plan.pp,
          plan.ep,
          static_cast<std::int64_t>(plan.schedule),
          plan.zero,
          static_cast<std::int64_t>(plan.cp_exchange),
          static_cast<std::int64_t>(plan.moe_dispatch),
          static_cast<std::int64_t>(plan.overlap_ep),
          static_cast<std::int64_t>(plan.recompute_modules.size()) * 4 +
              static_cast<std::int64_t>(plan.recompute),
          share_of(plan),
          proportion_of(plan)};
}

/// The same of a wider family: what its first plans are expected by.
using Kin = std::array<std::int64_t, 9>;
inline Kin kin_of(const plan::Plan& plan) {
  return {static_cast<std::int64_t>(plan.schedule),
          plan.zero,
          static_cast<std::int64_t>(plan.overlap_ep),
          plan.ep > 1 ? 1 : 0,
          plan.tp > 1 ? 1 : 0,
          plan.cp > 1 ? 1 : 0,
          plan.pp > 1 ? 1 : 0,
          share_of(plan),
          proportion_of(plan)};
}

class Frontier {
 public:
  /// `exhaustive`: by bounds alone.
  explicit Frontier(bool exhaustive) : exhaustive_(exhaustive) {}

  bool empty() const { return open_.empty(); }
  const Node& top() const { return open_.top(); }
  void pop() { open_.pop(); }

  /// Whether any is expected below `limit`, by what is known by now.
  bool any_below(Time limit) {
    if (!open_.empty() && open_.top().expected >= limit && outdated_) {
      order();
    }
    return !open_.empty() && open_.top().expected < limit;
  }

  void push(Time bound, Level level, plan::Plan plan, std::shared_ptr<Savings> savings = {},
            std::size_t saving = 0) {
    const Time expected = expect(bound, level, plan);
    open_.push({.bound = bound,
                .expected = expected,
                .level = level,
                .number = made_++,
                .plan = std::move(plan),
                .savings = std::move(savings),
                .saving = saving});
  }

  void put_back(Node node) {
    node.expected = expect(node.bound, node.level, node.plan);
    open_.push(std::move(node));
  }

  /// From now on the least bound first.
  void by_bounds() {
    exhaustive_ = true;
    order();
  }

  /// The first by what is known by now.
  Node take() {
    for (;;) {
      Node node = open_.top();
      open_.pop();
      const Time expected = expect(node.bound, node.level, node.plan);
      if (expected <= node.expected) {
        return node;
      }
      node.expected = expected;
      open_.push(std::move(node));
    }
  }

  /// The first nodes that are expected below `limit`, at most so many, in their order.
  std::vector<const Node*> first(std::size_t most, Time limit) const {
    return open_.first(most, limit);
  }

  /// Returns the least that a variant's estimate will be, by what is known so far.
  Time expected(Time bound, const plan::Plan& plan) const {
    return expect(bound, Level::variant, plan);
  }

  /// A plan's estimate was `ratio` times its bound.
  void learn(const plan::Plan& plan, double ratio) {
    learn(ratios_.emplace(family_of(plan), ratio), ratio, of_family_);
    learn(kin_.emplace(kin_of(plan), ratio), ratio, of_kin_);
    least_ratio_ = ratios_.size() == 1 ? ratio : std::min(least_ratio_, ratio);
  }

 private:
  void order() {
    std::vector<Node> nodes = std::move(open_).take();
    for (Node& node : nodes) {
      node.expected = expect(node.bound, node.level, node.plan);
    }
    open_ = Queue(std::move(nodes));
    outdated_ = false;
  }

  static constexpr double kUsualRatio = 1.05;  // of an estimate over its bound, of a good plan
  static constexpr double kLeastShare = 0.3;
  static constexpr double kStep = 0.05;     // in which the shares fall
  static constexpr double kNothing = 0.01;  // left out: too little to learn from

  /// One more of a family or kin. Where a bound leaves out less of this plan than was expected of
  /// its like, less will be expected of all from now on.
  template <class Known>
  void learn(const std::pair<Known, bool>& entry, double ratio, double& share) {
    double& least = entry.first->second;
    if (entry.second || ratio >= least) {
      outdated_ = outdated_ || entry.second;
      return;
    }
    if (least - 1 > kNothing) {
      const double part = std::max(0.0, ratio - 1) / (least - 1);
      while (share > kLeastShare && part < share) {
        share -= kStep;
      }
    }
    least = ratio;
    outdated_ = true;
  }

  /// Returns the least that the plan's estimate will be, if it is above its bound as those of the
  /// plans like it are, or, of the first of them, as any was.
  Time expect(Time bound, Level level, const plan::Plan& plan) const {
    if (exhaustive_) {
      return bound;
    }
    const double usual = std::min(least_ratio_, kUsualRatio);
    if (level != Level::variant) {
      return bound * usual;
    }
    if (const auto known = ratios_.find(family_of(plan)); known != ratios_.end()) {
      return bound * (1 + (known->second - 1) * of_family_);
    }
    const auto kin = kin_.find(kin_of(plan));
    return bound * (kin == kin_.end() ? usual : 1 + (kin->second - 1) * of_kin_);
  }

  bool exhaustive_;
  /// A priority queue that gives its nodes back.
  struct Queue : std::priority_queue<Node, std::vector<Node>, Later> {
    Queue() = default;
    explicit Queue(std::vector<Node> nodes) : priority_queue(Later(), std::move(nodes)) {}
    std::vector<Node> take() && { return std::move(c); }
    /// Down the heap from its root, always to the least of what is below what was taken.
    std::vector<const Node*> first(std::size_t most, Time limit) const {
      const auto later = [&](std::size_t a, std::size_t b) { return Later()(c[a], c[b]); };
      std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> next(later);
      std::vector<const Node*> found;
      const auto reach = [&](std::size_t i) {
        if (i < c.size() && c[i].expected < limit) {
          next.push(i);
        }
      };
      for (reach(0); !next.empty() && found.size() < most;) {
        const std::size_t i = next.top();
        next.pop();
        found.push_back(&c[i]);
        reach(2 * i + 1);
        reach(2 * i + 2);
      }
      return found;
    }
  };
  Queue open_;
  std::uint64_t made_ = 0;
  std::map<Family, double> ratios_;  ///< least estimate / bound
  std::map<Kin, double> kin_;
  double least_ratio_ = 1;
  double of_family_ = 0.75;  ///< of what a bound leaves out of a plan, also of its like
  double of_kin_ = 0.5;
  bool outdated_ = false;  ///< more is known than when some nodes were pushed
};

}  // namespace orrery::full
