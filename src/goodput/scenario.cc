// SPDX-License-Identifier: Apache-2.0
#include "goodput/scenario.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/collect.h"
#include "base/csv.h"
#include "base/format.h"
#include "base/lists.h"
#include "base/reader.h"
#include "base/table_reader.h"

namespace orrery::goodput {
namespace {

Component read_component(const ConfigNode& node, const Component& otherwise, Error& mistakes) {
  Reader read(node);
  Component component = otherwise;
  component.name = read.required<std::string>("name");
  component.mtbf = read.required<Duration>("mtbf");
  component.per = read.optional("per", otherwise.per);
  component.detection = read.optional("detection", otherwise.detection);
  component.diagnosis = read.optional("diagnosis", otherwise.diagnosis);
  component.restart = read.optional("restart", otherwise.restart);
  component.nodes = read.optional("nodes", otherwise.nodes);
  component.survives_in_memory = read.optional("survives_in_memory", true);
  read.require(component.mtbf.value() > 0, "mtbf", "more than 0, such as '50000 h'");
  read.require(component.nodes >= 0, "nodes", "0 or more");
  auto result = read.finish(std::move(component));
  if (!result) {
    mistakes.add(std::move(result.error()));
    return otherwise;
  }
  return std::move(*result);
}

/// Returns the chi-square quantile of standard normal quantile z over 2, by Wilson and Hilferty.
double half_chi_square(double degrees, double z) {
  const double spread = 2 / (9 * degrees);
  return degrees / 2 * std::pow(std::max(0.0, 1 - spread + z * std::sqrt(spread)), 3);
}

constexpr double kNormal90 = 1.2815515655446004;  // 90 % of a standard normal lie below

struct LogEntry {
  double hours = 0;
  std::string component;
  std::int64_t nodes = 1;
};

Result<std::vector<LogEntry>> read_log(const CsvTable& table, Duration length) {
  constexpr std::int64_t kMostNodes = 1'000'000'000;
  TableReader read(table);
  read.know({"hours", "component", "nodes"});
  read.need("hours");
  read.need("component");
  const std::string hours = "hours since the log began, at most its length, " + to_string(length);
  std::vector<LogEntry> entries;
  for (const CsvRow& row : read.rows()) {
    entries.push_back({.hours = read.number(row, "hours", 0, length.value() / 3600, hours),
                       .component = std::string(read.text(row, "component"))});
    if (entries.back().component.empty()) {
      read.mistake(row, "component", "the name of what failed");
    }
    if (!read.text(row, "nodes").empty()) {
      entries.back().nodes = read.whole(row, "nodes", 0, kMostNodes);
    }
  }
  return or_mistakes(std::move(entries),
                     read.finish("no stop in the log: expected a row for each"));
}

}  // namespace

std::vector<StopKind> Scenario::stops() const {
  std::vector<StopKind> kinds;
  kinds.reserve(components.size());
  for (const Component& component : components) {
    const std::int64_t units = component.per == Unit::device ? devices
                               : component.per == Unit::node ? nodes()
                                                             : 1;
    kinds.push_back({component.mtbf / static_cast<double>(units), component.down()});
  }
  return kinds;
}

Duration Scenario::interval() const {
  return checkpoint.interval.value() > 0 ? checkpoint.interval
                                         : best_interval(mtbf_of(stops()), checkpoint.cost);
}

Result<std::vector<Component>> read_components(const ConfigNode& root, const Component& otherwise) {
  Reader read(root);
  Error mistakes;
  std::vector<Component> components =
      mapped(read.take_items("components", true),
             [&](const ConfigNode* item) { return read_component(*item, otherwise, mistakes); });
  if (read.ok()) {
    read.require(!components.empty(), "components", "one component or more");
  }
  auto result = collect(read.finish(std::move(components)), mistakes);
  return or_mistakes(std::move(result), std::move(mistakes));
}

Result<std::vector<FittedRate>> fit_log(const std::string& file, std::int64_t devices,
                                        Duration length, const Component& otherwise) {
  const auto entries =
      load_csv(file, [&](const CsvTable& table) { return read_log(table, length); });
  if (!entries) {
    return fail(entries.error());
  }
  std::map<std::string, FittedRate> by_name;
  for (const LogEntry& entry : *entries) {
    FittedRate& rate = by_name[entry.component];
    rate.stops += 1;
    rate.component.nodes = std::max(rate.stops == 1 ? 0 : rate.component.nodes, entry.nodes);
  }
  const Duration exposure = length * static_cast<double>(devices);
  std::vector<FittedRate> rates;
  for (auto& [name, rate] : by_name) {
    const std::int64_t nodes = rate.component.nodes;
    const auto stops = static_cast<double>(rate.stops);
    rate.component = otherwise;
    rate.component.name = name;
    rate.component.nodes = nodes;
    rate.component.per = Unit::device;
    rate.component.mtbf = exposure / stops;
    rate.mtbf_low = exposure / half_chi_square(2 * stops + 2, kNormal90);
    rate.mtbf_high = exposure / half_chi_square(2 * stops, -kNormal90);
    rates.push_back(rate);
  }
  return rates;
}

}  // namespace orrery::goodput
