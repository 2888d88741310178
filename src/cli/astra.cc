// SPDX-License-Identifier: Apache-2.0
#include "report/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/native_flags.h"
#include "cli/progress.h"
#include "compat/astra/load.h"
#include "compat/astra/parse.h"
#include "report/astra_memory.h"

namespace orrery::cli {
namespace {

constexpr const char* kAstraExamples =
    "Options of ASTRA-sim keep its names and meanings; one cycle is a nanosecond.\n"
    "Examples:\n"
    "  orrery astra --workload-configuration=examples/astra_quickstart/trace \\\n"
    "               --system-configuration=examples/astra_quickstart/system.json \\\n"
    "               --network-configuration=examples/astra_quickstart/network.yml \\\n"
    "               --remote-memory-configuration=examples/astra_quickstart/memory.json\n"
    "  orrery astra ... --network-backend=aware --json\n"
    "  orrery astra ... --quirk all=off\n"
    "  orrery astra ... --native\n"
    "  orrery astra ... --network flow --topology ns3_topology.txt\n";

constexpr const char* kNone = "empty";  // ASTRA-sim's name for a file that is not given
constexpr const char* kAllQuirks = "all";
constexpr std::int64_t kMostQueues = 1024;
constexpr double kGreatestScale = 1e6;
constexpr double kLoadingShare = 0.2;  // of the progress bar

std::vector<std::string> quirk_names() {
  std::vector<std::string> names = names_of<astra::Quirk>();
  names.emplace_back(kAllQuirks);
  return names;
}

class Astra : public Command {
 public:
  void declare(Options& options) override {
    declare_files(options);
    declare_run(options);
    declare_own(options);
    native_.declare(options);
    std::string footer = "Quirks, all on unless --quirk NAME=off (`all` for every one):\n";
    for (const auto& quirk : kNames<astra::Quirk>) {
      footer += fmt::format("  {:<32}{}\n", quirk.name, quirk.meaning);
    }
    options.footer(footer + "\n" + kAstraExamples);
  }

