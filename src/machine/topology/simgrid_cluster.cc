// SPDX-License-Identifier: Apache-2.0
/// Clusters of SimGrid's platform files as networks, and the fields of its elements.
#include <algorithm>
#include <charconv>
#include <map>

#include "base/lists.h"
#include "base/names.h"
#include "machine/topology/makers.h"
#include "machine/topology/simgrid_fields.h"
#include "machine/topology/simgrid_units.h"

namespace orrery::topology {
namespace {

class ClusterReader {
 public:
  explicit ClusterReader(XmlText& xml) : xml_(xml) {}

  LinkGraph read(const pugi::xml_node& node) {
    add_cluster(node);
    return std::move(graph_);
  }

 private:
  void add_cluster(const pugi::xml_node& node) {
    const std::vector<std::int64_t> radical = radical_of(xml_, node);
    const Wire wire = wire_of(xml_, node, "bw", "lat");
    const Sharing sharing = sharing_of(xml_, node, "sharing_policy", Sharing::split);
    const std::string_view kind = node.attribute("topology").value();
    std::vector<std::vector<std::int32_t>> numbers = parameters_of(node);
    if (!xml_.error().empty()) {
      return;
    }
    const std::string spec = kind == "FAT_TREE" ? fat_tree_spec(node, numbers)
                             : kind == "TORUS"  ? torus_spec(node, numbers)
                             : kind.empty() || kind == "FLAT"
                                 ? "clos:down=" + std::to_string(radical.size()) + ",up=1"
                                 : "";
    if (kind == "DRAGONFLY") {
      add_dragonfly(node, numbers, wire);
    } else if (spec.empty()) {
      xml_.mistake(node, "topology", "FLAT, FAT_TREE, TORUS or DRAGONFLY");
    }
    if (!xml_.error().empty()) {
      return;
    }
    if (!spec.empty()) {
      Result<LinkGraph> made = parse_topology(spec, "topo_parameters");
      if (!made) {
        xml_.mistake(node, "topo_parameters", "a smaller network: " + made.error().to_string());
        return;
      }
      graph_ = std::move(*made);
      graph_.routing = kind == "TORUS" ? Routing::dimension_order : Routing::d_mod_k;
    }
    finish_cluster(node, radical, wire, sharing);
  }

  void finish_cluster(const pugi::xml_node& node, const std::vector<std::int64_t>& radical,
                      const Wire& wire, Sharing sharing) {
    if (radical.size() != static_cast<std::size_t>(graph_.hosts)) {
      xml_.mistake(node, "radical",
                   std::to_string(graph_.hosts) + " hosts, as topo_parameters says");
      return;
    }
    for (std::size_t h = 0; h < radical.size(); ++h) {
      graph_.vertices[h].name = cluster_host(node, radical[h]);
    }
    if (node.attribute("topology").value() != std::string_view("DRAGONFLY")) {
      for (GraphLink& link : graph_.links) {
        link.bandwidth = wire.bandwidth;
        link.latency = wire.latency;
      }
    }
    for (GraphLink& link : graph_.links) {
      link.joint = sharing == Sharing::shared;
      link.pipe = sharing == Sharing::fat_pipe;
    }
    if (node.attribute("loopback_bw")) {
      const Wire loop = wire_of(xml_, node, "loopback_bw", "loopback_lat");
      for (std::int32_t h = 0; h < graph_.hosts; ++h) {
        graph_.links.push_back({h, h, loop.bandwidth, loop.latency});
        graph_.links.back().pipe = true;
      }
    }
  }

  /// "2;4,4;1,2;1,1" as lists of numbers.
  std::vector<std::vector<std::int32_t>> parameters_of(const pugi::xml_node& node) {
    std::vector<std::vector<std::int32_t>> lists(1);
    const std::string_view text = node.attribute("topo_parameters").value();
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
      std::int32_t number = 0;
      const auto [next, problem] = std::from_chars(at, end, number);
      if (problem != std::errc{} || number < 1 || number > 100'000) {
        xml_.mistake(node, "topo_parameters", "numbers such as 2;4,4;1,2;1,1");
        return lists;
      }
      lists.back().push_back(number);
      at = next;
      if (at != end) {
        if (*at == ';') {
          lists.emplace_back();
        } else if (*at != ',') {
          xml_.mistake(node, "topo_parameters", "numbers with , and ; between them");
          return lists;
        }
        ++at;
      }
    }
    return lists;
  }

