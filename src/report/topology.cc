// SPDX-License-Identifier: Apache-2.0
#include "report/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orrery::report {
namespace {

constexpr double kWide = 1200;
constexpr double kHigh = 640;
constexpr double kMargin = 40;
constexpr std::size_t kMostVertices = 2000;
constexpr std::size_t kMostLinks = 20'000;

struct Point {
  double x = 0;
  double y = 0;
};

std::vector<Point> places_of(const topology::LinkGraph& graph) {
  std::vector<std::size_t> count;
  for (const topology::Vertex& vertex : graph.vertices) {
    const auto level = static_cast<std::size_t>(std::max(vertex.level, 0));
    count.resize(std::max(count.size(), level + 1));
    ++count[level];
  }
  std::vector<std::size_t> next(count.size());
  std::vector<Point> places;
  for (const topology::Vertex& vertex : graph.vertices) {
    const auto level = static_cast<std::size_t>(std::max(vertex.level, 0));
    const double at =
        (static_cast<double>(next[level]++) + 0.5) / static_cast<double>(count[level]);
    if (count.size() == 1) {
      const double angle = at * 2 * std::numbers::pi;
      places.push_back({kWide / 2 + std::sin(angle) * (kHigh / 2 - kMargin),
                        kHigh / 2 - std::cos(angle) * (kHigh / 2 - kMargin)});
    } else {
      const double height = static_cast<double>(level) / static_cast<double>(count.size() - 1);
      places.push_back(
          {kMargin + at * (kWide - 2 * kMargin), kHigh - kMargin - height * (kHigh - 2 * kMargin)});
    }
  }
  return places;
}

std::string escaped_name(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return out;
}

}  // namespace

Result<std::string> topology_svg(const topology::LinkGraph& graph,
                                 const std::vector<double>& load) {
  if (graph.vertices.size() > kMostVertices || graph.links.size() > kMostLinks) {
    return fail(
        fmt::format("a picture of {} hosts and switches and {} links would show nothing; "
                    "expected at most {} and {}",
                    graph.vertices.size(), graph.links.size(), kMostVertices, kMostLinks));
  }
  std::vector<double> busy(graph.links.size());
  for (std::size_t l = 0; l < load.size(); ++l) {
    busy[l] = load[l] / graph.links[l].bandwidth.value();
  }
  const double busiest = std::max(1e-30, busy.empty() ? 0 : *std::ranges::max_element(busy));
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"10\">\n<title>{2}</title>\n",
      kWide, kHigh, escaped_name(graph.name));
  const std::vector<Point> places = places_of(graph);
  for (std::size_t l = 0; l < graph.links.size(); ++l) {
    const topology::GraphLink& link = graph.links[l];
    if (link.source < 0 || link.source == link.target ||
        (load.empty() && link.source > link.target)) {
      continue;
    }
    const double share = load.empty() ? 0.25 : busy[l] / busiest;
    const Point& a = places[static_cast<std::size_t>(link.source)];
    const Point& b = places[static_cast<std::size_t>(link.target)];
    text += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{:.2f}\"><title>{}</title></line>\n",
        a.x, a.y, b.x, b.y,
        load.empty() ? "#888" : fmt::format("hsl({:.0f},80%,45%)", 120 * (1 - share)),
        0.4 + 2 * share, escaped_name(graph.link_name(l)));
  }
  for (std::size_t v = 0; v < places.size(); ++v) {
    const bool host = graph.vertices[v].kind == topology::VertexKind::host;
    text += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}</title>"
        "</circle>\n",
        places[v].x, places[v].y, host ? 3 : 5, host ? "#2b6cb0" : "#c05621",
        escaped_name(graph.vertices[v].name));
  }
  return text + "</svg>\n";
}

}  // namespace orrery::report
