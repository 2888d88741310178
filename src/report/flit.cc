// SPDX-License-Identifier: Apache-2.0
#include "report/flit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/csv.h"
#include "report/json_writer.h"

namespace orrery::report {
namespace {

constexpr std::size_t kBusiest = 5;  // channels that the table shows

std::string router_of(const flit::RouterGraph& graph, std::int32_t router) {
  return graph.router_names.empty() ? std::to_string(router)
                                    : graph.router_names[static_cast<std::size_t>(router)];
}

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

void write_run(JsonWriter& json, const flit::OpenLoopResult& run) {
  json.key("offered_load").value(run.offered);
  json.key("stable").value(run.stable);
  json.key("reason").value(run.reason);
  json.key("packet_latency_mean").value(run.packet_latency);
  const auto percentile = [&](const char* key, flit::Cycle latency) {
    if (run.packets > 0) {
      json.key(key).value(latency);
    } else {
      json.key(key).value(run.packet_latency);  // as of the mean: no packet has arrived
    }
  };
  percentile("packet_latency_p50", run.latency_p50);
  percentile("packet_latency_p90", run.latency_p90);
  percentile("packet_latency_p99", run.latency_p99);
  percentile("packet_latency_max", run.latency_max);
  json.key("network_latency_mean").value(run.network_latency);
  json.key("flit_latency_mean").value(run.flit_latency);
  json.key("hops_mean").value(run.hops);
  json.key("injected_load").value(run.injected);
  json.key("accepted_load").value(run.accepted);
  json.key("packets").value(run.packets);
  json.key("cycles").value(run.cycles);
  json.key("flit_hops").value(run.flit_hops);
  if (run.classes.size() < 2) {
    return;
  }
  json.key("classes").begin_array();
  for (const flit::ClassResult& of : run.classes) {
    json.begin_object();
    json.key("packet_latency_mean").value(of.packet_latency);
    json.key("network_latency_mean").value(of.network_latency);
    json.key("flit_latency_mean").value(of.flit_latency);
    json.key("hops_mean").value(of.hops);
    json.key("injected_load").value(of.injected);
    json.key("accepted_load").value(of.accepted);
    json.key("packets").value(of.packets);
    json.end_object();
  }
  json.end_array();
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
  text += fmt::format(
      "  packet latency   {:.2f} cycles (p50 {}, p90 {}, p99 {}, max {}), source queue included\n",
      run.packet_latency, run.latency_p50, run.latency_p90, run.latency_p99, run.latency_max);
  text += fmt::format("  network latency  {:.2f} cycles; by flit {:.2f}\n", run.network_latency,
                      run.flit_latency);
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
                        router_of(graph, channel.source), router_of(graph, channel.target));
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

std::string flit_json(const FlitReport& report) {
  const flit::Experiment& experiment = report.experiment;
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("topology").value(experiment.topology);
    json.key("nodes").value(report.nodes);
    json.key("routers").value(report.routers);
    json.key("routing").value(report.routing);
    json.key("pattern").value(experiment.pattern);
    json.key("vcs").value(experiment.router.vcs);
    json.key("buffer").value(experiment.router.buffer);
    json.key("packet").value(experiment.load.packet);
    json.key("seed").value(experiment.load.seed);
    json.key("deadlock").value(freedom_of(report.dependencies));
    json.key("deadlock_circle").value(report.dependencies.circle);
    write_run(json, report.point);
    if (report.saturation) {
      json.key("saturation_load").value(report.saturation->offered);
      json.key("saturation_accepted").value(report.saturation->accepted);
    } else {
      json.key("saturation_load").number_text("null");
      json.key("saturation_accepted").number_text("null");
    }
    json.key("curve").begin_array();
    for (const flit::OpenLoopResult& run : report.curve) {
      json.begin_object();
      write_run(json, run);
      json.end_object();
    }
    json.end_array();
    json.key("notes").begin_array();
    for (const std::string& note : report.notes) {
      json.value(note);
    }
    json.end_array().end_object();
  });
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

std::string flit_loop_json(const FlitReport& report) {
  const flit::LoopResult& loop = *report.loop;
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("topology").value(report.experiment.topology);
    json.key("nodes").value(report.nodes);
    json.key("routers").value(report.routers);
    json.key("routing").value(report.routing);
    json.key("events").value(loop.ends.size());
    json.key("cycles").value(loop.end);
    json.key("cycles_simulated").value(loop.cycles_simulated);
    json.key("messages_alone").value(loop.alone);
    json.key("ends").begin_object();
    for (std::size_t i = 0; i < report.names.size(); ++i) {
      json.key(report.names[i]).value(loop.ends[i]);
    }
    json.end_object();
    json.key("notes").begin_array();
    for (const std::string& note : report.notes) {
      json.value(note);
    }
    json.end_array().end_object();
  });
}

std::string flit_links_csv(const FlitReport& report, const flit::RouterGraph& graph) {
  std::string text = csv_line({"source", "target", "load"});
  for (std::size_t i = 0; i < graph.channels.size(); ++i) {
    text += csv_line({router_of(graph, graph.channels[i].source),
                      router_of(graph, graph.channels[i].target),
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