  static std::string extents(const std::vector<std::int32_t>& numbers) {
    return joined(numbers, "x");
  }

  std::string fat_tree_spec(const pugi::xml_node& node,
                            const std::vector<std::vector<std::int32_t>>& numbers) {
    const bool good =
        numbers.size() == 4 && numbers[0].size() == 1 &&
        std::ranges::all_of(numbers.begin() + 1, numbers.end(), [&](const auto& list) {
          return list.size() == static_cast<std::size_t>(numbers[0][0]);
        });
    if (!good) {
      xml_.mistake(node, "topo_parameters",
                   "levels;children;parents;cables, a number per level in each, such as "
                   "2;4,4;1,2;1,1");
      return "none";
    }
    return "clos:down=" + extents(numbers[1]) + ",up=" + extents(numbers[2]) +
           ",parallel=" + extents(numbers[3]);
  }

  std::string torus_spec(const pugi::xml_node& node,
                         const std::vector<std::vector<std::int32_t>>& numbers) {
    if (numbers.size() != 1 || numbers[0].empty()) {
      xml_.mistake(node, "topo_parameters", "extents such as 4,4,4");
      return "none";
    }
    return "torus:shape=" + extents(numbers[0]);
  }

  void add_dragonfly(const pugi::xml_node& node,
                     const std::vector<std::vector<std::int32_t>>& numbers, const Wire& wire) {
    if (numbers.size() != 4 || numbers[0].size() != 2 || numbers[1].size() != 2 ||
        numbers[2].size() != 2 || numbers[3].size() != 1) {
      xml_.mistake(node, "topo_parameters",
                   "groups,links;chassis,links;blades,links;nodes such as 3,4;4,3;5,1;2");
      return;
    }
    const std::int32_t groups = numbers[0][0];
    const std::int32_t chassis = numbers[1][0];
    const std::int32_t blades = numbers[2][0];
    const std::int32_t nodes = numbers[3][0];
    const double all = 1.0 * groups * chassis * blades;
    if (all * (nodes + 1.0) > kMostVertices || all * (nodes + blades + chassis) > kMostLinks) {
      xml_.mistake(node, "topo_parameters", "a smaller network");
      return;
    }
    if (groups > blades) {
      xml_.mistake(node, "topo_parameters",
                   "at most as many groups as blades per chassis: blade g "
                   "has the link to group g");
      return;
    }
    add_hosts(graph_, static_cast<std::int64_t>(all) * nodes);
    const std::int32_t first = add_switches(graph_, static_cast<std::int64_t>(all), "router", 1);
    const auto router = [&](std::int32_t g, std::int32_t c, std::int32_t b) {
      return first + (g * chassis + c) * blades + b;
    };
    const auto times = [&](std::int32_t copies) {
      return Bandwidth(wire.bandwidth.value() * copies);
    };
    for (std::int32_t h = 0; h < graph_.hosts; ++h) {
      graph_.connect(h, first + h / nodes, wire.bandwidth, wire.latency);
    }
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(all); ++r) {
      const std::int32_t b = r % blades;
      const std::int32_t c = r / blades % chassis;
      const std::int32_t g = r / blades / chassis;
      for (std::int32_t other = b + 1; other < blades; ++other) {
        graph_.connect(first + r, router(g, c, other), times(numbers[2][1]), wire.latency);
      }
      for (std::int32_t other = c + 1; other < chassis; ++other) {
        graph_.connect(first + r, router(g, other, b), times(numbers[1][1]), wire.latency);
      }
      if (c == 0 && b < groups && g < b) {
        graph_.connect(first + r, router(b, 0, g), times(numbers[0][1]), wire.latency);
      }
    }
    graph_.layout.family = Layout::Family::cascade;
    graph_.layout.shape = {nodes, blades, chassis, groups};
    graph_.layout.first_router = first;
    graph_.layout.concentration = nodes;
    graph_.routing = Routing::minimal;
  }

  XmlText& xml_;
  LinkGraph graph_;
};

