// SPDX-License-Identifier: Apache-2.0
#include "report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/format.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "report/trust.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::report {
namespace {

constexpr double kShareBarWidth = 30;   // characters of a bar of 100 %
constexpr std::size_t kItemWidth = 40;  // longer names are cut

/// Returns what was done to the resource, signed: +0.1 of a rate, -0.1 of a time.
double applied_change(const study::Resource& resource) {
  return study::is_time(resource.kind) ? -study::kImprovement : study::kImprovement;
}

std::string fitted(const std::string& name) {
  return name.size() <= kItemWidth ? name : name.substr(0, kItemWidth - 3) + "...";
}

class ExplanationText {
 public:
  ExplanationText(const study::Explanation& explanation, std::size_t items)
      : all_(explanation), items_(items), total_(explanation.path.step_time) {}

  std::string write() {
    const study::WorkloadRun& run = all_.run;
    line("{} on {} x {} ({}), network {}", run.name, run.devices, run.machine.device.name,
         run.machine.name, name_of(run.network));
    const std::string note =
        all_.plan ? plan::hypothetical_hardware(all_.plan->overlap_tensor, run.machine) : "";
    if (!note.empty()) {
      line("{}", note);
    }
    line("Step time {}; the last rank to finish is {}", to_string(run.timeline.step_time),
         run.timeline.critical_rank);
    if (all_.causes) {
      line("{}",
           trust_text(run.machine, study::trust_in(*all_.causes), run.timeline.step_time, "\n"));
    }
    if (const auto steps = std::ssize(run.timeline.step_ends); steps > 1) {
      line("(the mean of {} steps; the path below is that of all {}, which take {})",
           steps - run.warm_steps, steps, to_string(total_));
    }
    line("");
    entries("Critical path by category", all_.path.categories, all_.path.categories.size());
    kernels();
    entries("Its longest items", all_.path.items, items_);
    sensitivities();
    next();
    return std::move(text_);
  }

 private:
  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  void entries(const char* title, const std::vector<study::PathEntry>& list, std::size_t count) {
    line("{}", title);
    for (std::size_t i = 0; i < std::min(count, list.size()); ++i) {
      const double share = list[i].time / total_;
      const auto bar = static_cast<std::size_t>(std::lround(share * kShareBarWidth));
      line("  {:<{}}{:>12.6f} s{:>9}{}", fitted(list[i].name), kItemWidth, to_seconds(list[i].time),
           percent(share), bar == 0 ? "" : "  " + std::string(bar, '#'));
    }
    if (count >= list.size()) {
      line("  {:<{}}{:>12.6f} s{:>9}", "total", kItemWidth, to_seconds(total_), percent(1));
    } else {
      line("  (and {} more; --items)", list.size() - count);
    }
    line("");
  }

  void kernels() {
    const Time kernels = all_.path[study::PathKind::kernel];
    if (kernels == Time(0)) {
      return;
    }
    line("What bounds the {:.6f} s of kernels on it", to_seconds(kernels));
    for (const Named<study::Bound>& bound : kNames<study::Bound>) {
      const Time time = all_.path.kernels[static_cast<std::size_t>(bound.value)];
      if (time > Time(0)) {
        line("  {:<{}}{:>12.6f} s{:>9}  {}", bound.name, kItemWidth, to_seconds(time),
             percent(time / kernels), bound.meaning);
      }
    }
    line("");
  }

  void sensitivities() {
    line("Step time with 10 % more of one resource (rates +10 %, times -10 %)");
    line("  {:<28}{:>8}{:>16}{:>12}{:>12}", "resource", "", "step time", "change", "elasticity");
    for (const study::Sensitivity& effect : all_.sensitivities) {
      line("  {:<28}{:>+6.0f} %{:>14.6f} s{:>+10.2f} %{:>12.3f}{}", effect.resource.name,
           100 * applied_change(effect.resource), to_seconds(effect.step_time), 100 * effect.change,
           effect.elasticity, effect.anomaly() ? "  slower: scheduling anomaly" : "");
    }
    line("");
  }

