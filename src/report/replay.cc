// SPDX-License-Identifier: Apache-2.0
#include "report/replay.h"

#include <fmt/format.h>

#include "base/format.h"

namespace orrery::report {
namespace {

double error_of(Time predicted, Time measured) {
  return to_seconds(predicted) / to_seconds(measured) - 1;
}

}  // namespace

std::string replay_table(const Replay& replay) {
  const calibrate::ReplayFit& fit = replay.fit;
  std::string text = fmt::format(
      "{} on {} ranks of {}{}: {} exchanges a step, every element right\n\n"
      "Step time\n  measured          {:>12}   median of {}\n"
      "  simulated before  {:>12}   {:+.1f} %\n  simulated after   {:>12}   {:+.1f} %\n\n"
      "Parts, median error in %\n  {:<14}{:>8}{:>10}{:>10}\n",
      replay.name, replay.ranks, replay.mpi,
      replay.blas ? ", products by OpenBLAS" : ", products by plain loops", replay.exchanges,
      to_string(fit.measured), replay.repeat, to_string(fit.before),
      100 * error_of(fit.before, fit.measured), to_string(fit.after),
      100 * error_of(fit.after, fit.measured), "", "rows", "before", "after");
  for (const calibrate::ReplayClass& each : fit.classes) {
    text += fmt::format("  {:<14}{:>8}{:>10.1f}{:>10.1f}\n", each.name, each.rows,
                        100 * each.before, 100 * each.after);
  }
  for (const std::string& warning : fit.warnings) {
    text += "warning: " + warning + "\n";
  }
  return text;
}

void declare(const Replay& replay, Fields& fields) {
  const calibrate::ReplayFit& fit = replay.fit;
  const auto step = [&](std::string_view name, std::string_view sentence, Time time) {
    fields.object(name, sentence, [&] {
      fields.field("step_s", "seconds", time);
      fields.field("error", "step_s / measured_s - 1", error_of(time, fit.measured));
    });
  };
  fields.field("name", "of the plan, the model or the trace", replay.name);
  fields.field("machine", "that was fitted", fit.machine.name);
  fields.choice("mpi", "library", {"openmpi", "mpich"}, replay.mpi);
  fields.field("blas", "products by OpenBLAS; else by plain loops", replay.blas);
  fields.field("ranks", "processes", replay.ranks);
  fields.field("repeat", "steps, and batches of each part, whose medians count", replay.repeat);
  fields.field("exchanges",
               "collectives and messages of one step over all ranks, each element checked",
               replay.exchanges);
  fields.field("measured_s", "median step; each as long as its slowest rank", fit.measured);
  step("before", "simulated on the machine as given", fit.before);
  step("after", "simulated on the fitted machine", fit.after);
  fields.list("classes", {"parts of the step, by sort", "a sort"}, fit.classes,
              [&](const calibrate::ReplayClass& each) {
                fields.choice("name", "of the sort",
                              {"products", "streams", "collectives", "messages"}, each.name);
                fields.field("rows", "different parts", each.rows);
                fields.field("before", "median of the errors' magnitudes, on the machine as given",
                             each.before);
                fields.field("after", "on the fitted machine", each.after);
              });
  fields.values("warnings", {"what the measurements do not determine", "a sentence"}, fit.warnings);
}

}  // namespace orrery::report
