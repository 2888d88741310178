// SPDX-License-Identifier: Apache-2.0
#include "study/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/collect.h"
#include "base/lists.h"
#include "base/printable.h"
#include "base/reader.h"
#include "base/split.h"
#include "base/table_reader.h"
#include "study/parallel.h"
#include "study/predict.h"
#include "study/table_join.h"
#include "workload/plan/aliases.h"

namespace orrery::study {
namespace {

constexpr std::size_t kKeyBytes = 60;  // of a cell that names a row

/// One prediction to make.
struct Task {
  ValidationRow row;
  std::string where;  ///< "runs.csv:3"
  Measure measure = Measure::step_s;
  TableCase run;
  bool left_out = false;  ///< the run was stopped before
};

/// Turns a table's rows into tasks and collects what is wrong with them.
class TaskReader {
 public:
  TaskReader(const ValidationProfile& profile, const CsvTable& table,
             const ValidationOptions& options)
      : profile_(profile), table_(table), columns_(table), options_(options) {}

  Result<std::vector<Task>> read() {
    check_columns();
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    for (const CsvRow& row : table_.rows) {
      const std::size_t before = tasks_.size();
      for (const MeasuredColumn& measured : profile_.measured) {
        // What is wrong with profile or overrides would be wrong again in every row.
        if (error_.empty() && matches(row, profile_.only) && is_figure(row, measured)) {
          add_task(row, measured);
        }
      }
      if (error_.empty() && tasks_.size() == before && matches(row, profile_.only) &&
          has_verdict(row)) {
        add_task(row,
                 {.column = "", .measure = Measure::allocated_gib, .label = "", .settings = {}});
      }
    }
    if (error_.empty() && tasks_.empty()) {
      error_.add({table_.file, "", "", "no row with a published result"});
    }
    return or_mistakes(std::move(tasks_), std::move(error_));
  }

 private:
  /// Returns whether the row says whether it ran.
  bool has_verdict(const CsvRow& row) const {
    return profile_.outcome && !profile_.outcome->column.empty() &&
           !cell(row, profile_.outcome->column).empty();
  }

  /// Returns whether the row ran, where the profile says how rows tell.
  std::optional<bool> ran(const CsvRow& row) const {
    if (!profile_.outcome) {
      return std::nullopt;
    }
    return !has_verdict(row) ||
           cell(row, profile_.outcome->column).starts_with(profile_.outcome->ok);
  }

  /// Returns whether the row has the figure. Bytes of a row that ran out of memory are none: it
  /// needed more.
  bool is_figure(const CsvRow& row, const MeasuredColumn& measured) const {
    return !cell(row, measured.column).empty() &&
           (!is_memory(measured.measure) || ran(row).value_or(true));
  }

  void check_columns() {
    for (const auto* columns : {&profile_.key, &profile_.group}) {
      columns_.need_all(*columns);
    }
    for (const Setting& setting : profile_.columns) {
      columns_.need(setting.value);
    }
    for (const CaseColumn& column : profile_.cases) {
      for (const std::string& part : column.columns()) {
        if (!column.settings_of("")) {
          columns_.need(part);
        }
      }
    }
    for (const auto* filters : {&profile_.only, &profile_.fitted}) {
      for (const ColumnText& filter : *filters) {
        columns_.need(filter.column);
      }
    }
    if (!profile_.flags.empty()) {
      columns_.need(profile_.flags);
    }
    const bool measured =
        std::any_of(profile_.measured.begin(), profile_.measured.end(),
                    [&](const MeasuredColumn& m) { return table_.column(m.column).has_value(); });
    if (!measured) {
      columns_.need(profile_.measured.front().column);
    }
    error_.add(columns_.finish());
  }

  /// Returns the cell's text; empty when the table has no such column.
  std::string_view cell(const CsvRow& row, const std::string& column) const {
    return columns_.text(row, column);
  }

  /// "16,224" is 16224.
  static std::string without_thousands(std::string_view text) {
    std::string number(text);
    for (std::size_t at = number.rfind(','); at != std::string::npos && at + 4 == number.size();
         at = number.rfind(',')) {
      number.erase(at, 1);
    }
    return number;
  }

  std::string key_of(const CsvRow& row, const MeasuredColumn& measured) const {
    const std::string key = orrery::joined(profile_.key, " ", [&](const std::string& column) {
      return fmt::format("{}={}", column, shortened(cell(row, column), kKeyBytes));
    });
    return measured.label.empty() ? key : key + " " + measured.label;
  }

  bool matches(const CsvRow& row, const std::vector<ColumnText>& filters) const {
    return std::all_of(filters.begin(), filters.end(),
                       [&](const ColumnText& f) { return cell(row, f.column) == f.text; });
  }

