// SPDX-License-Identifier: Apache-2.0
#include "goodput/scenario.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/csv.h"
#include "base/format.h"
#include "base/lists.h"
#include "base/reader.h"

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

/// The chi-square quantile of standard normal quantile z over 2, by Wilson and Hilferty.
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

class LogReader {
 public:
  LogReader(const CsvTable& table, Duration length) : table_(table), length_(length) {}

  Result<std::vector<LogEntry>> read() {
    const std::vector<std::string> known = {"hours", "component", "nodes"};
    for (const std::string& name : table_.header) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        mistakes_.add(
            {table_.file + ":1", {}, name, "hours, component, nodes" + did_you_mean(name, known)});
      }
    }
    hours_ = needed("hours");
    component_ = needed("component");
    nodes_ = table_.column("nodes");
    std::vector<LogEntry> entries;
    if (mistakes_.empty()) {
      for (const CsvRow& row : table_.rows) {
        entries.push_back(entry_of(row));
      }
      if (entries.empty()) {
        mistakes_.add({table_.file, {}, {}, "no stop in the log: expected a row for each"});
      }
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    return entries;
  }

 private:
  std::size_t needed(std::string_view name) {
    const auto column = table_.column(name);
    if (!column) {
      mistakes_.add({table_.file + ":1", std::string(name), {}, "missing column"});
    }
    return column.value_or(0);
  }

  LogEntry entry_of(const CsvRow& row) {
    LogEntry entry;
    entry.component = row.cells[component_];
    const auto hours = parse_number(row.cells[hours_]);
    if (!hours || *hours < 0 || *hours * 3600 > length_.value()) {
      mistakes_.add({table_.where(row), "hours", row.cells[hours_],
                     "hours since the log began, at most its length, " + to_string(length_)});
    } else {
      entry.hours = *hours;
    }
    if (nodes_ && !row.cells[*nodes_].empty()) {
      const auto nodes = parse_integer(row.cells[*nodes_]);
      if (!nodes || *nodes < 0) {
        mistakes_.add({table_.where(row), "nodes", row.cells[*nodes_], "0 or more"});
      } else {
        entry.nodes = *nodes;
      }
    }
    return entry;
  }

  const CsvTable& table_;
  Duration length_;
  std::size_t hours_ = 0;
  std::size_t component_ = 0;
  std::optional<std::size_t> nodes_;
  Error mistakes_;
};

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
  auto result = read.finish(std::move(components));
  if (!result) {
    mistakes.add(std::move(result.error()));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return std::move(*result);
}

Result<std::vector<FittedRate>> fit_log(const std::string& file, std::int64_t devices,
                                        Duration length, const Component& otherwise) {
  const auto table = load_csv(file);
  if (!table) {
    return fail(table.error());
  }
  const auto entries = LogReader(*table, length).read();
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
