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
}

}  // namespace orrery::report
