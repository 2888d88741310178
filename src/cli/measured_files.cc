// SPDX-License-Identifier: Apache-2.0
#include "cli/measured_files.h"

#include <glob.h>

#include <iterator>
#include <map>

#include "base/collect.h"
#include "study/sweep/database.h"

namespace orrery::cli {
namespace {

using study::RankActivities;

std::vector<std::string> files_of(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return files;
}

std::int64_t number_of(const sweep::Cell& cell) {
  const auto* const whole = std::get_if<std::int64_t>(&cell);
  return whole != nullptr ? *whole : 0;
}

bool has_table(sweep::Database& database, const std::string& name) {
  const auto rows =
      database.query("SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?", {name});
  return rows && !rows->rows.empty();
}

/// Kernels have their names in StringIds; copies and what sets memory have none.
Result<std::vector<RankActivities>> read_nsight(const std::string& file) {
  auto database = sweep::Database::open(file, sweep::Database::Mode::read);
  if (!database) {
    return fail(std::move(database.error()));
  }
  std::map<std::int64_t, RankActivities> devices;
  const auto visit = [&](const std::vector<sweep::Cell>& row) {
    const std::string name = sweep::to_string(row[3]);
    RankActivities& rank = devices[number_of(row[0])];
    rank.activities.push_back(
        {name, study::class_of(name), 1_ns * number_of(row[1]), 1_ns * number_of(row[2])});
  };
  bool any = false;
  for (const auto& [table, name] :
       {std::pair("KERNEL", "value"), {"MEMCPY", "'memcpy'"}, {"MEMSET", "'memset'"}}) {
    const std::string full = std::string("CUPTI_ACTIVITY_KIND_") + table;
    if (!has_table(*database, full)) {
      continue;
    }
    any = true;
    const bool kernels = std::string_view(table) == "KERNEL";
    const auto read = database->each_row(
        std::string("SELECT deviceId, start, end, ") + name + " FROM " + full +
            (kernels ? " JOIN StringIds ON StringIds.id = demangledName" : "") + " ORDER BY start",
        visit);
    if (!read) {
      return fail(read.error());
    }
  }
  if (!any || devices.empty()) {
    return fail(Error(Mistake{file,
                              "CUPTI_ACTIVITY_KIND_KERNEL",
                              {},
                              "a table of kernels, as `nsys export --type sqlite` writes it of a "
                              "profile with --trace cuda"}));
  }
  std::vector<RankActivities> ranks;
  for (auto& [device, rank] : devices) {
    rank.file = file;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

}  // namespace

Result<std::vector<RankActivities>> read_measured(const std::string& pattern) {
  const std::vector<std::string> files = files_of(pattern);
  Error mistakes;
  if (files.empty()) {
    mistakes.add({"--measured",
                  {},
                  pattern,
                  "files of torch.profiler (.json) or Nsight Systems "
                  "(.sqlite), several by * and ?"});
  }
  std::vector<RankActivities> ranks;
  for (const std::string& file : files) {
    auto read = file.ends_with(".sqlite") || file.ends_with(".db")
                    ? read_nsight(file)
                    : load_config(file)
                          .and_then(study::read_kineto_activities)
                          .map([](RankActivities rank) {
                            return std::vector<RankActivities>{std::move(rank)};
                          });
    if (!read) {
      mistakes.add(std::move(read.error()));
      continue;
    }
    ranks.insert(ranks.end(), std::make_move_iterator(read->begin()),
                 std::make_move_iterator(read->end()));
  }
  return or_mistakes(std::move(ranks), std::move(mistakes));
}

}  // namespace orrery::cli
