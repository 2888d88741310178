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
#include "study/settings.h"
#include "workload/plan/completed.h"
#include "workload/plan/framework.h"
#include "workload/plan/plan_lists.h"

namespace orrery::study {
namespace {

constexpr const char* kDevices = "devices";
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
  Rows(const zoo::Model& model, const machine::Machine& machine, std::size_t count, bool by_row)
      : model_(model), machine_(machine), bound_(model, machine), by_row_(by_row) {
    bounds_.least_time_s.assign(count, kNone);
    bounds_.least_memory_bytes.assign(count, kNone);
    bounds_.mistake.assign(count, -1);
  }

  void ask(std::size_t row, const plan::PlacedPlan& open, std::int64_t devices) {
    const plan::Completed completed = plan::completed(filled(open), &model_, &machine_, devices);
    const plan::Plan& plan = completed.plan;
    Result<void> ok = checked(completed, devices);
    if (ok) {
      ok = bound_.least_time(plan)
               .map([&](Time time) { bounds_.least_time_s[row] = to_seconds(time); })
               .and_then([&] { return bound_.least_memory(plan); })
               .map([&](Bytes bytes) {
                 bounds_.least_memory_bytes[row] = static_cast<double>(bytes.value());
               });
    }
    if (!ok) {
      const auto [known, is_new] =
          numbers_.emplace(ok.error().to_string(), bounds_.mistakes.size());
      if (is_new) {
        bounds_.mistakes.push_back(known->first);
      }
      bounds_.mistake[row] = static_cast<std::int32_t>(known->second);
    }
  }

  PlanBounds take() { return std::move(bounds_); }

 private:
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
  Rows rows(model, machine, count, by_row);
  for (std::size_t row = 0; row < count; ++row) {
    std::int64_t own_devices = devices;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      setters[i][columns[i].rows[row]](open.plan, own_devices);
    }
    rows.ask(row, open, own_devices);
  }
  return rows.take();
}

}  // namespace orrery::study