  Result<std::string> run(Error mistakes) override {
    astra::RunOptions options = read_options(mistakes);
    const astra::Files files = read_files(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    ProgressBar progress;
    auto loaded = astra::load_files(files, options.quirks,
                                    [&](double share) { progress.update(share * kLoadingShare); });
    if (!loaded) {
      return fail(std::move(loaded.error()));
    }
    warn_of_unread(loaded->warnings);
    options.progress = [&](double share) {
      progress.update(kLoadingShare + share * (1 - kLoadingShare));
    };
    if (native_.wanted()) {
      return native_.run(*loaded, options, files).and_then([&](report::NativeReport report) {
        return write_native(std::move(report), *loaded);
      });
    }
    const astra::System& system = loaded->input.system;
    if (auto speeds = read_speeds(loaded->input.traces.ranks())) {
      loaded->input.compute_speed = std::move(*speeds);
    } else {
      return fail(std::move(speeds.error()));
    }
    if (auto laid = native_.lay(*loaded, options); !laid) {
      return fail(std::move(laid.error()));
    }
    options.node_times = system.track_local_memory || statistics_;
    options.traffic = statistics_;
    auto result = astra::run(loaded->input, options);
    if (!result) {
      return fail(std::move(result.error()));
    }
    std::vector<astra::LocalMemory> memory;
    if (system.track_local_memory) {
      auto tracked = astra::local_memory(files.workload, loaded->input, *result);
      if (!tracked) {
        return fail(std::move(tracked.error()));
      }
      memory = std::move(*tracked);
      if (memory.empty()) {
        loaded->warnings.emplace_back("track-local-mem: no effect; the traces name no tensors");
      }
      if (auto written = write_traces(system, memory); !written) {
        return fail(std::move(written.error()));
      }
    }
    const std::vector<astra::Statistics> statistics =
        statistics_ ? astra::statistics(loaded->input, *result) : std::vector<astra::Statistics>();
    return write({.result = *result,
                  .options = options,
                  .warnings = loaded->warnings,
                  .memory = memory,
                  .traces = chakra::statistics(loaded->input.traces),
                  .statistics = statistics});
  }

 private:
  void declare_files(Options& options) {
    options.group("Inputs");
    options.value("--workload-configuration", workload_, "PREFIX",
                  "traces PREFIX.<rank>.et, or PREFIX.all.et for every rank");
    options.value("--system-configuration", system_, "FILE", "system layer, JSON");
    options.value("--network-configuration", network_, "FILE", "dimensions of the network, YAML");
    options.value(
        "--logical-topology-configuration", logical_, "FILE",
        "dimensions of its ns-3 back-end, JSON: --network-configuration then names ns-3's "
        "configuration or topology, or htsim's .topo; messages pass its links, max-min fair");
    options.value("--remote-memory-configuration", memory_, "FILE", "remote memory, JSON");
    options.value("--comm-group-configuration", groups_, "FILE",
                  "communicator groups, JSON: {\"1\": [0, 1], \"2\": [2, 3]}");
  }

  void declare_run(Options& options) {
    options.group("Run");
    options.value("--network-backend", backend_, "unaware|aware",
                  "whether messages delay each other on links; default unaware");
    options.value("--num-queues-per-dim", queues_, "INT", "queues of chunks per dimension");
    options.value("--injection-scale", injection_scale_, "NUMBER", "factor of endpoint-delay");
    options.boolean("--rendezvous-protocol", rendezvous_,
                    "a ready message of 8 KiB before each message");
    options.value("--comm-scale", comm_scale_, "NUMBER", "no effect, as in ASTRA-sim");
    options.value("--compute-scale", compute_scale_, "NUMBER", "no effect, as in ASTRA-sim");
    options.value("--logging-configuration", logging_, "FILE", "no effect");
    options.value("--logging-folder", logging_folder_, "FOLDER",
                  "also write the lines to FOLDER/log.log");
  }

  void declare_own(Options& options) {
    options.group("Orrery");
    options.values("--quirk", quirks_, "NAME=on|off", "what ASTRA-sim does otherwise; see below");
    options.flag("--statistics", statistics_,
                 "also what each rank was busy with, and under roofline how well");
    options.values("--compute-speed", speeds_, "RANKS=FACTOR",
                   "speed of GPUs, as 3=0.5 or 8-15=1.2; others 1");
    options.flag("--warn-unknown-keys", warn_unknown_,
                 "keys of the files that nothing reads are warnings, not mistakes");
    options.flag("--no-fold", no_fold_, "simulate every rank, also those that mirror another");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object instead of lines");
    options.output("--output", output_, "FILE", "also write what is printed to a file");
  }

  static std::string file(const char* flag, const std::optional<std::string>& given,
                          Error& mistakes) {
    if (!given || given->empty()) {
      mistakes.add({flag, {}, {}, "required, but missing"});
      return {};
    }
    return *given;
  }

  astra::Files read_files(Error& mistakes) const {
    astra::Files files{
        .workload = file("--workload-configuration", workload_, mistakes),
        .system = file("--system-configuration", system_, mistakes),
        .network = file("--network-configuration", network_, mistakes),
        .memory = file("--remote-memory-configuration", memory_, mistakes),
        .groups = groups_,
        .warn_of_unknown = warn_unknown_,
        .logical = logical_,
    };
    if (files.groups == kNone) {
      files.groups.reset();
    }
    return files;
  }

  /// The flag's value in [least, most]; `into` stays when it is not given.
  template <class T>
  static void read_number(const char* flag, const std::optional<std::string>& given, T least,
                          T most, T& into, Error& mistakes) {
    if (!given) {
      return;
    }
    const auto number = parse_value<T>(*given);
    if (number && *number >= least && *number <= most) {
      into = *number;
      return;
    }
    mistakes.add(
        wrong_value(flag, *given, number ? fmt::format("{} to {}", least, most) : number.error()));
  }

  astra::RunOptions read_options(Error& mistakes) {
    astra::RunOptions options;
    options.fold = !no_fold_;
    if (backend_) {
      options.backend = value_of<astra::Backend>(*backend_).value_or(astra::Backend::flow);
      if (astra::on_links(options.backend)) {
        mistakes.add(wrong_value("--network-backend", *backend_, "one of unaware, aware"));
      }
    }
    if (rendezvous_) {
      const auto on = parse_value<bool>(*rendezvous_ == "1"   ? "true"
                                        : *rendezvous_ == "0" ? "false"
                                                              : *rendezvous_);
      options.rendezvous = on.value_or(false);
      if (!on) {
        mistakes.add(wrong_value("--rendezvous-protocol", *rendezvous_, on.error()));
      }
    }
    read_number("--num-queues-per-dim", queues_, std::int64_t{1}, kMostQueues,
                options.queues_per_dimension, mistakes);
    read_number("--injection-scale", injection_scale_, 0.0, kGreatestScale, options.injection_scale,
                mistakes);
    double unused = 0;
    read_number("--comm-scale", comm_scale_, 0.0, kGreatestScale, unused, mistakes);
    read_number("--compute-scale", compute_scale_, 0.0, kGreatestScale, unused, mistakes);
    read_quirks(options.quirks, mistakes);
    native_.read(logical_.has_value(), backend_.has_value(), options, mistakes);
    if (native_.wanted() && (statistics_ || !speeds_.empty())) {
      mistakes.add({"--native", {}, {}, "not with --statistics or --compute-speed"});
    }
    return options;
  }

  void read_quirks(astra::Quirks& quirks, Error& mistakes) const {
    for (const std::string& text : quirks_) {
      const std::string name = text.substr(0, text.find('='));
      const std::string state = text.substr(std::min(text.size(), name.size() + 1));
      const auto quirk = value_of<astra::Quirk>(name);
      if (!quirk && name != kAllQuirks) {
        mistakes.add(wrong_value(
            "--quirk", text, "a name of `orrery list quirks`" + did_you_mean(name, quirk_names())));
      } else if (state != "on" && state != "off") {
        mistakes.add(wrong_value("--quirk", text, fmt::format("{0}=on or {0}=off", name)));
      } else if (quirk) {
        quirks.set(*quirk, state == "on");
      } else {
        quirks = state == "on" ? astra::Quirks::all() : astra::Quirks::none();
      }
    }
  }

  void warn_of_unread(std::vector<std::string>& warnings) const {
    const auto ignored = [&](const char* flag, const std::optional<std::string>& given,
                             double usual) {
      if (given && parse_number(*given).value_or(usual) != usual) {
        warnings.push_back(fmt::format("{}: no effect, as in ASTRA-sim", flag));
      }
    };
    ignored("--comm-scale", comm_scale_, 1);
    ignored("--compute-scale", compute_scale_, 1);
    if (logging_ && *logging_ != kNone) {
      warnings.emplace_back("--logging-configuration: no effect; lines go to standard output");
    }
  }

  Result<void> write_copies(const std::string& lines, const std::string& text) const {
    if (logging_folder_) {
      std::error_code failure;
      std::filesystem::create_directories(*logging_folder_, failure);
      if (auto written = write_file(*logging_folder_ + "/log.log", lines); !written) {
        return written;
      }
    }
    return output_ ? write_file(*output_, text) : Result<void>();
  }

  /// Returns the speeds by rank; empty when none is given.
  Result<std::vector<double>> read_speeds(std::int64_t ranks) const {
    std::vector<double> speeds(speeds_.empty() ? 0 : static_cast<std::size_t>(ranks), 1);
    Error mistakes;
    for (const std::string& text : speeds_) {
      const std::size_t equals = std::min(text.find('='), text.size());
      const std::size_t dash = std::min(text.find('-'), equals);
      const auto first = parse_value<std::int64_t>(text.substr(0, dash));
      const auto last = dash == equals
                            ? first
                            : parse_value<std::int64_t>(text.substr(dash + 1, equals - dash - 1));
      const auto factor = parse_value<double>(text.substr(std::min(equals + 1, text.size())));
      if (!first || !last || !factor || *first < 0 || *last < *first || *last >= ranks ||
          !(*factor >= 1 / kGreatestScale && *factor <= kGreatestScale)) {
        mistakes.add(wrong_value(
            "--compute-speed", text,
            fmt::format("RANK=FACTOR or FIRST-LAST=FACTOR, ranks 0 to {}, factors {} to {}",
                        ranks - 1, 1 / kGreatestScale, kGreatestScale)));
        continue;
      }
      std::fill(speeds.begin() + *first, speeds.begin() + *last + 1, *factor);
    }
    return or_mistakes(std::move(speeds), std::move(mistakes));
  }

  static std::string lines_of(const report::AstraReport& report) {
    std::string lines = report::astra_lines(report.result);
    if (!report.statistics.empty()) {
      lines += report::statistics_lines(report.statistics, report.result);
    }
    if (!report.memory.empty()) {
      lines += report::local_memory_lines(report.memory, report.result);
    }
    return lines;
  }

  /// NAME.<rank>.json for the lowest rank of each class.
  static Result<void> write_traces(const astra::System& system,
                                   const std::vector<astra::LocalMemory>& memory) {
    for (const astra::LocalMemory& one : memory) {
      const std::string name = system.local_memory_trace.value_or("");
      if (name.empty()) {
        return {};
      }
      const std::string path = fmt::format("{}.{}.json", name, one.rank);
      if (auto written = write_file(path, report::local_memory_trace(one)); !written) {
        return written;
      }
    }
    return {};
  }

  /// Lines or JSON on standard output; what is for people on standard error.
  Result<std::string> write(const report::AstraReport& report) const {
    const std::string lines = json_ && !logging_folder_ ? std::string() : lines_of(report);
    std::string text = json_ ? report::astra_json(report) : lines;
    if (auto written = write_copies(lines, text); !written) {
      return fail(std::move(written.error()));
    }
    tell_notes(report.warnings, "warning");
    const std::string traces = "traces: " + to_string(report.traces) + "\n";
    std::fputs(printable(report::astra_summary(report.result) + traces, "\n").c_str(), stderr);
    return html_.beside(std::move(text), [&] { return report::astra_json(report); });
  }

  Result<std::string> write_native(report::NativeReport report, const astra::Loaded& loaded) const {
    report.warnings = loaded.warnings;
    const std::string table = report::native_table(report);
    std::string text = json_ ? report::native_json(report) : table;
    if (auto written = write_copies(table, text); !written) {
      return fail(std::move(written.error()));
    }
    tell_notes(report.warnings, "warning");
    return html_.beside(std::move(text), [&] { return report::native_json(report); });
  }

  std::optional<std::string> workload_;
  std::optional<std::string> system_;
  std::optional<std::string> network_;
  std::optional<std::string> logical_;
  std::optional<std::string> memory_;
  std::optional<std::string> groups_;
  std::optional<std::string> backend_;
  std::optional<std::string> queues_;
  std::optional<std::string> injection_scale_;
  std::optional<std::string> rendezvous_;
  std::optional<std::string> comm_scale_;
  std::optional<std::string> compute_scale_;
  std::optional<std::string> logging_;
  std::optional<std::string> logging_folder_;
  std::optional<std::string> output_;
  std::vector<std::string> quirks_;
  std::vector<std::string> speeds_;
  bool statistics_ = false;
  NativeFlags native_;
  bool warn_unknown_ = false;
  bool no_fold_ = false;
  HtmlFlag html_{"astra"};
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_astra() {
  return std::make_unique<Astra>();
}

}  // namespace orrery::cli
