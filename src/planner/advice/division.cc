// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/division.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/lists.h"

namespace orrery::advice {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Divider {
 public:
  Divider(std::size_t models, Together together, const ScoreOf& score)
      : models_(models), together_(together), score_(score) {}

  struct Found {
    double score = kNever;
    std::vector<std::int64_t> nodes{};
  };

  /// Returns the best division of so many nodes between the models from `first` on, found once.
  const Found& best(std::size_t first, std::int64_t nodes) {
    const auto known = best_.find({first, nodes});
    return known != best_.end()
               ? known->second
               : best_.emplace(std::pair(first, nodes), find(first, nodes)).first->second;
  }

 private:
  Found find(std::size_t first, std::int64_t nodes) {
    const auto left = static_cast<std::int64_t>(models_ - first - 1);
    std::vector<std::int64_t> counts = divisible_counts(nodes);
    if (left == 0) {
      return of_last(first, counts);
    }
    std::erase_if(counts, [&](std::int64_t count) { return count > nodes - left; });
    return together_ == Together::longest ? by_halving(first, nodes, counts)
                                          : of_all(first, nodes, counts);
  }

  /// Returns the best number for the last model. For the longest time these are all of its nodes or
  /// one number fewer, which may be faster than nodes that divide badly.
  Found of_last(std::size_t model, const std::vector<std::int64_t>& counts) {
    const std::size_t tried =
        together_ == Together::longest ? std::min<std::size_t>(counts.size(), 2) : counts.size();
    Found found;
    for (std::size_t i = counts.size(); i > counts.size() - tried; --i) {
      const double score = score_at(model, counts[i - 1]);
      found = score < found.score ? Found{score, {counts[i - 1]}} : found;
    }
    return found;
  }

  /// Returns the division that gives the first model so many nodes and the others what that leaves.
  Found with(std::size_t first, std::int64_t count, std::int64_t nodes) {
    const double own = score_at(first, count);
    Found rest = best(first + 1, nodes - count);
    rest.score = together_ == Together::longest ? std::max(own, rest.score) : own + rest.score;
    rest.nodes.insert(rest.nodes.begin(), count);
    return rest;
  }

  Found of_all(std::size_t first, std::int64_t nodes, const std::vector<std::int64_t>& counts) {
    Found found;
    for (const std::int64_t count : counts) {
      Found one = with(first, count, nodes);
      found = one.score < found.score ? std::move(one) : found;
    }
    return found;
  }

  /// Tries the fewest nodes with which the first model does not end last, and a number fewer.
  Found by_halving(std::size_t first, std::int64_t nodes, const std::vector<std::int64_t>& counts) {
    std::size_t low = 0;
    std::size_t high = counts.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const bool last =
          score_at(first, counts[middle]) > best(first + 1, nodes - counts[middle]).score;
      (last ? low : high) = last ? middle + 1 : middle;
    }
    const std::size_t from = low > 0 ? low - 1 : 0;
    const std::size_t to = std::min(low + 1, counts.size());
    return of_all(first, nodes,
                  {counts.begin() + static_cast<std::ptrdiff_t>(from),
                   counts.begin() + static_cast<std::ptrdiff_t>(to)});
  }

  double score_at(std::size_t model, std::int64_t count) {
    const auto [known, is_new] = known_.try_emplace({model, count}, 0);
    if (is_new) {
      known->second = score_(model, count);
    }
    return known->second;
  }

  std::size_t models_;
  Together together_;
  const ScoreOf& score_;
  std::map<std::pair<std::size_t, std::int64_t>, double> known_;
  std::map<std::pair<std::size_t, std::int64_t>, Found> best_;
};

/// Searches every model on every number of devices once.
class Shares {
 public:
  Shares(const std::vector<Work>& works, const full::Options& options, const Progress& progress)
      : works_(works), options_(options), progress_(progress) {}

