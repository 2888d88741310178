// SPDX-License-Identifier: Apache-2.0
#include "study/nearest_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/csv.h"
#include "base/file.h"
#include "study/validate.h"

namespace orrery::study {
namespace {

struct Candidate {
  ValidationProfile profile;
  CsvTable row;  ///< one alone
  PublishedRun run;
  double distance = 0;
};

double parameters(const zoo::Model& model) {
  return static_cast<double>(zoo::count_parameters(model).total);
}

double distance(const PublishedRun& published, const Run& run) {
  const double devices = static_cast<double>(published.plan.devices());
  return std::abs(std::log2(parameters(published.model) / parameters(run.model))) +
         std::abs(std::log2(devices / static_cast<double>(run.devices)));
}

/// Returns the numbers of the rows to look at, ascending.
std::set<std::size_t> looked_at(const CsvTable& table, const std::string& model) {
  std::set<std::size_t> rows;
  for (std::size_t i = 0; i < table.rows.size() && rows.size() < kLooked / 2; ++i) {
    if (std::ranges::find(table.rows[i].cells, model) != table.rows[i].cells.end()) {
      rows.insert(i);
    }
  }
  const std::size_t step = std::max<std::size_t>(1, 2 * table.rows.size() / kLooked);
  for (std::size_t i = 0; i < table.rows.size(); i += step) {
    rows.insert(i);
  }
  return rows;
}

void collect_of(const ValidationProfile& profile, const Run& run, std::vector<Candidate>& found) {
  const auto table = load_csv(profile.csv);
  if (!table) {
    return;
  }
  for (const std::size_t i : looked_at(*table, run.model.name)) {
    CsvTable row{table->file, table->header, {table->rows[i]}};
    const auto published = published_runs(profile, row);
    if (!published || published->empty() || !published->front().problem.empty()) {
      continue;
    }
    const double far = distance(published->front(), run);
    found.push_back({profile, std::move(row), published->front(), far});
  }
}

/// Adds the predictions of the row's times.
void predict(const Candidate& candidate, std::vector<NearestRow>& rows) {
  const auto result =
      validate(candidate.profile, candidate.row, {.overrides = {}, .machine = {}, .threads = 1});
  if (!result) {
    return;
  }
  for (const ValidationRow& row : result->rows) {
    if (!row.problem.empty() || row.memory || row.published <= 0 || row.predicted <= 0) {
      continue;
    }
    rows.push_back({.table = candidate.profile.table,
                    .key = row.key,
                    .model = candidate.run.model.name,
                    .machine = candidate.run.machine,
                    .measure = std::string(name_of(candidate.profile.measured.front().measure)),
                    .devices = candidate.run.plan.devices(),
                    .predicted = row.predicted,
                    .published = row.published,
                    .error = row.error});
    return;
  }
}

}  // namespace

std::vector<NearestRow> nearest_rows(const Run& run, std::size_t most) {
  std::vector<Candidate> found;
  for (const std::string& name : list_configs("validation")) {
    const auto profile = load_profile(name);
    if (!profile || profile->kind != TableKind::training) {
      continue;
    }
    const auto machine = machine::load_machine(profile->machine);
    if (machine && machine->device.name == run.machine.device.name) {
      collect_of(*profile, run, found);
    }
  }
  std::ranges::stable_sort(found, {}, &Candidate::distance);
  std::vector<NearestRow> rows;
  for (const Candidate& candidate : found) {
    if (rows.size() == most) {
      break;
    }
    predict(candidate, rows);
  }
  return rows;
}

}  // namespace orrery::study
