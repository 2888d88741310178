// SPDX-License-Identifier: Apache-2.0
/// SimGrid's platform files (DTD version 4.1), of which hosts, links, routes of one zone and
/// clusters are read. Speeds of hosts are ignored.
#include <fmt/format.h>

#include <set>

#include "base/names.h"
#include "machine/topology/maker_fields.h"
#include "machine/topology/read.h"
#include "machine/topology/simgrid_units.h"
#include "machine/topology/xml_text.h"

namespace orrery::topology {
namespace {

enum class Sharing : std::uint8_t { shared, split, fat_pipe };

class Platform {
 public:
  Platform(std::string_view text, const std::string& file) : xml_(text, file) {}

  Result<LinkGraph> read() {
    const pugi::xml_node root = xml_.document().child("platform");
    if (xml_.error().empty() && !root) {
      xml_.error().add(Error("no <platform> in the file"));
    }
    if (xml_.error().empty()) {
      read_zone(root, 0);
    }
    if (xml_.error().empty() && graph_.hosts == 0) {
      xml_.error().add({xml_.where(0), "platform", {}, "without hosts"});
    }
    if (!xml_.error().empty()) {
      return fail(std::move(xml_.error()));
    }
    return std::move(graph_);
  }

 private:
  void read_zone(const pugi::xml_node& zone, int depth) {
    constexpr int kDeepest = 16;
    for (const pugi::xml_node& node : zone.children()) {
      const std::string_view name = node.name();
      if ((name == "zone" || name == "AS") && depth < kDeepest) {
        read_zone(node, depth + 1);
      } else if (name == "host") {
        add_host(node);
      } else if (name == "link") {
        add_link(node);
      } else if (name == "route") {
        add_route(node);
      } else if (name == "cluster") {
        add_cluster(node);
      } else if (node.type() == pugi::node_element && name != "config" && name != "prop" &&
                 name != "router") {
        xml_.mistake(node, "", "host, link, route, cluster or zone");
      }
    }
  }

  void add_host(const pugi::xml_node& node) {
    if (graph_.hosts < static_cast<std::int32_t>(graph_.vertices.size())) {
      xml_.mistake(node, "id", "hosts before clusters with switches");
      return;
    }
    const std::string id = xml_.text(node, "id");
    if (!hosts_.emplace(id, graph_.add(VertexKind::host, id, 0)).second) {
      xml_.mistake(node, "id", "every name once");
    }
  }

  Wire wire_of(const pugi::xml_node& node, const char* bandwidth, const char* latency) {
    const auto rate = simgrid_amount(node.attribute(bandwidth).value(), kSimgridRates);
    if (!rate || *rate <= 0) {
      xml_.mistake(node, bandwidth, "a rate above 0 such as 12.5GBps");
    }
    const std::string_view text = node.attribute(latency).value();
    const auto time = text.empty() ? std::optional(0.0) : simgrid_amount(text, kSimgridTimes);
    if (!time) {
      xml_.mistake(node, latency, "a time such as 50us");
    }
    return {Bandwidth(rate.value_or(1)), from_seconds(time.value_or(0))};
  }

  Sharing sharing_of(const pugi::xml_node& node, Sharing otherwise) {
    const std::string_view text = node.attribute("sharing_policy").value();
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
      xml_.mistake(node, "sharing_policy", "SHARED, SPLITDUPLEX or FATPIPE");
    }
    return Sharing::fat_pipe;
  }

  std::int32_t push(const GraphLink& link, std::string name) {
    graph_.links.push_back(link);
    graph_.link_names.resize(graph_.links.size() - 1);
    graph_.link_names.push_back(std::move(name));
    return static_cast<std::int32_t>(graph_.links.size()) - 1;
  }

  void add_link(const pugi::xml_node& node) {
    const std::string id = xml_.text(node, "id");
    const Wire wire = wire_of(node, "bandwidth", "latency");
    const Sharing sharing = sharing_of(node, Sharing::shared);
    const bool split = sharing == Sharing::split;
    GraphLink link{-1, -1, wire.bandwidth, wire.latency};
    link.pipe = sharing == Sharing::fat_pipe;
    for (const char* direction : {"_UP", "_DOWN"}) {
      const std::string name = split ? id + direction : id;
      if (!split && std::string_view(direction) == "_DOWN") {
        break;
      }
      if (!links_.emplace(name, push(link, name)).second) {
        xml_.mistake(node, "id", "every name once");
      }
    }
  }

