// SPDX-License-Identifier: Apache-2.0
#include "report/collective_calibration.h"

#include <fmt/format.h>

#include "base/format.h"
#include "report/json_writer.h"

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

void write_error(JsonWriter& json, const calibrate::CollectiveError& error) {
  json.begin_object();
  json.key("points").value(error.points);
  json.key("median").value(error.median);
  json.key("mean").value(error.mean);
  json.key("largest").value(error.largest);
  json.end_object();
}

void write_protocol(JsonWriter& json, const std::string& list, const topology::Protocol& protocol) {
  json.begin_object();
  json.key("list").value(list);
  json.key("name").value(protocol.name);
  json.key("launch").value(to_seconds(protocol.launch));
  json.key("step_latency").value(to_seconds(protocol.step_latency));
  json.key("efficiency").value(protocol.efficiency);
  json.key("local_copy").value(protocol.local_copy);
  json.end_object();
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

std::string collective_calibration_json(const calibrate::CollectiveFit& fit) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("machine").value(fit.machine.name);
    json.key("before");
    write_error(json, fit.before);
    json.key("after");
    write_error(json, fit.after);
    json.key("held_out");
    write_error(json, fit.held_out);
    json.key("protocols").begin_array();
    for (const calibrate::ProtocolFit& list : fit.fits) {
      for (const topology::Protocol& protocol : list.after) {
        write_protocol(json, list.name, protocol);
      }
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
