// SPDX-License-Identifier: Apache-2.0
/// Says how many steps a round has where that is open. More of them are never slower, and what they
/// cost in loss no time tells, so co2 has the fewest whose compute hides the all-reduce of a round,
/// for the plan that is best with so many. The plan that is best where averages hardly count says
/// how many it needs; the search is done again with as many, until its answer needs that number.
/// Updates that change results differently, and frameworks, whose kernels, costs and capabilities
/// differ, are searched one after the other.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "estimate/estimate.h"
#include "planner/full/search_state.h"
#include "workload/interop/capabilities.h"
#include "workload/plan/framework.h"

namespace orrery::full {
namespace {

constexpr int kMostSearches = 6;
constexpr std::int64_t kFirst = 64;  // local steps of the first search

}  // namespace

bool leaves_rounds_open(const Task& task) {
  return task.fixed.plan.data_parallel_update != plan::DataParallelUpdate::every_step &&
         !task.fixed.places.contains("local_steps") && !task.only.contains("local_steps");
}

std::string searched_apart(const Task& task) {
  if (task.only.contains("framework")) {
    return "framework";
  }
  const bool updates =
      task.only.contains("data_parallel_update") && !task.only.contains("local_steps");
  return updates ? "data_parallel_update" : "";
}

Result<Answer> search_each(const Task& task, const std::string& field, const Options& options,
                           Knowledge& known) {
  if (const auto place = task.fixed.places.find(field); place != task.fixed.places.end()) {
    return fail(Error({"--only", field, {}, "contradicts " + place->second + "; choose one"}));
  }
  for (const std::string& value : task.only.at(field)) {
    if (const auto known = plan::framework_fields(value); field == "framework" && !known) {
      return fail(known.error());
    }
  }
  std::optional<Answer> all;
  std::optional<Error> mistakes;
  for (const std::string& value : task.only.at(field)) {
    Task one = task;
    one.only.erase(field);
    one.fixed.places[field] = "--only";
    if (auto set = set_field(one.fixed.plan, field, value, "--only"); !set) {
      return fail(std::move(set.error()));
    }
    if (field == "framework" && interop::launcher_named(value) != nullptr) {
      one.launcher = value;
    }
    auto answer = search(one, options, known);
    if (task.only.at(field).size() == 1) {
      return answer;
    }
    if (!answer) {
      mistakes = std::move(answer.error());
    } else if (all) {
      merge(*all, std::move(*answer), options);
    } else {
      all = std::move(*answer);
    }
  }
  if (!all) {
    return fail(mistakes ? std::move(*mistakes) : Error("no value of " + field));
  }
  std::ranges::stable_sort(all->top, {}, &Found::score);
  put_simple_first(*all, options);
  return std::move(*all);
}

Result<Answer> search_rounds(const Task& task, const Options& options, Knowledge& known) {
  if (task.fixed.plan.data_parallel_update != plan::DataParallelUpdate::co2) {
    return fail(task.fixed.placed(
        Error(Mistake{{},
                      "local_steps",
                      {},
                      "missing; expected a number: more of them are never slower, unless those of "
                      "co2 that hide its all-reduce already"})));
  }
  Task own = task;
  own.fixed.places["local_steps"] = "the fewest that hide the all-reduce";
  own.fixed.plan.local_steps = kFirst;
  estimate::Estimator estimator(task.model, task.machine);
  Result<Answer> answer = search(own, options, known);
  std::int64_t least = 1;  // fewer did not hide it for the plan that was best with them
  for (int i = 1; i < kMostSearches && answer && !answer->top.empty() && !answer->stopped; ++i) {
    const auto needed = estimator.hiding_local_steps(answer->top.front().plan);
    if (!needed || std::max(*needed, least) == own.fixed.plan.local_steps) {
      break;
    }
    least = *needed > own.fixed.plan.local_steps ? *needed : least;
    own.fixed.plan.local_steps = std::max(*needed, least);
    answer = search(own, options, known);
  }
  return answer;
}

}  // namespace orrery::full
