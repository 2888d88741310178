// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/rows_output.h"
#include "cli/step_flags.h"
#include "study/sweep/pool.h"
#include "study/sweep/run_sweep.h"
#include "study/sweep/slurm.h"

namespace orrery::cli {
namespace {

constexpr std::int64_t kMostTasks = 100'000;

constexpr const char* kSweepExamples =
    "A study (docs/sweep.md):\n"
    "  kind: simulate                          or collective, plan, serve, astra, fusion, ...\n"
    "  model: llama-3-8b\n"
    "  machine: dgx-h100\n"
    "  plan: {global_batch: 64}\n"
    "  vary:\n"
    "    plan.tp: [1, 2, 4, 8]\n"
    "    machine.network.infiniband.bandwidth: {from: 100 Gbit/s, to: 800 Gbit/s, factor: 2}\n"
    "What is in the store is not run again: a sweep that was stopped goes on where it was.\n"
    "Examples:\n"
    "  orrery sweep study.yaml --store study.db --csv study.csv\n"
    "  orrery sweep study.yaml --store study.db --plot plan.tp,step_time_s --out tp.svg\n"
    "  orrery sweep study.yaml --store capped.db --power-cap 500W\n"
    "  orrery sweep study.yaml --store part3.db --shard 3/8\n"
    "  orrery sweep --merge part0.db part1.db --store study.db\n"
    "  mpirun -np 4 orrery sweep study.yaml --store study.db --mpi\n"
    "  orrery sweep study.yaml --store study.db --slurm 16 --slurm-options '--time=1:00:00'\n"
    "  orrery query study.db\n";

class Sweep : public Command {
 public:
  void declare(Options& options) override {
    options.positionals("STUDY", files_, "the study; with --merge the stores");
    options.output("--store", store_, "FILE.db", "the results: made, or gone on with");
    cap_.declare(options);
    options.value("--threads", threads_, "INT", "default: one per processor, with --mpi one");
    options.value("--shard", shard_, "K/N", "only every N-th point from number K (0 to N-1) on");
    options.value("--limit", limit_, "INT", "run at most so many points now");
    options.flag("--merge", merge_, "make one store of several of the same study");
    options.flag("--mpi", mpi_,
                 "one of many processes under mpirun or srun, which share the points");
    options.value("--slurm", slurm_, "TASKS", "write a job array of so many tasks and submit it");
    options.value("--slurm-options", slurm_options_, "TEXT", "options of sbatch, on one line");
    options.output("--csv", csv_, "FILE", "write the rows as comma-separated values");
    html_.declare(options);
    options.flag("--json", json_, "print the rows as one JSON object");
    plot_.declare(options);
    options.footer(kSweepExamples);
  }

