// SPDX-License-Identifier: Apache-2.0
#include "report/mpi_calls.h"

#include <fmt/format.h>

#include "report/json_writer.h"
#include "report/timing.h"

namespace orrery::report {
namespace {

using mpi_calls::CheckRow;
using mpi_calls::Record;
using mpi_calls::Score;
using mpi_calls::ScoreOptions;
using mpi_calls::Tally;

void write_record(JsonWriter& json, const Record& record) {
  json.begin_object();
  json.key("program").value(record.program);
  json.key("code").value(record.code);
  json.key("mpi_labels").value(record.mpi_labels);
  if (!record.places.empty()) {
    json.key("places").begin_array();
    for (const mpi_calls::Place& place : record.places) {
      json.begin_object();
      json.key("line").value(place.line);
      json.key("column").value(place.column);
      json.key("whole").value(place.whole);
      json.key("text").value(place.text);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

void write_tallies(JsonWriter& json, std::string_view key, const std::vector<Tally>& tallies) {
  json.key(key).begin_array();
  for (const Tally& tally : tallies) {
    json.begin_object();
    json.key("name").value(tally.name);
    json.key("truth").value(tally.truth);
    json.key("predicted").value(tally.predicted);
    json.key("matched").value(tally.matched);
    json.key("precision").value(tally.precision());
    json.key("recall").value(tally.recall());
    json.key("f1").value(tally.f1());
    json.end_object();
  }
  json.end_array();
}

void write_call_score(JsonWriter& json, const Score& score) {
  json.key("programs").value(score.programs);
  json.key("location").value(score.location);
  json.key("function").value(score.function);
  json.key("args").value(score.args);
  json.key("precision").value(score.precision);
  json.key("recall").value(score.recall);
  json.key("f1").value(score.f1);
  write_tallies(json, "groups", score.groups);
  write_tallies(json, "functions", score.functions);
}

std::string tally_row(const Tally& tally) {
  return fmt::format("  {:<24}{:>7}{:>11}{:>9}{:>11.3f}{:>8.3f}{:>8.3f}\n", tally.name, tally.truth,
                     tally.predicted, tally.matched, tally.precision(), tally.recall(), tally.f1());
}

std::string tally_header() {
  return fmt::format("  {:<24}{:>7}{:>11}{:>9}{:>11}{:>8}{:>8}\n", "", "calls", "predicted",
                     "matched", "precision", "recall", "F1");
}

std::string result_line(const CheckRow& row) {
  const std::string ranks = row.ranks == 0 ? "" : fmt::format(" on {} ranks", row.ranks);
  std::string line = fmt::format("{}{}: {}", row.library, ranks, name_of(row.result));
  if (row.result == mpi_calls::CheckResult::failed) {
    line += fmt::format(" with status {}", row.status);
  }
  return row.ranks == 0 ? line + "\n" : line + fmt::format(", {:.1f} s\n", row.wall.value());
}

}  // namespace

std::string records_json(const std::vector<Record>& records) {
  std::string text;
  for (const Record& record : records) {
    JsonWriter json([&](std::string_view part) { text += part; });
    write_record(json, record);
    json.flush();
    text += "\n";
  }
  return text;
}

std::string model_json(const mpi_calls::Model& model) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("kind").value("orrery mpi model");
    json.key("threshold").value(model.threshold);
    json.key("programs").begin_array();
    for (const Record& record : model.programs) {
      write_record(json, record);
    }
    json.end_array();
    json.end_object();
  });
}

std::string score_json(const Score& score, const ScoreOptions& options) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("mode").value(name_of(options.mode));
    json.key("tolerance").value(options.tolerance);
    json.key("calls");
    options.calls > 0 ? json.value(options.calls) : json.number_text("null");
    json.key("common_core").value(options.common_core);
    write_call_score(json, score);
    json.end_object();
  });
}

