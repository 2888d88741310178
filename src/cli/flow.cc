// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/beyond_time.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/flow_output.h"
#include "cli/html_flag.h"
#include "cli/progress.h"
#include "machine/network/flows.h"
#include "machine/network/link_faults.h"
#include "machine/network/packets/packet.h"
#include "machine/network/traffic.h"
#include "machine/read_fabric.h"
#include "machine/topology/read.h"
#include "report/topology.h"

namespace orrery::cli {
namespace {

constexpr const char* kFlowExamples =
    "Flows come from a table with the columns source, target (names or numbers of hosts), bytes,\n"
    "and optional start_s, weight, rate_cap, via (switches that the flow passes, separated by\n"
    "spaces, whatever the routing); or from --traffic and --bytes.\n"
    "Examples:\n"
    "  orrery flow --topology fat_tree:k=8 --traffic permutation --bytes 2MB --routing colour\n"
    "  orrery flow --topology leaf_spine:leaves=16,spines=16,hosts=16 --traffic shift --bytes 1MB "
    "\\\n"
    "              --routing ecmp --seed 3 --json\n"
    "  orrery flow --topology fat_tree:k=8 --traffic incast --bytes 2MB --network packet \\\n"
    "              --protocol roce\n"
    "  orrery flow --topology fat_tree:k=8 --traffic ring --bytes 1GB --network packet \\\n"
    "              --skip-steady 0.01\n"
    "  orrery flow --topology fat_tree:k=8 --traffic permutation --bytes 2MB --routing spray \\\n"
    "              --overhead 1.016 --spray-imbalance 1.5\n"
    "  orrery flow --topology platform.xml --flows flows.csv --json\n"
    "  orrery flow --topology leaf_spine:leaves=4,spines=4,hosts=4 --traffic permutation \\\n"
    "              --bytes 100MB --routing spray --faults faults.yaml\n"
    "  orrery show topology dragonfly:hosts=2,routers=4,globals=2\n";

constexpr double kMostSteady = 0.1;

class Flow : public Command {
 public:
  void declare(Options& options) override {
    options.value("--topology", topology_, "SPEC|FILE",
                  "a network such as fat_tree:k=8, or a file (`orrery show topology --help`)");
    options.value("--flows", flows_, "FILE", "table of flows (CSV), or htsim's connections (.cm)");
    options.value("--traffic", traffic_, "NAME", all_names<network::Traffic>());
    options.value("--bytes", bytes_, "SIZE", "of every flow of --traffic; default 1 MB");
    options.value("--stride", stride_, "INT", "of --traffic ring; default 1");
    options.value("--network", network_, "flow|packet",
                  "max-min fair flows (default), or packets in queues");
    options.value("--protocol", protocol_, "NAME",
                  "of --network packet: " + all_names<network::Protocol>() + "; default eqds");
    options.value("--packet", packet_, "FILE",
                  "of --network packet: protocol and its constants, as the field packet of a "
                  "machine has them (docs/models/flow.md)");
    options.value("--paths", paths_, "INT",
                  "of --network packet: path ids of a flow's packets; default 64 of eqds, ndp and "
                  "spray, else 1");
    options.value("--skip-steady", steady_, "NUMBER",
                  "of --network packet: skip phases in which no flow's rate changes by more than "
                  "this share, such as 0.01; default none");
    options.value("--overhead", overhead_, "NUMBER",
                  "of --network flow: bytes on the wire for a byte of a flow; default 1");
    options.value("--incast-penalty", incast_, "NUMBER",
                  "of --network flow: a link into a host that n flows pass has 1 / (1 + a (1 - "
                  "1/n)) of its bandwidth; default 0");
    options.value("--head-of-line", head_of_line_, "NUMBER",
                  "of --network flow: a link of whose flows the share b is held up by a busier "
                  "link behind has 1 / (1 + h b); default 0");
    options.value("--spray-imbalance", imbalance_, "NUMBER",
                  "of --network flow: n flows sprayed over W ways leave 1 / (1 + z sqrt((W-1) / "
                  "(64 n))); default 0");
    options.value("--ramp", ramp_, "SIZE",
                  "of --network flow: bytes of a flow's first round trip, doubled with each; "
                  "default all at once");
    options.flag(
        "--no-fold", no_fold_,
        "of --network flow: simulate every flow, not one for all that symmetry makes alike");
    options.value("--routing", routing_, "NAME", all_names<topology::Routing>());
    options.value("--seed", seed_, "INT", "of ecmp and of --traffic permutation; default 0");
    options.value("--faults", faults_, "FILE",
                  "links and nodes that break, of --network flow (docs/models/faults.md)");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object; seconds, bytes, bytes per second");
    options.flag("--svg", svg_, "print a drawing of the network, links by the time they are used");
    options.footer(kFlowExamples);
  }