  std::int32_t host_of(const pugi::xml_node& node, const char* attribute) {
    const std::string name = xml_.text(node, attribute);
    const auto found = hosts_.find(name);
    if (found == hosts_.end()) {
      if (!name.empty()) {
        xml_.mistake(node, attribute, "a host of the file");
      }
      return 0;
    }
    return found->second;
  }

  void add_route(const pugi::xml_node& node) {
    const std::pair ends{host_of(node, "src"), host_of(node, "dst")};
    const std::string_view symmetrical = node.attribute("symmetrical").value();
    std::vector<std::int32_t> route;
    std::vector<std::int32_t> back;
    for (const pugi::xml_node& part : node.children("link_ctn")) {
      const std::string id = xml_.text(part, "id");
      const std::string direction = part.attribute("direction").value();
      const auto found = links_.find(
          direction.empty() || direction == "NONE" ? id : fmt::format("{}_{}", id, direction));
      if (found == links_.end()) {
        xml_.mistake(part, "id",
                     links_.contains(id + "_UP") ? "a direction (UP or DOWN) beside it"
                                                 : "a link of the file, before its routes");
        continue;
      }
      route.push_back(found->second);
      const std::string other = direction == "UP" ? "_DOWN" : "_UP";
      back.insert(back.begin(),
                  direction.empty() || direction == "NONE" ? found->second : links_.at(id + other));
    }
    graph_.routing = Routing::stated;
    graph_.routes[ends] = std::move(route);
    const bool both = symmetrical.empty() || symmetrical == "YES" || symmetrical == "yes";
    if (both && ends.first != ends.second) {
      graph_.routes[{ends.second, ends.first}] = std::move(back);
    }
  }

  /// "0-15,20" -> numbers.
  std::vector<std::int64_t> radical_of(const pugi::xml_node& node) {
    std::vector<std::int64_t> numbers;
    const std::string text = xml_.text(node, "radical");
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      const std::string part = text.substr(at, comma - at);
      const std::size_t dash = part.find('-');
      const auto first = parse_integer(part.substr(0, dash));
      const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
      if (!first || !last || *first < 0 || *last < *first || *last - *first > 1'000'000 ||
          numbers.size() > 1'000'000) {
        xml_.mistake(node, "radical", "numbers such as 0-15 or 0-7,10-17");
        return {};
      }
      for (std::int64_t i = *first; i <= *last; ++i) {
        numbers.push_back(i);
      }
      at = comma + 1;
    }
    return numbers;
  }

  void add_cluster(const pugi::xml_node& node) {
    if (graph_.hosts > 0 || !graph_.links.empty()) {
      xml_.mistake(node, "id", "one cluster and no other hosts or links");
      return;
    }
    const std::vector<std::int64_t> radical = radical_of(node);
    const Wire wire = wire_of(node, "bw", "lat");
    const Sharing sharing = sharing_of(node, Sharing::split);
    const std::string_view kind = node.attribute("topology").value();
    for (const char* unknown : {"limiter_link", "bb_bw"}) {
      if (node.attribute(unknown)) {
        xml_.mistake(node, unknown, "a cluster without it");
      }
    }
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
      graph_.vertices[h].name = std::string(node.attribute("prefix").value()) +
                                std::to_string(radical[h]) + node.attribute("suffix").value();
      hosts_.emplace(graph_.vertices[h].name, static_cast<std::int32_t>(h));
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
      const Wire loop = wire_of(node, "loopback_bw", "loopback_lat");
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
    std::string text;
    for (const std::int32_t number : numbers) {
      text += (text.empty() ? "" : "x") + std::to_string(number);
    }
    return text;
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

  XmlText xml_;
  LinkGraph graph_;
  std::map<std::string, std::int32_t, std::less<>> hosts_;
  std::map<std::string, std::int32_t, std::less<>> links_;
};

}  // namespace

Result<LinkGraph> read_simgrid(std::string_view text, const std::string& file) {
  return Platform(text, file).read();
}

}  // namespace orrery::topology