std::string score_table(const Score& score, const ScoreOptions& options) {
  std::string text = fmt::format(
      "{} programs{}, tolerance {} lines, {}{}\nLocation {:.3f}   function {:.3f}   args {:.3f}   "
      "(means over programs)\nPrecision {:.3f}  recall {:.3f}  F1 {:.3f}   (calls of the right "
      "name "
      "near enough)\n\n",
      score.programs, options.calls > 0 ? fmt::format(" of at most {} calls", options.calls) : "",
      options.tolerance, name_of(options.mode), options.common_core ? ", common core" : "",
      score.location, score.function, score.args, score.precision, score.recall, score.f1);
  text += tally_header();
  for (const auto* const tallies : {&score.groups, &score.functions}) {
    for (const Tally& tally : *tallies) {
      text += tally_row(tally);
    }
  }
  return text;
}

std::string training_json(const mpi_calls::Training& training, const Score& rules,
                          const Score& learned) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("programs").value(training.model.programs.size());
    json.key("threshold").value(training.model.threshold);
    for (const auto& [key, score] : {std::pair("rules", &rules), std::pair("learned", &learned)}) {
      json.key(key).begin_object();
      write_call_score(json, *score);
      json.end_object();
    }
    json.end_object();
  });
}

std::string training_table(const mpi_calls::Training& training, const Score& rules,
                           const Score& learned) {
  std::string text = fmt::format(
      "{} programs; a gap counts as known from a likeness of {:.2f} on\nEach program from the "
      "others, tolerance 2 lines, strict\n\n  {:<12}{:>10}{:>10}{:>8}{:>11}{:>8}{:>8}{:>8}{:>10}"
      "{:>13}\n",
      training.model.programs.size(), training.model.threshold, "", "location", "function", "args",
      "precision", "recall", "F1", "sends", "receives", "collectives");
  for (const auto& [name, score] : {std::pair("rules", &rules), std::pair("learned", &learned)}) {
    text += fmt::format("  {:<12}{:>10.3f}{:>10.3f}{:>8.3f}{:>11.3f}{:>8.3f}{:>8.3f}", name,
                        score->location, score->function, score->args, score->precision,
                        score->recall, score->f1);
    text += fmt::format("{:>8.3f}{:>10.3f}{:>13.3f}\n", score->groups[0].f1(),
                        score->groups[1].f1(), score->groups[2].f1());
  }
  return text;
}

std::string check_json(const std::vector<CheckRow>& rows) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("rows").begin_array();
    for (const CheckRow& row : rows) {
      json.begin_object();
      json.key("mpi").value(row.library);
      json.key("ranks").value(row.ranks);
      json.key("result").value(name_of(row.result));
      json.key("status").value(row.status);
      write_timing(json, row.wall.value());
      json.key("output").value(row.output);
      json.key("whereabouts").begin_array();
      for (const mpi_calls::Whereabouts& where : row.whereabouts) {
        json.begin_object();
        json.key("rank").value(where.rank);
        json.key("function").value(where.function);
        json.key("line").value(where.line);
        json.key("inside").value(where.inside);
        json.end_object();
      }
      json.end_array();
      json.end_object();
    }
    json.end_array();
    json.end_object();
  });
}

std::string check_table(const std::vector<CheckRow>& rows) {
  std::string text;
  for (const CheckRow& row : rows) {
    text += result_line(row);
    for (const mpi_calls::Whereabouts& where : row.whereabouts) {
      text +=
          where.function.empty()
              ? fmt::format("  rank {} has called nothing of MPI\n", where.rank)
              : fmt::format("  rank {} {} {} of line {}\n", where.rank,
                            where.inside ? "is in" : "goes on behind", where.function, where.line);
    }
    if (row.result != mpi_calls::CheckResult::passed && !row.output.empty()) {
      text += row.output + (row.output.ends_with('\n') ? "" : "\n");
    }
  }
  return text;
}

}  // namespace orrery::report
