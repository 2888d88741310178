// SPDX-License-Identifier: Apache-2.0
#include "cli/show_topology.h"

#include <fmt/format.h>

#include "base/format.h"
#include "cli/command.h"
#include "machine/topology/read.h"
#include "report/json_writer.h"
#include "report/topology.h"

namespace orrery::cli {
namespace {

void write_figures(report::JsonWriter& json, const topology::LinkGraph& graph,
                   const topology::GraphFigures& figures) {
  json.begin_object();
  json.key("topology").value(graph.name);
  json.key("hosts").value(figures.hosts);
  json.key("switches").value(figures.switches);
  json.key("links").value(graph.links.size());
  json.key("cables").value(figures.cables);
  json.key("diameter").value(figures.diameter);
  json.key("mean_distance").value(figures.mean_distance);
  json.key("latency_s").value(to_seconds(figures.farthest));
  json.key("bisection").value(figures.bisection.value());
  json.key("injection").value(figures.injection.value());
  json.key("connected").value(figures.connected);
  json.key("routing").value(name_of(graph.routing));
  json.end_object();
}

}  // namespace

Result<std::string> show_topology(const std::string& name, bool json, bool svg, Error& mistakes) {
  const topology::LinkGraph graph =
      collect(topology::load_topology(name, "show topology"), mistakes);
  if (!mistakes.empty()) {
    return {};
  }
  if (svg) {
    return report::topology_svg(graph, {});
  }
  const topology::GraphFigures figures = topology::figures(graph);
  if (json) {
    return report::json_text(
        [&](report::JsonWriter& writer) { write_figures(writer, graph, figures); });
  }
  std::string text = fmt::format("{}\n", graph.name);
  text += fmt::format("hosts           {}\n", figures.hosts);
  text += fmt::format("switches        {}\n", figures.switches);
  text += fmt::format("cables          {} ({} links)\n", figures.cables, graph.links.size());
  text += fmt::format("diameter        {} links, {} of latency\n", figures.diameter,
                      to_string(figures.farthest));
  text += fmt::format("mean distance   {:.2f} links\n", figures.mean_distance);
  if (figures.injection > Bandwidth(0)) {
    text += fmt::format("bisection       {} of {} that half of the hosts can send ({})\n",
                        to_string(figures.bisection), to_string(figures.injection),
                        percent(figures.bisection / figures.injection));
  }
  text += fmt::format("routing         {}\n", name_of(graph.routing));
  if (!figures.connected) {
    text += "not every host reaches every other\n";
  }
  return text;
}

}  // namespace orrery::cli
