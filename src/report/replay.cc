// SPDX-License-Identifier: Apache-2.0
#include "report/replay.h"

#include <fmt/format.h>

#include "base/format.h"
#include "report/json_writer.h"

namespace orrery::report {
namespace {

double error_of(Time predicted, Time measured) {
  return to_seconds(predicted) / to_seconds(measured) - 1;
}

void write_step(JsonWriter& json, std::string_view key, Time step, Time measured) {
  json.key(key).begin_object();
  json.key("step_s").value(to_seconds(step));
  json.key("error").value(error_of(step, measured));
  json.end_object();
}

}  // namespace

std::string replay_table(const Replay& replay) {
  const calibrate::ReplayFit& fit = replay.fit;
  std::string text = fmt::format(
      "{} on {} ranks of {}{}: {} exchanges a step, every element right\n\n"
      "Step time\n  measured          {:>12}   median of {}\n"
      "  simulated before  {:>12}   {:+.1f} %\n  simulated after   {:>12}   {:+.1f} %\n\n"
      "Alone, median error in %\n  {:<14}{:>8}{:>10}{:>10}\n",
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

std::string replay_json(const Replay& replay) {
  const calibrate::ReplayFit& fit = replay.fit;
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("name").value(replay.name);
    json.key("machine").value(fit.machine.name);
    json.key("mpi").value(replay.mpi);
    json.key("blas").value(replay.blas);
    json.key("ranks").value(replay.ranks);
    json.key("repeat").value(replay.repeat);
    json.key("exchanges").value(replay.exchanges);
    json.key("measured_s").value(to_seconds(fit.measured));
    write_step(json, "before", fit.before, fit.measured);
    write_step(json, "after", fit.after, fit.measured);
    json.key("classes").begin_array();
    for (const calibrate::ReplayClass& each : fit.classes) {
      json.begin_object();
      json.key("name").value(each.name);
      json.key("rows").value(each.rows);
      json.key("before").value(each.before);
      json.key("after").value(each.after);
      json.end_object();
    }
    json.end_array();
    json.key("warnings").begin_array();
    for (const std::string& warning : fit.warnings) {
      json.value(warning);
    }
    json.end_array().end_object();
  });
}

}  // namespace orrery::report
