// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planner/full/search_state.h"

namespace orrery::full {
namespace {

constexpr std::size_t kManyGroups = 4096;  // of kMostBounds; fewer are split in a second or two
constexpr std::size_t kGroups = 4;         // of a way to cut the model, until one has a plan
constexpr std::size_t kShapes = 4;         // of a group
constexpr std::size_t kSimulated = 3;      // of all that were found
constexpr std::size_t kSoon = 4;           // plans, of which one is simulated

using Cut = std::pair<std::int64_t, std::int64_t>;  // tp, pp

template <class Value>
struct Ranked {
  Time least{0};
  Value value;
};

template <class Value>
void sort(std::vector<Ranked<Value>>& ranked) {
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.least < b.least; });
}

/// Returns of each way to cut the model those groups that cut sequences and experts least.
std::vector<plan::Plan> least_cut(const std::vector<plan::Plan>& groups) {
  const auto cut = [](const plan::Plan& group) { return std::pair(group.tp, group.pp); };
  const auto further = [](const plan::Plan& group) { return std::pair(group.cp, group.etp); };
  std::map<Cut, std::pair<std::int64_t, std::int64_t>> least;
  for (const plan::Plan& group : groups) {
    const auto known = least.try_emplace(cut(group), further(group)).first;
    known->second = std::min(known->second, further(group));
  }
  std::vector<plan::Plan> chosen;
  std::ranges::copy_if(groups, std::back_inserter(chosen), [&](const plan::Plan& group) {
    return further(group) == least[cut(group)];
  });
  return chosen;
}

class WarmStart {
 public:
  explicit WarmStart(SearchState& search) : search_(search) {}

  void run(const std::vector<plan::Plan>& groups) {
    std::size_t found = 0;
    for (const Ranked<std::vector<Ranked<plan::Plan>>>& cut : cuts_of(groups)) {
      const bool has = std::ranges::any_of(cut.value, [&](const Ranked<plan::Plan>& group) {
        return !search_.stop() && has_plan(group.value);
      });
      if (has && ++found == kSoon) {  // who ends the search early has one then
        simulate_promising(search_, 0, 1);
      }
    }
    search_.warm_started = true;
    simulate_promising(search_, 0, kSimulated);
    local_search(search_);  // the better the best is, the fewer groups are opened
  }

 private:
  /// Returns the ways to cut the model, each with its few most promising groups.
  std::vector<Ranked<std::vector<Ranked<plan::Plan>>>> cuts_of(
      const std::vector<plan::Plan>& groups) {
    std::map<Cut, std::vector<Ranked<plan::Plan>>> by_cut;
    for (const plan::Plan& group : groups) {
      const auto least = search_.stop() ? std::nullopt : search_.least_of_group(group);
      if (least && *least > Time(0)) {
        const double fill =
            static_cast<double>(group.pp - 1) / static_cast<double>(group.microbatches());
        by_cut[{group.tp, group.pp}].push_back({*least * (1 + fill), group});
      }
    }
    std::vector<Ranked<std::vector<Ranked<plan::Plan>>>> cuts;
    for (auto& [cut, ranked] : by_cut) {
      sort(ranked);
      ranked.resize(std::min(ranked.size(), kGroups));
      const Time least = ranked.front().least;
      cuts.push_back({least, std::move(ranked)});
    }
    sort(cuts);
    return cuts;
  }

  /// Estimates the first that fits.
  bool has_plan(const plan::Plan& group) {
    std::vector<Ranked<plan::Plan>> shapes = ranked(search_.space.shapes(group));
    shapes.resize(std::min(shapes.size(), kShapes));
    for (const Ranked<plan::Plan>& shape : shapes) {
      for (const Ranked<plan::Plan>& variant :
           ranked(search_.space.variants_to_save(shape.value))) {
        if (!search_.has_room(search_.space.most_saving(variant.value))) {
          continue;
        }
        std::size_t left = 1;
        Savings savings(search_.space, variant.value);
        estimate_lightest(search_, savings, Time::max(), left);
        if (left == 0) {
          return true;
        }
      }
    }
    return false;
  }

  std::vector<Ranked<plan::Plan>> ranked(std::vector<plan::Plan> plans) {
    std::vector<Ranked<plan::Plan>> ranked;
    for (plan::Plan& plan : plans) {
      const auto least = search_.valid(plan) ? search_.least(plan) : Result<Time>(Time(0));
      if (least && *least > Time(0)) {
        ranked.push_back({*least, std::move(plan)});
      }
    }
    sort(ranked);
    return ranked;
  }

  SearchState& search_;
};

}  // namespace

void warm_start(SearchState& search, bool anyway) {
  search.warm_started = search.warm_started || anyway;
  const std::size_t groups = search.groups.size();
  const bool many = groups * kMostBounds >= search.options.most_bounds * kManyGroups;
  if (anyway) {
    WarmStart(search).run(search.groups);
  } else if (many && !search.options.exhaustive) {
    WarmStart(search).run(least_cut(search.groups));
  }
}

}  // namespace orrery::full