const std::map<std::string_view, std::vector<std::string>>& known_attributes() {
  static const std::vector<std::string> zone{"id", "routing"};
  static const std::vector<std::string> route{"src", "dst", "symmetrical"};
  static const std::vector<std::string> zone_route{"src", "dst", "gw_src", "gw_dst", "symmetrical"};
  static const std::map<std::string_view, std::vector<std::string>> known{
      {"platform", {"version"}},
      {"zone", zone},
      {"AS", zone},
      {"host", {"id", "speed", "core", "pstate", "coordinates", "speed_file", "power"}},
      {"router", {"id", "coordinates"}},
      {"link", {"id", "bandwidth", "latency", "sharing_policy"}},
      {"backbone", {"id", "bandwidth", "latency", "sharing_policy"}},
      {"host_link", {"id", "up", "down"}},
      {"route", route},
      {"zoneRoute", zone_route},
      {"ASroute", zone_route},
      {"link_ctn", {"id", "direction"}},
      {"cluster",
       {"id",
        "prefix",
        "suffix",
        "radical",
        "speed",
        "power",
        "core",
        "bw",
        "lat",
        "sharing_policy",
        "bb_bw",
        "bb_lat",
        "bb_sharing_policy",
        "limiter_link",
        "loopback_bw",
        "loopback_lat",
        "topology",
        "topo_parameters",
        "router_id",
        "speed_file"}},
  };
  return known;
}

}  // namespace

Wire wire_of(XmlText& xml, const pugi::xml_node& node, const char* bandwidth, const char* latency) {
  const auto rate = simgrid_amount(node.attribute(bandwidth).value(), kSimgridRates);
  if (!rate || *rate <= 0) {
    xml.mistake(node, bandwidth, "a rate above 0 such as 12.5GBps");
  }
  const std::string_view text = node.attribute(latency).value();
  const auto time = text.empty() ? std::optional(0.0) : simgrid_amount(text, kSimgridTimes);
  if (!time) {
    xml.mistake(node, latency, "a time such as 50us");
  }
  return {Bandwidth(rate.value_or(1)), from_seconds(time.value_or(0))};
}

Sharing sharing_of(XmlText& xml, const pugi::xml_node& node, const char* attribute,
                   Sharing otherwise) {
  const std::string_view text = node.attribute(attribute).value();
  if (text.empty()) {
    return otherwise;
  }
  if (text == "SHARED") {
    return Sharing::shared;
  }
  if (text == "SPLITDUPLEX" || text == "FULLDUPLEX") {
    return Sharing::split;
  }
  if (text != "FATPIPE") {
    xml.mistake(node, attribute, "SHARED, SPLITDUPLEX or FATPIPE");
  }
  return Sharing::fat_pipe;
}

/// "0-15,20" -> numbers.
std::vector<std::int64_t> radical_of(XmlText& xml, const pugi::xml_node& node) {
  std::vector<std::int64_t> numbers;
  const std::string text = xml.text(node, "radical");
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    const std::size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last - *first > 1'000'000 ||
        numbers.size() > 1'000'000) {
      xml.mistake(node, "radical", "numbers such as 0-15 or 0-7,10-17");
      return {};
    }
    for (std::int64_t i = *first; i <= *last; ++i) {
      numbers.push_back(i);
    }
    at = comma + 1;
  }
  return numbers;
}

std::string cluster_host(const pugi::xml_node& node, std::int64_t number) {
  return std::string(node.attribute("prefix").value()) + std::to_string(number) +
         node.attribute("suffix").value();
}

void check_attributes(XmlText& xml, const pugi::xml_node& node) {
  const auto known = known_attributes().find(node.name());
  if (known == known_attributes().end()) {
    return;
  }
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    const std::string name = attribute.name();
    if (std::ranges::find(known->second, name) == known->second.end()) {
      xml.mistake(node, name,
                  name.ends_with("_file") ? "what is constant: profiles over time are not read"
                                          : "an attribute of " + std::string(node.name()) +
                                                did_you_mean(name, known->second));
    }
  }
}

LinkGraph read_simgrid_cluster(XmlText& xml, const pugi::xml_node& node) {
  return ClusterReader(xml).read(node);
}

}  // namespace orrery::topology
