// SPDX-License-Identifier: Apache-2.0
/// Networks from texts and from the graphs of other models.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/reader.h"
#include "machine/network/flit/router_graph.h"
#include "machine/network/flit/words.h"
#include "machine/topology/makers.h"
#include "machine/topology/read.h"

namespace orrery::flit {
namespace {

constexpr Cycle kLongestLatency = 1'000'000;

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
      mistakes.add(wrong(text, "extents above 0 such as 8x8"));
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

/// As the makers will build it; in doubles, which do not overflow.
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

/// What would be too large to build.
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
    check_size(text, routers, routers * degree, routers * (flat ? value(0) : 1), mistakes);
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

RouterGraph parse_shape(Shape shape, std::string_view text, std::string_view rest,
                        Error& mistakes) {
  static const std::map<Shape, std::vector<std::string>> fields{
      {Shape::mesh, {}},
      {Shape::torus, {}},
      {Shape::fat_tree, {"k", "n"}},
      {Shape::fly, {"k", "n"}},
      {Shape::flattened_butterfly, {"c"}},
      {Shape::dragonfly, {"p", "a", "h"}},
      {Shape::switch_clusters, {"n", "p", "links"}}};
  const bool has_extents =
      shape == Shape::mesh || shape == Shape::torus || shape == Shape::flattened_butterfly;
  const std::vector<std::string>& known = fields.at(shape);
  const Spec spec = parse_spec(rest, known, has_extents, mistakes);
  std::vector<std::int32_t> values;
  for (const std::string& name : known) {
    const auto found = spec.fields.find(name);
    if (found == spec.fields.end()) {
      mistakes.add(wrong(text, "also " + name + "=number"));
    }
    values.push_back(found == spec.fields.end() ? 1 : found->second);
  }
  if (has_extents && (spec.extents.empty() || spec.extents.size() > 8)) {
    mistakes.add(wrong(text, "1 to 8 extents such as 8x8"));
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

/// A line's words, read one after the other.
class LinkListReader {
 public:
  explicit LinkListReader(std::string file) : file_(std::move(file)) {}

  void read_line(std::string_view line, int number) {
    line_ = number;
    const std::vector<std::string_view> words = words_of(line, " \t\r");
    if (words.empty() || words[0].starts_with('#') || words[0].starts_with("//")) {
      return;
    }
    const auto head = end_of(words, 0);
    if (!head) {
      return;
    }
    if (words.size() < 4) {
      add("", "a link: 'router NUMBER' or 'node NUMBER' after the first one");
    }
    for (std::size_t i = 2; i < words.size();) {
      const auto end = end_of(words, i);
      if (!end) {
        return;
      }
      i += 2;
      Cycle latency = 1;
      const bool has_latency = i < words.size() && words[i] != "router" && words[i] != "node";
      if (has_latency) {
        const auto value = parse_value<std::int64_t>(words[i]);
        if (!value || *value < 1 || *value > kLongestLatency) {
          add(words[i], fmt::format("a latency of 1 to {} cycles", kLongestLatency));
        }
        latency = value.value_or(1);
        ++i;
      }
      link(*head, *end, latency);
    }
  }

  Result<RouterGraph> finish() {
    RouterGraph graph;
    graph.name = "graph:" + file_;
    std::map<std::int32_t, std::int32_t> places;  // of routers by their number
    for (const std::int32_t router : routers_) {
      places.emplace(router, graph.routers++);
      graph.router_names.push_back(std::to_string(router));
    }
    for (const auto& [ends, latency] : links_) {
      graph.channels.push_back({places.at(ends.first), places.at(ends.second), latency});
    }
    std::int32_t next = 0;
    line_ = 0;
    for (const auto& [node, place] : nodes_) {
      if (node != next++) {
        add(std::to_string(node), fmt::format("nodes numbered from 0 on; {} is missing", next - 1));
        break;
      }
      graph.nodes.push_back({places.at(place.first), places.at(place.first), place.second});
    }
    if (graph.nodes.empty() && mistakes_.empty()) {
      add("", "at least one node");
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    return graph;
  }

 private:
  struct End {
    bool is_router = false;
    std::int32_t number = 0;
  };

  void add(std::string_view found, std::string expected) {
    mistakes_.add({line_ > 0 ? fmt::format("{}:{}", file_, line_) : file_,
                   {},
                   std::string(found),
                   std::move(expected)});
  }

  std::optional<End> end_of(const std::vector<std::string_view>& words, std::size_t at) {
    const bool is_router = words[at] == "router";
    if (!is_router && words[at] != "node") {
      add(words[at], "'router' or 'node', then its number");
      return std::nullopt;
    }
    const auto number = at + 1 < words.size() ? parse_value<std::int32_t>(words[at + 1])
                                              : tl::make_unexpected(std::string());
    if (!number || *number < 0 || *number >= kMostRouters) {
      add(at + 1 < words.size() ? words[at + 1] : "",
          fmt::format("a number from 0 to {}", kMostRouters - 1));
      return std::nullopt;
    }
    if (is_router) {
      routers_.insert(*number);
    }
    return End{is_router, *number};
  }

  void link(const End& a, const End& b, Cycle latency) {
    if (!a.is_router && !b.is_router) {
      add("", "a router at one end: nodes are not linked to each other");
    } else if (a.is_router && b.is_router) {
      if (a.number == b.number) {
        add(std::to_string(a.number), "another router: a link does not lead back");
        return;
      }
      links_[{a.number, b.number}] = latency;
      links_.try_emplace({b.number, a.number}, 1);
    } else {
      const End& node = a.is_router ? b : a;
      const End& router = a.is_router ? a : b;
      const auto [place, is_new] = nodes_.try_emplace(node.number, router.number, latency);
      if (!is_new && place->second.first != router.number) {
        add(std::to_string(node.number), "a node at one router");
      }
    }
  }

  std::string file_;
  int line_ = 0;
  Error mistakes_;
  std::set<std::int32_t> routers_;
  std::map<std::pair<std::int32_t, std::int32_t>, Cycle> links_;  ///< by source and target
  std::map<std::int32_t, std::pair<std::int32_t, Cycle>> nodes_;
};

}  // namespace

Result<RouterGraph> parse_link_list(std::string_view text, const std::string& file) {
  LinkListReader reader(file);
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.read_line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

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
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return result;
}

Result<RouterGraph> parse_network(std::string_view text) {
  static constexpr std::array<Named<Shape>, 8> kOtherNames{
      {{Shape::torus, "ring", {}},
       {Shape::fat_tree, "fattree", {}},
       {Shape::fly, "butterfly", {}},
       {Shape::flattened_butterfly, "flatfly", {}},
       {Shape::switch_clusters, "two_switch", {}},
       {Shape::dragonfly, "dragonflynew", {}},
       {Shape::graph, "anynet", {}},
       {Shape::mesh, "line", {}}}};
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  auto shape = value_of<Shape>(name);
  for (const Named<Shape>& other : kOtherNames) {
    shape = !shape && other.name == name ? std::optional(other.value) : shape;
  }
  Error mistakes;
  if (!shape || rest.empty()) {
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
  RouterGraph graph = parse_shape(*shape, text, rest, mistakes);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return graph;
}

}  // namespace orrery::flit
