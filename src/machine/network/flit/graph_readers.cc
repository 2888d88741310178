// SPDX-License-Identifier: Apache-2.0
/// Networks from texts and from the graphs of other models.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/collect.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/words.h"
#include "machine/network/flit/router_graph.h"
#include "machine/topology/makers.h"
#include "machine/topology/read.h"

namespace orrery::flit {
namespace {

/// "8x8,c=4": extents first, then fields.
struct Spec {
  std::vector<std::int32_t> extents;
  std::map<std::string, std::int32_t, std::less<>> fields;
};

Mistake wrong(std::string_view found, std::string expected) {
  return {"topology", {}, std::string(found), std::move(expected)};
}

std::vector<std::int32_t> parse_extents(std::string_view text, Error& mistakes) {
  std::vector<std::int32_t> extents;
  for (const std::string_view extent : words_of(text, "x")) {
    const auto size = parse_value<std::int32_t>(extent);
    if (!size || *size < 1) {
      mistakes.add(wrong(extent, "extents above 0 such as 8x8"));
    }
    extents.push_back(size.value_or(1));
  }
  return extents;
}

Spec parse_spec(std::string_view text, const std::vector<std::string>& known, bool has_extents,
                Error& mistakes) {
  Spec spec;
  bool first = true;
  for (const std::string_view part : words_of(text, ",")) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos && first && has_extents) {
      spec.extents = parse_extents(part, mistakes);
    } else {
      const std::string name(part.substr(0, equals));
      const auto value = equals == std::string_view::npos
                             ? tl::expected<std::int32_t, std::string>(0)
                             : parse_value<std::int32_t>(part.substr(equals + 1));
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        mistakes.add(
            wrong(part, (known.empty() ? std::string("extents such as 8x8")
                                       : "one of " + enumerated(known) + " as name=number") +
                            did_you_mean(name, known)));
      } else if (!value || *value < 1) {
        mistakes.add(wrong(part, "a whole number above 0"));
      } else {
        spec.fields[name] = *value;
      }
    }
    first = false;
  }
  return spec;
}

/// Checks the size that the makers will build, in doubles, which do not overflow.
void check_size(std::string_view text, double routers, double channels, double nodes,
                Error& mistakes) {
  if (routers > kMostRouters || nodes > kMostRouters || channels > kMostChannels) {
    mistakes.add(wrong(text, fmt::format("at most {} routers and nodes and {} channels",
                                         kMostRouters, kMostChannels)));
  }
}

double power(double base, double exponent) {
  return std::pow(base, exponent);
}

/// Refuses what would be too large to build.
void check_sizes(Shape shape, std::string_view text, const std::vector<std::int32_t>& extents,
                 const std::vector<std::int32_t>& values, Error& mistakes) {
  const bool has_extents = !extents.empty();
  double routers = 1;
  double sum = 0;
  for (const std::int32_t extent : extents) {
    routers *= extent;
    sum += extent;
  }
  const auto value = [&](std::size_t i) { return static_cast<double>(values[i]); };
  if (has_extents) {
    const bool flat = shape == Shape::flattened_butterfly;
    const double degree = flat ? sum : 2 * static_cast<double>(extents.size());
    check_size(text, routers, routers * degree, routers * (values.empty() ? 1 : value(0)),
               mistakes);
  } else if (shape == Shape::fat_tree || shape == Shape::fly) {
    routers = value(1) * power(value(0), value(1) - 1);
    check_size(text, routers, routers * 2 * value(0), power(value(0), value(1)), mistakes);
    if (values[0] < 2 && values[1] > 1) {
      mistakes.add(wrong(text, "k of at least 2"));
    }
  } else if (shape == Shape::dragonfly) {
    routers = value(1) * (value(1) * value(2) + 1);
    check_size(text, routers, routers * (value(1) + value(2)), routers * value(0), mistakes);
  } else {
    check_size(text, value(0), value(0) * value(0) * value(2), value(0) * value(1), mistakes);
  }
}

