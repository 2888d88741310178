// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/decisions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/format.h"
#include "planner/full/space.h"
#include "workload/plan/machine_check.h"

namespace orrery::advice {
namespace {

constexpr auto kDegrees = std::to_array<std::string_view>({"tp", "cp", "pp", "ep"});
/// Fields of groups and shapes.
constexpr auto kShapeFields = std::to_array<std::string_view>(
    {"tp", "cp", "pp", "dp", "ep", "etp", "microbatch", "schedule", "chunks", "order",
     "cp_exchange", "moe_dispatch", "overlap_ep"});
constexpr auto kVariantFields = std::to_array<std::string_view>(
    {"zero", "recompute", "offload_optimizer", "offload_activations"});
constexpr std::int64_t kMostDegree = 64;  // of those that are only there to be refused

template <class Names>
bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns the field's value as --only would state it.
std::string text_of(const plan::Plan& plan, std::string_view field) {
  std::string text;
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    if (name != field) {
      return;
    }
    if constexpr (std::is_same_v<std::decay_t<decltype(plan.*member)>, std::string>) {
      text = plan.*member;
    } else {
      text = exact_text(plan.*member);
    }
  });
  return text;
}

/// Holds the values of fields as a plan's file would state them, in the order in which they come.
class Values {
 public:
  void add(std::string_view field, const std::string& value) {
    auto row = std::find_if(rows_.begin(), rows_.end(),
                            [&](const auto& known) { return known.first == field; });
    if (row == rows_.end()) {
      row = rows_.insert(rows_.end(), {std::string(field), {}});
    }
    if (!has(row->second, value)) {
      row->second.push_back(value);
    }
  }
  template <class Names>
  void add(const Names& names, const plan::Plan& plan) {
    for (const std::string_view name : names) {
      add(name, text_of(plan, name));
    }
  }
  using Rows = std::vector<std::pair<std::string, std::vector<std::string>>>;
  Rows take() && { return std::move(rows_); }

 private:
  Rows rows_;
};

/// Returns the values of fields that are open, and have more than one.
Values::Rows open_values(const full::Task& task, const full::Space& space, const plan::Plan& best) {
  Values values;
  values.add(kShapeFields, best);
  values.add(kVariantFields, best);
  for (const plan::Plan& group : space.groups()) {
    for (const plan::Plan& shape : space.shapes(group)) {
      values.add(kShapeFields, shape);
    }
  }
  for (const plan::Plan& variant : space.variants(best)) {
    values.add(kVariantFields, variant);
  }
  for (const std::string_view degree : kDegrees) {
    for (std::int64_t d = 1; d <= std::min(kMostDegree, task.devices); ++d) {
      if (task.devices % d == 0 && (degree != "ep" || task.model.experts > 0)) {
        values.add(degree, std::to_string(d));
      }
    }
  }
  auto rows = std::move(values).take();
  std::erase_if(rows, [&](const auto& row) {
    const auto only = task.only.find(row.first);
    return row.second.size() < 2 || task.fixed.places.contains(row.first) ||
           (only != task.only.end() && only->second.size() < 2);
  });
  return rows;
}

/// Returns why the model or the machine cannot have the value, where that is not for other fields'
/// sake.
std::string reason(const full::Task& task, const std::string& field, const std::string& value) {
  plan::Plan plan = task.fixed.plan;
  (void)full::set_field(plan, field, value, {});
  plan.dp = std::max<std::int64_t>(task.devices / (plan.tp * plan.cp * plan.pp), 1);
  auto checked = plan::check(plan, task.model);
  if (checked) {
    checked = plan::check_machine(plan, task.machine);
  }
  return checked ? "" : Error(checked.error().mistakes.front()).to_string();
}

Alternative alternative(full::Task task, const full::Options& options, const std::string& field,
                        const std::string& value, full::Knowledge& known) {
  task.only[field] = {value};
  auto answer = full::search(task, good_limits(options), known);
  Alternative other{.value = value, .best = {}, .refused = {}};
  if (!answer) {
    other.refused = reason(task, field, value);
    if (other.refused.empty()) {
      other.refused = Error(answer.error().mistakes.front()).to_string();
    }
  } else if (answer->top.empty()) {
    other.least_memory = answer->least_memory;
  } else {
    other.bound = answer->bound;
    other.best = std::move(answer->top.front());
  }
  return other;
}

/// A search for one value may miss what that for another field's found.
void share_plans(std::vector<Decision>& decisions) {
  std::vector<full::Found> found;
  for (const Decision& decision : decisions) {
    for (const Alternative& other : decision.others) {
      if (other.best) {
        found.push_back(*other.best);
      }
    }
  }
  const auto take_better = [&](const Decision& decision, Alternative& other) {
    for (const full::Found& plan : found) {
      if (other.best && plan.score < other.best->score &&
          text_of(plan.plan, decision.field) == other.value) {
        other.best = plan;
      }
    }
  };
  for (Decision& decision : decisions) {
    for (Alternative& other : decision.others) {
      take_better(decision, other);
    }
  }
}

/// The best first, then what does not fit, then what cannot be.
bool before(const Alternative& a, const Alternative& b) {
  const auto rank = [](const Alternative& other) {
    return std::pair(other.best              ? 0
                     : other.refused.empty() ? 1
                                             : 2,
                     other.best ? other.best->score : Time(0));
  };
  return rank(a) < rank(b);
}

}  // namespace

std::vector<Decision> decisions(const full::Task& task, const full::Options& options,
                                const full::Answer& answer, const Progress& progress) {
  std::vector<Decision> decisions;
  const auto space = full::Space::of(task);
  if (!space) {
    return decisions;
  }
  const auto rows = open_values(task, *space, answer.top.front().plan);
  std::size_t all = 0;
  for (const auto& [field, values] : rows) {
    all += values.size() - 1;
  }
  std::size_t done = 0;
  full::Knowledge known;
  for (const auto& [field, values] : rows) {
    Decision decision{.field = field, .chosen = values.front(), .others = {}};
    const auto only = task.only.find(field);
    for (std::size_t i = 1; i < values.size(); ++i, ++done) {
      if (options.go_on && !options.go_on()) {
        return decisions;
      }
      if (only == task.only.end() || has(only->second, values[i])) {
        decision.others.push_back(alternative(task, options, field, values[i], known));
      }
      progress(static_cast<double>(done) / static_cast<double>(all));
    }
    decisions.push_back(std::move(decision));
  }
  share_plans(decisions);
  for (Decision& decision : decisions) {
    std::stable_sort(decision.others.begin(), decision.others.end(), before);
  }
  std::stable_sort(decisions.begin(), decisions.end(), [](const Decision& a, const Decision& b) {
    const auto score = [](const Decision& one) {
      return one.others.empty() || !one.others.front().best ? Time::max()
                                                            : one.others.front().best->score;
    };
    return score(a) > score(b);
  });
  return decisions;
}

}  // namespace orrery::advice