  const Result<WorkShare>& of(std::size_t model, std::int64_t devices) {
    auto known = known_.find({model, devices});
    if (known == known_.end()) {
      full::Task task = works_[model].task;
      task.devices = devices;
      auto share = good_plan(task, options_).map([&](full::Found best) {
        const Duration time(works_[model].tokens / best.tokens_per_s);
        return WorkShare{devices, std::move(best), time};
      });
      known = known_.emplace(std::pair(model, devices), std::move(share)).first;
      if (progress_) {
        progress_(0);  // how many will be asked for is not known
      }
    }
    return known->second;
  }

  /// Returns why models have no plan on so many devices, each under its name.
  Error why_none(std::int64_t devices) {
    Error all;
    for (std::size_t model = 0; model < works_.size(); ++model) {
      if (const auto& share = of(model, devices); !share) {
        Error own = works_[model].task.fixed.placed(share.error());
        for (Mistake& mistake : own.mistakes) {
          mistake.where = mistake.where.empty() ? works_[model].name : mistake.where;
        }
        all.add(std::move(own));
      }
    }
    return all;
  }

  double score(std::size_t model, std::int64_t devices) {
    const auto& share = of(model, devices);
    if (!share) {
      return kNever;
    }
    const double seconds = share->time.value();
    switch (options_.objective) {
      case full::Objective::cost:
        return share->best.cost_per_million_tokens->value() * works_[model].tokens / kMillion;
      case full::Objective::tokens_per_joule:
        return share->best.energy->value() * seconds / to_seconds(share->best.step_time);
      default:
        return seconds;
    }
  }

 private:
  static constexpr double kMillion = 1e6;

  const std::vector<Work>& works_;
  const full::Options& options_;
  const Progress& progress_;
  std::map<std::pair<std::size_t, std::int64_t>, Result<WorkShare>> known_;
};

/// Returns the arrangement of these numbers of devices; empty where a model has no plan.
Arrangement arranged(Shares& shares, const std::vector<std::int64_t>& devices, bool at_once,
                     bool longest) {
  Arrangement all;
  for (std::size_t model = 0; model < devices.size(); ++model) {
    const auto& share = shares.of(model, devices[model]);
    if (!share) {
      return {};
    }
    all.shares.push_back(*share);
    all.end = at_once ? std::max(all.end, share->time) : all.end + share->time;
    all.score += shares.score(model, devices[model]);
  }
  all.score = longest ? all.end.value() : all.score;
  return all;
}

}  // namespace

std::vector<std::int64_t> divisible_counts(std::int64_t most) {
  std::vector<std::int64_t> counts{most};
  for (const std::int64_t odd : {1, 3, 5, 7}) {
    for (std::int64_t count = odd; count < most; count *= 2) {
      counts.push_back(count);
    }
  }
  std::ranges::sort(counts);
  return counts;
}

std::vector<std::int64_t> divide(std::size_t models, std::int64_t nodes, Together together,
                                 const ScoreOf& score) {
  if (nodes < static_cast<std::int64_t>(models)) {
    return {};
  }
  const Divider::Found found = Divider(models, together, score).best(0, nodes);
  return found.score < kNever ? found.nodes : std::vector<std::int64_t>();
}

Division division(const std::vector<Work>& works, std::int64_t devices,
                  const full::Options& options, const Progress& progress) {
  const std::int64_t node = devices_of_node(works.front().task.machine);
  const bool longest = options.objective == full::Objective::time;
  Shares shares(works, options, progress);
  const std::vector<std::int64_t> nodes = divide(
      works.size(), devices / node, longest ? Together::longest : Together::sum,
      [&](std::size_t model, std::int64_t count) { return shares.score(model, count * node); });
  Division found;
  found.apart = arranged(shares, mapped(nodes, [&](std::int64_t count) { return count * node; }),
                         true, longest);
  found.in_turn =
      arranged(shares, std::vector<std::int64_t>(works.size(), devices), false, longest);
  if (found.in_turn.shares.empty()) {
    found.missing = shares.why_none(devices);
  }
  return found;
}

}  // namespace orrery::advice
