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
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "base/units.h"
#include "planner/full/savings.h"
#include "workload/plan/plan.h"

namespace orrery::full {

/// Exchanges are the shapes of a group that exchange alike.
enum class Level : std::uint8_t { group, exchanges, shape, variant };

struct Node {
  Time bound{0};
  Time expected{0};  ///< by which they are looked at
  Level level = Level::group;
  std::uint64_t number = 0;  ///< order of making, which breaks ties; 0: not in a frontier yet
  plan::Plan plan;
  std::uint64_t plans = 1;             ///< that it stands for
  std::size_t exchanges = 0;           ///< of a group, by number; its plan is the group's
  std::shared_ptr<Savings> savings{};  ///< of a variant: those that it is one of
  std::size_t saving = 0;
  /// The bound is that of what blocks with these exchanges wait for, of a shape's own schedule, or
  /// the tighter one of a variant, which then fits.
  bool tight = false;
  std::optional<Time> value{};  ///< it fits, and this is what its step may take (estimate.h)
};
struct Later {
  bool operator()(const Node& a, const Node& b) const {
    return std::pair(a.expected, a.number) > std::pair(b.expected, b.number);
  }
};

/// Plans alike enough for what their bounds leave out to be alike too.
using Family = std::array<std::int64_t, 12>;
/// Copies of all activations cost much more beyond the bound than those of half.
inline std::int64_t share_of(const plan::Plan& plan) {
  return static_cast<std::int64_t>(std::ceil(4 * plan.offload_activations));
}
/// Returns whether layers and shares of the batch follow devices that differ.
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
          static_cast<std::int64_t>(plan.overlap_ep) +
              4 * static_cast<std::int64_t>(plan.overlap_tensor),
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

/// Learns, by family, how far what is known of plans later is above what was known of them before.
class Ratios {
 public:
  /// Says where learning begins: `usual` is expected of a plan whose like is not known. Of what a
  /// ratio is above `least`, the shares `of_family` and `of_kin` are expected of another plan of
  /// the family, and of the wider kin.
  struct Start {
    double least = 1;
    double usual = 1;
    double of_family = 1;
    double of_kin = 1;
  };
  explicit Ratios(const Start& start)
      : floor_(start.least),
        usual_(start.usual),
        of_family_(start.of_family),
        of_kin_(start.of_kin) {}

  bool empty() const { return families_.empty(); }
  double usual() const { return std::min(least_, usual_); }

  /// True: less will be expected of plans from now on.
  bool learn(const plan::Plan& plan, double ratio) {
    const bool family = learn(families_.emplace(family_of(plan), ratio), ratio, of_family_);
    const bool kin = learn(kin_.emplace(kin_of(plan), ratio), ratio, of_kin_);
    least_ = families_.size() == 1 ? ratio : std::min(least_, ratio);
    return family || kin;
  }

  /// Returns what the ratio of the plan will be at the least, if it is as those of the plans like
  /// it are, or, of the first of them, as any was.
  double of(const plan::Plan& plan) const {
    if (const auto known = families_.find(family_of(plan)); known != families_.end()) {
      return part(known->second, of_family_);
    }
    const auto kin = kin_.find(kin_of(plan));
    return kin == kin_.end() ? usual() : part(kin->second, of_kin_);
  }

 private:
  static constexpr double kLeastShare = 0.3;
  static constexpr double kStep = 0.05;     // in which the shares fall
  static constexpr double kNothing = 0.01;  // above the floor: too little to learn from

  double part(double ratio, double share) const { return floor_ + (ratio - floor_) * share; }

  /// Notes one more of a family or kin. Where it is nearer the floor than was expected of its like,
  /// less will be expected of all from now on.
  template <class Known>
  bool learn(const std::pair<Known, bool>& entry, double ratio, double& share) {
    double& least = entry.first->second;
    if (entry.second || ratio >= least) {
      return entry.second;
    }
    if (least - floor_ > kNothing) {
      const double nearer = std::max(0.0, ratio - floor_) / (least - floor_);
      while (share > kLeastShare && nearer < share) {
        share -= kStep;
      }
    }
    least = ratio;
    return true;
  }

