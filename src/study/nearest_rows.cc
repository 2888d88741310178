// SPDX-License-Identifier: Apache-2.0
#include "study/nearest_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/csv.h"
#include "base/file.h"
#include "study/table_join.h"
#include "study/validate.h"

namespace orrery::study {
namespace {

struct Table {
  ValidationProfile profile;
  CsvTable csv;
};

/// A published run and where it stands.
struct Candidate {
  std::size_t table = 0;  ///< of the tables read
  int line = 0;
  std::string model;
  std::string machine;
  std::int64_t devices = 0;
  double distance = 0;
};

double doublings(auto a, auto b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

double parameters(const zoo::Model& model) {
  return static_cast<double>(zoo::count_parameters(model).total);
}

double distance(const PublishedRun& published, double size, const plan::Plan& plan) {
  const plan::Plan& row = published.plan;
  return doublings(parameters(published.model), size) + doublings(row.devices(), plan.devices()) +
         doublings(row.tp, plan.tp) + doublings(row.pp, plan.pp) + doublings(row.cp, plan.cp) +
         doublings(row.ep, plan.ep) + static_cast<double>(std::abs(row.zero - plan.zero));
}

/// Says whether machines have a given device; each machine is read once.
class SameDevice {
 public:
  explicit SameDevice(std::string device) : device_(std::move(device)) {}

  bool of(const std::string& machine) {
    const auto [at, first] = known_.try_emplace(machine, false);
    if (first) {
      const auto read = machine::load_machine(machine);
      at->second = read && read->device.name == device_;
    }
    return at->second;
  }

  /// Returns whether some row of the table may run on one of them.
  bool of_some_row(const ValidationProfile& profile) {
    const auto names_one = [&](const Setting& setting) {
      return setting.field == "machine" && of(setting.value);
    };
    return of(profile.machine) || std::ranges::any_of(profile.cases, [&](const CaseColumn& column) {
             return std::ranges::any_of(column.values, [&](const CaseColumn::Value& value) {
               return std::ranges::any_of(value.settings, names_one);
             });
           });
  }

 private:
  std::string device_;
  std::map<std::string, bool> known_;
};

/// Returns the table that the profile compares with, joined.
Result<CsvTable> rows_of(const ValidationProfile& profile) {
  return load_csv(profile.csv).and_then([&](const CsvTable& table) {
    return profile.join ? joined(table, *profile.join) : Result<CsvTable>(table);
  });
}

/// The name of the first measure of a step, or of memory.
std::string measure_of(const ValidationProfile& profile, bool memory) {
  const auto found = std::ranges::find_if(profile.measured, [&](const MeasuredColumn& column) {
    return is_memory(column.measure) == memory;
  });
  return std::string(found == profile.measured.end() ? "" : name_of(found->measure));
}

/// Adds the prediction of the row.
void predict(const Table& table, const Candidate& candidate, bool memory,
             std::vector<NearestRow>& rows) {
  CsvTable alone{table.csv.file, table.csv.header, {}};
  std::ranges::copy_if(table.csv.rows, std::back_inserter(alone.rows),
                       [&](const CsvRow& row) { return row.line == candidate.line; });
  ValidationProfile profile = table.profile;
  profile.join.reset();
  const auto result = validate(profile, alone, {.overrides = {}, .machine = {}, .threads = 1});
  if (!result) {
    return;
  }
  for (const ValidationRow& row : result->rows) {
    if (!row.problem.empty() || row.memory != memory || row.published <= 0 || row.predicted <= 0) {
      continue;
    }
    rows.push_back({.table = profile.table,
                    .key = row.key,
                    .model = candidate.model,
                    .machine = candidate.machine,
                    .measure = measure_of(profile, memory),
                    .devices = candidate.devices,
                    .predicted = row.predicted,
                    .published = row.published,
                    .error = row.error});
    return;
  }
}

}  // namespace

std::vector<NearestRow> nearest_rows(const zoo::Model& model, const plan::Plan& plan,
                                     const machine::Machine& machine, std::size_t most,
                                     bool memory) {
  std::vector<Table> tables;
  std::vector<Candidate> found;
  SameDevice same_device(machine.device.name);
  const double size = parameters(model);
  for (const std::string& name : list_configs("validation")) {
    auto profile = load_profile(name);
    if (!profile || profile->kind != TableKind::training) {
      continue;
    }
    auto rows = same_device.of_some_row(*profile) ? rows_of(*profile) : fail(Error());
    const auto published = rows ? published_runs(*profile, *rows, {}, memory) : fail(Error());
    if (!published) {
      continue;
    }
    for (const PublishedRun& one : *published) {
      if (one.problem.empty() && same_device.of(one.machine)) {
        found.push_back({tables.size(), one.line, one.model.name, one.machine, one.plan.devices(),
                         distance(one, size, plan)});
      }
    }
    tables.push_back({std::move(*profile), std::move(*rows)});
  }
  std::ranges::stable_sort(found, {}, &Candidate::distance);
  std::vector<NearestRow> rows;
  for (const Candidate& candidate : found) {
    if (rows.size() == most) {
      break;
    }
    predict(tables[candidate.table], candidate, memory, rows);
  }
  return rows;
}

}  // namespace orrery::study
