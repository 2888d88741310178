// SPDX-License-Identifier: Apache-2.0
#include "report/flit.h"

#include <fmt/format.h>

#include <map>

#include "base/file.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/plain_fields.h"
#include "cli/progress.h"
#include "machine/device_groups.h"
#include "machine/machine.h"
#include "machine/network/flit/message_file.h"

namespace orrery::cli {
namespace {

constexpr std::array kCurve{0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0};  // of the saturation load

constexpr const char* kFlitExamples =
    "Times are cycles, loads flits per node and cycle. A FILE.yaml has the options as fields\n"
    "(vc_alloc_delay: 2); options given beside a file go before what it says.\n"
    "Examples:\n"
    "  orrery flit --topology mesh:8x8 --routing dor --vcs 4 --buffer 8 --pattern uniform \\\n"
    "    --rate 0.2 --packet 1\n"
    "  orrery flit --topology torus:8x8 --pattern tornado --rate 0.15 --json\n"
    "  orrery flit --topology fat_tree:k=4,n=3 --buffer 16 --sweep --plot curve.svg\n"
    "  orrery flit --topology graph:dragonfly:hosts=2,routers=4,globals=2 --routing up_down\n"
    "  orrery flit --topology machine:cluster.yaml --routing up_down\n"
    "  orrery flit --booksim my_mesh.txt\n"
    "  orrery flit --topology mesh:8x8 --batch 100 --outstanding 4 --packet 5\n"
    "  orrery flit --topology torus:4x4 --buffer 64 --messages chain.csv --json\n"
    "  orrery flit network.yaml --links links.csv\n";

class FlitCommand : public Command {
 public:
  void declare(Options& options) override {
    options.positional("FILE", file_, "the network and its load, as YAML");
    options.value("--booksim", booksim_, "FILE", "a configuration file of BookSim 2, unchanged");
    const auto declare_fields = [&](std::string_view name, auto member, std::string_view sentence) {
      declare_field(options, flag_of(name), given_[std::string(name)], member, sentence);
    };
    options.group("Network and load");
    flit::Experiment::fields(declare_fields);
    options.group("Routers");
    flit::RouterSettings::fields(declare_fields);
    options.group("Load and measurement");
    flit::OpenLoopSettings::fields(declare_fields);
    options.group("What to run");
    options.value(
        "--messages", messages_, "FILE.csv",
        "messages and work that wait for one another: columns name, source, target, bytes, "
        "work (cycles), after (names of rows above)");
    options.flag("--sweep", sweep_, "also the latency-load curve and the load of saturation");
    options.output("--plot", plot_, "FILE.svg", "draw the curve of --sweep");
    options.output("--links", links_, "FILE.csv", "write the load of every link");
    options.flag("--no-shortcuts", no_shortcuts_, "simulate idle cycles too; changes no result");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object; cycles, flits per node and cycle");
    options.footer(kFlitExamples);
  }

