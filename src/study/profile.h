// SPDX-License-Identifier: Apache-2.0
/// Says how a table of published results is run: configs/validation/NAME.yaml.
///
///   kind                      training (default), serving or serving_requests
///   table, title, source      what is compared, and where it was published
///   machine                   name of a shipped machine or a path
///   csv                       file of rows beside the profile
///   key                       columns that name a row
///   plan: {field: value}      the software profile: the same for all rows
///   why: {field: reason}      source or reason of every choice in `plan` and of the machine
///   columns: {field: column}  fields of shape and plan that each row states; of serving an empty
///                             cell states nothing, and "a|b" is the first of these that does
///   cases: {column: {text: {field: value}}}   fields that follow from a text in a column; text "*"
///                             is any other, as value "*" the cell's; text "" also a missing column
///   flags                     column of command-line flags ("--tp 8 --recompute full"): fields
///   join: {file, on, scale}   columns that the rows lack are those of another file's first row
///                             whose texts agree: `on` lists of columns ("release=layout_of" where
///                             names differ), the first list that has such a row counts; `scale:
///                             {column: by}` has the column grow with `by`
///   measured: [{column, measure, label, plan: {field: value}}]   a prediction per row and entry;
///                             `measures: {text: measure}` chooses by the text in column `by`;
///                             entries that are `apart` are scored in a group of their label alone;
///                             those of one `metric` are scored together as well, by `goal` (mean)
///                             and `median_goal`
///   outcome: {column, ok}     texts that begin with `ok` ran, others had too little memory, and
///                             bytes that they state are not scored; without a column every row ran
///   only: {column: value}     rows of the file that belong to this table; all when empty
///   apart: {column: text}     rows with one of these texts are scored in their groups alone
///   unanswerable: {column: {text: reason}}   rows that say too little to be run: named with the
///                             reason, not answered
///   agreement: {column, product, scale, within}   rows whose column differs from scale x the
///                             product of others by more than the factor `within` are not answered
///   ranking: {metric, same, by: {name: columns}}   pairs of rows that agree in the columns `same`
///                             and in all of `by` but one name's (study/ranking.h)
///   regret: {metric, ttft, limits, within, seats, tokens}   what a choice by prediction under a
///                             limit of the metric loses (study/ranking.h)
///   long                      true: run by name or for the page, not with all tables
///   group                     columns by whose texts rows are scored in groups as well
///   fitted: {column: value}   rows to which a parameter was fitted: shown, not scored
///   goal                      largest mean absolute error, as a share; none = reported only
///   notes                     text for the report: what the worst rows have in common
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "base/names.h"
#include "base/result.h"
#include "study/settings.h"

