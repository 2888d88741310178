// SPDX-License-Identifier: Apache-2.0
#include "report/plan_published.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "planner/full/summary.h"
#include "report/report.h"
#include "report/timing.h"

namespace orrery::report {

std::string published_plan_text(const full::PublishedComparison& row) {
  std::string text = fmt::format("{} ({})\n", row.key, row.machine);
  const auto line = [&]<class... Values>(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
    text += '\n';
  };
  if (!row.problem.empty()) {
    line("  cannot run: {}", row.problem);
    return text;
  }
  line("  published {:>12.6f} s  {:>5.1f} % MFU  {}{}", to_seconds(row.published), 100 * row.mfu,
       full::summary(row.plan), row.fits ? "" : " (does not fit by our model)");
  if (!row.refused.empty()) {
    line("  refused: {}", row.refused);
  }
  if (!row.compared()) {
    line("  no plan fits");
    return text;
  }
  const full::Found& best = row.answer.top.front();
  line("  best      {:>12.6f} s  {:>5.1f} % MFU  {}  ({:+.1f} %)", to_seconds(best.step_time),
       100 * best.mfu, full::summary(best.plan), 100 * (row.gain() - 1));
  if (row.again) {
    line("  on shared links, a node {:.0f} % slow: {:.6f} s and {:.6f} s  ({:+.1f} %)",
         100 * (full::kStragglerFactor - 1), to_seconds(row.again->published),
         to_seconds(row.again->best), 100 * (row.again->gain() - 1));
  } else if (!row.again_problem.empty()) {
    line("  on shared links it cannot run: {}", row.again_problem);
  }
  return text;
}

std::string published_plans_summary(const std::vector<full::PublishedComparison>& rows) {
  const auto count = [&](const auto& is) { return std::count_if(rows.begin(), rows.end(), is); };
  using Row = full::PublishedComparison;
  return fmt::format(
      "{} rows: {} compared, {} with a published plan faster than the best found, {} with a best "
      "found more than {:.0f} % faster, {} refused, {} published plans do not fit\n",
      rows.size(), count([](const Row& row) { return row.compared(); }),
      count([](const Row& row) { return row.compared() && row.fits && row.gain() < 1; }),
      count([](const Row& row) { return row.gain() > full::kSuspect; }), 100 * (full::kSuspect - 1),
      count([](const Row& row) { return row.problem.empty() && !row.refused.empty(); }),
      count([](const Row& row) { return row.problem.empty() && !row.fits; }));
}

void write_published_plan(JsonWriter& json, const full::PublishedComparison& row) {
  json.begin_object();
  json.key("key").value(row.key);
  json.key("machine").value(row.machine);
  json.key("plan").value(full::summary(row.plan));
  json.key("devices").value(row.plan.devices());
  json.key("published_s").value(to_seconds(row.published));
  json.key("published_mfu").value(row.mfu);
  json.key("fits").value(row.fits);
  json.key("problem").value(row.problem);
  json.key("refused").value(row.refused);
  if (row.compared()) {
    const full::Found& best = row.answer.top.front();
    json.key("best_s").value(to_seconds(best.step_time));
    json.key("best_mfu").value(best.mfu);
    json.key("gain").value(row.gain());
    json.key("bound_s").value(to_seconds(row.answer.bound));
    json.key("best").value(full::summary(best.plan));
    json.key("again");
    if (row.again) {
      json.begin_object();
      json.key("published_s").value(to_seconds(row.again->published));
      json.key("best_s").value(to_seconds(row.again->best));
      json.key("gain").value(row.again->gain()).end_object();
    } else {
      json.null();
    }
    json.key("again_problem").value(row.again_problem);
    write_timing(json, row.answer.wall_s);
  } else {
    for (const char* key :
         {"best_s", "best_mfu", "gain", "bound_s", "best", "again", "again_problem", "timing"}) {
      json.key(key).null();
    }
  }
  json.end_object();
}

}  // namespace orrery::report
