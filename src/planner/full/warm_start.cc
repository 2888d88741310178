// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "planner/full/search_state.h"

namespace orrery::full {
namespace {

constexpr std::size_t kManyGroups = 4096;  // of kMostBounds; fewer are split in a second or two
constexpr std::size_t kGroups = 4;         // of a way to cut the model, until one has a plan
constexpr std::size_t kShapes = 4;         // of a group
constexpr std::size_t kSimulated = 3;      // of all that were found

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

class WarmStart {
 public:
  explicit WarmStart(SearchState& search) : search_(search) {}

  void run(std::vector<plan::Plan> groups) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Ranked<plan::Plan>>> cuts;
    for (std::size_t i = 0; i < search_.group_bounds.size(); ++i) {
      plan::Plan& group = groups[i];
      if (const Time least = search_.group_bounds[i]; least > Time(0)) {
        const double fill =
            static_cast<double>(group.pp - 1) / static_cast<double>(group.microbatches());
        auto& cut = cuts[{group.tp, group.pp}];
        cut.push_back({least * (1 + fill), std::move(group)});
      }
    }
    for (auto& [cut, ranked] : cuts) {
      sort(ranked);
      ranked.resize(std::min(ranked.size(), kGroups));
      for (const Ranked<plan::Plan>& group : ranked) {
        if (search_.stop() || has_plan(group.value)) {
          break;
        }
      }
    }
    search_.warm_started = true;
    simulate_promising(search_, 0, kSimulated);
    local_search(search_);  // the better the best is, the fewer groups are opened
  }

 private:
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
  std::vector<plan::Plan> groups = search.space.groups();
  search.warm_started = search.warm_started || anyway;
  const bool many =
      anyway || groups.size() * kMostBounds >= search.options.most_bounds * kManyGroups;
  if (many && !search.options.exhaustive) {
    WarmStart(search).run(std::move(groups));
  }
}

}  // namespace orrery::full