  Result<std::string> run(Error mistakes) override {
    FlowJob job = read(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    topology::Router router(job.graph, job.routing, job.seed);
    return run_job(router, job).and_then([&](const network::FlowRun& run) -> Result<std::string> {
      if (run.end.is_overflow()) {
        return fail(fmt::format("a flow {}", kBeyondTime));
      }
      const auto json = [&] { return flow_json(job, router, run); };
      Result<std::string> text = json_ ? json() : flow_table(job, router, run);
      if (svg_) {
        text = report::topology_svg(job.graph, run.load);
      }
      return text.and_then([&](std::string drawn) { return html_.beside(std::move(drawn), json); });
    });
  }

 private:
  template <class T>
  static T parse(const char* flag, const std::optional<std::string>& text, T fallback,
                 Error& mistakes) {
    if (!text) {
      return fallback;
    }
    auto value = parse_value<T>(*text);
    if (!value) {
      mistakes.add(wrong_value(flag, *text, value.error()));
    }
    return value ? *value : fallback;
  }

  /// Reads a number from `least`, which is the default, to kMostFactor.
  static double number(const char* flag, const std::optional<std::string>& text, double least,
                       Error& mistakes) {
    constexpr double kMostFactor = 1000;
    const double value = parse(flag, text, least, mistakes);
    if (text && !(value >= least && value <= kMostFactor)) {
      mistakes.add(wrong_value(flag, *text, fmt::format("{} to {}", least, kMostFactor)));
    }
    return value;
  }

  static Result<network::FlowRun> run_job(topology::Router& router, const FlowJob& job) {
    if (!job.packets) {
      return faults::schedule_of(job.faults, network::places_of(job.graph))
          .and_then([&](const faults::Schedule& faults) {
            return network::run_flows(router, job.flows, job.congestion, faults);
          });
    }
    ProgressBar bar;
    const auto tell = [&](double share, std::uint64_t events) { bar.update(share, events); };
    return packets::run_packets(router, job.flows, job.options, tell)
        .map([](packets::PacketRun&& packets) {
          network::FlowRun run;
          run.finish = std::move(packets.finish);
          run.load = std::move(packets.load);
          run.end = packets.end;
          run.pieces = packets.packets;
          run.skipped = packets.skipped;
          run.resent = packets.resent;
          run.pauses = packets.pauses;
          run.marks = packets.marks;
          return run;
        });
  }

  FlowJob read(Error& mistakes) {
    FlowJob job;
    job.packets = network_.value_or("flow") == "packet";
    if (network_ && *network_ != "flow" && *network_ != "packet") {
      mistakes.add(wrong_value("--network", *network_, "flow or packet"));
    }
    job.seed = parse<std::uint64_t>("--seed", seed_, 0, mistakes);
    job.routing = parse("--routing", routing_, topology::Routing::automatic, mistakes);
    read_of_flows(job, mistakes);
    read_of_packets(job, mistakes);
    const network::TrafficSpec spec = read_traffic(job.seed, mistakes);
    if (!topology_) {
      mistakes.add({"--topology", {}, {}, "missing; expected a network such as fat_tree:k=8"});
    }
    if (svg_ && json_) {
      mistakes.add({"flow", {}, {}, "expected either --svg or --json"});
    }
    if (flows_.has_value() == traffic_.has_value()) {
      mistakes.add({"flow", {}, {}, "expected either --flows or --traffic"});
    }
    if (!topology_ || !mistakes.empty()) {
      return job;
    }
    job.graph = collect(topology::load_topology(*topology_, "--topology"), mistakes);
    if (!mistakes.empty()) {
      return job;
    }
    if (const auto suits = topology::check_routing(job.graph, job.routing); !suits) {
      mistakes.add(wrong_value("--routing", *routing_, suits.error().mistakes.front().expected));
    }
    job.flows = flows_ ? collect(network::load_flows(*flows_, job.graph), mistakes)
                       : network::make_traffic(spec, job.graph.hosts);
    if (traffic_ && job.flows.empty()) {
      mistakes.add({stride_ ? "--stride" : "--traffic", {}, {}, "sends nothing between hosts"});
    }
    return job;
  }

  void read_of_flows(FlowJob& job, Error& mistakes) const {
    if (faults_ && job.packets) {
      mistakes.add(
          {"--faults", {}, {}, "goes with --network flow: packets have no rates to change"});
    } else if (faults_) {
      job.faults = collect(faults::load_faults(*faults_), mistakes);
    }
    if (job.packets) {
      refuse_given({{"--overhead", overhead_},
                    {"--incast-penalty", incast_},
                    {"--head-of-line", head_of_line_},
                    {"--spray-imbalance", imbalance_},
                    {"--ramp", ramp_}},
                   "goes with --network flow: packets have it of themselves", mistakes);
    }
    if (job.packets && no_fold_) {
      mistakes.add({"--no-fold", {}, {}, "goes with --network flow: packets never fold"});
    }
    job.congestion = {.incast_penalty = number("--incast-penalty", incast_, 0, mistakes),
                      .head_of_line = number("--head-of-line", head_of_line_, 0, mistakes),
                      .spray_imbalance = number("--spray-imbalance", imbalance_, 0, mistakes),
                      .ramp = parse("--ramp", ramp_, Bytes(0), mistakes),
                      .overhead = number("--overhead", overhead_, 1, mistakes),
                      .fold = !no_fold_};
    if (imbalance_ && job.routing != topology::Routing::spray) {
      mistakes.add({"--spray-imbalance", {}, {}, "goes with --routing spray"});
    }
    if (ramp_ && job.congestion.ramp < Bytes(1)) {
      mistakes.add(wrong_value("--ramp", *ramp_, "1 byte or more"));
    }
  }

  void read_of_packets(FlowJob& job, Error& mistakes) const {
    if (!job.packets) {
      refuse_given({{"--protocol", protocol_},
                    {"--packet", packet_},
                    {"--paths", paths_},
                    {"--skip-steady", steady_}},
                   "goes with --network packet", mistakes);
    }
    if (packet_) {
      job.options = collect(load_config(*packet_).and_then(machine::parse_packet), mistakes);
    }
    if (packet_ && protocol_) {
      mistakes.add({"--protocol", {}, {}, "is a field of --packet"});
    }
    job.options.steady = parse("--skip-steady", steady_, 0.0, mistakes);
    if (!(job.options.steady >= 0 && job.options.steady <= kMostSteady)) {
      mistakes.add(wrong_value("--skip-steady", *steady_, "0 to 0.1"));
    }
    job.options.protocol = parse("--protocol", protocol_, job.options.protocol, mistakes);
    job.options.paths = parse("--paths", paths_, job.options.paths, mistakes);
    if (paths_ && (job.options.paths < 1 || job.options.paths > network::kMostPaths)) {
      mistakes.add(wrong_value("--paths", *paths_, fmt::format("1 to {}", network::kMostPaths)));
    }
    job.options.seed = job.seed;
  }

  network::TrafficSpec read_traffic(std::uint64_t seed, Error& mistakes) const {
    network::TrafficSpec spec;
    spec.kind = parse("--traffic", traffic_, network::Traffic::permutation, mistakes);
    spec.bytes = parse("--bytes", bytes_, Bytes(1'000'000), mistakes);
    spec.stride = parse("--stride", stride_, 1, mistakes);
    spec.seed = seed;
    if (stride_ && spec.kind != network::Traffic::ring) {
      mistakes.add({"--stride", {}, {}, "goes with --traffic ring"});
    }
    if (bytes_ && flows_) {
      mistakes.add({"--bytes", {}, {}, "goes with --traffic"});
    }
    if (spec.stride < 1) {
      mistakes.add(wrong_value("--stride", *stride_, "1 or more"));
    }
    return spec;
  }

  std::optional<std::string> topology_;
  std::optional<std::string> network_;
  std::optional<std::string> protocol_;
  std::optional<std::string> packet_;
  std::optional<std::string> paths_;
  std::optional<std::string> steady_;
  std::optional<std::string> flows_;
  std::optional<std::string> traffic_;
  std::optional<std::string> bytes_;
  std::optional<std::string> stride_;
  std::optional<std::string> overhead_;
  std::optional<std::string> incast_;
  std::optional<std::string> head_of_line_;
  std::optional<std::string> imbalance_;
  std::optional<std::string> ramp_;
  std::optional<std::string> routing_;
  std::optional<std::string> seed_;
  std::optional<std::string> faults_;
  HtmlFlag html_{"flow"};
  bool no_fold_ = false;
  bool json_ = false;
  bool svg_ = false;
};

}  // namespace

std::unique_ptr<Command> make_flow() {
  return std::make_unique<Flow>();
}

}  // namespace orrery::cli