  Result<std::string> run(Error mistakes) override {
    flit::Experiment experiment = read(mistakes);
    if (!take_wires(experiment, mistakes)) {
      return fail(std::move(mistakes));
    }
    const bool loops = experiment.batch > 0 || messages_;
    check(experiment, loops, mistakes);
    auto prepared = flit::prepare(experiment);
    if (!prepared) {
      for (Mistake& mistake : prepared.error().mistakes) {
        mistake.where = given_.contains(mistake.where) && given_.at(mistake.where)
                            ? flag_of(mistake.where)
                            : mistake.where;
      }
      mistakes.add(std::move(prepared.error()));
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    if (loops) {
      return loop(std::move(experiment), *prepared);
    }
    const report::FlitReport report = simulate(std::move(experiment), *prepared);
    const flit::RouterGraph& graph = *prepared->graph;
    if (report.point.deadlocked) {
      return fail(report.point.reason);
    }
    if (report.point.stable && report.point.packets == 0) {
      return fail(Error(wrong_value("--rate", fmt::format("{}", report.experiment.load.rate),
                                    "one at which packets are created in the periods that count, "
                                    "or a longer --sample-period")));
    }
    if (links_) {
      keep(write_file(*links_, report::flit_links_csv(report, graph)));
    }
    if (plot_) {
      const auto plot = report::flit_plot(report);
      if (!plot) {
        return fail(plot.error());
      }
      keep(write_file(*plot_, report::to_svg(*plot)));
    }
    const auto json = [&] { return report::json_of(report); };
    return html_.beside(json_ ? json() : report::flit_table(report, graph), json);
  }

 private:
  /// Flags beside each other; `loops`: the load is not constant.
  void check(const flit::Experiment& experiment, bool loops, Error& mistakes) const {
    if (given_.at("batch") && experiment.batch == 0) {
      mistakes.add(wrong_value("--batch", *given_.at("batch"), "packets of a node, 1 or more"));
    }
    if (loops) {
      refuse_given({{"--sweep", sweep_}, {"--links", links_}}, "goes with a constant load",
                   mistakes);
    }
    for (const char* field : {"rate", "sample_period", "warmup_periods", "max_samples",
                              "latency_limit", "stopping_threshold"}) {
      if (loops && given_.at(field)) {
        mistakes.add({flag_of(field), {}, {}, "goes with a constant load"});
      }
    }
    for (const char* field : {"packet", "pattern", "burst_alpha", "burst_beta"}) {
      if (!experiment.classes.empty() && given_.at(field)) {
        mistakes.add({flag_of(field), {}, {}, "goes without the classes of " + *booksim_});
      }
    }
    if (!experiment.classes.empty() && loops) {
      mistakes.add({"--booksim",
                    {},
                    *booksim_,
                    "one class of packets of one size, for a batch or messages"});
    }
    if (messages_ && experiment.batch > 0) {
      mistakes.add({"--messages", {}, {}, "contradicts batch; choose one"});
    }
    if (plot_ && !sweep_) {
      mistakes.add({"--plot", {}, {}, "goes with --sweep, which makes the curve"});
    }
  }

  flit::Experiment read(Error& mistakes) {
    flit::Experiment experiment;
    if (file_ && booksim_) {
      mistakes.add({"--booksim", {}, {}, "contradicts " + *file_ + "; choose one"});
    } else if (file_) {
      experiment = collect(load_config(*file_).and_then(flit::parse_experiment), mistakes);
    } else if (booksim_) {
      experiment = collect(read_file(*booksim_).and_then([&](const std::string& text) {
        return flit::parse_booksim(text, *booksim_);
      }),
                           mistakes);
    }
    const auto take = [&](auto& value) {
      return [&](std::string_view name, auto member, std::string_view) {
        const std::optional<std::string>& text = given_.at(std::string(name));
        if (!text) {
          return;
        }
        using Value = std::remove_reference_t<decltype(value.*member)>;
        const auto parsed = parse_value<Value>(*text);
        experiment.stated_at[std::string(name)] = {flag_of(name), {}};
        if (parsed) {
          value.*member = *parsed;
        } else {
          mistakes.add(wrong_value(flag_of(name), *text, parsed.error()));
        }
      };
    };
    flit::Experiment::fields(take(experiment));
    flit::RouterSettings::fields(take(experiment.router));
    flit::OpenLoopSettings::fields(take(experiment.load));
    for (const char* field : {"sample_period", "warmup_periods", "max_samples", "latency_limit",
                              "stopping_threshold"}) {
      experiment.states_periods |= given_.at(field).has_value();
    }
    return experiment;
  }

  /// `machine:NAME|FILE`: the network of links that a machine states. False: there is none.
  static bool take_wires(flit::Experiment& experiment, Error& mistakes) {
    constexpr std::string_view kMachine = "machine:";
    if (!experiment.topology.starts_with(kMachine)) {
      return true;
    }
    const std::string name = experiment.topology.substr(kMachine.size());
    Error unread;
    const machine::Machine machine = load_named("--topology", name, machine::load_alike, unread);
    if (unread.empty() && machine.wires.spec.empty()) {
      unread.add(wrong_value("--topology", name,
                             "a machine with a topology; one of dimensions "
                             "runs under `orrery simulate --network flit`"));
    }
    experiment.topology = "graph:" + machine.wires.spec;
    const bool found = unread.empty();
    mistakes.add(std::move(unread));
    return found;
  }

  static report::FlitReport report_of(const flit::Experiment& experiment,
                                      const flit::Prepared& prepared) {
    report::FlitReport report;
    report.routing = name_of(prepared.routing.traits().algorithm);
    report.routers = static_cast<std::size_t>(prepared.graph->routers);
    report.nodes = prepared.graph->nodes.size();
    report.notes = experiment.notes;
    return report;
  }

  /// A batch or the messages of a file.
  Result<std::string> loop(flit::Experiment experiment, const flit::Prepared& prepared) const {
    report::FlitReport report = report_of(experiment, prepared);
    flit::Packaging packaging{experiment.flit_bytes, experiment.packet_bytes};
    flit::LoopSchedule schedule;
    if (messages_) {
      auto read = load_csv(*messages_, [&](const CsvTable& table) {
        return flit::read_messages(table, report.nodes);
      });
      if (!read) {
        return fail(read.error());
      }
      schedule = std::move(read->events);
      report.names = std::move(read->names);
    } else {  // of packets that are `packet` flits, the head counted
      const Bytes payload(experiment.load.packet - 1);
      packaging = {Bytes(1), std::max(Bytes(1), payload)};
      schedule = flit::batch_schedule(prepared.traffic, static_cast<std::uint32_t>(report.nodes),
                                      {experiment.batch, experiment.outstanding, payload},
                                      experiment.load.seed);
    }
    ProgressBar bar;
    report.loop = flit::run_closed_loop(prepared.routing, experiment.router, packaging, schedule,
                                        experiment.load.seed,
                                        {!no_shortcuts_, [&](double share) { bar.update(share); }});
    if (!report.loop->deadlock.empty()) {
      return fail(report.loop->deadlock);
    }
    report.experiment = std::move(experiment);
    const auto json = [&] {
      return report::json_object(
          [&](report::Fields& fields) { report::declare_loop(report, fields); });
    };
    return html_.beside(json_ ? json() : report::flit_loop_table(report, *prepared.graph), json);
  }

  report::FlitReport simulate(flit::Experiment experiment, const flit::Prepared& prepared) const {
    report::FlitReport report = report_of(experiment, prepared);
    report.dependencies = flit::check_dependencies(prepared.routing);
    ProgressBar bar;
    double done = 0;
    double part = sweep_ ? 0.1 : 1;
    const flit::RunOptions how{!no_shortcuts_,
                               [&](double share) { bar.update(done + part * share); }};
    const auto at = [&](double rate) {
      flit::OpenLoopSettings load = experiment.load;
      load.rate = rate;
      return flit::run_open_loop(prepared.network(experiment), load, how);
    };
    report.point = at(experiment.load.rate);
    if (sweep_) {
      done = 0.1;
      part = 0.4;
      report.saturation = flit::find_saturation(experiment, prepared, how);
      done = 0.5;
      part = 0.5 / kCurve.size();
      for (const double share : kCurve) {
        if (report.saturation->offered > 0) {
          report.curve.push_back(at(share * report.saturation->offered));
        }
        done += part;
      }
    }
    if (report.dependencies.freedom == flit::Freedom::circular) {
      report.notes.push_back(
          fmt::format("routing {} can deadlock here; up_down cannot on any graph", report.routing));
    }
    report.experiment = std::move(experiment);
    return report;
  }

  std::optional<std::string> file_;
  std::optional<std::string> booksim_;
  std::map<std::string, std::optional<std::string>> given_;  ///< by field
  std::optional<std::string> messages_;
  bool sweep_ = false;
  std::optional<std::string> plot_;
  std::optional<std::string> links_;
  bool no_shortcuts_ = false;
  HtmlFlag html_{"flit"};
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_flit() {
  return std::make_unique<FlitCommand>();
}

}  // namespace orrery::cli
