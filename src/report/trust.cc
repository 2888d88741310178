// SPDX-License-Identifier: Apache-2.0
#include "report/trust.h"

#include <fmt/format.h>

#include <vector>

#include "base/format.h"

namespace orrery::report {

std::string trust_text(const machine::Machine& machine, const Result<study::Trust>& trust,
                       Time time, std::string_view between) {
  std::vector<std::string> parts;
  if (trust) {
    const auto [least, most] = study::interval80(*trust, to_seconds(time));
    parts.push_back(fmt::format("80 % of such runs take {} to {}", to_string(from_seconds(least)),
                                to_string(from_seconds(most))));
  } else {
    parts.push_back("no interval: " + trust.error().to_string());
  }
  const study::OriginCounts numbers = study::count_origins(machine);
  parts.push_back(fmt::format("numbers of {}: {} measured, {} fitted, {} stated, {} inferred",
                              machine.name, numbers.measured, numbers.fitted, numbers.stated,
                              numbers.inferred));
  if (trust) {
    for (const study::Validated& group : trust->nearest) {
      parts.push_back(fmt::format("nearest: {} rows of {} on {}, {} off", group.rows, group.table,
                                  group.causes.machine, percent(group.median)));
    }
    parts.push_back("to narrow it: measure " + trust->next);
  }
  return fmt::format("{}", fmt::join(parts, between));
}

void write_trust(JsonWriter& json, const machine::Machine& machine,
                 const Result<study::Trust>& trust, double value, bool rate) {
  json.key("interval80");
  if (trust) {
    const auto [least, most] = study::interval80(*trust, value, rate);
    json.begin_array().value(least).value(most).end_array();
  } else {
    json.number_text("null");
  }
  const study::OriginCounts numbers = study::count_origins(machine);
  json.key("trust").begin_object();
  json.key("numbers").begin_object();
  json.key("measured").value(numbers.measured).key("fitted").value(numbers.fitted);
  json.key("stated").value(numbers.stated).key("inferred").value(numbers.inferred);
  json.end_object();
  if (!trust) {
    json.key("problem").value(trust.error().to_string());
    json.end_object();
    return;
  }
  json.key("kind").value(trust->causes.kind);
  json.key("framework").value(trust->causes.framework);
  json.key("coefficients").value(trust->causes.origin);
  json.key("rows").value(trust->rows);
  json.key("sigma").begin_object();
  json.key("kind").value(trust->sigma.kind).key("framework").value(trust->sigma.framework);
  json.key("origin").value(trust->sigma.origin).key("rest").value(trust->sigma.rest);
  json.end_object();
  json.key("nearest").begin_array();
  for (const study::Validated& group : trust->nearest) {
    json.begin_object();
    json.key("table").value(group.table).key("machine").value(group.causes.machine);
    json.key("framework").value(group.causes.framework);
    json.key("rows").value(group.rows).key("median_error").value(group.median);
    json.end_object();
  }
  json.end_array();
  json.key("measure_next").value(trust->next);
  json.end_object();
}

}  // namespace orrery::report