  bool is_fitted(const CsvRow& row) const {
    return !profile_.fitted.empty() && matches(row, profile_.fitted);
  }

  /// `mistakes` gets the texts without a case.
  std::vector<Setting> settings_of(const CsvRow& row, const MeasuredColumn& measured,
                                   Error& mistakes) const {
    std::vector<Setting> settings = profile_.plan;
    const auto append = [&](const std::vector<Setting>& more) {
      settings.insert(settings.end(), more.begin(), more.end());
    };
    for (const Setting& column : profile_.columns) {
      settings.push_back({column.field, std::string(cell(row, column.value)), table_.where(row)});
    }
    const std::size_t flags = settings.size();
    flags_of(row, settings, mistakes);
    const std::size_t after_flags = settings.size();
    for (const CaseColumn& column : profile_.cases) {
      const std::string text = orrery::joined(
          column.columns(), "/", [&](const std::string& part) { return cell(row, part); });
      if (auto found = column.settings_of(text)) {
        for (Setting& setting : *found) {
          setting.where = setting.where.empty() ? table_.where(row) : setting.where;
        }
        append(*found);
      } else {
        mistakes.add(wrong_value(table_.where(row), column.column, text, known_cases(column)));
      }
    }
    append(measured.settings);
    append(options_.overrides);
    divide_sequences(settings, flags, after_flags);
    return settings;
  }

  /// Turns sequence parallelism on or off for a row. With --tp above 1 the command leaves
  /// sequence_parallel on (plan::complete), and so does a row whose flags, settings [begin, end),
  /// name tp, unless what wins over them says tp = 1. The row's flags and what wins over them may
  /// turn it off.
  static void divide_sequences(std::vector<Setting>& settings, std::size_t begin, std::size_t end) {
    const auto is_tp = [](const Setting& setting) { return setting.field == "tp"; };
    const auto first = settings.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = settings.begin() + static_cast<std::ptrdiff_t>(end);
    if (std::find_if(first, last, is_tp) != last &&
        std::find_if(settings.rbegin(), settings.rend(), is_tp)->value != "1") {
      settings.insert(first, {"sequence_parallel", "true", first->where});
    }
  }

  /// The settings of the row's flags; "--flag" alone is true.
  void flags_of(const CsvRow& row, std::vector<Setting>& settings, Error& mistakes) const {
    std::vector<std::string> words;
    for (const std::string_view word : split_at(cell(row, profile_.flags), ' ')) {
      if (!word.empty()) {
        words.emplace_back(word);
      }
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!words[i].starts_with("--")) {
        mistakes.add({table_.where(row), profile_.flags, words[i], "a flag such as --tp"});
        return;
      }
      std::string field = words[i].substr(2);
      std::replace(field.begin(), field.end(), '-', '_');
      const bool alone = i + 1 == words.size() || words[i + 1].starts_with("--");
      const std::string name(plan::own_name(field));
      settings.push_back({name, alone ? "true" : words[++i], table_.where(row)});
    }
  }

  /// Returns the measure of the row's figure.
  Measure measure_of(const CsvRow& row, const MeasuredColumn& measured, Error& mistakes) const {
    const std::string_view text = measured.by.empty() ? "" : cell(row, measured.by);
    const std::optional<Measure> measure = measured.measure_of(text);
    if (!measure) {
      mistakes.add(
          wrong_value(table_.where(row), measured.by, std::string(text), measured.known_texts()));
    }
    return measure.value_or(measured.measure);
  }

  static std::string known_cases(const CaseColumn& column) {
    const std::vector<std::string> names = mapped(column.values, &CaseColumn::Value::text);
    return "one of " + enumerated(names);
  }

  void add_task(const CsvRow& row, const MeasuredColumn& measured) {
    Error mistakes;
    Task task{.row = {},
              .where = table_.where(row),
              .measure = measure_of(row, measured, mistakes),
              .run = {}};
    task.row.line = row.line;
    task.row.memory = is_memory(task.measure);
    task.row.apart = measured.apart;
    task.row.verdict = measured.column.empty();
    task.row.ran = ran(row);
    task.row.key = key_of(row, measured);
    for (const std::string& column : profile_.group) {
      task.row.group += (task.row.group.empty() ? "" : " ") + std::string(cell(row, column));
    }
    task.row.scored = !is_fitted(row);
    task.row.origin = cell(row, "origin");
    if (measured.apart) {
      task.row.group = measured.label;
    }
    const std::string text = without_thousands(cell(row, measured.column));
    const auto published = parse_number(text);
    if (task.row.verdict) {
      task.row.published = 0;
    } else if (published && *published > 0) {
      task.row.published = *published;
    } else {
      mistakes.add(wrong_value(table_.where(row), measured.column, text, "a number above 0"));
    }
    const std::vector<Setting> settings = settings_of(row, measured, mistakes);
    collect_into(task.run, make_case(settings), mistakes);
    Error of_row;
    for (Mistake& mistake : mistakes.mistakes) {
      (mistake.where == table_.where(row) ? of_row : error_).add(std::move(mistake));
    }
    task.row.problem = of_row.to_string();
    tasks_.push_back(std::move(task));
  }