/// A tile of nodes for each router, and express channels where the edges have halves.
void check_concentration(std::string_view text, const std::vector<std::int32_t>& extents,
                         std::int32_t per_router, bool express, Error& mistakes) {
  const auto side = static_cast<std::int32_t>(std::lround(std::sqrt(per_router)));
  if (extents.size() != 2 || std::int64_t{side} * side != per_router) {
    mistakes.add(wrong(text, "two extents and c a square, such as cmesh:4x4,c=4"));
  } else if (express && (extents[0] != extents[1] || extents[0] % 2 != 0)) {
    mistakes.add(wrong(text, "equal and even extents, with express channels"));
  }
}

/// "k=4,n=3" of qtree, "k=4" of tree4.
RouterGraph parse_tree(std::string_view name, std::string_view text, std::string_view rest,
                       Error& mistakes) {
  const bool has_levels = name == "qtree";
  const Spec spec = parse_spec(
      rest, has_levels ? std::vector<std::string>{"k", "n"} : std::vector<std::string>{"k"}, false,
      mistakes);
  const auto value = [&](const char* field) {
    const auto found = spec.fields.find(field);
    if (found == spec.fields.end()) {
      mistakes.add(wrong(text, std::string("also ") + field + "=number"));
    }
    return found == spec.fields.end() ? 1 : found->second;
  };
  const std::int32_t k = value("k");
  const std::int32_t n = has_levels ? value("n") : 3;
  if (mistakes.empty() && (k < 2 || (!has_levels && k % 2 != 0))) {
    mistakes.add(wrong(text, has_levels ? "k of at least 2" : "an even k"));
  }
  if (mistakes.empty()) {
    check_size(text, 2 * power(k, n - 1), 4 * power(k, has_levels ? n - 1 : 3), power(k, n),
               mistakes);
  }
  if (!mistakes.empty()) {
    return {};
  }
  return has_levels ? make_qtree(k, n) : make_tree4(k);
}

RouterGraph parse_shape(Shape shape, std::string_view text, std::string_view rest,
                        Error& mistakes) {
  static const std::map<Shape, std::vector<std::string>> fields{
      {Shape::mesh, {}},
      {Shape::torus, {}},
      {Shape::cmesh, {"c", "express"}},
      {Shape::fat_tree, {"k", "n"}},
      {Shape::fly, {"k", "n"}},
      {Shape::flattened_butterfly, {"c"}},
      {Shape::dragonfly, {"p", "a", "h"}},
      {Shape::switch_clusters, {"n", "p", "links"}}};
  const bool has_extents = shape == Shape::mesh || shape == Shape::torus || shape == Shape::cmesh ||
                           shape == Shape::flattened_butterfly;
  const std::vector<std::string>& known = fields.at(shape);
  const Spec spec = parse_spec(rest, known, has_extents, mistakes);
  std::vector<std::int32_t> values;
  for (const std::string& name : known) {
    const auto found = spec.fields.find(name);
    if (found == spec.fields.end() && name != "express") {
      mistakes.add(wrong(text, "also " + name + "=number"));
    }
    values.push_back(found == spec.fields.end() ? 1 : found->second);
  }
  const bool express = spec.fields.contains("express");
  if (has_extents && (spec.extents.empty() || spec.extents.size() > 8)) {
    mistakes.add(wrong(text, "1 to 8 extents such as 8x8"));
  }
  if (mistakes.empty() && shape == Shape::cmesh) {
    check_concentration(text, spec.extents, values[0], express, mistakes);
  }
  if (!mistakes.empty()) {
    return {};
  }
  check_sizes(shape, text, spec.extents, values, mistakes);
  if (!mistakes.empty()) {
    return {};
  }
  switch (shape) {
    case Shape::mesh:
    case Shape::torus:
      return make_grid(shape, spec.extents);
    case Shape::cmesh:
      return make_concentrated_mesh(spec.extents, values[0], express);
    case Shape::fat_tree:
      return make_fat_tree(values[0], values[1]);
    case Shape::fly:
      return make_fly(values[0], values[1]);
    case Shape::flattened_butterfly:
      return make_flattened_butterfly(spec.extents, values[0]);
    case Shape::dragonfly:
      return make_dragonfly(values[0], values[1], values[2]);
    default:
      return make_switch_clusters(values[0], values[1], values[2]);
  }
}

}  // namespace

