// SPDX-License-Identifier: Apache-2.0
#include "report/collective_calibration.h"

#include <fmt/format.h>

#include "base/format.h"

namespace orrery::report {
namespace {

std::string error_line(std::string_view name, const calibrate::CollectiveError& error) {
  return error.points == 0
             ? ""
             : fmt::format("  {:<10}{:>8}{:>10.1f}{:>10.1f}{:>10.1f}\n", name, error.points,
                           100 * error.median, 100 * error.mean, 100 * error.largest);
}

std::string protocol_line(std::string_view when, const topology::Protocol& protocol) {
  return fmt::format("  {:<12}{:<8}{:>12}{:>12}{:>12.4g}{:>12.4g}\n", protocol.name, when,
                     to_string(protocol.launch), to_string(protocol.step_latency),
                     protocol.efficiency, protocol.local_copy);
}

void declare_error(Fields& fields, std::string_view name, std::string_view sentence,
                   const calibrate::CollectiveError& error) {
  fields.object(name, sentence, [&] {
    fields.field("points", "how many", error.points);
    fields.field("median", "of |predicted / measured - 1|", error.median);
    fields.field("mean", "of |predicted / measured - 1|", error.mean);
    fields.field("largest", "of |predicted / measured - 1|", error.largest);
  });
}

}  // namespace

std::string collective_calibration_table(const calibrate::CollectiveFit& fit) {
  std::string text = fmt::format("{}: collectives; error in %\n  {:<10}{:>8}{:>10}{:>10}{:>10}\n",
                                 fit.machine.name, "", "points", "median", "mean", "largest");
  text += error_line("before", fit.before);
  text += error_line("after", fit.after);
  text += error_line("held out", fit.held_out);
  for (const calibrate::ProtocolFit& list : fit.fits) {
    text += fmt::format("\n{}\n  {:<20}{:>12}{:>12}{:>12}{:>12}\n", list.name, "", "launch", "step",
                        "efficiency", "local copy");
    for (const topology::Protocol& protocol : list.before) {
      text += protocol_line("before", protocol);
    }
    for (const topology::Protocol& protocol : list.after) {
      text += protocol_line("after", protocol);
    }
  }
  for (const std::string& warning : fit.warnings) {
    text += "\nwarning: " + warning + "\n";
  }
  return text;
}

void declare(const calibrate::CollectiveFit& fit, Fields& fields) {
  fields.field("machine", "that was fitted", fit.machine.name);
  declare_error(fields, "before", "errors with the machine's coefficients", fit.before);
  declare_error(fields, "after", "errors with the fitted ones", fit.after);
  declare_error(fields, "held_out",
                "errors of the fitted ones on points that they were not fitted to", fit.held_out);
  using Listed = std::pair<std::string, topology::Protocol>;
  std::vector<Listed> protocols;
  for (const calibrate::ProtocolFit& list : fit.fits) {
    for (const topology::Protocol& protocol : list.after) {
      protocols.emplace_back(list.name, protocol);
    }
  }
  fields.list("protocols", {"fitted", "one"}, protocols, [&](const Listed& listed) {
    const auto& [list, protocol] = listed;
    fields.field("list", "field of the machine that has it", list);
    fields.field("name", "its name", protocol.name);
    fields.field("launch", "seconds", protocol.launch);
    fields.field("step_latency", "seconds", protocol.step_latency);
    fields.field("efficiency", "share of the bandwidth", protocol.efficiency);
    fields.field("local_copy", "bytes per second; 0: none", protocol.local_copy);
  });
  fields.values("warnings", {"what the measurements do not determine", "a sentence"}, fit.warnings);
}

}  // namespace orrery::report