  const ValidationProfile& profile_;
  const CsvTable& table_;
  TableReader columns_;
  const ValidationOptions& options_;
  std::vector<Task> tasks_;
  Error error_;
};

void run_task(Task& task, const machine::Machine& machine) {
  if (!task.row.problem.empty()) {
    task.row.error = -1;
    return;
  }
  Result<Prediction> prediction = predict(task.run, task.measure, machine);
  if (prediction && std::isfinite(prediction->value)) {
    task.row.predicted = prediction->value;
    task.row.oom = prediction->oom;
    task.row.causes = std::move(prediction->causes);
    task.row.rate = is_rate(task.measure);
  } else {
    Error mistakes = prediction ? Error("not a finite number") : std::move(prediction.error());
    for (Mistake& mistake : mistakes.mistakes) {
      mistake.where = mistake.where.empty() ? task.where : mistake.where;
    }
    task.row.problem = mistakes.to_string();
  }
  task.row.error = task.row.verdict && prediction ? 0 : task.row.predicted / task.row.published - 1;
}

}  // namespace

Result<ValidationResult> validate(const ValidationProfile& profile, const CsvTable& table,
                                  const ValidationOptions& options) {
  if (profile.join) {
    ValidationProfile without = profile;
    without.join.reset();
    return joined(table, *profile.join).and_then([&](const CsvTable& whole) {
      return validate(without, whole, options);
    });
  }
  Result<machine::Machine> machine =
      machine::load_machine(options.machine.value_or(profile.machine));
  if (!machine) {
    return fail(std::move(machine.error()));
  }
  Result<std::vector<Task>> tasks = TaskReader(profile, table, options).read();
  if (!tasks) {
    return fail(std::move(tasks.error()));
  }
  run_parallel(
      tasks->size(), options.threads,
      [&](std::size_t i) {
        if (!options.go_on || options.go_on()) {
          run_task((*tasks)[i], *machine);
        } else {
          (*tasks)[i].left_out = true;
        }
      },
      options.progress);
  std::vector<ValidationRow> rows;
  for (Task& task : *tasks) {
    if (!task.left_out) {
      rows.push_back(std::move(task.row));
    }
  }
  return scored(profile, table.file, machine->name, std::move(rows));
}

Result<std::vector<PublishedRun>> published_runs(const ValidationProfile& profile,
                                                 const CsvTable& table,
                                                 const ValidationOptions& options, bool memory) {
  Result<std::vector<Task>> tasks = TaskReader(profile, table, options).read();
  if (!tasks) {
    return fail(std::move(tasks.error()));
  }
  std::vector<PublishedRun> runs;
  std::map<std::string, Result<machine::Machine>> machines;  // each is read once
  for (Task& task : *tasks) {
    const bool part =
        task.measure == Measure::state_gib || task.measure == Measure::activation_gib ||
        task.measure == Measure::activation_percent || task.measure == Measure::power_w;
    if (part || is_memory(task.measure) != memory ||
        (!runs.empty() && runs.back().key == task.row.key)) {
      continue;
    }
    PublishedRun& run = runs.emplace_back();
    run.key = task.row.key;
    run.line = task.row.line;
    run.problem = task.row.problem;
    run.machine = !task.run.names.machine.empty() ? task.run.names.machine
                                                  : options.machine.value_or(profile.machine);
    const auto model =
        run.problem.empty() ? task.run.model() : Result<zoo::Model>(fail(run.problem));
    const auto [at, first] = machines.try_emplace(run.machine, fail(Error()));
    Result<machine::Machine>& machine = at->second;
    if (first) {
      machine = machine::load_machine(run.machine);
    }
    if (!model || !machine) {
      run.problem = (model ? machine.error() : model.error()).to_string();
      continue;
    }
    run.model = *model;
    run.plan = task.run.names.recompute_to_fit ? least_recompute(*model, *machine, task.run.plan)
                                               : task.run.plan;
  }
  return runs;
}

}  // namespace orrery::study
