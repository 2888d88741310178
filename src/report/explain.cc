// SPDX-License-Identifier: Apache-2.0
#include "report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/format.h"
#include "report/lines.h"
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

class ExplanationText : Lines {
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
};

void declare_entries(std::string_view name, const std::vector<study::PathEntry>& entries,
                     Time total, Fields& fields) {
  fields.list(name, {"longest first", "what the path consists of"}, entries,
              [&](const study::PathEntry& entry) {
                fields.field("kind", "kernel, collective, message, copy, host ...",
                             name_of(entry.kind));
                fields.field("name", "of the operators or communication", entry.name);
                fields.field("time_s", "seconds on the path", entry.time);
                fields.field("share", "of the step", entry.time / total);
                fields.field("count", "how often", entry.count);
              });
}

void declare_path(const study::CriticalPath& path, Fields& fields) {
  fields.object("path", "the critical path, which sums to the step", [&] {
    fields.map<double>("kinds_s", {"seconds by kind of event", "seconds"}, [&](const auto& add) {
      for (const Named<study::PathKind>& kind : kNames<study::PathKind>) {
        add(kind.name, to_seconds(path[kind.value]));
      }
    });
    fields.map<double>(
        "kernels_s", {"seconds of kernels by what bounds them", "seconds"}, [&](const auto& add) {
          for (const Named<study::Bound>& bound : kNames<study::Bound>) {
            add(bound.name, to_seconds(path.kernels[static_cast<std::size_t>(bound.value)]));
          }
        });
    declare_entries("categories", path.categories, path.step_time, fields);
    declare_entries("items", path.items, path.step_time, fields);
  });
}

void declare_sensitivity(const study::Sensitivity& effect, Fields& fields) {
  fields.field("resource", "its name", effect.resource.name);
  fields.field("kind", "its kind", name_of(effect.resource.kind));
  fields.field("change_of_resource", "share by which it was raised",
               applied_change(effect.resource));
  fields.field("step_time_s", "seconds then", effect.step_time);
  fields.field("change", "of the step time, a share", effect.change);
  fields.field("elasticity", "change of the step's logarithm over the resource's",
               effect.elasticity);
  fields.field("anomaly", "more of it makes the step longer", effect.anomaly());
}

}  // namespace

std::string explanation_table(const study::Explanation& explanation, std::size_t items) {
  return ExplanationText(explanation, items).write();
}

void declare(const study::Explanation& explanation, Fields& fields) {
  const study::WorkloadRun& run = explanation.run;
  const std::optional<plan::Plan>& plan = explanation.plan;
  fields.when(plan.has_value(), "model", "name of the model", run.name);
  fields.when(!plan, "name", "instead of model, with --chakra", run.name);
  fields.field("machine", "name of the machine", run.machine.name);
  fields.field("devices", "accelerators", run.devices);
  fields.field("network", "model of the network; `orrery list networks`", name_of(run.network));
  const bool tracked = plan && plan::is_tracked(plan->overlap_tensor);
  fields.when(
      tracked, "hypothetical", kHypothetical,
      tracked ? plan::hypothetical_hardware(plan->overlap_tensor, run.machine) : std::string());
  fields.field("step_time_s", "seconds of a training step", run.timeline.step_time);
  declare_trust(fields, run.machine,
                explanation.causes ? study::trust_in(*explanation.causes)
                                   : fail("no published run is like one that comes from no plan"),
                to_seconds(run.timeline.step_time));
  declare_path(explanation.path, fields);
  fields.list("sensitivity",
              {"what more of each resource brings, the most helpful first", "one resource"},
              explanation.sensitivities,
              [&](const study::Sensitivity& effect) { declare_sensitivity(effect, fields); });
  fields.nullable_part(
      "next_bottleneck",
      "when the most helpful resource stops being it; null: not within what was tried",
      explanation.next, [&](const study::NextBottleneck& next) {
        const auto& all = explanation.sensitivities;
        fields.field("resource", "the most helpful",
                     all.empty() ? std::string() : all.front().resource.name);
        fields.field("factor", "of it", next.factor);
        fields.field("next", "resource that is the most helpful then", next.resource.name);
        fields.field("step_time_s", "seconds then", next.step_time);
      });
  fields.part("plan", "every field of the plan, open ones filled in", plan,
              [&](const plan::Plan& its) { declare(its, fields); });
}

}  // namespace orrery::report
