// SPDX-License-Identifier: Apache-2.0
#include "study/plan_bounds.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "base/collect.h"
#include "base/names.h"
#include "base/reader.h"
#include "base/units.h"
#include "estimate/quick_bound.h"
#include "study/parallel.h"
#include "study/settings.h"
#include "workload/plan/completed.h"
#include "workload/plan/framework.h"
#include "workload/plan/plan_lists.h"

namespace orrery::study {
namespace {

constexpr const char* kDevices = "devices";
constexpr std::size_t kRowsOfAPart =
    50'000;  // on a thread: seconds of work against tables made anew
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Setter = std::function<void(plan::Plan& plan, std::int64_t& devices)>;

/// Returns what each value of a column does to a plan.
Result<std::vector<Setter>> setters_of(const FieldColumn& column) {
  std::vector<Setter> setters;
  Error mistakes;
  bool known = column.field == kDevices;
  const auto parse = [&]<class T>(const std::string& text, auto set) {
    const auto value = parse_value<T>(text);
    if (!value) {
      mistakes.add(wrong_value("", column.field, text, value.error()));
      return;
    }
    setters.push_back([set, value = *value](plan::Plan& plan, std::int64_t& devices) {
      set(plan, devices, value);
    });
  };
  std::vector<std::string> names{kDevices};
  if (known) {
    for (const std::string& text : column.values) {
      parse.operator()<std::int64_t>(
          text, [](plan::Plan&, std::int64_t& devices, std::int64_t value) { devices = value; });
    }
  }
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    names.emplace_back(name);
    if (name != column.field) {
      return;
    }
    known = true;
    using T = std::decay_t<decltype(std::declval<plan::Plan>().*member)>;
    for (const std::string& text : column.values) {
      parse.template operator()<T>(text, [member](plan::Plan& plan, std::int64_t&, const T& value) {
        plan.*member = value;
      });
    }
  });
  if (!known) {
    mistakes.add({"", "", column.field, "a field of a plan" + did_you_mean(column.field, names)});
  }
  const auto beyond = [&](std::uint32_t row) { return row >= column.values.size(); };
  if (std::ranges::any_of(column.rows, beyond)) {
    mistakes.add({"", column.field, "", "a row names a value that is not there"});
  }
  return or_mistakes(std::move(setters), std::move(mistakes));
}

/// Checks that a plan can have a bound. Mistakes: why it has none.
Result<void> checked(const plan::Completed& completed, std::int64_t devices) {
  const plan::Plan& plan = completed.plan;
  if (auto texts = plan::check_texts(plan); !texts) {
    return texts;
  }
  if (!completed.mistakes.empty()) {
    return fail(completed.mistakes);
  }
  if (devices != 0 && devices != plan.devices()) {
    return fail(Error(wrong_value("", kDevices, std::to_string(devices),
                                  "the " + std::to_string(plan.devices()) + " of the plan")));
  }
  if (!plan.parts.empty() || plan.clocks == plan::Clocks::boost) {
    return fail("parts and boost clocks have no quick bound; ask orrery estimate");
  }
  return {};
}

class Rows {
 public:
  /// `by_row`: frameworks are columns.
  Rows(const zoo::Model& model, const machine::Machine& machine, bool by_row)
      : model_(model), machine_(machine), bound_(model, machine), by_row_(by_row) {}

  /// Answers the next row.
  void ask(const plan::PlacedPlan& open, std::int64_t devices) {
    double& seconds = bounds_.least_time_s.emplace_back(kNone);
    double& bytes = bounds_.least_memory_bytes.emplace_back(kNone);
    const plan::Completed completed = plan::completed(filled(open), &model_, &machine_, devices);
    const plan::Plan& plan = completed.plan;
    Result<void> ok = checked(completed, devices);
    if (ok) {
      ok = bound_.least_time(plan)
               .map([&](Time time) { seconds = to_seconds(time); })
               .and_then([&] { return bound_.least_memory(plan); })
               .map([&](Bytes least) { bytes = static_cast<double>(least.value()); });
    }
    bounds_.mistake.push_back(ok ? -1 : number_of(ok.error().to_string()));
  }

  /// Appends the answers to the rows after these.
  void append(const PlanBounds& more) {
    const auto add = [](auto& all, const auto& some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    add(bounds_.least_time_s, more.least_time_s);
    add(bounds_.least_memory_bytes, more.least_memory_bytes);
    for (const std::int32_t mistake : more.mistake) {
      bounds_.mistake.push_back(
          mistake < 0 ? -1 : number_of(more.mistakes[static_cast<std::size_t>(mistake)]));
    }
  }

  PlanBounds take() { return std::move(bounds_); }

 private:
  std::int32_t number_of(const std::string& mistake) {
    const auto [known, is_new] = numbers_.emplace(mistake, bounds_.mistakes.size());
    if (is_new) {
      bounds_.mistakes.push_back(mistake);
    }
    return static_cast<std::int32_t>(known->second);
  }
  /// Returns the plan with the fields of its framework.
  const plan::PlacedPlan& filled(const plan::PlacedPlan& open) {
    if (!by_row_) {
      return open;
    }
    filled_ = open;
    plan::apply_framework(filled_);
    return filled_;
  }

  const zoo::Model& model_;
  const machine::Machine& machine_;
  estimate::QuickBound bound_;
  bool by_row_;
  plan::PlacedPlan filled_;
  std::map<std::string, std::size_t> numbers_;
  PlanBounds bounds_;
};

}  // namespace

Result<PlanBounds> plan_bounds(const zoo::Model& model, const machine::Machine& machine,
                               const plan::PlacedPlan& base, std::int64_t devices,
                               const std::vector<FieldColumn>& columns) {
  Error mistakes;
  std::vector<std::vector<Setter>> setters;
  plan::PlacedPlan open = base;
  for (const FieldColumn& column : columns) {
    auto of_column = setters_of(column);
    if (!of_column) {
      mistakes.add(std::move(of_column.error()));
      continue;
    }
    setters.push_back(std::move(*of_column));
    if (column.field != kDevices) {
      open.places[column.field] = "";
    }
  }
  const bool by_row = std::ranges::any_of(columns, [](const FieldColumn& column) {
    return column.field == "framework" || column.field == "as_of";
  });
  if (!by_row && !open.plan.framework.empty()) {  // one for all rows
    collect(plan::framework_fields(open.plan.framework).map([](const auto&) {}), mistakes);
    plan::apply_framework(open);
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const std::size_t count = columns.empty() ? 1 : columns.front().rows.size();
  // A row's answer depends on nothing else: every part has tables of its own.
  std::vector<PlanBounds> parts((count + kRowsOfAPart - 1) / kRowsOfAPart);
  run_parallel(parts.size(), 0, [&](std::size_t part) {
    Rows rows(model, machine, by_row);
    plan::PlacedPlan own = open;
    for (std::size_t row = part * kRowsOfAPart; row < std::min((part + 1) * kRowsOfAPart, count);
         ++row) {
      std::int64_t own_devices = devices;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        setters[i][columns[i].rows[row]](own.plan, own_devices);
      }
      rows.ask(own, own_devices);
    }
    parts[part] = rows.take();
  });
  Rows all(model, machine, by_row);
  for (const PlanBounds& part : parts) {
    all.append(part);
  }
  return all.take();
}

}  // namespace orrery::study
