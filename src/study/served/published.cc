// SPDX-License-Identifier: Apache-2.0
#include "study/served/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/collect.h"
#include "base/lists.h"
#include "base/printable.h"
#include "base/reader.h"
#include "base/split.h"
#include "base/table_reader.h"
#include "study/served/described.h"
#include "study/served/figure.h"

namespace orrery::served {
namespace {

using study::ValidationRow;

constexpr std::size_t kKeyBytes = 60;

class Reader {
 public:
  Reader(const study::ValidationProfile& profile, const CsvTable& table,
         const WantedMachine& wanted)
      : profile_(profile), table_(table), wanted_(wanted), columns_(table) {}

  Result<std::vector<Task>> read() {
    check_columns();
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    if (profile_.kind == study::TableKind::serving_requests) {
      read_requests();
    } else {
      for (const CsvRow& row : table_.rows) {
        if (matches(row)) {
          read_row(row);
        }
      }
    }
    if (error_.empty() && tasks_.empty()) {
      error_.add({table_.file, "", "", "no row with a published result"});
    }
    return or_mistakes(std::move(tasks_), std::move(error_));
  }

 private:
  void check_columns() {
    columns_.need_all(profile_.key);
    columns_.need_all(profile_.group);
    for (const study::Setting& setting : profile_.columns) {
      columns_.need_all(split_at(setting.value, '|'));
    }
    for (const study::CaseColumn& column : profile_.cases) {
      columns_.need_all(column.columns());
    }
    for (const study::ColumnText& filter : profile_.only) {
      columns_.need(filter.column);
    }
    if (profile_.kind == study::TableKind::serving_requests) {
      columns_.need_all(std::array{"input_tokens", "output_tokens", "arrival_s", "queued_s",
                                   "first_token_s", "last_token_s"});
    } else {
      for (const study::MeasuredColumn& measured : profile_.measured) {
        columns_.need(measured.column);
      }
    }
    error_.add(columns_.finish());
  }

  std::string_view cell(const CsvRow& row, const std::string& column) const {
    return columns_.text(row, column);
  }

  /// Returns the texts of columns "a/b", joined alike.
  std::string text_of(const CsvRow& row, const std::string& columns) const {
    return joined(study::CaseColumn{columns, {}}.columns(), "/",
                  [&](const std::string& part) { return cell(row, part); });
  }

  bool matches(const CsvRow& row) const {
    return std::all_of(profile_.only.begin(), profile_.only.end(),
                       [&](const study::ColumnText& f) { return cell(row, f.column) == f.text; });
  }

  std::string key_of(const CsvRow& row) const {
    return joined(profile_.key, " ", [&](const std::string& column) {
      return fmt::format("{}={}", column, shortened(cell(row, column), kKeyBytes));
    });
  }

  /// Returns the case of a row; what is wrong with the row alone goes to `problem`.
  RowCase case_of(const CsvRow& row, std::string& problem) {
    if (!profile_.flags.empty()) {
      auto made = described_case(cell(row, profile_.flags), table_.where(row));
      problem = made ? "" : made.error().to_string();
      return made ? std::move(*made) : RowCase{};
    }
    std::vector<study::Setting> settings = profile_.plan;
    const std::string where = table_.where(row);
    for (const study::Setting& column : profile_.columns) {
      for (const std::string_view name : split_at(column.value, '|')) {
        const std::string_view text = cell(row, std::string(name));
        if (!text.empty()) {
          settings.push_back({column.field, std::string(text), where});
          break;
        }
      }
    }
    Error of_row;
    for (const study::CaseColumn& column : profile_.cases) {
      const std::string text = text_of(row, column.column);
      if (const auto found = column.settings_of(text)) {
        settings.insert(settings.end(), found->begin(), found->end());
      } else {
        of_row.add({where, column.column, text, "a text that the profile has a case for"});
      }
    }
    if (wanted_ && !wanted_(machine_of(settings))) {
      problem = where + ": on a machine that is left out";
      return {};
    }
    auto made = row_case(settings);
    if (!made) {
      of_row.add(std::move(made.error()));
    }
    problem = of_row.to_string();
    return made ? std::move(*made) : RowCase{};
  }

  /// Returns the last of the settings that names one, else the profile's.
  std::string machine_of(const std::vector<study::Setting>& settings) const {
    std::string machine = profile_.machine;
    for (const study::Setting& setting : settings) {
      machine = setting.field == "machine" ? setting.value : machine;
    }
    return machine;
  }

