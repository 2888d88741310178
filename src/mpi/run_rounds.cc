// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <string>

#include "mpi/rounds.h"

namespace orrery::mpi {
namespace {

using plan::DataParallelUpdate;

constexpr int kRepeatSum = 5;

class Table {
 public:
  explicit Table(const RoundRun& run) : run_(run) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    sum_s_ = sum_seconds(run.task, kRepeatSum);
  }

  bool all() {
    say_head();
    if (!run_.overlap) {
      row("every_step", {});
    }
    for (const std::int64_t tau : run_.taus) {
      const OuterUpdate plain = update(DataParallelUpdate::local_sgd, tau);
      row("local_sgd", plain);
      run_.overlap ? overlap_rows(tau) : ablation_rows(tau);
    }
    return right_;
  }

 private:
  OuterUpdate update(DataParallelUpdate how, std::int64_t tau) const {
    return {.update = how, .tau = tau, .alpha = run_.alpha, .beta = run_.beta, .penalty = false};
  }

  void overlap_rows(std::int64_t tau) {
    OuterUpdate co2 = update(DataParallelUpdate::co2, tau);
    co2.polled = false;
    row("co2, not polled", co2);
    co2.polled = true;
    row("co2", co2);
  }

  void ablation_rows(std::int64_t tau) {
    row("slow_mo", update(DataParallelUpdate::slow_mo, tau));
    row("diloco", update(DataParallelUpdate::diloco, tau));
    OuterUpdate co2 = update(DataParallelUpdate::co2, tau);
    row("co2, no penalty", co2);
    co2.penalty = true;
    row("co2", co2);
    for (const double clip : {1.0, 0.3}) {
      co2.clip = clip;
      row(fmt::format("co2, clip {}", clip), co2);
    }
  }

  void row(const std::string& name, const OuterUpdate& how) {
    const RoundOutcome found = train_rounds(run_.task, how);
    const bool delayed = how.update == DataParallelUpdate::co2;
    const std::int64_t delay = delayed ? 1 : 0;
    right_ =
        right_ && (found.applied == 0 || (found.least_delay == delay && found.most_delay == delay));
    if (!delayed) {
      step_s_ = found.times.step;  // without a sum beside it
      waited_s_ = found.times.waited;
    }
    const double alone = static_cast<double>(how.tau) * step_s_ + found.times.outer;
    const double model = delayed ? std::max(alone, waited_s_) : alone + sum_s_;
    if (rank_ != 0) {
      return;
    }
    // Of a sum that nothing hides, as the last update without delay waits for it.
    const double hidden = delayed ? 1 - std::min(1.0, found.times.waited / waited_s_) : 0;
    const double could = delayed ? std::min(1.0, alone / waited_s_) : 0;
    fmt::print(
        fmt::runtime(run_.json ? R"({{"update": "{}", "tau": {}, "loss": {:.6f}, )"
                                 R"("accuracy": {:.4f}, "delay": {}, "round_ms": {:.6f}, )"
                                 R"("model_ms": {:.6f}, "waited_ms": {:.6f}, "sum_ms": {:.6f}, )"
                                 R"("overlap": {:.4f}, "model_overlap": {:.4f}, )"
                                 R"("hash": "{:016x}"}})"
                                 "\n"
                               : "{:<16}{:>5}{:>9.4f}{:>10.4f}{:>7}{:>12.3f}{:>12.3f}{:>12.3f}"
                                 "{:>10.3f}{:>9.2f}{:>7.2f}  {:016x}\n"),
        name, how.tau, found.loss, found.accuracy, found.most_delay, 1e3 * found.times.round,
        1e3 * model, 1e3 * found.times.waited, 1e3 * sum_s_, hidden, could, hash_of(found.weights));
    std::fflush(stdout);
  }

  void say_head() const {
    if (rank_ == 0 && !run_.json) {
      fmt::print(
          "{} workers, {} steps, 20-{}-5\n{:<16}{:>5}{:>9}{:>10}{:>7}{:>12}{:>12}{:>12}"
          "{:>10}{:>9}{:>7}  {}\n",
          run_.task.workers, run_.task.steps, run_.task.hidden, "update", "tau", "loss", "accuracy",
          "delay", "round ms", "model ms", "waited ms", "sum ms", "overlap", "model", "weights");
    }
  }

  RoundRun run_;
  int rank_ = 0;
  double sum_s_ = 0;
  double step_s_ = 0;
  double waited_s_ = 0;  ///< of the last update without delay: a sum that nothing hides
  bool right_ = true;
};

}  // namespace

bool run_rounds(const RoundRun& run) {
  return Table(run).all();
}

}  // namespace orrery::mpi