Result<RouterGraph> from_link_graph(const topology::LinkGraph& graph, Time cycle) {
  RouterGraph result;
  result.name = "graph:" + graph.name;
  Error mistakes;
  const auto cycles = [&](Time latency) {
    return std::max<Cycle>(1, std::llround(latency / cycle));
  };
  const bool hosts_route =
      std::any_of(graph.links.begin(), graph.links.end(), [&](const topology::GraphLink& link) {
        return link.source < graph.hosts && link.target < graph.hosts;
      });
  const std::int32_t first = hosts_route ? 0 : graph.hosts;  // vertex that is router 0
  for (std::size_t i = static_cast<std::size_t>(first); i < graph.vertices.size(); ++i) {
    result.router_names.push_back(graph.vertices[i].name);
  }
  result.routers = static_cast<std::int32_t>(result.router_names.size());
  for (std::int32_t host = 0; host < graph.hosts; ++host) {
    result.nodes.push_back(hosts_route ? Node{host, host, 1} : Node{-1, -1, 1});
  }
  const auto attach = [&](std::int32_t host, std::int32_t vertex, std::int32_t Node::*end,
                          Time latency) {
    Node& node = result.nodes[static_cast<std::size_t>(host)];
    if (node.*end >= 0 && node.*end != vertex - first) {
      mistakes.add(wrong(graph.vertices[static_cast<std::size_t>(host)].name,
                         "hosts that hang on one switch each; this one hangs on several"));
    }
    node.*end = vertex - first;
    node.latency = cycles(latency);
  };
  for (const topology::GraphLink& link : graph.links) {
    if (link.source < first) {
      attach(link.source, link.target, &Node::inject, link.latency);
    } else if (link.target < first) {
      attach(link.target, link.source, &Node::eject, link.latency);
    } else {
      result.channels.push_back({link.source - first, link.target - first, cycles(link.latency)});
    }
  }
  for (std::size_t host = 0; host < result.nodes.size(); ++host) {
    if (result.nodes[host].inject < 0 || result.nodes[host].eject < 0) {
      mistakes.add(wrong(graph.vertices[host].name, "hosts that hang on a switch"));
    }
  }
  return or_mistakes(std::move(result), std::move(mistakes));
}

Result<RouterGraph> parse_network(std::string_view text) {
  static constexpr std::array<Named<Shape>, 10> kOtherNames{
      {{Shape::torus, "ring", {}},
       {Shape::fat_tree, "fattree", {}},
       {Shape::fly, "butterfly", {}},
       {Shape::flattened_butterfly, "flatfly", {}},
       {Shape::switch_clusters, "two_switch", {}},
       {Shape::dragonfly, "dragonflynew", {}},
       {Shape::graph, "anynet", {}},
       {Shape::tree, "qtree", {}},
       {Shape::tree, "tree4", {}},
       {Shape::mesh, "line", {}}}};
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  auto shape = value_of<Shape>(name);
  for (const Named<Shape>& other : kOtherNames) {
    shape = !shape && other.name == name ? std::optional(other.value) : shape;
  }
  Error mistakes;
  if (!shape || rest.empty() || name == "tree") {
    std::string expected =
        "one of " + all_names<Shape>() + ", such as mesh:8x8 or fat_tree:k=4,n=3";
    return fail(Error(wrong(text, expected + did_you_mean(name, names_of<Shape>()))));
  }
  if (*shape == Shape::graph) {
    const std::string file(rest);
    const bool of_other_models =
        std::ranges::any_of(std::array{".yaml", ".yml", ".json", ".xml", ".topo"},
                            [&](const char* ending) { return file.ends_with(ending); });
    if (topology::is_topology_spec(rest) || of_other_models) {
      return topology::load_topology(file, "topology")
          .and_then(
              [](const topology::LinkGraph& graph) { return from_link_graph(graph, Time::max()); });
    }
    return read_file(file).and_then(
        [&](const std::string& content) { return parse_link_list(content, file); });
  }
  RouterGraph graph = *shape == Shape::tree ? parse_tree(name, text, rest, mistakes)
                                            : parse_shape(*shape, text, rest, mistakes);
  return or_mistakes(std::move(graph), std::move(mistakes));
}

}  // namespace orrery::flit
