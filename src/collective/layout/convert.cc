// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/convert.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/beyond_time.h"

namespace orrery::layout {
namespace {

using Kind = Placement::Kind;

/// Returns what an axis can hold between the two layouts.
std::vector<Placement> choices(const Placement& from, const Placement& to, const Shape& shape) {
  std::vector<Placement> all;
  if (from.kind == Kind::only || to.kind == Kind::only) {
    all = {from};
    if (to != from) {
      all.push_back(to);
    }
    return all;
  }
  all.push_back(Placement::replicate());
  for (std::size_t d = 0; d < shape.extents.size(); ++d) {
    all.push_back(Placement::shard(static_cast<int>(d)));
  }
  if (from.kind == Kind::partial) {
    all.push_back(Placement::partial());
  }
  return all;
}

std::vector<Layout> layouts_between(const Layout& from, const Layout& to, const Shape& shape) {
  std::vector<Layout> all{{}};
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    std::vector<Layout> longer;
    for (const Layout& layout : all) {
      for (const Placement& placement : choices(from[axis], to[axis], shape)) {
        longer.push_back(layout);
        longer.back().push_back(placement);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// Cost, then steps that move something, then layouts: the order in which ties are broken.
struct Reached {
  double cost = 0;
  int steps = 0;
  friend auto operator<=>(const Reached&, const Reached&) = default;
};

}  // namespace

double total_cost(const Problem& problem, const std::vector<Step>& steps, const Cost& cost) {
  double sum = 0;
  for (const Step& step : steps) {
    sum += cost(step, shape_of(problem, step));
  }
  return sum;
}

Error beyond_time(std::string_view name, const Problem& problem, const std::vector<Step>& steps,
                  const Cost& seconds) {
  Error error;
  if (from_seconds(total_cost(problem, steps, seconds)).is_overflow()) {
    error.add(Mistake{std::string(name), {}, {}, kBeyondTime});
  }
  return error;
}

Cost byte_cost(const Mesh& mesh) {
  return [mesh](const Step& step, const Shape& shape) {
    return static_cast<double>(sent_by_a_rank(moves_of(step, shape, mesh), shape, mesh).value());
  };
}

std::optional<std::vector<Step>> cheapest(const Problem& problem, const Cost& cost) {
  using State = std::pair<Layout, bool>;  // and whether the work is done
  const State begin{problem.from, false};
  const State end{problem.to, problem.work.has_value()};
  const std::vector<Layout> all = layouts_between(problem.from, problem.to, problem.shape);
  std::map<State, Reached> best{{begin, {}}};
  std::map<State, std::pair<State, Step>> last;
  std::set<std::pair<Reached, State>> open{{{}, begin}};
  while (!open.empty() && open.begin()->second != end) {
    const Reached so_far = open.begin()->first;
    const State at = open.begin()->second;
    open.erase(open.begin());
    const auto take = [&](Step step, bool done) {
      step.after_work = at.second;
      const Reached there{so_far.cost + cost(step, shape_of(problem, step)),
                          so_far.steps + (moves(step.operation) ? 1 : 0)};
      const State next{step.to, done};
      const auto known = best.find(next);
      const bool fresh = known == best.end();
      if (fresh || there < known->second) {
        open.erase({fresh ? there : known->second, next});
        best[next] = there;
        last.insert_or_assign(next, std::pair{at, std::move(step)});
        open.insert({there, next});
      }
    };
    if (!at.second && problem.work && can_apply(*problem.work, at.first)) {
      take({Operation::apply, at.first, at.first, false}, true);
    }
    for (const Layout& next : all) {
      if (const std::optional<Step> step = step_between(at.first, next)) {
        take(*step, at.second);
      }
    }
  }
  if (best.find(end) == best.end()) {
    return std::nullopt;
  }
  std::vector<Step> steps;
  for (State at = end; at != begin; at = last.at(at).first) {
    steps.push_back(last.at(at).second);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace orrery::layout