namespace orrery::study {

/// A Measure says what a measured column holds.
enum class Measure : std::uint8_t {
  step_s,
  step_ms,
  tflops_with_recompute,
  model_tflops,
  tokens_per_device,
  mfu_percent,
  state_gib,
  activation_gib,
  activation_percent,
  device_tflops,
  allocated_gib,
  allocated_gb,
  reserved_gib,
  driver_gib,
  ttft_s,
  ttft_ms,
  tpot_ms,
  latency_s,
  latency_ms,
  output_tokens_per_s,
  total_tokens_per_s,
  steady_tokens_per_s,
  duration_s,
  itl_median_ms,
  itl_p90_ms,
  itl_p99_ms,
  ttft_median_ms,
  ttft_p99_ms,
  tpot_median_ms,
  tpot_p99_ms,
  power_w,
  j_per_token,
  kv_tokens,
  kv_gib,
  weights_gib
};
constexpr auto named_values(Measure) {
  return std::to_array<Named<Measure>>({
      {Measure::step_s, "step_s", "time of a training step in seconds"},
      {Measure::step_ms, "step_ms", "time of a training step in milliseconds"},
      {Measure::tflops_with_recompute, "tflops_with_recompute",
       "96 B S L H^2 (1 + S/(6H) + V/(16LH)) / devices / step time in TFLOP/s (SC'21, eq. 3)"},
      {Measure::model_tflops, "model_tflops",
       "72 B S L H^2 (1 + S/(6H) + V/(12LH)) / devices / step time in TFLOP/s"},
      {Measure::tokens_per_device, "tokens_per_device", "tokens per second and device"},
      {Measure::mfu_percent, "mfu_percent",
       "model FLOPs (72 B S L H^2 ... of a GPT) / devices / step time / peak of the GEMMs' type in "
       "%"},
      {Measure::state_gib, "state_gib",
       "parameters, gradients and optimizer of the stage that has least (only layers), GiB"},
      {Measure::activation_gib, "activation_gib", "activations of the first stage, GiB"},
      {Measure::activation_percent, "activation_percent",
       "the same in percent of no recompute and no sequence parallelism"},
      {Measure::device_tflops, "device_tflops",
       "model FLOPs (full S^2, logits) / devices / step time in TFLOP/s"},
      {Measure::allocated_gib, "allocated_gib",
       "most of a device that tensors take: max_memory_allocated of PyTorch, GiB"},
      {Measure::allocated_gb, "allocated_gb", "the same in GB"},
      {Measure::reserved_gib, "reserved_gib",
       "most that the allocator holds: max_memory_reserved of PyTorch, GiB"},
      {Measure::driver_gib, "driver_gib", "most that the driver shows as used, GiB"},
      {Measure::ttft_s, "ttft_s", "serving: mean time to the first token in seconds"},
      {Measure::ttft_ms, "ttft_ms", "serving: the same in milliseconds"},
      {Measure::tpot_ms, "tpot_ms", "serving: mean time per further token of a request, ms"},
      {Measure::latency_s, "latency_s", "serving: mean time to the last token in seconds"},
      {Measure::latency_ms, "latency_ms", "serving: the same in milliseconds"},
      {Measure::output_tokens_per_s, "output_tokens_per_s",
       "serving: generated tokens per second of the whole run"},
      {Measure::total_tokens_per_s, "total_tokens_per_s",
       "serving: tokens of prompts and answers per second of the whole run"},
      {Measure::steady_tokens_per_s, "steady_tokens_per_s",
       "serving: generated tokens per second while the client has as many requests out as it may"},
      {Measure::duration_s, "duration_s", "serving: first request sent to last token, seconds"},
      {Measure::itl_median_ms, "itl_median_ms", "serving: median time between tokens, ms"},
      {Measure::itl_p90_ms, "itl_p90_ms", "serving: 90th percentile of it"},
      {Measure::itl_p99_ms, "itl_p99_ms", "serving: 99th percentile of it"},
      {Measure::ttft_median_ms, "ttft_median_ms", "serving: median time to the first token, ms"},
      {Measure::ttft_p99_ms, "ttft_p99_ms", "serving: 99th percentile of it"},
      {Measure::tpot_median_ms, "tpot_median_ms", "serving: median time per further token, ms"},
      {Measure::tpot_p99_ms, "tpot_p99_ms", "serving: 99th percentile of it"},
      {Measure::power_w, "power_w", "mean power of all devices, watts"},
      {Measure::j_per_token, "j_per_token",
       "serving: power over the steady rate of generated tokens, joules"},
      {Measure::kv_tokens, "kv_tokens", "serving: tokens that the KV cache of an engine holds"},
      {Measure::kv_gib, "kv_gib", "serving: memory of a device for keys and values, GiB"},
      {Measure::weights_gib, "weights_gib", "serving: weights of a device, GiB"},
  });
}

/// Returns whether a measure is one of memory, whose errors are scored apart from those of times.
constexpr bool is_memory(Measure measure) {
  return measure == Measure::allocated_gib || measure == Measure::allocated_gb ||
         measure == Measure::reserved_gib || measure == Measure::driver_gib;
}

/// Returns whether more of a measure is faster.
constexpr bool is_rate(Measure measure) {
  return measure == Measure::tflops_with_recompute || measure == Measure::model_tflops ||
         measure == Measure::tokens_per_device || measure == Measure::mfu_percent ||
         measure == Measure::device_tflops || measure == Measure::output_tokens_per_s;
}

struct MeasuredColumn {
  std::string column;
  Measure measure = Measure::step_s;
  std::string label;              ///< added to the row's key; empty when there is one column only
  std::vector<Setting> settings;  ///< of this column's runs
  std::string by{};               ///< column whose text chooses the measure; "" = `measure`
  std::vector<std::pair<std::string, Measure>> measures{};  ///< by that text
  bool apart = false;                                       ///< scored under its label alone
  std::string metric{};                 ///< scored with all of this name; "" = none
  std::optional<double> goal{};         ///< largest mean absolute error of the metric, as a share
  std::optional<double> median_goal{};  ///< largest median of them