  bool ends_early() const override { return true; }
  Result<std::string> run(Error mistakes) override {
    how_.version = ORRERY_VERSION;
    how_.threads = thread_count(threads_, 0, mistakes);
    how_.limit = static_cast<std::size_t>(whole_number("--limit", limit_, 0, INT64_MAX, mistakes));
    read_shard(mistakes);
    check(mistakes);
    plot_.check(mistakes);
    if (merge_) {
      return merge(std::move(mistakes));
    }
    sweep::Study study;
    if (files_.size() == 1) {
      study = collect(sweep::load_study(files_.front(), fixed_fields()), mistakes);
    } else {
      mistakes.add({"sweep",
                    {},
                    {},
                    files_.empty() ? "which study? a YAML file"
                                   : "one study; several files are for --merge"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const std::string store = store_.value_or("");
    if (slurm_) {
      return write_job(store);
    }
    return mpi_ ? run_rank(study, store) : run_here(study, store);
  }

 private:
  /// Returns what flags say of every point, by dotted name.
  sweep::FixedFields fixed_fields() const {
    return cap_.given() ? sweep::FixedFields{{"machine.device.power_cap", cap_.text()}}
                        : sweep::FixedFields{};
  }

  void read_shard(Error& mistakes) {
    const auto shard = shard_ ? sweep::parse_shard(*shard_) : std::optional(sweep::Shard());
    if (!shard) {
      mistakes.add(
          wrong_value("--shard", shard_.value_or(""), "K/N with K from 0 to N-1, such as 3/8"));
    }
    how_.shard = shard.value_or(sweep::Shard());
  }

  /// Options that contradict each other.
  void check(Error& mistakes) const {
    const std::vector<std::pair<const char*, bool>> modes{
        {"--merge", merge_}, {"--mpi", mpi_}, {"--slurm", slurm_.has_value()}};
    const char* mode = nullptr;
    for (const auto& [name, given] : modes) {
      if (given && mode != nullptr) {
        mistakes.add({name, {}, {}, std::string("contradicts ") + mode + "; choose one"});
      }
      mode = given ? name : mode;
    }
    for (const auto& [name, given] :
         {std::pair("--shard", shard_.has_value()), std::pair("--limit", limit_.has_value()),
          std::pair("--threads", threads_ && merge_)}) {
      if (mode != nullptr && given) {
        mistakes.add({name, {}, {}, std::string("contradicts ") + mode});
      }
    }
    if (slurm_options_ && !slurm_) {
      mistakes.add({"--slurm-options", {}, {}, "goes with --slurm TASKS"});
    }
    if (slurm_options_ && slurm_options_->find('\n') != std::string::npos) {
      mistakes.add(wrong_value("--slurm-options", *slurm_options_, "one line"));
    }
    Error ignored;
    whole_number("--slurm", slurm_, 1, kMostTasks, slurm_ ? mistakes : ignored);
    if (slurm_ && (csv_ || json_ || html_.given() || plot_.given())) {
      mistakes.add({"--slurm", {}, {}, "only submits: there are no rows to write yet"});
    }
    if (mpi_ && !sweep::rank_of_process()) {
      mistakes.add({"--mpi", {}, {}, "is for processes that mpirun or srun has started"});
    }
    if (!store_ || store_->empty()) {
      mistakes.add({"--store", {}, {}, "missing; expected the file of the results"});
    }
  }

  Result<std::string> merge(Error mistakes) {
    // A pattern such as s.db.shard* also has what a killed process left beside its store.
    std::erase_if(files_, [](const std::string& file) {
      return file.ends_with("-wal") || file.ends_with("-shm") || file.ends_with("-journal");
    });
    if (files_.empty()) {
      mistakes.add({"--merge", {}, {}, "of which stores?"});
    }
    for (const std::string& file : files_) {
      std::error_code none;
      if (store_ && std::filesystem::equivalent(file, *store_, none)) {
        mistakes.add(wrong_value("--merge", file, "another file than --store"));
      }
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const std::string into = store_.value_or("");
    return sweep::merge_stores(files_, into).and_then([&](const sweep::StoreHead& head) {
      return sweep::Store::open(into, head).and_then([&](sweep::Store store) {
        return write(store, fmt::format("{} stores merged, ", files_.size()), head.points);
      });
    });
  }

  Result<std::string> run_here(const sweep::Study& study, const std::string& file) {
    how_.go_on = Interrupt::going_on;
    auto store = sweep::Store::open(file, sweep::head_of(study, how_.version));
    if (!store) {
      return fail(std::move(store.error()));
    }
    const auto count = [&] {
      ProgressBar bar("sweeping");
      how_.progress = [&](double share) { bar.update(share); };
      return sweep::run_sweep(study, *store, how_);
    }();
    if (!count) {
      return fail(count.error());
    }
    return write(*store, fmt::format("{} points run, {} known, ", count->run, count->known),
                 study.space.count);
  }

  Result<std::string> run_rank(const sweep::Study& study, const std::string& file) {
    const int rank = sweep::rank_of_process().value_or(0);
    const auto result = [&] {
      ProgressBar bar("sweeping");
      if (rank == 0) {
        how_.progress = [&](double share) { bar.update(share); };
      }
      return sweep::run_pool(study, file, rank, how_);
    }();
    if (!result) {
      return fail(result.error());
    }
    if (!result->merged) {
      return std::string();  // the last of the pool speaks for all
    }
    if (result->missing > 0) {
      return fail(Error(Mistake{
          file, {}, {}, fmt::format("{} points are missing; run it again", result->missing)}));
    }
    return sweep::Store::open(file, sweep::head_of(study, how_.version))
        .and_then([&](sweep::Store store) {
          return write(store, "stores of all processes merged, ", study.space.count);
        });
  }

  Result<std::string> write_job(const std::string& store) const {
    Error none;
    sweep::SlurmJob job;
    std::error_code ignored;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    job.program = ignored ? "orrery" : self.string();
    // Tasks may run in another folder (--chdir).
    job.study = std::filesystem::absolute(files_.front(), ignored).string();
    job.store = std::filesystem::absolute(store, ignored).string();
    job.tasks = static_cast<std::size_t>(whole_number("--slurm", slurm_, 1, kMostTasks, none));
    job.threads = threads_.value_or("");
    job.options = slurm_options_.value_or("");
    const std::string script = store + ".sbatch";
    if (auto written = write_file(script, sweep::slurm_script(job)); !written) {
      return fail(std::move(written.error()));
    }
    return sweep::submit(script).map([&](const std::string& answer) {
      return fmt::format(
          "{}\n{}Once its tasks are done:\n  {}\n", script,
          answer.empty() ? "No sbatch here: sbatch " + script + " submits it.\n" : answer,
          sweep::merge_command(job));
    });
  }

  /// Writes what is asked for, of the store's rows.
  Result<std::string> write(sweep::Store& store, const std::string& what,
                            std::size_t points) const {
    const auto rows = store.rows();
    if (!rows) {
      return fail(rows.error());
    }
    if (auto ok = store.finish(); !ok) {
      return fail(std::move(ok.error()));
    }
    if (csv_) {
      keep(write_file(*csv_, rows_csv(*rows)));
    }
    if (plot_.given()) {
      if (auto written = plot_.write(*rows); !written) {
        return fail(std::move(written.error()));
      }
    }
    const auto refused = std::count_if(rows->rows.begin(), rows->rows.end(), [](const auto& row) {
      return std::holds_alternative<std::string>(row.back());
    });
    if (refused > 0 && refused == static_cast<std::ptrdiff_t>(points)) {
      return fail(Error(Mistake{store.file(),
                                {},
                                {},
                                fmt::format("all {} points were refused; the first: {}", refused,
                                            std::get<std::string>(rows->rows.front().back()))}));
    }
    const auto json = [&] { return rows_json(*rows); };
    return html_.beside(
        json_ ? json()
              : fmt::format("{}: {}{} of {} points there, {} refused (column error)\n",
                            store.file(), what, rows->rows.size(), points, refused),
        json);
  }

  std::vector<std::string> files_;
  std::optional<std::string> store_;
  PowerCapFlag cap_;
  std::optional<std::string> threads_;
  std::optional<std::string> shard_;
  std::optional<std::string> limit_;
  std::optional<std::string> slurm_;
  std::optional<std::string> slurm_options_;
  std::optional<std::string> csv_;
  RowsPlot plot_;
  HtmlFlag html_{"sweep"};
  sweep::SweepOptions how_;
  bool merge_ = false;
  bool mpi_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sweep() {
  return std::make_unique<Sweep>();
}

}  // namespace orrery::cli
