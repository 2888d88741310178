// SPDX-License-Identifier: Apache-2.0
#include "report/plan_published.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "planner/full/summary.h"
#include "report/json_writer.h"
#include "report/report.h"

namespace orrery::report {

std::string published_plans_table(const std::string& title,
                                  const std::vector<full::PublishedComparison>& rows) {
  std::string text = title + "\n";
  const auto line = [&]<class... Values>(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
    text += '\n';
  };
  std::size_t compared = 0;
  std::size_t slower = 0;
  std::size_t refused = 0;
  std::size_t too_large = 0;
  for (const full::PublishedComparison& row : rows) {
    line("{} ({})", row.key, row.machine);
    if (!row.problem.empty()) {
      line("  cannot run: {}", row.problem);
      continue;
    }
    line("  published {:>12.6f} s  {:>5.1f} % MFU  {}{}", to_seconds(row.published), 100 * row.mfu,
         full::summary(row.plan), row.fits ? "" : " (does not fit by our model)");
    too_large += row.fits ? 0 : 1;
    if (!row.refused.empty()) {
      ++refused;
      line("  refused: {}", row.refused);
    }
    if (!row.compared()) {
      line("  no plan fits");
      continue;
    }
    const full::Found& best = row.answer.top.front();
    ++compared;
    slower += row.fits && row.gain() < 1 ? 1 : 0;
    line("  best      {:>12.6f} s  {:>5.1f} % MFU  {}  ({:+.1f} %)", to_seconds(best.step_time),
         100 * best.mfu, full::summary(best.plan), 100 * (row.gain() - 1));
  }
  line("{} rows: {} compared, {} with a published plan faster than the best found, {} refused, {} "
       "published plans do not fit",
       rows.size(), compared, slower, refused, too_large);
  return text;
}

std::string published_plans_json(const std::string& table,
                                 const std::vector<full::PublishedComparison>& rows) {
  std::string text;
  {
    JsonWriter json([&](std::string_view piece) { text += piece; }, JsonWriter::Layout::indented);
    json.begin_object();
    json.key("table").value(table);
    json.key("rows").begin_array();
    for (const full::PublishedComparison& row : rows) {
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
        json.key("wall_s").value(row.answer.wall_s);
      } else {
        for (const char* key : {"best_s", "best_mfu", "gain", "bound_s", "best", "wall_s"}) {
          json.key(key).number_text("null");
        }
      }
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  return text + "\n";
}

}  // namespace orrery::report
