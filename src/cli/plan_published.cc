// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_published.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "base/printable.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "planner/full/published.h"
#include "report/plan_published.h"

namespace orrery::cli {

void PublishedFlags::declare(Options& options) {
  options.value("--table", table_, "NAME|FILE",
                "every row of a table of published runs (`orrery list tables`) beside the best "
                "plan for its work; without model and machine");
  options.flag("--suspects", suspects_,
               "with --table: simulate wins of more than 15 % again, messages sharing links (as "
               "--network flow does) and one node 10 % slow");
}

void PublishedFlags::check(Error& mistakes) const {
  if (suspects_ && !table_) {
    mistakes.add({"--suspects", {}, {}, "goes with --table"});
  }
}

Result<std::string> PublishedFlags::run(const full::Options& given, bool json) const {
  const auto profile = study::load_profile(*table_);
  if (!profile) {
    return fail(of_flag("--table", *table_, profile.error()));
  }
  const auto runs = load_csv(profile->csv).and_then([&](const CsvTable& rows) {
    return study::published_runs(*profile, rows);
  });
  if (!runs) {
    return fail(runs.error());
  }
  bool stopped = false;
  const auto print = [&](std::string_view raw) {
    const std::string text = printable(raw, "\n\t");
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    stopped = stopped || !written;  // the end of the command tells it
  };
  std::vector<full::PublishedComparison> rows;
  full::Options options = given;
  std::optional<ProgressBar> bar;
  options.go_on = [&] {
    bar->update(0);
    stopped = stopped || !Interrupt::going_on();
    return !stopped;
  };
  full::PublishedPlans plans(options, suspects_);
  report::JsonWriter writer(print, report::JsonWriter::Layout::indented);
  if (json) {
    writer.begin_object().key("table").value(profile->table).key("rows").begin_array();
  } else {
    print(profile->title + "\n");
  }
  for (const study::PublishedRun& run : *runs) {
    if (stopped) {
      break;
    }
    bar.emplace(fmt::format("row {} of {}", rows.size() + 1, runs->size()));
    rows.push_back(plans.compare(run));
    bar.reset();
    if (json) {
      report::write_published_plan(writer, rows.back());
      writer.flush();
    } else {
      print(report::published_plan_text(rows.back()));
    }
  }
  if (json) {
    writer.end_array().end_object();
    return "\n";
  }
  return report::published_plans_summary(rows);
}

}  // namespace orrery::cli
