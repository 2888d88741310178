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
    json.key("places").objects(record.places, [&](const mpi_calls::Place& place) {
      json.key("line").value(place.line);
      json.key("column").value(place.column);
      json.key("whole").value(place.whole);
      json.key("text").value(place.text);
    });
  }
  json.end_object();
}

void declare_tallies(Fields& fields, std::string_view name, std::string_view sentence,
                     const std::vector<Tally>& tallies) {
  fields.list(name, {sentence, "one"}, tallies, [&](const Tally& tally) {
    fields.field("name", "of the function or group", tally.name);
    fields.field("truth", "calls of the programs", tally.truth);
    fields.field("predicted", "proposed calls", tally.predicted);
    fields.field("matched", "calls with a proposal of their name near enough", tally.matched);
    fields.field("precision", "matched / predicted", tally.precision());
    fields.field("recall", "matched / truth", tally.recall());
    fields.field("f1", "their harmonic mean", tally.f1());
  });
}

void declare_calls(Fields& fields, const Score& score) {
  fields.field("programs", "that count", score.programs);
  fields.field("location",
               "share of calls with a proposal within the tolerance, mean over programs",
               score.location);
  fields.field("function", "of those, with the same name", score.function);
  fields.field("args", "of those, equal arguments", score.args);
  fields.field("precision", "over all calls: located and of the right name / proposed",
               score.precision);
  fields.field("recall", "likewise / calls", score.recall);
  fields.field("f1", "their harmonic mean", score.f1);
  declare_tallies(fields, "groups", "sends, receives, collectives, other", score.groups);
  declare_tallies(fields, "functions", "by name", score.functions);
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
    json.key("programs").array(model.programs, [&](const Record& record) {
      write_record(json, record);
    });
    json.end_object();
  });
}

void declare(const Score& score, const ScoreOptions& options, Fields& fields) {
  fields.choice("mode", "how calls are matched", options.mode);
  fields.field("tolerance", "lines", options.tolerance);
  fields.nullable("calls", "most calls of a program; null: any",
                  options.calls > 0 ? std::optional(options.calls) : std::nullopt);
  fields.field("common_core", "only the eight commonest functions", options.common_core);
  declare_calls(fields, score);
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

void declare(const mpi_calls::Training& training, const Score& rules, const Score& learned,
             Fields& fields) {
  fields.field("programs", "learned from", training.model.programs.size());
  fields.field("threshold", "likeness from which on a gap counts as known",
               training.model.threshold);
  fields.object("rules", "what the rules score", [&] { declare_calls(fields, rules); });
  fields.object("learned", "what the model scores", [&] { declare_calls(fields, learned); });
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

void declare(const std::vector<CheckRow>& rows, Fields& fields) {
  fields.list("rows", {"a row per MPI and number of ranks", "one"}, rows, [&](const CheckRow& row) {
    fields.field("mpi", "openmpi or mpich", row.library);
    fields.field("ranks", "0: it was not run", row.ranks);
    fields.choice("result", "what became of it", row.result);
    fields.field("status", "exit status; 128 + signal", row.status);
    declare_timing(fields, row.wall.value());
    fields.field("output", "what it, the compiler or the shell said", row.output);
    fields.list("whereabouts", {"of a program that hung: where each rank was", "a rank"},
                row.whereabouts, [&](const mpi_calls::Whereabouts& where) {
                  fields.field("rank", "of the process", where.rank);
                  fields.field("function", "the last MPI call it entered; empty: none",
                               where.function);
                  fields.field("line", "of the program", where.line);
                  fields.field("inside", "it had not returned", where.inside);
                });
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