  double floor_;
  double usual_;
  std::map<Family, double> families_;  ///< the least
  std::map<Kin, double> kin_;
  double least_ = 1;
  double of_family_;
  double of_kin_;
};

class Frontier {
 public:
  /// Makes a frontier. `exhaustive`: by bounds alone.
  explicit Frontier(bool exhaustive) : exhaustive_(exhaustive) {}

  bool empty() const { return open_.empty(); }
  const Node& top() const { return open_.top(); }
  void pop() { open_.pop(); }

  /// Returns whether any is expected below `limit`, by what is known by now.
  bool any_below(Time limit) {
    if (!open_.empty() && open_.top().expected >= limit && outdated_) {
      order();
    }
    return !open_.empty() && open_.top().expected < limit;
  }

  void push(Time bound, Level level, plan::Plan plan, std::shared_ptr<Savings> savings = {},
            std::size_t saving = 0) {
    put_back({.bound = bound,
              .level = level,
              .plan = std::move(plan),
              .savings = std::move(savings),
              .saving = saving});
  }

  void put_back(Node node) {
    node.number = node.number > 0 ? node.number : ++made_;
    node.expected = expect(node);
    open_.push(std::move(node));
  }

  /// Takes the least bound first from now on.
  void by_bounds() {
    exhaustive_ = true;
    order();
  }

  /// The first by what is known by now.
  Node take() {
    for (;;) {
      Node node = open_.take_first();
      const Time expected = expect(node);
      if (expected <= node.expected) {
        return node;
      }
      node.expected = expected;
      open_.push(std::move(node));
    }
  }

  /// Returns the first nodes that are expected below `limit`, at most so many, in their order.
  std::vector<const Node*> first(std::size_t most, Time limit) const {
    return open_.first(most, limit);
  }

  /// Returns the least that a variant's value (of its bound) or simulation (of its value) will be,
  /// by what is known so far.
  Time expected(Time bound, const plan::Plan& plan) const {
    return exhaustive_ ? bound : bound * values_.of(plan);
  }
  Time expected_of_value(Time value, const plan::Plan& plan) const {
    return value * simulations_.of(plan);
  }

  /// A plan's value was `ratio` times its bound.
  void learn_value(const plan::Plan& plan, double ratio) {
    outdated_ = values_.learn(plan, ratio) || outdated_;
  }
  /// A plan's simulation was `ratio` times its value.
  void learn_simulation(const plan::Plan& plan, double ratio) {
    outdated_ = simulations_.learn(plan, ratio) || outdated_;
  }

 private:
  void order() {
    std::vector<Node> nodes = std::move(open_).take();
    for (Node& node : nodes) {
      node.expected = expect(node);
    }
    open_ = Queue(std::move(nodes));
    outdated_ = false;
  }

  Time expect(const Node& node) const {
    if (exhaustive_) {
      return node.bound;
    }
    if (node.level != Level::variant) {
      return node.bound * values_.usual();
    }
    return node.value ? std::max(node.bound, expected_of_value(*node.value, node.plan))
                      : expected(node.bound, node.plan);
  }

  bool exhaustive_;
  /// A priority queue that gives its nodes back.
  struct Queue : std::priority_queue<Node, std::vector<Node>, Later> {
    Queue() = default;
    explicit Queue(std::vector<Node> nodes) : priority_queue(Later(), std::move(nodes)) {}
    std::vector<Node> take() && { return std::move(c); }
    Node take_first() {
      std::ranges::pop_heap(c, comp);
      Node node = std::move(c.back());
      c.pop_back();
      return node;
    }
    /// Returns the first nodes. It goes down the heap from its root, always to the least of what is
    /// below what was taken.
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
  /// The ratios of values to bounds, of a good plan, and of simulations to values.
  Ratios values_{{.least = 1, .usual = 1.05, .of_family = 0.75, .of_kin = 0.5}};
  Ratios simulations_{{.least = 0.9, .usual = 0.98, .of_family = 0.9, .of_kin = 0.8}};
  bool outdated_ = false;  ///< more is known than when some nodes were pushed
};

}  // namespace orrery::full