  void next() {
    if (all_.sensitivities.empty() || all_.sensitivities.front().change >= 0) {
      line("No single resource makes the step faster.");
      return;
    }
    const std::string& strongest = all_.sensitivities.front().resource.name;
    line("Bottleneck: {}", strongest);
    if (all_.next) {
      line("With {} {:.2f} times as good, {} becomes the bottleneck;", strongest, all_.next->factor,
           all_.next->resource.name);
      line("the step then takes {}.", to_string(all_.next->step_time));
    }
  }

  const study::Explanation& all_;
  std::size_t items_;
  Time total_;
  std::string text_;
};

void write_entries(JsonWriter& json, const std::vector<study::PathEntry>& entries, Time total) {
  json.begin_array();
  for (const study::PathEntry& entry : entries) {
    json.begin_object();
    json.key("kind").value(name_of(entry.kind));
    json.key("name").value(entry.name);
    json.key("time_s").value(to_seconds(entry.time));
    json.key("share").value(entry.time / total);
    json.key("count").value(entry.count);
    json.end_object();
  }
  json.end_array();
}

void write_path(JsonWriter& json, const study::CriticalPath& path) {
  json.key("path").begin_object();
  json.key("kinds_s").begin_object();
  for (const Named<study::PathKind>& kind : kNames<study::PathKind>) {
    json.key(kind.name).value(to_seconds(path[kind.value]));
  }
  json.end_object();
  json.key("kernels_s").begin_object();
  for (const Named<study::Bound>& bound : kNames<study::Bound>) {
    json.key(bound.name).value(to_seconds(path.kernels[static_cast<std::size_t>(bound.value)]));
  }
  json.end_object();
  json.key("categories");
  write_entries(json, path.categories, path.step_time);
  json.key("items");
  write_entries(json, path.items, path.step_time);
  json.end_object();
}

void write_sensitivity(JsonWriter& json, const study::Sensitivity& effect) {
  json.begin_object();
  json.key("resource").value(effect.resource.name);
  json.key("kind").value(name_of(effect.resource.kind));
  json.key("change_of_resource").value(applied_change(effect.resource));
  json.key("step_time_s").value(to_seconds(effect.step_time));
  json.key("change").value(effect.change);
  json.key("elasticity").value(effect.elasticity);
  json.key("anomaly").value(effect.anomaly());
  json.end_object();
}

void write_next(JsonWriter& json, const study::Explanation& all) {
  json.key("next_bottleneck");
  if (!all.next) {
    json.number_text("null");
    return;
  }
  json.begin_object();
  json.key("resource").value(all.sensitivities.front().resource.name);
  json.key("factor").value(all.next->factor);
  json.key("next").value(all.next->resource.name);
  json.key("step_time_s").value(to_seconds(all.next->step_time));
  json.end_object();
}

}  // namespace

std::string explanation_table(const study::Explanation& explanation, std::size_t items) {
  return ExplanationText(explanation, items).write();
}

std::string explanation_json(const study::Explanation& explanation) {
  return json_text([&](JsonWriter& json) {
    const study::WorkloadRun& run = explanation.run;
    json.begin_object();
    json.key(explanation.plan ? "model" : "name").value(run.name);
    json.key("machine").value(run.machine.name);
    json.key("devices").value(run.devices);
    json.key("network").value(name_of(run.network));
    if (explanation.plan && plan::is_tracked(explanation.plan->overlap_tensor)) {
      json.key("hypothetical")
          .value(plan::hypothetical_hardware(explanation.plan->overlap_tensor, run.machine));
    }
    json.key("step_time_s").value(to_seconds(run.timeline.step_time));
    if (explanation.causes) {
      write_trust(json, run.machine, study::trust_in(*explanation.causes),
                  to_seconds(run.timeline.step_time));
    }
    write_path(json, explanation.path);
    json.key("sensitivity").begin_array();
    for (const study::Sensitivity& effect : explanation.sensitivities) {
      write_sensitivity(json, effect);
    }
    json.end_array();
    write_next(json, explanation);
    if (explanation.plan) {
      json.key("plan");
      write_plan(json, *explanation.plan);
    }
    json.end_object();
  });
}

}  // namespace orrery::report
