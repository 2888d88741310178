// SPDX-License-Identifier: Apache-2.0

#include "base/csv.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/step_flags.h"
#include "machine/device_groups.h"
#include "neural/read_network.h"
#include "report/ranking.h"

namespace orrery::cli {
namespace {

constexpr const char* kRankExamples =
    "Untrained networks (a YAML file each, or a space of cells) are scored by zero-cost proxies "
    "and\n"
    "put on a Pareto list with the simulated step time, memory and energy of training them.\n"
    "Accuracies that the files state, or that --train makes, tell how far the proxies can be "
    "trusted.\n"
    "Examples:\n"
    "  orrery rank examples/rank/hand --machine dgx-h100 --seeds 2 --samples 32\n"
    "  orrery rank examples/rank/cells.yaml --machine dgx-a100-80g --batch 1024 --plot cells.svg\n"
    "  orrery rank nets/ --file images.csv --train 5 --json\n";

class Rank : public Command {
 public:
  void declare(Options& options) override {
    options.positional("DIR", folder_, "architectures: a folder of YAML files, or one file");
    options.value("--samples", samples_, "INT", "of the minibatch; default 128");
    options.value("--seeds", seeds_, "INT", "draws of weights and minibatch; default 3");
    options.value(
        "--file", file_, "FILE",
        "CSV of a label and the values of a sample in each row; default: made-up patterns");
    options.value("--noise", noise_, "NUMBER", "of the made-up patterns; default 1");
    options.value("--train", train_, "EPOCHS", "train each and report its accuracy");
    options.value("--machine", machine_, "NAME|FILE", "simulate a training step on it");
    options.value("--batch", batch_, "INT", "samples of a step, over all devices; default 256");
    options.value("--devices", devices_, "INT", "data-parallel; default 1");
    options.value("--threads", threads_, "INT", "default: one per processor; changes no result");
    options.output("--plot", plot_, "FILE.svg", "write mean rank over step time as a chart");
    options.flag("--json", json_, "print one JSON object");
    options.footer(kRankExamples);
  }

  Result<std::string> run(Error mistakes) override {
    report::RankingReport report;
    read_options(report, mistakes);
    std::vector<neural::Network> networks;
    if (folder_.empty()) {
      mistakes.add({"DIR", {}, {}, "missing; expected a folder of architectures, or a file"});
    } else {
      networks = collect(neural::load_networks(folder_), mistakes);
    }
    std::optional<machine::Machine> machine;
    if (machine_) {
      machine = load_named("--machine", *machine_, machine::load_alike, mistakes);
    }
    neural::Samples samples;
    if (file_ && !networks.empty()) {
      samples = collect(load_csv(*file_,
                                 [&](const CsvTable& table) {
                                   return neural::read_samples(table, networks.front().input,
                                                               networks.front().classes);
                                 }),
                        mistakes);
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    ProgressBar bar("ranking");
    report.options.progress = [&bar](double share) { bar.update(share); };
    auto ranking = rank::rank_networks(networks, samples, machine ? &*machine : nullptr,
                                       report.step, report.options);
    if (!ranking) {
      return fail(std::move(ranking.error()));
    }
    report.ranking = std::move(*ranking);
    report.machine = machine ? machine->name : "";
    if (plot_) {
      keep(write_file(*plot_, report::ranking_plot(report)));
    }
    return json_ ? report::json_of(report) : report::ranking_table(report);
  }

 private:
  void read_options(report::RankingReport& report, Error& mistakes) const {
    constexpr std::int64_t kMost = 1'000'000;
    rank::RankingOptions& options = report.options;
    options.samples = whole_number("--samples", samples_, options.samples, 4096, mistakes);
    options.seeds = whole_number("--seeds", seeds_, options.seeds, 1000, mistakes);
    options.train = whole_number("--train", train_, options.train, 1000, mistakes);
    options.threads = thread_count(threads_, 0, mistakes);
    report.step.batch = whole_number("--batch", batch_, report.step.batch, kMost, mistakes);
    report.step.devices = whole_number("--devices", devices_, report.step.devices, kMost, mistakes);
    take("--noise", noise_, options.noise, mistakes);
    if (!(options.noise >= 0 && options.noise <= 100)) {
      mistakes.add(wrong_value("--noise", noise_.value_or(""), "a number from 0 to 100"));
    }
    if (file_) {
      refuse_given({{"--noise", noise_}}, "is of made-up samples; --file brings others", mistakes);
    }
    if (report.step.batch % report.step.devices != 0) {
      mistakes.add(
          wrong_value("--batch", std::to_string(report.step.batch),
                      "a multiple of the " + std::to_string(report.step.devices) + " devices"));
    }
    if (!machine_) {
      refuse_given({{"--batch", batch_}, {"--devices", devices_}},
                   "is of a step that is simulated; give --machine", mistakes);
    }
  }

  std::string folder_;
  std::optional<std::string> samples_;
  std::optional<std::string> seeds_;
  std::optional<std::string> file_;
  std::optional<std::string> noise_;
  std::optional<std::string> train_;
  std::optional<std::string> machine_;
  std::optional<std::string> batch_;
  std::optional<std::string> devices_;
  std::optional<std::string> threads_;
  std::optional<std::string> plot_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rank() {
  return std::make_unique<Rank>();
}

}  // namespace orrery::cli
