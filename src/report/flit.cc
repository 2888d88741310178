// SPDX-License-Identifier: Apache-2.0
#include "report/flit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/csv.h"

namespace orrery::report {
namespace {

constexpr std::size_t kBusiest = 5;  // channels that the table shows

std::string_view freedom_of(const flit::DependencyCheck& check) {
  switch (check.freedom) {
    case flit::Freedom::free:
      return "free";
    case flit::Freedom::circular:
      return "circular";
    case flit::Freedom::not_checked:
      return "not_checked";
  }
  return "?";
}

std::string freedom_text(const flit::DependencyCheck& check) {
  switch (check.freedom) {
    case flit::Freedom::free:
      return "no circle of waiting is possible";
    case flit::Freedom::circular:
      return "POSSIBLE: " + check.circle;
    case flit::Freedom::not_checked:
      return "not checked: " + check.circle;
  }
  return {};
}

void declare_run(const flit::OpenLoopResult& run, Fields& fields) {
  fields.field("offered_load", "flits that each node offers per cycle", run.offered);
  fields.field("stable", "it reached a steady state below the latency limit", run.stable);
  fields.field("reason", "why not; empty: it did", run.reason);
  fields.nullable("packet_latency_mean",
                  "cycles from creation to the tail's arrival; null: no packet arrived",
                  std::optional(run.packet_latency));
  const auto percentile = [&](std::string_view name, std::string_view sentence,
                              flit::Cycle latency) {
    fields.nullable(name, sentence, run.packets > 0 ? std::optional(latency) : std::nullopt);
  };
  percentile("packet_latency_p50", "cycles that half do not exceed", run.latency_p50);
  percentile("packet_latency_p90", "cycles", run.latency_p90);
  percentile("packet_latency_p99", "cycles", run.latency_p99);
  percentile("packet_latency_max", "cycles", run.latency_max);
  fields.nullable("network_latency_mean",
                  "cycles from the head leaving its node to the tail's arrival",
                  std::optional(run.network_latency));
  fields.nullable("flit_latency_mean", "cycles of a flit from leaving its node to arrival",
                  std::optional(run.flit_latency));
  fields.field("hops_mean", "routers visited", run.hops);
  fields.field("injected_load", "flits per node and cycle in the periods that count", run.injected);
  fields.field("accepted_load", "the same, arrived", run.accepted);
  fields.field("packets", "that count", run.packets);
  fields.field("cycles", "simulated", run.cycles);
  fields.field("flit_hops", "flits that passed a switch", run.flit_hops);
  fields.list(
      "classes", {"by class, where there are several; the means are of its packets", "one class"},
      run.classes.size() < 2 ? std::vector<flit::ClassResult>() : run.classes,
      [&](const flit::ClassResult& of) {
        fields.field("packet_latency_mean", "cycles, source queue included", of.packet_latency);
        fields.field("network_latency_mean", "cycles in the network", of.network_latency);
        fields.field("flit_latency_mean", "cycles, by flit", of.flit_latency);
        fields.field("hops_mean", "routers visited", of.hops);
        fields.field("injected_load", "flits per node and cycle", of.injected);
        fields.field("accepted_load", "the same, arrived", of.accepted);
        fields.field("packets", "that count", of.packets);
      },
      true);
}

void declare_network(const FlitReport& report, Fields& fields) {
  fields.field("topology", "as given", report.experiment.topology);
  fields.field("nodes", "that send and receive", report.nodes);
  fields.field("routers", "routers", report.routers);
  fields.field("routing", "algorithm taken", report.routing);
}

void declare_notes(const FlitReport& report, Fields& fields) {
  fields.values("notes", {"what a reader should know", "a sentence"}, report.notes);
}

std::string classes_text(const flit::OpenLoopResult& run) {
  std::string text;
  for (std::size_t i = 0; run.classes.size() > 1 && i < run.classes.size(); ++i) {
    const flit::ClassResult& of = run.classes[i];
    text += fmt::format(
        "  class {:<11}packet latency {:.2f}, network {:.2f}, by flit {:.2f}; accepted load "
        "{:.4f}, "
        "{} packets\n",
        i, of.packet_latency, of.network_latency, of.flit_latency, of.accepted, of.packets);
  }
  return text;
}

/// Returns the sizes of packets: "4" flits, "1 to 8" where they differ.
std::string sizes_text(const flit::Experiment& experiment) {
  int least = experiment.load.packet;
  int most = least;
  for (const flit::TrafficClass& of : experiment.classes) {
    const auto take = [&](const auto& sizes) {
      for (const int size : sizes) {
        least = std::min(least, size);
        most = std::max(most, size);
      }
    };
    if (of.transacts) {
      take(of.transaction_sizes);
    } else {
      take(of.sizes);
    }
  }
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

std::string curve_text(const FlitReport& report) {
  std::string text = fmt::format("{:>10}{:>10}{:>12}{:>12}{:>8}{:>8}\n", "offered", "accepted",
                                 "packet", "network", "p99", "hops");
  for (const flit::OpenLoopResult& run : report.curve) {
    text += fmt::format("{:>10.4f}{:>10.4f}{:>12.2f}{:>12.2f}{:>8}{:>8.3f}{}\n", run.offered,
                        run.accepted, run.packet_latency, run.network_latency, run.latency_p99,
                        run.hops, run.stable ? "" : "  unstable");
  }
  return text;
}

/// Returns the two lines of latencies; of an unstable run without a packet that has arrived, so.
std::string latency_text(const flit::OpenLoopResult& run) {
  if (run.packets == 0) {
    return "  packet latency   none: no packet has arrived\n";
  }
  return fmt::format(
      "  packet latency   {:.2f} cycles (p50 {}, p90 {}, p99 {}, max {}), source queue included\n"
      "  network latency  {:.2f} cycles; by flit {:.2f}\n",
      run.packet_latency, run.latency_p50, run.latency_p90, run.latency_p99, run.latency_max,
      run.network_latency, run.flit_latency);
}

}  // namespace

std::string flit_table(const FlitReport& report, const flit::RouterGraph& graph) {
  const flit::Experiment& experiment = report.experiment;
  const flit::OpenLoopResult& run = report.point;
  std::string text = fmt::format(
      "{}: {} nodes, {} routers, {} channels; routing {}, {} VCs of {} flits; {}, packets of {} "
      "flits\n",
      graph.name, report.nodes, report.routers, graph.channels.size(), report.routing,
      experiment.router.vcs, experiment.router.buffer, experiment.pattern, sizes_text(experiment));
  text += fmt::format("  deadlock         {}\n", freedom_text(report.dependencies));
  text += fmt::format("  offered load     {:.4f} flits per node and cycle\n", run.offered);
  text += fmt::format("  accepted load    {:.4f}\n", run.accepted);
  text += latency_text(run);
  text += fmt::format("  hops             {:.3f} routers; {} packets, {} cycles simulated\n",
                      run.hops, run.packets, run.cycles);
  text += classes_text(run);
  if (!run.stable) {
    text += "  UNSTABLE         " + run.reason + "\n";
  }
  std::vector<std::size_t> order(run.channel_load.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t shown = std::min(kBusiest, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return std::pair(-run.channel_load[a], a) <
                             std::pair(-run.channel_load[b], b);
                    });
  for (std::size_t i = 0; i < shown; ++i) {
    const flit::Channel& channel = graph.channels[order[i]];
    text += fmt::format("  {}  {:.3f} flits per cycle, router {} to {}\n",
                        i == 0 ? "busiest links  " : "               ", run.channel_load[order[i]],
                        graph.router_name(channel.source), graph.router_name(channel.target));
  }
  if (report.saturation) {
    text += fmt::format("  saturation       {:.4f} offered, {:.4f} accepted\n",
                        report.saturation->offered, report.saturation->accepted);
    text += curve_text(report);
  }
  for (const std::string& note : report.notes) {
    text += "note: " + note + "\n";
  }
  return text;
}

void declare(const FlitReport& report, Fields& fields) {
  const flit::Experiment& experiment = report.experiment;
  declare_network(report, fields);
  fields.field("pattern", "who sends to whom", experiment.pattern);
  fields.field("vcs", "virtual channels of a port", experiment.router.vcs);
  fields.field("buffer", "flits of a virtual channel", experiment.router.buffer);
  fields.field("packet", "flits of a packet", experiment.load.packet);
  fields.field("seed", "of everything at random", experiment.load.seed);
  fields.choice("deadlock", "dependencies of channels", {"free", "circular", "not_checked"},
                freedom_of(report.dependencies));
  fields.field("deadlock_circle", "channels that may wait for each other",
               report.dependencies.circle);
  declare_run(report.point, fields);
  const auto& found = report.saturation;
  fields.nullable("saturation_load", "highest stable offered load; null without --sweep",
                  found ? std::optional(found->offered) : std::nullopt);
  fields.nullable("saturation_accepted", "accepted load there",
                  found ? std::optional(found->accepted) : std::nullopt);
  fields.list("curve", {"by load, with --sweep", "one load"}, report.curve,
              [&](const flit::OpenLoopResult& run) { declare_run(run, fields); });
  declare_notes(report, fields);
}

std::string flit_loop_table(const FlitReport& report, const flit::RouterGraph& graph) {
  const flit::LoopResult& loop = *report.loop;
  std::string text =
      fmt::format("{}: {} nodes, {} routers, {} channels; routing {}\n", graph.name, report.nodes,
                  report.routers, graph.channels.size(), report.routing);
  text +=
      fmt::format("  events           {}, all done after {} cycles\n", loop.ends.size(), loop.end);
  text += fmt::format("  simulated        {} cycles; {} messages met no other\n",
                      loop.cycles_simulated, loop.alone);
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    text += fmt::format("  {:<16} {}\n", report.names[i], loop.ends[i]);
  }
  for (const std::string& note : report.notes) {
    text += "note: " + note + "\n";
  }
  return text;
}

void declare_loop(const FlitReport& report, Fields& fields) {
  const flit::LoopResult loop = report.loop.value_or(flit::LoopResult{});
  declare_network(report, fields);
  fields.field("events", "messages, packets of a batch, and pieces of work", loop.ends.size());
  fields.field("cycles", "until all are done", loop.end);
  fields.field("cycles_simulated", "flit by flit; the rest by closed form", loop.cycles_simulated);
  fields.field("messages_alone", "that met no other and took the closed form", loop.alone);
  fields.map<std::int64_t>("ends", {"of --messages: cycle in which each is done, by name", "cycle"},
                           [&](const auto& add) {
                             for (std::size_t i = 0; i < report.names.size(); ++i) {
                               add(report.names[i], loop.ends[i]);
                             }
                           });
  declare_notes(report, fields);
}

std::string flit_links_csv(const FlitReport& report, const flit::RouterGraph& graph) {
  std::string text = csv_line({"source", "target", "load"});
  for (std::size_t i = 0; i < graph.channels.size(); ++i) {
    text += csv_line({graph.router_name(graph.channels[i].source),
                      graph.router_name(graph.channels[i].target),
                      fmt::format("{}", report.point.channel_load[i])});
  }
  return text;
}

Result<Plot> flit_plot(const FlitReport& report) {
  CsvTable table{
      .file = "--plot",
      .header = {"offered load (flits per node and cycle)", "packet latency", "network latency"},
      .rows = {}};
  for (const flit::OpenLoopResult& run : report.curve) {
    if (run.stable && run.packets > 0) {
      table.rows.push_back(
          {.line = static_cast<int>(table.rows.size()) + 1,
           .cells = {fmt::format("{}", run.offered), fmt::format("{}", run.packet_latency),
                     fmt::format("{}", run.network_latency)}});
    }
  }
  Plot plot;
  plot.kind = PlotKind::lines;
  plot.title = fmt::format("{}, {}, {}", report.experiment.topology, report.routing,
                           report.experiment.pattern);
  plot.y_label = "cycles";
  return fill(std::move(plot), table);
}

}  // namespace orrery::report
