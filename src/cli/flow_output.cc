// SPDX-License-Identifier: Apache-2.0
#include "cli/flow_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "report/json_writer.h"

namespace orrery::cli {
namespace {

double mean_finish(const network::FlowRun& run) {
  double sum = 0;
  for (const Time finish : run.finish) {
    sum += to_seconds(finish);
  }
  return run.finish.empty() ? 0 : sum / static_cast<double>(run.finish.size());
}

/// Links that something has passed, with how long it takes alone.
struct UsedLink {
  std::size_t link;
  double seconds;
};
std::vector<UsedLink> used_links(const FlowJob& job, const network::FlowRun& run) {
  std::vector<UsedLink> links;
  for (std::size_t l = 0; l < run.load.size(); ++l) {
    if (run.load[l] > 0) {
      links.push_back({l, run.load[l] / job.graph.links[l].bandwidth.value()});
    }
  }
  return links;
}

void write_flow(report::JsonWriter& json, const FlowJob& job, const topology::Router& router,
                const network::FlowRun& run) {
  json.begin_object();
  json.key("topology").value(job.graph.name);
  json.key("network").value(job.packets ? "packet" : "flow");
  if (job.packets) {
    json.key("protocol").value(name_of(job.options.protocol));
  } else {
    json.key("overhead").value(job.congestion.overhead);
    json.key("incast_penalty").value(job.congestion.incast_penalty);
    json.key("head_of_line").value(job.congestion.head_of_line);
    json.key("spray_imbalance").value(job.congestion.spray_imbalance);
    json.key("ramp_bytes").value(job.congestion.ramp.value());
  }
  json.key("routing").value(name_of(router.routing()));
  json.key("seed").value(job.seed);
  json.key("hosts").value(job.graph.hosts);
  json.key("end_s").value(to_seconds(run.end));
  json.key("mean_finish_s").value(mean_finish(run));
  json.key(job.packets ? "packets" : "pieces").value(run.pieces);
  if (!job.packets) {
    json.key("simulated").value(run.simulated);
  }
  if (!job.faults.empty()) {
    json.key("rerouted").value(run.rerouted);
  }
  if (job.packets) {
    json.key("skip_steady").value(job.options.steady);
    json.key("skipped").value(run.skipped);
    json.key("resent").value(run.resent);
    json.key("pauses").value(run.pauses);
    json.key("marks").value(run.marks);
  }
  json.key("flows").begin_array();
  for (std::size_t f = 0; f < job.flows.size(); ++f) {
    const network::FlowRequest& flow = job.flows[f];
    json.begin_object();
    json.key("source").value(job.graph.vertices[static_cast<std::size_t>(flow.source)].name);
    json.key("target").value(job.graph.vertices[static_cast<std::size_t>(flow.target)].name);
    json.key("bytes").value(flow.bytes.value());
    json.key("start_s").value(to_seconds(flow.start));
    json.key("finish_s").value(to_seconds(run.finish[f]));
    json.end_object();
  }
  json.end_array();
  json.key("links").objects(used_links(job, run), [&](const UsedLink& link) {
    json.key("name").value(job.graph.link_name(link.link));
    json.key("bandwidth").value(job.graph.links[link.link].bandwidth.value());
    json.key("load").value(run.load[link.link]);
    json.key("busy_s").value(link.seconds);
  });
  json.end_object();
}

}  // namespace

std::string flow_json(const FlowJob& job, const topology::Router& router,
                      const network::FlowRun& run) {
  return report::json_text([&](report::JsonWriter& json) { write_flow(json, job, router, run); });
}

std::string flow_table(const FlowJob& job, const topology::Router& router,
                       const network::FlowRun& run) {
  std::vector<Time> finish = run.finish;
  std::ranges::sort(finish);
  std::string text = fmt::format(
      "{}: {} hosts, routing {}, {}\n", job.graph.name, job.graph.hosts, name_of(router.routing()),
      job.packets ? fmt::format("packets ({})", name_of(job.options.protocol))
                  : "max-min fair flows");
  if (finish.empty()) {
    return text + "no flows\n";
  }
  text += fmt::format("flows         {}", finish.size());
  text += run.pieces > finish.size()
              ? fmt::format(" in {} {}", run.pieces, job.packets ? "packets" : "pieces")
              : "";
  text += !job.packets && run.simulated < run.pieces
              ? fmt::format(", of which {} are simulated, the others being alike\n", run.simulated)
              : "\n";
  if (!job.faults.empty()) {
    text += fmt::format("rerouted      {}\n", run.rerouted);
  }
  if (job.packets) {
    text += fmt::format("packets       {} sent again, {} marked, {} skipped; {} pauses\n",
                        run.resent, run.marks, run.skipped, run.pauses);
  }
  text += fmt::format("last finish   {}\n", to_string(run.end));
  text += fmt::format("mean finish   {}\n", to_string(from_seconds(mean_finish(run))));
  text += fmt::format("median        {}\n", to_string(finish[finish.size() / 2]));
  text += fmt::format("first finish  {}\n", to_string(finish.front()));
  std::vector<UsedLink> links = used_links(job, run);
  std::ranges::stable_sort(
      links, [](const UsedLink& a, const UsedLink& b) { return a.seconds > b.seconds; });
  text += "busiest links (bytes; time that they take alone):\n";
  constexpr std::size_t kShown = 5;
  for (std::size_t l = 0; l < std::min(kShown, links.size()); ++l) {
    text += fmt::format("  {:<28} {:>12} {:>12}\n", job.graph.link_name(links[l].link),
                        to_string(Bytes::from_double(run.load[links[l].link])),
                        to_string(from_seconds(links[l].seconds)));
  }
  return text;
}

}  // namespace orrery::cli