  /// Returns why the row cannot be run at all.
  std::string refusal_of(const CsvRow& row) const {
    for (const auto& [column, text, reason] : profile_.unanswerable) {
      if (cell(row, column) == text) {
        return fmt::format("{}: {}: found '{}': {}", table_.where(row), column, text, reason);
      }
    }
    const auto of_row = [&](const std::string& column) { return cell(row, column); };
    const std::string found = profile_.agreement ? disagreement(*profile_.agreement, of_row) : "";
    return found.empty() ? "" : table_.where(row) + ": " + found;
  }

  bool is_apart(const CsvRow& row) const {
    const auto is = [&](const study::ColumnText& f) { return text_of(row, f.column) == f.text; };
    return std::any_of(profile_.apart.begin(), profile_.apart.end(), is);
  }

  std::string group_of(const CsvRow& row, const std::string& measure) const {
    std::string group;
    for (const std::string& column : profile_.group) {
      group += std::string(cell(row, column)) + " ";
    }
    if (!measure.empty()) {
      return group + measure;
    }
    group.resize(group.empty() ? 0 : group.size() - 1);
    return group;
  }

  void read_row(const CsvRow& row) {
    Task task{.row = {}, .requests = {}, .figures = {}, .measures = {}, .where = table_.where(row)};
    std::string problem = refusal_of(row);
    if (problem.empty()) {
      task.row = case_of(row, problem);
    }
    if (problem.empty()) {
      const study::ServedRequests& requests = task.row.requests;
      if (requests.output_counts.empty() && (requests.count < 1 || requests.output < 1)) {
        problem = task.where + ": no requests, or none with an answer";
      }
    }
    for (const study::MeasuredColumn& measured : profile_.measured) {
      const std::string_view text = cell(row, measured.column);
      if (text.empty()) {
        continue;
      }
      const std::string_view by = measured.by.empty() ? "" : cell(row, measured.by);
      const std::optional<study::Measure> measure = measured.measure_of(by);
      ValidationRow figure;
      figure.line = row.line;
      figure.key = key_of(row) + (measured.label.empty() ? "" : " " + measured.label);
      figure.metric =
          measured.by.empty() ? measured.metric : metric_of(measure.value_or(measured.measure));
      figure.apart = is_apart(row);
      figure.group =  // figures of one metric are told apart within the group
          group_of(row, figure.metric.empty()
                            ? std::string(name_of(measure.value_or(measured.measure)))
                            : "");
      figure.origin = cell(row, "origin");
      const auto published = parse_number(text);
      figure.published = published && *published > 0 ? *published : 0;
      if (!measure) {
        problem = fmt::format("{}: {}: found '{}', expected {}", task.where, measured.by, by,
                              measured.known_texts());
      }
      figure.problem = figure.published > 0
                           ? problem
                           : fmt::format(
                                 "{}: {}: found '{}', expected a number "
                                 "above 0",
                                 task.where, measured.column, shortened(text, kKeyBytes));
      figure.error = -1;
      task.figures.push_back(std::move(figure));
      task.measures.push_back(measure.value_or(measured.measure));
    }
    tasks_.push_back(std::move(task));
  }

  void read_requests() {
    std::vector<std::string> runs;
    for (const CsvRow& row : table_.rows) {
      const std::string key = key_of(row);
      if (matches(row) && std::find(runs.begin(), runs.end(), key) == runs.end()) {
        runs.push_back(key);
      }
    }
    for (const std::string& run : runs) {
      read_run(run);
    }
  }

  double number(const CsvRow& row, const char* column, double least, std::string& problem) const {
    const auto value = parse_number(cell(row, column));
    if (!value || *value < least || *value > 1e9) {
      problem = fmt::format("{}: {}: found '{}', expected a number from {} on", table_.where(row),
                            column, shortened(cell(row, column), kKeyBytes), least);
      return least;
    }
    return *value;
  }

