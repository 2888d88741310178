// SPDX-License-Identifier: Apache-2.0
/// Predictions beside published results, row by row.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "machine/machine.h"
#include "study/profile.h"
#include "study/trust.h"

namespace orrery::study {

/// A ValidationRow is one prediction. One that cannot be read or run has prediction 0 and error
/// -100 %, and says why. Several may be of one line of the file.
struct ValidationRow {
  std::string key;                    ///< "tp=8 pp=2 ...", from the profile's key columns
  std::string group;                  ///< "moe 26.06", from its group columns
  double predicted = 0;               ///< in the unit of the measured column
  double published = 0;               ///< 0 when its cell is no number above 0
  double error = 0;                   ///< predicted / published - 1
  bool oom = false;                   ///< a stage needs more memory than the device has
  int line = 0;                       ///< of the file; 0: each is a line of its own
  std::string metric{};               ///< MeasuredColumn::metric
  std::int64_t devices = 0;           ///< of the run; 0: not answered, or of training
  bool memory = false;                ///< of memory, scored apart from times
  bool apart = false;                 ///< scored in its group alone
  bool verdict = false;               ///< says nothing but whether the plan fits
  std::optional<bool> ran{};          ///< published: false had too little memory
  bool scored = true;                 ///< false: a parameter was fitted to this row
  std::string origin;                 ///< of the published figure: published-read, recalled ...
  std::string problem;                ///< why it was not read or did not run, else empty
  Causes causes{};                    ///< of its error
  bool rate = false;                  ///< more is faster
  std::optional<Range> interval80{};  ///< of what is measured; nothing without an error model
};

/// A MetricScore is over the errors of the figures of one metric.
struct MetricScore {
  std::size_t rows = 0;
  double mape = 0;
  double median = 0;
  double bias = 0;
};

/// A ValidationScore is over absolute errors of scored rows that have an answer; 0 when there are
/// none. It is of times and rates; of memory where there is nothing else.
struct ValidationScore {
  std::size_t rows = 0;      ///< errors that are counted
  std::size_t lines = 0;     ///< lines of the file with something to predict
  std::size_t answered = 0;  ///< of these, with every prediction
  double mape = 0;           ///< mean
  double bias = 0;           ///< mean of signed errors
  double median = 0;         ///< lower and upper middle averaged
  double p90 = 0;            ///< the least error that nine rows of ten do not exceed
  double worst = 0;
  std::optional<double> memory_mape{};  ///< mean of the errors of memory
  std::optional<double> oom_right{};    ///< share of lines whose verdict on memory is right
  std::map<std::string, MetricScore> metrics{};  ///< by ValidationRow::metric
  std::optional<double> covered{};  ///< share of times (else of memory) inside interval80
  std::optional<double> width{};    ///< median of (most - least) / 2 / predicted, of these
};
ValidationScore score_of(const std::vector<ValidationRow>& rows);

/// A RankingScore counts pairs of rows, and those that the predictions put in the measured order.
struct RankingScore {
  std::size_t pairs = 0;
  std::size_t right = 0;
};
/// A RegretScore is over groups of rows in each of which one is chosen (study/ranking.h).
struct RegretScore {
  std::size_t groups = 0;
  std::size_t broken = 0;  ///< whose choice breaks the limit as measured
  double loss = 0;         ///< mean share of the best measured rate that the others lack
};

struct ValidationResult {
  ValidationProfile profile;
  std::string csv;  ///< file of the rows
  std::string machine;
  std::vector<ValidationRow> rows;  ///< in file order; per row the measured columns in order
  ValidationScore score;
  std::map<std::string, ValidationScore> groups;  ///< by ValidationRow::group; none without groups
  std::map<std::string, RankingScore> ranking{};  ///< by Respect::name
  std::map<double, RegretScore> regret{};         ///< by limit

  /// Returns whether the goal is met, with an answer to every line.
  bool goal_met() const {
    return !profile.goal || (score.answered == score.lines && score.mape <= *profile.goal);
  }
};

/// Scores the rows: adds the 80 % intervals of all rows, and the scores of all and of each group.
ValidationResult scored(const ValidationProfile& profile, const std::string& csv,
                        const std::string& machine, std::vector<ValidationRow> rows);

struct ValidationOptions {
  std::vector<Setting> overrides;             ///< win over profile and rows
  std::optional<std::string> machine;         ///< instead of the profile's
  int threads = 0;                            ///< 0 = one per processor
  std::function<void(double)> progress = {};  ///< called now and then with the share done
  std::function<bool()> go_on = {};  ///< asked before each row; false: the rest is left out
};

/// A PublishedRun is what one row of a table ran: its model and plan, recompute_to_fit carried out.
struct PublishedRun {
  std::string key;
  int line = 0;         ///< of the file
  std::string machine;  ///< name
  zoo::Model model;
  plan::Plan plan;
  std::string problem;  ///< why the row was not read; then nothing of it counts
};
/// Returns the runs of the rows that measure a step (`memory`: memory), each once. Mistakes: as
/// validate().
Result<std::vector<PublishedRun>> published_runs(const ValidationProfile& profile,
                                                 const CsvTable& table,
                                                 const ValidationOptions& options = {},
                                                 bool memory = false);

/// Runs every row with run_step (memory measures: memory_footprint alone), rows in parallel, the
/// result independent of the number of threads. An empty measured cell gives no row; a cell that
/// does not parse or has no case fails its own row. Mistakes: columns that the profile asks for and
/// the table lacks (a measured column may be missing as long as one is there), settings of profile
/// and overrides, the machine's own.
Result<ValidationResult> validate(const ValidationProfile& profile, const CsvTable& table,
                                  const ValidationOptions& options = {});

}  // namespace orrery::study
