// SPDX-License-Identifier: Apache-2.0
#include "report/serving_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/csv.h"
#include "report/json_writer.h"
#include "report/plot.h"
#include "report/timing.h"

namespace orrery::report {
namespace {

using serving::Layout;
using serving::PlanPoint;
using serving::PlansFound;

constexpr std::size_t kMostLosers = 12;  // of the text

template <class Visit>
void visit_layout(const Layout& layout, Visit visit) {
  visit("machine", layout.machine);
  visit("format", layout.format.empty() ? std::string("engine's") : layout.format);
  visit("tp", layout.engine.tp);
  visit("pp", layout.engine.pp);
  visit("dp", layout.engine.dp);
  visit("ep", layout.engine.ep);
  visit("replicas", layout.engine.replicas);
  visit("prefill", layout.engine.prefill);
  visit("prefill_tp", layout.engine.prefill > 0 ? layout.engine.prefill_tp : 0);
  visit("devices", layout.devices);
}

template <class Visit>
void visit_point(const PlansFound& found, const PlanPoint& point, Visit visit) {
  visit_layout(found.layouts[point.layout], visit);
  visit("concurrency", point.concurrency);
  visit("requests_per_s", point.metrics.requests_per_s);
  visit("rate", point.rate);
  visit("output_tokens_per_s_per_device", point.per_device);
  visit("output_tokens_per_s_per_user", point.per_user);
  visit("ttft_p99_s", to_seconds(point.metrics.ttft.p99));
  visit("tpot_p99_s", to_seconds(point.metrics.tpot.p99));
  if (point.metrics.cost_per_million_tokens) {
    visit("cost_per_million_tokens", point.metrics.cost_per_million_tokens->value());
  }
  visit("share", point.share);
  visit("breaks", point.breaks);
}

std::string money(const PlanPoint& point) {
  return point.metrics.cost_per_million_tokens
             ? fmt::format("{:.3g}", point.metrics.cost_per_million_tokens->value())
             : std::string("-");
}

}  // namespace

std::string serving_plans_text(const PlansFound& found, const std::string& model) {
  std::size_t width = std::size("plan");
  for (const Layout& layout : found.layouts) {
    width = std::max(width, layout.name().size());
  }
  std::string text = fmt::format("{}: tokens/s of a GPU against tokens/s of a user\n\n", model);
  const bool early = std::ranges::any_of(found.losers, [](const serving::Loser& loser) {
    return loser.reason == serving::kEndedEarly;
  });
  text += early ? "The search was ended early: the best of the plans that were run.\n" : "";
  if (found.front.empty()) {
    text += early ? "None of them keeps the limits.\n" : "No plan keeps the limits.\n";
  } else {
    text += fmt::format("{:<{}} {:>8} {:>10} {:>10} {:>10} {:>12} {:>12} {:>9}\n", "plan", width,
                        "requests", "requests/s", "tok/s/GPU", "tok/s/user", "TTFT p99 ms",
                        "TPOT p99 ms", "$/Mtok");
  }
  for (const PlanPoint& point : found.front) {
    text += fmt::format("{:<{}} {:>8} {:>10.2f} {:>10.1f} {:>10.1f} {:>12.1f} {:>12.2f} {:>9}\n",
                        found.layouts[point.layout].name(), width, point.concurrency,
                        point.metrics.requests_per_s, point.per_device, point.per_user,
                        1e3 * to_seconds(point.metrics.ttft.p99),
                        1e3 * to_seconds(point.metrics.tpot.p99), money(point));
  }
  if (!found.losers.empty()) {
    text += "\nWithout a point there:\n";
  }
  for (std::size_t i = 0; i < std::min(found.losers.size(), kMostLosers); ++i) {
    const serving::Loser& loser = found.losers[i];
    text += fmt::format("{:<{}} {}\n", found.layouts[loser.layout].name(), width, loser.reason);
  }
  if (found.losers.size() > kMostLosers) {
    text += fmt::format("and {} more (--json lists all)\n", found.losers.size() - kMostLosers);
  }
  text += fmt::format(
      "\n{} layouts, {} points by formula, {} simulated (formula off by {:.1f} % on the mean), "
      "{:.2f} s\n",
      found.layouts.size(), found.screened, found.front.size() + found.beaten.size(),
      100 * found.screen_error, found.wall_s);
  return text;
}

std::string serving_plans_json(const PlansFound& found, const std::string& model) {
  return json_text([&](JsonWriter& json) {
    const auto write = [&](std::string_view name, const auto& value) {
      json.key(name).value(value);
    };
    json.begin_object();
    json.key("search").value("plan").key("model").value(model);
    for (const auto& [name, points] :
         {std::pair{"front", &found.front}, {"beaten", &found.beaten}}) {
      json.key(name).objects(*points,
                             [&](const PlanPoint& point) { visit_point(found, point, write); });
    }
    json.key("losers").objects(found.losers, [&](const serving::Loser& loser) {
      visit_layout(found.layouts[loser.layout], write);
      json.key("share").value(loser.share).key("reason").value(loser.reason);
    });
    json.key("layouts").value(static_cast<std::int64_t>(found.layouts.size()));
    json.key("screened").value(found.screened);
    json.key("screen_error").value(found.screen_error);
    write_timing(json, found.wall_s);
    json.end_object();
  });
}

std::string serving_plans_csv(const PlansFound& found) {
  std::string text;
  for (const PlanPoint& point : found.front) {
    std::vector<std::string> names;
    std::vector<std::string> values;
    visit_point(found, point, [&](std::string_view name, const auto& value) {
      names.emplace_back(name);
      values.push_back(fmt::format("{}", value));
    });
    text += (text.empty() ? csv_line(names) : "") + csv_line(values);
  }
  return text;
}

std::string serving_plans_svg(const PlansFound& found, const std::string& model) {
  Plot plot{.title = model,
            .x_label = "output tokens/s of a user",
            .y_label = "output tokens/s of a GPU",
            .dots = true};
  std::vector<const PlanPoint*> points;
  for (const auto* list : {&found.front, &found.beaten}) {
    for (const PlanPoint& point : *list) {
      points.push_back(&point);
      plot.x.push_back(point.per_user);
    }
  }
  for (std::size_t layout = 0; layout < found.layouts.size(); ++layout) {
    PlotSeries series{.name = found.layouts[layout].name(), .values = {}};
    bool any = false;
    for (const PlanPoint* point : points) {
      const bool here = point->layout == layout;
      any = any || here;
      series.values.push_back(here ? std::optional(point->per_device) : std::nullopt);
    }
    if (any) {
      plot.series.push_back(std::move(series));
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    plot.labels.push_back(i < found.front.size() ? std::to_string(points[i]->concurrency) : "");
  }
  return to_svg(plot);
}

}  // namespace orrery::report
