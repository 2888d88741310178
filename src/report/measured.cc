// SPDX-License-Identifier: Apache-2.0
#include "report/measured.h"

#include <fmt/format.h>

namespace orrery::report {
namespace {

constexpr std::size_t kNameShown = 36;

std::string difference(Time measured, Time simulated) {
  return measured > Time(0)
             ? fmt::format("{:+.1f} %", 100 * (to_seconds(simulated) / to_seconds(measured) - 1))
             : "-";
}

std::string rescaled_lines(const study::Rescaled& rescaled) {
  const plan::Plan& plan = rescaled.plan;
  std::string text = fmt::format(
      "\nRescaled to {}: {} ranks (tp {}, cp {}, pp {}, dp {}), global batch {}\n"
      "{:<16}{:>13.3f} ms with kernels as much longer as measured; {:.3f} as the machine has "
      "them\n",
      rescaled.fields, plan.devices(), plan.tp, plan.cp, plan.pp, plan.dp, plan.global_batch,
      "step", 1e3 * to_seconds(rescaled.step), 1e3 * to_seconds(rescaled.simulated));
  for (const study::ClassFactor& each : rescaled.factors) {
    text += fmt::format("  {:<14}{:>13.3f} times; {} of {} kernels by their own names\n", each.name,
                        each.factor, each.by_name, each.kernels);
  }
  return text + "  Exchanges, copies and the host are those of the machine.\n";
}

}  // namespace

std::string measured_table(const study::MeasuredComparison& comparison) {
  const study::StepTimes& measured = comparison.measured;
  const study::StepTimes& simulated = comparison.simulated;
  std::string text = fmt::format(
      "{} on {}: {} measured ranks, {} steps each; a step of one rank\n\n"
      "{:<16}{:>13}{:>13}{:>11}{:>8}  {}\n",
      comparison.model, comparison.machine, measured.ranks, measured.steps, "", "measured ms",
      "simulated ms", "simulated", "share", "most of it, measured");
  const auto row = [&](std::string_view name, Time before, Time after, double share,
                       const std::string& longest) {
    text += fmt::format("{:<16}{:>13.3f}{:>13.3f}{:>11}{:>6.0f} %  {}\n", name,
                        1e3 * to_seconds(before), 1e3 * to_seconds(after),
                        difference(before, after), 100 * share, longest.substr(0, kNameShown));
  };
  for (const study::ClassDifference& each : comparison.classes) {
    row(each.name, each.measured, each.simulated, each.share, each.longest_measured);
  }
  text += fmt::format("{:<16}{:>13.3f}{:>13.3f}{:>11}\n", "step", 1e3 * to_seconds(measured.step),
                      1e3 * to_seconds(simulated.step), difference(measured.step, simulated.step));
  if (comparison.rescaled) {
    text += rescaled_lines(*comparison.rescaled);
  }
  bool any = false;
  for (const study::ClassDifference& each : comparison.classes) {
    if (!each.advice.empty()) {
      text += fmt::format("{}  {}: {}\n", any ? "" : "\nWhat to calibrate, the most first\n",
                          each.name, each.advice);
      any = true;
    }
  }
  return text;
}

void declare(const study::MeasuredComparison& comparison, Fields& fields) {
  fields.field("model", "that is simulated", comparison.model);
  fields.field("machine", "that it is simulated on", comparison.machine);
  fields.values("files", {"measured, a rank each", "one of them"}, comparison.files);
  fields.field("steps", "that each file has", comparison.measured.steps);
  for (const auto& [name, sentence, times] :
       {std::tuple("measured", "means over steps and ranks", &comparison.measured),
        {"simulated", "of one step, mean over simulated ranks", &comparison.simulated}}) {
    fields.object(name, sentence, [&, of = times] {
      fields.field("step_s", "first begin to last end", of->step);
      fields.field("idle_s", "of it, what nothing covers", of->idle);
    });
  }
  fields.list("classes", {"classes of work, the largest difference first", "one of them"},
              comparison.classes, [&](const study::ClassDifference& each) {
                fields.field("name", "of the class, or idle", std::string(each.name));
                fields.field("measured_s", "of a step and rank", each.measured);
                fields.field("simulated_s", "likewise", each.simulated);
                fields.field("share", "of the sum of absolute differences", each.share);
                fields.field("longest_measured", "the name that takes most of it",
                             each.longest_measured);
                fields.field("advice", "what to calibrate; empty below a tenth", each.advice);
              });
  fields.part("rescaled", "the step of another plan", comparison.rescaled,
              [&](const study::Rescaled& rescaled) {
                fields.field("fields", "of the plan, that were changed", rescaled.fields);
                fields.field("devices", "of the other plan", rescaled.plan.devices());
                fields.field("global_batch", "of the other plan", rescaled.plan.global_batch);
                fields.field("step_s", "with kernels as much longer as measured", rescaled.step);
                fields.field("simulated_s", "as the machine has them", rescaled.simulated);
                fields.list("factors", {"measured / simulated, by class", "one class"},
                            rescaled.factors, [&](const study::ClassFactor& each) {
                              fields.field("name", "of the class", std::string(each.name));
                              fields.field("factor", "1 where one of them has none", each.factor);
                              fields.field("kernels", "names of the other plan's",
                                           static_cast<std::int64_t>(each.kernels));
                              fields.field("by_name", "of them, with a factor of their own",
                                           static_cast<std::int64_t>(each.by_name));
                            });
              });
}

}  // namespace orrery::report
