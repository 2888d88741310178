// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_published.h"

#include "cli/progress.h"
#include "planner/full/published.h"
#include "report/plan_published.h"

namespace orrery::cli {

Result<std::string> compare_published(const std::string& table, const full::Options& given,
                                      bool json) {
  const auto profile = study::load_profile(table);
  if (!profile) {
    return fail(profile.error());
  }
  const auto runs = load_csv(profile->csv).and_then([&](const CsvTable& rows) {
    return study::published_runs(*profile, rows);
  });
  if (!runs) {
    return fail(runs.error());
  }
  ProgressBar bar("planning");
  std::vector<full::PublishedComparison> rows;
  full::Options options = given;
  bool stopped = false;
  options.go_on = [&] {
    bar.update(static_cast<double>(rows.size()) / static_cast<double>(runs->size()));
    stopped = stopped || !given.go_on();
    return !stopped;
  };
  full::PublishedPlans plans(options);
  for (const study::PublishedRun& run : *runs) {
    if (stopped) {
      break;
    }
    rows.push_back(plans.compare(run));
  }
  return json ? report::published_plans_json(profile->table, rows)
              : report::published_plans_table(profile->title, rows);
}

}  // namespace orrery::cli
