// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "report/json_writer.h"
#include "report/validation.h"
#include "report/validation_metrics.h"

namespace orrery::report {
namespace {

void write_row(JsonWriter& json, const study::ValidationRow& row) {
  json.begin_object();
  json.key("key").value(row.key);
  json.key("line").value(row.line);
  json.key("metric").value(row.metric);
  json.key("predicted").value(row.predicted);
  json.key("published").value(row.published);
  json.key("error").value(row.error);
  json.key("oom").value(row.oom);
  json.key("scored").value(row.scored);
  json.key("origin").value(row.origin);
  json.key("problem").value(row.problem);
  json.key("memory").value(row.memory);
  json.key("kind").value(row.causes.kind);
  json.key("framework").value(row.causes.framework);
  json.key("coefficients").value(row.causes.origin);
  json.key("machine").value(row.causes.machine);
  json.key("rate").value(row.rate);
  if (row.interval80) {
    json.key("interval80").begin_array();
    json.value(row.interval80->least).value(row.interval80->most);
    json.end_array();
  }
  json.end_object();
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();  // null in JSON

void write_score(JsonWriter& json, const study::ValidationScore& score) {
  const auto known = [&](double value) { return score.rows > 0 ? value : kUnknown; };
  json.key("rows").value(score.lines);
  json.key("answered").value(score.answered);
  json.key("scored_rows").value(score.rows);
  json.key("mape").value(known(score.mape));
  json.key("bias").value(known(score.bias));
  json.key("median").value(known(score.median));
  json.key("p90").value(known(score.p90));
  json.key("worst").value(known(score.worst));
  json.key("covered").value(score.covered.value_or(kUnknown));
  json.key("interval80_width").value(score.width.value_or(kUnknown));
  json.key("memory_mape").value(score.memory_mape.value_or(kUnknown));
  json.key("oom_right").value(score.oom_right.value_or(kUnknown));
  write_metrics(json, score);
}

/// The rows without an answer, with the reason.
void write_unanswered(JsonWriter& json, const study::ValidationResult& result) {
  json.key("unanswered").array(result.rows, [&](const study::ValidationRow& row) {
    if (!row.problem.empty()) {
      json.begin_object();
      json.key("line").value(row.line);
      json.key("key").value(row.key);
      json.key("reason").value(row.problem);
      json.end_object();
    }
  });
}

void write_fields(JsonWriter& json, const study::ValidationResult& result, bool with_rows) {
  json.key("table").value(result.profile.table);
  json.key("title").value(result.profile.title);
  json.key("machine").value(result.machine);
  json.key("csv").value(result.csv);
  if (with_rows) {
    json.key("predictions").array(result.rows, [&](const study::ValidationRow& row) {
      write_row(json, row);
    });
    write_unanswered(json, result);
  }
  write_score(json, result.score);
  json.key("groups").begin_object();
  for (const auto& [group, score] : result.groups) {
    json.key(group).begin_object();
    write_score(json, score);
    json.end_object();
  }
  json.end_object();
  write_comparisons(json, result);
  if (result.profile.goal) {
    json.key("goal").value(*result.profile.goal);
    json.key("goal_met").value(result.goal_met());
  }
}

}  // namespace

std::string validation_json(const std::vector<study::ValidationResult>& results) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    if (results.size() == 1) {
      write_fields(json, results.front(), true);
    }
    json.key("tables").objects(results, [&](const study::ValidationResult& result) {
      write_fields(json, result, results.size() > 1);
    });
    json.end_object();
  });
}

}  // namespace orrery::report