  void read_run(const std::string& run) {
    Task task{.row = {}, .requests = {}, .figures = {}, .measures = {}, .where = table_.file};
    task.of_requests = true;
    std::string problem;
    std::array<std::vector<double>, 3> values;  // TTFT, TPOT, latency in ms
    std::string origin;
    for (const CsvRow& row : table_.rows) {
      if (!matches(row) || key_of(row) != run) {
        continue;
      }
      if (task.requests.empty()) {
        task.row = case_of(row, problem);
        origin = cell(row, "origin");
      }
      requests::Request request{.ids = {}};
      request.input = static_cast<std::int64_t>(number(row, "input_tokens", 1, problem));
      request.output = static_cast<std::int64_t>(number(row, "output_tokens", 1, problem));
      request.arrival = from_seconds(number(row, "arrival_s", 0, problem));
      const double queued = number(row, "queued_s", 0, problem);
      const double first = number(row, "first_token_s", 0, problem);
      const double last = number(row, "last_token_s", 0, problem);
      values[0].push_back(1e3 * (first - queued));
      values[2].push_back(1e3 * (last - queued));
      if (request.output > 1) {
        values[1].push_back(1e3 * (last - first) / static_cast<double>(request.output - 1));
      }
      task.requests.push_back(std::move(request));
    }
    std::stable_sort(task.requests.begin(), task.requests.end(),
                     [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
    constexpr std::array kNamesOfValues{"TTFT", "TPOT", "latency"};
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<Time> times =
          mapped(values[i], [&](const double value) { return from_seconds(1e-3 * value); });
      const serving::Statistics published = serving::statistics(std::move(times));
      for (const auto& [name, value] : listed(published)) {
        ValidationRow figure;
        figure.key = fmt::format("{} {} {} ms", run, kNamesOfValues[i], name);
        figure.group = kNamesOfValues[i];
        figure.origin = origin;
        figure.published = 1e3 * to_seconds(value);
        figure.problem = problem;
        figure.error = -1;
        task.figures.push_back(std::move(figure));
      }
    }
    tasks_.push_back(std::move(task));
  }

  const study::ValidationProfile& profile_;
  const CsvTable& table_;
  const WantedMachine& wanted_;
  TableReader columns_;
  std::vector<Task> tasks_;
  Error error_;
};

struct Predicted {
  std::vector<double> values;  ///< of the task's figures, in order
  std::int64_t devices;
};

/// Runs the task's row. Mistakes: a machine without room, requests that the engine refuses.
Result<Predicted> run_of(Task& task, const RowParts& parts) {
  if (!task.of_requests) {
    task.requests = requests_of(task.row.requests);
  }
  const auto run = serve_case(task.row, parts, task.requests);
  if (!run) {
    return fail(run.error());
  }
  if (run->refused > 0) {
    return fail(fmt::format("{} requests are longer than the engine takes", run->refused));
  }
  if (task.of_requests) {
    return Predicted{predicted_statistics(*run), run->devices};
  }
  const serving::Metrics metrics = serving::metrics(*run, parts.machine);
  Predicted predicted{{}, run->devices};
  for (const study::Measure measure : task.measures) {
    predicted.values.push_back(
        value_of_measure(measure, *run, metrics, parts.machine.device.idle_power));
  }
  return predicted;
}

}  // namespace

Result<std::vector<Task>> published_tasks(const study::ValidationProfile& profile,
                                          const CsvTable& table, const WantedMachine& wanted) {
  return Reader(profile, table, wanted).read();
}

void run_task(Task& task, const machine::Machine& machine) {
  if (std::all_of(task.figures.begin(), task.figures.end(),
                  [](const ValidationRow& figure) { return !figure.problem.empty(); })) {
    return;
  }
  const auto parts = parts_of(task.row, machine);
  const auto predicted = parts.and_then([&](const RowParts& own) { return run_of(task, own); });
  const machine::Machine& own = parts ? parts->machine : machine;
  constexpr std::array kOfRequests{study::Measure::ttft_ms, study::Measure::tpot_ms,
                                   study::Measure::latency_ms};
  for (std::size_t i = 0; i < task.figures.size(); ++i) {
    ValidationRow& figure = task.figures[i];
    const study::Measure measure = task.of_requests
                                       ? kOfRequests[i * kOfRequests.size() / task.figures.size()]
                                       : task.measures[i];
    figure.rate = study::is_rate(measure);
    figure.causes = study::causes_of(measure, task.row.engine.name, own);
    Result<double> value = predicted.map([&](const Predicted& all) { return all.values[i]; });
    if (!value && parts && measure == study::Measure::weights_gib) {
      value = weights_of(task.row, *parts).map(gib_of);  // logged before the cache is laid out
    }
    if (!value) {
      figure.problem = fmt::format("{}: {}", task.where, value.error().to_string());
    } else if (figure.problem.empty()) {
      figure.predicted = *value;
      figure.devices = predicted ? predicted->devices : task.row.engine.devices();
      figure.error = figure.predicted / figure.published - 1;
    }
  }
}

}  // namespace orrery::served