  /// Returns the measure of a row with this text in column `by`; nothing: none has the text.
  std::optional<Measure> measure_of(std::string_view text) const;
  /// Returns the texts that choose a measure, for messages.
  std::string known_texts() const;
};
/// Outcome says which rows ran and which had too little memory.
struct Outcome {
  std::string column;  ///< "" = every row ran
  std::string ok;      ///< beginning of the texts of rows that ran
};
/// Join names a file whose rows complete those of a table.
struct Join {
  std::string file;                                        ///< path
  std::vector<std::vector<std::string>> on;                ///< "column", or "theirs=ours"
  std::vector<std::pair<std::string, std::string>> scale;  ///< column, the one it grows with
};

/// Fields that follow from the text in a column, or from those in several: "a/b". A text with
/// "*" or "?" in it stands for all that match it as a file name's pattern ("[6-9]??"); exact texts
/// come first.
struct CaseColumn {
  struct Value {
    std::string text;
    std::vector<Setting> settings;
  };
  std::string column;
  std::vector<Value> values;

  std::vector<std::string> columns() const;  ///< {"a", "b"} of "a/b"
  /// Returns the case's settings; nothing: none has the text, or the texts joined as the columns
  /// are.
  std::optional<std::vector<Setting>> settings_of(std::string_view text) const;
};

/// Says how the rows of a table are run.
enum class TableKind : std::uint8_t { training, serving, serving_requests };
constexpr auto named_values(TableKind) {
  return std::to_array<Named<TableKind>>({
      {TableKind::training, "training", "a training step per row (fields of shape and plan)"},
      {TableKind::serving, "serving", "an engine serving requests per row (served/table.h)"},
      {TableKind::serving_requests, "serving_requests",
       "a request per row, runs told apart by the key: statistics of each run"},
  });
}

struct ColumnText {
  std::string column;
  std::string text;
};
/// Unanswerable names rows that say too little to be run.
struct Unanswerable {
  std::string column;
  std::string text;
  std::string reason;
};
/// Columns that tell rows apart in one respect ("layout").
struct Respect {
  std::string name;
  std::vector<std::string> columns;
};
/// Ranking says which pairs of rows are compared.
struct Ranking {
  std::string metric;
  std::vector<std::string> same;
  std::vector<Respect> by;
};
/// Regret says among which rows a choice is made, and what limits it.
struct Regret {
  std::string metric;               ///< limited, in its column's unit
  double spare = 0;                 ///< share of a limit that a choice by prediction leaves free
  std::string ttft;                 ///< metric of the time to the first token, in the same unit
  std::vector<double> limits;       ///< of the metric
  std::vector<std::string> within;  ///< rows that agree in these are one group
  std::string seats;                ///< column of requests at once
  std::string tokens;               ///< column of an answer's tokens
};
/// Agreement says which rows tell the same in two ways: `column` and scale x the product of
/// `product` differ by at most this factor.
struct Agreement {
  std::string column;
  std::vector<std::string> product;
  double scale = 1;
  double within = 1;
};
struct Reason {
  std::string field;
  std::string text;
};

struct ValidationProfile {
  std::string file;  ///< where it was read
  TableKind kind = TableKind::training;
  std::string table;
  std::string title;
  std::string source;
  std::string machine;
  std::string csv;  ///< path
  std::vector<std::string> key;
  std::vector<Setting> plan;
  std::vector<Reason> why;
  std::vector<Setting> columns;  ///< value = column
  std::vector<CaseColumn> cases;
  std::vector<MeasuredColumn> measured;
  std::string flags{};               ///< column; "" = none
  std::optional<Outcome> outcome{};  ///< nothing: verdicts on memory are not scored
  std::optional<Join> join{};
  std::vector<ColumnText> only;    ///< all must match
  std::vector<ColumnText> fitted;  ///< all must match
  std::vector<std::string> group;
  std::optional<double> goal;
  std::string notes;
  std::vector<ColumnText> apart{};  ///< one of them matches
  std::vector<Unanswerable> unanswerable{};
  std::optional<Agreement> agreement{};  ///< of the rows that are answered
  std::optional<Ranking> ranking{};
  std::optional<Regret> regret{};
  bool is_long = false;  ///< run by name alone
};

/// Mistakes, beside types and unknown fields: fields that neither shape nor plan (of serving: what
/// served/table.h lists) has, a choice in
/// `plan` without a reason in `why`, nothing measured, a goal outside (0, 1].
Result<ValidationProfile> parse_profile(const ConfigNode& node);
/// A shipped name ("megatron_sc21_table1") or a path.
Result<ValidationProfile> load_profile(const std::string& name_or_path);

}  // namespace orrery::study
