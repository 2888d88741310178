// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/lists.h"
#include "base/one_of.h"
#include "base/process.h"
#include "base/split.h"
#include "cli/commands.h"
#include "cli/export_mpi.h"
#include "cli/plan_flags.h"
#include "cli/step_flags.h"
#include "emit/listing.h"
#include "machine/device_groups.h"
#include "mpi_calls/align.h"
#include "mpi_calls/rules.h"
#include "report/mpi_calls.h"

namespace orrery::cli {
namespace {

constexpr const char* kMpiExamples =
    "Actions (docs/mpi_calls.md):\n"
    "  strip FILE.c|DIR                the program without its MPI calls, and the calls, as JSON\n"
    "  restore RECORD                  the program again\n"
    "  complete FILE|RECORD            proposes calls: by rules, --model, --plan or --command\n"
    "  train DIR --out MODEL           learns from a folder of programs, beside the rules\n"
    "  score TRUTH PREDICTION          how near proposed calls are to the program's\n"
    "  check FILE.c|RECORD             compiles and runs it with OpenMPI and MPICH\n"
    "Examples:\n"
    "  orrery mpi strip examples/mpi_calls/corpus/ring.c\n"
    "  orrery mpi strip examples/mpi_calls/corpus > truth.jsonl\n"
    "  orrery mpi train examples/mpi_calls/corpus --out model.json\n"
    "  orrery mpi complete truth.jsonl --model model.json > predicted.jsonl\n"
    "  orrery mpi complete listing-without.json --plan plan.yaml --model gpt2 --shrink 64\n"
    "  orrery mpi score truth.jsonl predicted.jsonl --tolerance 2 --json\n"
    "  orrery mpi check examples/mpi_calls/corpus/ring.c --ranks 2,4\n";

class Mpi : public Command {
 public:
  void declare(Options& options) override {
    options.positional("ACTION", action_, action_names());
    options.positionals("FILE", files_, "what the action reads");
    options.group("Complete and train");
    options.value("--model", model_, "FILE", "as train has written it; with --plan, its model");
    options.value("--plan", plan_, "NAME|FILE", "the code is that of this plan's program");
    options.value("--machine", machine_, "NAME|FILE", "of --plan, as for orrery export mpi");
    options.value("--shrink", shrink_, "INT", "of --plan, likewise");
    options.value("--command", command_, "COMMAND",
                  "a completer: code on its standard input, labels on its output");
    options.output("--out", out_, "FILE",
                   "of train: the model; of restore: the program, all bytes");
    options.group("Score");
    options.value("--tolerance", tolerance_, "LINES", "default 2");
    options.value("--calls", calls_, "INT", "only programs with at most so many calls");
    options.value("--compat", compat_, "mpirigen", "count as the published evaluator does");
    options.flag("--common-core", core_,
                 "only Init, Finalize, rank, size, Send, Recv, Reduce, Bcast");
    options.group("Check");
    options.value("--ranks", ranks_, "LIST", "numbers of ranks; default 2,4");
    options.value("--library", library_, "NAME", "openmpi or mpich; default both");
    options.value("--limit", limit_, "TIME", "after which a program is killed; default 20s");
    options.flag("--json", json_, "of score, train and check: print one JSON object");
    options.footer(kMpiExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const auto* const action = std::ranges::find(kActions, action_, &Action::name);
    if (action == kActions.end()) {
      mistakes.add(wrong_value("mpi", action_,
                               one_of(action_, mapped<std::string>(kActions, &Action::name))));
      return fail(std::move(mistakes));
    }
    if (files_.size() != action->files) {
      mistakes.add({"FILE", {}, {}, "mpi " + action_ + " reads " + std::string(action->reads)});
    }
    for (const auto& [flag, of] : {std::pair(GivenFlag("--model", model_), "complete"),
                                   {{"--command", command_}, "complete"},
                                   {{"--plan", plan_}, "complete"},
                                   {{"--machine", machine_}, "complete"},
                                   {{"--shrink", shrink_}, "complete"},
                                   {{"--tolerance", tolerance_}, "score"},
                                   {{"--calls", calls_}, "score"},
                                   {{"--compat", compat_}, "score"},
                                   {{"--common-core", core_}, "score"},
                                   {{"--ranks", ranks_}, "check"},
                                   {{"--library", library_}, "check"},
                                   {{"--limit", limit_}, "check"}}) {
      if (action_ != of) {
        refuse_given({flag}, std::string("goes with orrery mpi ") + of, mistakes);
      }
    }
    if (action_ != "train" && action_ != "restore") {
      refuse_given({{"--out", out_}}, "goes with orrery mpi train and restore", mistakes);
    }
    return (this->*action->run)(std::move(mistakes));
  }

  int status() const override { return status_; }

 private:
  using Records = std::vector<mpi_calls::Record>;

  Result<std::string> strip(Error mistakes) {
    const Records records = load(0, mpi_calls::RecordUse::code, mistakes);
    return or_mistakes(report::records_json(records), std::move(mistakes));
  }

  Result<std::string> restore(Error mistakes) {
    const Records records = load(0, mpi_calls::RecordUse::code, mistakes);
    if (mistakes.empty() && records.size() != 1) {
      mistakes.add({files_.front(), {}, std::to_string(records.size()), "one record"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const std::string program = mpi_calls::restore(records.front());
    if (!out_) {
      return program;
    }
    return write_file(*out_, program).map([] { return std::string(); });
  }

  Result<std::string> complete(Error mistakes) {
    Records records = load(0, mpi_calls::RecordUse::code, mistakes);
    if (plan_) {
      return complete_by_plan(std::move(records), std::move(mistakes));
    }
    refuse_given({{"--machine", machine_}, {"--shrink", shrink_}}, "goes with --plan", mistakes);
    std::optional<mpi_calls::Model> model;
    if (model_) {
      model = collect(mpi_calls::load_model(*model_), mistakes);
      refuse_given({{"--command", command_}}, "contradicts --model", mistakes);
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto completer = model ? std::make_unique<mpi_calls::Completer>(*model) : nullptr;
    for (mpi_calls::Record& record : records) {
      record.places.clear();
      if (command_) {
        const auto run = run_process({"/bin/sh", "-c", *command_}, {.input = record.code});
        if (!run || run->stopped || run->status != 0) {
          return fail(Error(Mistake{"--command", record.program, *command_,
                                    "a program that ends with status 0 within 20 s" +
                                        (run ? "; it says: " + run->errors : std::string())}));
        }
        record.mpi_labels = mpi_calls::labels_text(mpi_calls::parse_labels(run->output));
      } else {
        record.mpi_labels = mpi_calls::labels_text(
            completer ? completer->complete(record) : mpi_calls::complete_by_rules(record));
      }
    }
    return report::records_json(records);
  }

  /// Returns the calls of `orrery export mpi`'s listing of the plan, where the code is that
  /// listing's.
  Result<std::string> complete_by_plan(Records records, Error mistakes) {
    refuse_given({{"--command", command_}}, "contradicts --plan", mistakes);
    MpiExport what;
    if (!model_) {
      mistakes.add({"--model", {}, {}, "missing; a plan needs a model"});
    } else {
      what.model = load_named("--model", *model_, zoo::load_model, mistakes);
    }
    what.machine =
        load_named("--machine", machine_.value_or(kOrderMachine), machine::load_alike, mistakes);
    what.shrink = whole_number("--shrink", shrink_, 1, 1'000'000, mistakes);
    const plan::PlacedPlan placed = PlanFlags().placed_plan(mistakes, plan_, "--plan");
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    what.plan = plan::complete(placed, &what.model, &what.machine, 0);
    const auto made = planned_program(what);
    if (!made) {
      return fail(made.error());
    }
    const mpi_calls::Record whole =
        mpi_calls::strip("listing.c", emit::listing_of(made->program, made->description.title));
    for (mpi_calls::Record& record : records) {
      const std::vector<mpi_calls::Label> labels = mpi_calls::complete_like(whole, record);
      if (labels.empty()) {
        return fail(Error(Mistake{files_.front(),
                                  record.program,
                                  {},
                                  "code with at least half of the lines of the plan's listing.c"}));
      }
      record.mpi_labels = mpi_calls::labels_text(labels);
      record.places.clear();
    }
    return report::records_json(records);
  }

  Result<std::string> train(Error mistakes) {
    Records records = load(0, mpi_calls::RecordUse::code, mistakes);
    if (!out_) {
      mistakes.add({"--out", {}, {}, "missing; expected the file of the model"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const mpi_calls::Training training = mpi_calls::train_model(std::move(records));
    const Records& programs = training.model.programs;
    const auto learned = mpi_calls::score_records(programs, training.left_out, {});
    const auto rules =
        mpi_calls::score_records(programs, mpi_calls::predict_by_rules(programs), {});
    if (!learned || !rules) {
      return fail(learned ? rules.error() : learned.error());
    }
    if (auto written = write_file(*out_, report::model_json(training.model)); !written) {
      return fail(std::move(written.error()));
    }
    return json_ ? report::json_of(training, *rules, *learned)
                 : report::training_table(training, *rules, *learned);
  }

  Result<std::string> score(Error mistakes) {
    mpi_calls::ScoreOptions options{.common_core = core_};
    constexpr std::int64_t kMostLines = 1'000'000;
    if (tolerance_) {
      const auto lines = parse_value<std::int64_t>(*tolerance_);
      options.tolerance = lines.value_or(0);
      if (!lines || *lines < 0 || *lines > kMostLines) {
        mistakes.add(wrong_value("--tolerance", *tolerance_,
                                 lines ? fmt::format("0 to {}", kMostLines) : lines.error()));
      }
    }
    options.calls = whole_number("--calls", calls_, 0, kMostLines, mistakes);
    take("--compat", compat_, options.mode, mistakes);
    const Records truth = load(0, mpi_calls::RecordUse::truth, mistakes);
    const Records predicted = load(1, mpi_calls::RecordUse::prediction, mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return mpi_calls::score_records(truth, predicted, options)
        .map([&](const mpi_calls::Score& score) {
          return json_ ? report::json_of(score, options) : report::score_table(score, options);
        });
  }

  Result<std::string> check(Error mistakes) {
    mpi_calls::CheckOptions options;
    if (library_) {
      options.libraries = {*library_};
    }
    read_ranks(options, mistakes);
    take("--limit", limit_, options.limit, mistakes);
    if (limit_ && !(options.limit.value() > 0 && options.limit.value() <= 3600)) {
      mistakes.add(wrong_value("--limit", *limit_, "more than 0 and at most an hour"));
    }
    const Records records = load(0, mpi_calls::RecordUse::code, mistakes);
    if (mistakes.empty() && records.size() != 1) {
      mistakes.add({files_.front(), {}, std::to_string(records.size()), "one program"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto rows = mpi_calls::check_program(mpi_calls::restore(records.front()), options);
    if (!rows) {
      return fail(library_ ? of_flag("--library", *library_, rows.error()) : rows.error());
    }
    status_ = std::ranges::all_of(*rows,
                                  [](const mpi_calls::CheckRow& row) {
                                    return row.result == mpi_calls::CheckResult::passed;
                                  })
                  ? 0
                  : 1;
    return json_ ? report::json_of(*rows) : report::check_table(*rows);
  }

  void read_ranks(mpi_calls::CheckOptions& options, Error& mistakes) const {
    if (!ranks_) {
      return;
    }
    options.ranks.clear();
    for (const std::string_view word : split_at(*ranks_, ',')) {
      const auto ranks = parse_value<std::int64_t>(word);
      if (!ranks || *ranks < 1 || *ranks > 64) {
        mistakes.add(wrong_value("--ranks", *ranks_, "numbers from 1 to 64, as in 2,4"));
        return;
      }
      options.ranks.push_back(*ranks);
    }
  }

  Records load(std::size_t number, mpi_calls::RecordUse use, Error& mistakes) const {
    return number < files_.size() ? collect(mpi_calls::load_records(files_[number], use), mistakes)
                                  : Records();
  }

  struct Action {
    std::string_view name;
    std::size_t files;
    std::string_view reads;
    Result<std::string> (Mpi::*run)(Error mistakes);
  };
  static const std::array<Action, 6> kActions;
  static std::string action_names() { return joined(kActions, ", ", &Action::name); }

  std::string action_;
  std::vector<std::string> files_;
  std::optional<std::string> model_;
  std::optional<std::string> command_;
  std::optional<std::string> plan_;
  std::optional<std::string> machine_;
  std::optional<std::string> shrink_;
  std::optional<std::string> out_;
  std::optional<std::string> tolerance_;
  std::optional<std::string> calls_;
  std::optional<std::string> compat_;
  std::optional<std::string> ranks_;
  std::optional<std::string> library_;
  std::optional<std::string> limit_;
  bool core_ = false;
  bool json_ = false;
  int status_ = 0;
};

const std::array<Mpi::Action, 6> Mpi::kActions{{
    {"strip", 1, "a C file or a folder of them", &Mpi::strip},
    {"restore", 1, "one record", &Mpi::restore},
    {"complete", 1, "a C file, a folder of them or records", &Mpi::complete},
    {"train", 1, "a folder of C files, or records", &Mpi::train},
    {"score", 2, "two files of records: the truth and the prediction", &Mpi::score},
    {"check", 1, "a C file or one record", &Mpi::check},
}};

}  // namespace

std::unique_ptr<Command> make_mpi() {
  return std::make_unique<Mpi>();
}

}  // namespace orrery::cli
