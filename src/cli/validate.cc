// SPDX-License-Identifier: Apache-2.0
#include "study/validate.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/interrupt.h"
#include "cli/plan_flags.h"
#include "cli/progress.h"
#include "cli/step_flags.h"
#include "report/validation.h"
#include "study/served/table.h"

namespace orrery::cli {
namespace {

constexpr const char* kValidateExamples =
    "Without --table every shipped table is run, with --output also those of many rows.\n"
    "Examples:\n"
    "  orrery validate --output docs/validation.md\n"
    "  orrery validate --table megatron_sc21_table1 --json\n"
    "  orrery validate --table serving_silicon my_serving_rows.csv --json\n"
    "  orrery validate --table vtrain_a100_multi my_runs.csv --host-dispatch \"30 us\"\n"
    "  orrery validate --table vllm_requests rtx4090.csv --kernels dense.csv,attention.csv\n";

class Validate : public Command {
 public:
  void declare(Options& options) override {
    options.positional("FILE", csv_, "rows of your own, with the table's columns");
    options.value("--table", table_, "NAME|FILE",
                  "one table: a name of `orrery list tables`, or a profile");
    options.value("--machine", machine_, "NAME|FILE", "instead of the profile's machine");
    options.value("--kernels", kernels_, "FILES",
                  "for a table of serving: CSV tables of kernels measured on the rows' card");
    options.output("--output", output_, "FILE",
                   "also write a Markdown page, its charts in folder validation beside it");
    options.value("--threads", threads_, "INT", "rows at once; default: one per processor");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    plan_.declare(options, false, false);
    options.footer(kValidateExamples);
  }

  bool ends_early() const override { return true; }
  Result<std::string> run(Error mistakes) override {
    if (csv_ && !table_) {
      mistakes.add(
          find_config("validation", *csv_)
              ? wrong_value("FILE", *csv_, "rows of your own; --table names a shipped table")
              : Mistake{"--table", {}, {}, "missing; expected the table whose columns FILE has"});
    }
    study::ValidationOptions options{.overrides = plan_.settings(), .machine = machine_};
    plan_.over({}, mistakes);  // a mistake is no row's
    options.threads = thread_count(threads_, 0, mistakes);
    if (kernels_) {
      options.overrides.push_back({std::string(served::kKernels), *kernels_, "--kernels"});
    }
    if (kernels_ && !table_) {
      mistakes.add({"--table", {}, {}, "missing; expected the table of serving for --kernels"});
    }
    const std::vector<Table> tables = read_tables(mistakes);
    std::size_t rows = 0;
    for (const Table& table : tables) {
      rows += table.rows.rows.size();
    }
    ProgressBar bar("validating");
    std::size_t done = 0;
    options.go_on = Interrupt::going_on;
    std::vector<study::ValidationResult> results;
    for (const Table& table : tables) {
      if (!Interrupt::going_on()) {
        break;
      }
      const auto size = static_cast<double>(table.rows.rows.size());
      options.progress = [&](double share) {
        bar.update((static_cast<double>(done) + share * size) / static_cast<double>(rows));
      };
      if (mistakes.empty()) {
        const auto run = table.profile.kind == study::TableKind::training
                             ? study::validate
                             : served::validate_serving;
        results.push_back(collect(run(table.profile, table.rows, options), mistakes));
      }
      done += table.rows.rows.size();
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    runs_none_ = std::ranges::none_of(results, [](const study::ValidationResult& result) {
      return std::ranges::any_of(result.rows, &std::string::empty, &study::ValidationRow::problem);
    });
    if (!Interrupt::going_on()) {  // of a table that was reached, the rows that ran
      std::erase_if(results, [](const auto& result) { return result.rows.empty(); });
      if (results.empty()) {
        return std::string();
      }
    }
    if (output_ && Interrupt::going_on()) {
      keep(write_page(results));
    }
    const auto json = [&] { return report::json_of(results); };
    return html_.beside(json_ ? json() : report::validation_table(results, table_.has_value()),
                        json);
  }

  int status() const override { return runs_none_ ? 1 : 0; }

 private:
  /// The page, and its charts in the folder `validation` beside it.
  Result<void> write_page(const std::vector<study::ValidationResult>& results) const {
    const std::filesystem::path charts =
        std::filesystem::path(*output_).parent_path() / "validation";
    std::error_code failed;
    std::filesystem::create_directories(charts, failed);
    if (failed) {
      return fail(Error(Mistake{"--output", {}, charts.string(), failed.message()}));
    }
    for (const study::ValidationResult& result : results) {
      if (!report::has_chart(result)) {
        continue;
      }
      const std::string path = (charts / (result.profile.table + ".svg")).string();
      if (auto written = write_file(path, report::validation_plot(result)); !written) {
        return written;
      }
    }
    return write_file(*output_, report::validation_page(results));
  }

  struct Table {
    study::ValidationProfile profile;
    CsvTable rows;
  };

  /// Returns the table that is asked for, or all that do not take long.
  std::vector<Table> read_tables(Error& mistakes) const {
    std::vector<Table> tables;
    for (const std::string& name : table_ ? std::vector{*table_} : list_configs("validation")) {
      if (mistakes.empty()) {
        Table table = collect(read_table(name), mistakes);
        if (kernels_ && table.profile.kind == study::TableKind::training) {
          mistakes.add({"--kernels", {}, name, "a table of serving"});
        }
        if (table_ || !table.profile.is_long) {
          tables.push_back(std::move(table));
        }
      }
    }
    return tables;
  }

  Result<Table> read_table(const std::string& name) const {
    Result<study::ValidationProfile> profile = study::load_profile(name);
    if (!profile) {
      return fail(of_flag("--table", name, std::move(profile.error())));
    }
    Result<CsvTable> table = load_csv(csv_.value_or(profile->csv));
    if (!table) {
      return fail(std::move(table.error()));
    }
    return Table{std::move(*profile), std::move(*table)};
  }

  std::optional<std::string> csv_;
  std::optional<std::string> table_;
  std::optional<std::string> machine_;
  std::optional<std::string> kernels_;
  std::optional<std::string> output_;
  std::optional<std::string> threads_;
  PlanFlags plan_;
  HtmlFlag html_{"validate"};
  bool runs_none_ = false;  ///< no row has an answer
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_validate() {
  return std::make_unique<Validate>();
}

}  // namespace orrery::cli
