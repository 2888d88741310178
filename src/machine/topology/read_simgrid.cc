// SPDX-License-Identifier: Apache-2.0
/// SimGrid's platform files (DTD version 4.1): hosts, routers, links, nested zones of routing Full,
/// Floyd, Dijkstra, Cluster and None with routes between them, and clusters. Speeds of hosts are
/// ignored; what changes in time (profiles in files) is refused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "machine/topology/read.h"
#include "machine/topology/simgrid_fields.h"
#include "machine/topology/simgrid_zones.h"

namespace orrery::topology {
namespace {

constexpr std::int32_t kMostRoutedHosts = 1024;  // a route for every two of them is kept
constexpr int kDeepestZone = 16;

class Platform {
 public:
  Platform(std::string_view text, const std::string& file) : xml_(text, file) {}

  Result<LinkGraph> read() {
    const pugi::xml_node root = xml_.document().child("platform");
    if (xml_.error().empty() && !root) {
      xml_.error().add(Error("no <platform> in the file"));
    }
    if (xml_.error().empty()) {
      const pugi::xml_node cluster = only_cluster(root);
      if (cluster) {
        check(cluster);
        graph_ = read_simgrid_cluster(xml_, cluster);
      } else {
        check(root);
        read_zone(root, zones_.open(-1, ZoneRouting::full), 0);
        find_routes();
      }
    }
    if (xml_.error().empty() && graph_.hosts == 0) {
      xml_.error().add({xml_.where(0), "platform", {}, "without hosts"});
    }
    if (!xml_.error().empty()) {
      return fail(xml_.take());
    }
    return std::move(graph_);
  }

 private:
  struct Host {
    std::int32_t number;
    std::int32_t point;
    std::size_t zone;
  };

  /// Returns the cluster of a file that has nothing else, if links of hosts are all that it has.
  static pugi::xml_node only_cluster(const pugi::xml_node& root) {
    pugi::xml_node found;
    for (const pugi::xml_node& node : root.children()) {
      const std::string_view name = node.name();
      pugi::xml_node inner = name == "zone" || name == "AS" ? only_cluster(node)
                             : name == "cluster"            ? node
                                                            : pugi::xml_node();
      if (node.type() != pugi::node_element || name == "config" || name == "prop") {
        continue;
      }
      if (!inner || found || inner.attribute("bb_bw") || inner.attribute("limiter_link")) {
        return {};
      }
      found = inner;
    }
    return found;
  }

  void check(const pugi::xml_node& node) { check_attributes(xml_, node); }

  void read_zone(const pugi::xml_node& node, std::size_t zone, int depth) {
    for (const pugi::xml_node& child : node.children()) {
      const std::string_view name = child.name();
      check(child);
      if ((name == "zone" || name == "AS") && depth < kDeepestZone) {
        read_zone(child, open_zone(child, zone), depth + 1);
      } else if (name == "host") {
        add_host(xml_.text(child, "id"), child, zone);
      } else if (name == "router") {
        add_point(xml_.text(child, "id"), child, zone);
      } else if (name == "link") {
        add_link(child);
      } else if (name == "route") {
        add_route(child, zone);
      } else if (name == "zoneRoute" || name == "ASroute") {
        add_zone_route(child, zone);
      } else if (name == "cluster") {
        add_cluster(child, zone);
      } else if (name == "host_link" || name == "backbone") {
        add_cluster_part(child, zone);
      } else if (child.type() == pugi::node_element && name != "config" && name != "prop") {
        xml_.mistake(child, "", "host, router, link, route, zoneRoute, cluster or zone");
      }
    }
  }

  std::size_t open_zone(const pugi::xml_node& node, std::size_t parent) {
    static const std::vector<std::pair<std::string_view, ZoneRouting>> known{
        {"Full", ZoneRouting::full},
        {"Floyd", ZoneRouting::shortest},
        {"Dijkstra", ZoneRouting::shortest},
        {"DijkstraCache", ZoneRouting::shortest},
        {"None", ZoneRouting::none},
        {"Cluster", ZoneRouting::cluster},
        {"", ZoneRouting::full}};
    const std::string_view text = node.attribute("routing").value();
    const auto routing =
        std::ranges::find(known, text, &std::pair<std::string_view, ZoneRouting>::first);
    if (routing == known.end()) {
      xml_.mistake(node, "routing",
                   text == "Vivaldi" ? "Full, Floyd, Dijkstra, Cluster or None: latencies are not "
                                       "made of coordinates"
                                     : "Full, Floyd, Dijkstra, Cluster or None");
    }
    return add_zone(node, parent, routing == known.end() ? ZoneRouting::none : routing->second);
  }

  std::size_t add_zone(const pugi::xml_node& node, std::size_t parent, ZoneRouting routing) {
    const std::size_t zone = zones_.open(static_cast<std::int32_t>(parent), routing);
    const std::string id = node.attribute("id").value();
    if (!id.empty() && !zone_of_.emplace(id, zone).second) {
      xml_.mistake(node, "id", "every name once");
    }
    return zone;
  }

  std::int32_t add_point(const std::string& id, const pugi::xml_node& node, std::size_t zone) {
    const std::int32_t point = zones_.add_point(zone);
    if (!point_of_.emplace(id, std::pair(point, zone)).second) {
      xml_.mistake(node, "id", "every name once");
    }
    return point;
  }

  std::int32_t add_host(const std::string& id, const pugi::xml_node& node, std::size_t zone) {
    const std::int32_t point = add_point(id, node, zone);
    hosts_.push_back({graph_.add(VertexKind::host, id, 0), point, zone});
    return point;
  }

  std::int32_t push(const Wire& wire, bool pipe, const std::string& name) {
    GraphLink link{-1, -1, wire.bandwidth, wire.latency};
    link.pipe = pipe;
    graph_.links.push_back(link);
    graph_.link_names.push_back(name);
    return static_cast<std::int32_t>(graph_.links.size()) - 1;
  }

  void add_link(const pugi::xml_node& node) {
    const std::string id = xml_.text(node, "id");
    const Wire wire = wire_of(xml_, node, "bandwidth", "latency");
    const Sharing sharing = sharing_of(xml_, node, "sharing_policy", Sharing::shared);
    const std::vector<std::string> names =
        sharing == Sharing::split ? std::vector{id + "_UP", id + "_DOWN"} : std::vector{id};
    for (const std::string& name : names) {
      if (!links_.emplace(name, push(wire, sharing == Sharing::fat_pipe, name)).second) {
        xml_.mistake(node, "id", "every name once");
      }
    }
  }

  /// Returns a host or router of the zone, or -1.
  std::int32_t point_in(const pugi::xml_node& node, const char* attribute, std::size_t zone) {
    const std::string name = xml_.text(node, attribute);
    const auto found = point_of_.find(name);
    if (found == point_of_.end() || found->second.second != zone) {
      if (!name.empty()) {
        xml_.mistake(node, attribute, "a host or router of the same zone, before its routes");
      }
      return -1;
    }
    return found->second.first;
  }

  /// Links of a route there and, the other way around, back.
  std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> links_of(
      const pugi::xml_node& node) {
    std::vector<std::int32_t> route;
    std::vector<std::int32_t> back;
    for (const pugi::xml_node& part : node.children("link_ctn")) {
      check(part);
      const std::string id = xml_.text(part, "id");
      const std::string direction = part.attribute("direction").value();
      const bool directed = !direction.empty() && direction != "NONE";
      std::string name = id;
      if (directed) {
        name.append("_").append(direction);
      }
      const auto found = links_.find(name);
      if (found == links_.end()) {
        xml_.mistake(part, "id",
                     links_.contains(id + "_UP") ? "a direction (UP or DOWN) beside it"
                                                 : "a link of the file, before its routes");
        continue;
      }
      route.push_back(found->second);
      const std::string other = direction == "UP" ? "_DOWN" : "_UP";
      back.insert(back.begin(), directed ? links_.at(id + other) : found->second);
    }
    return {std::move(route), std::move(back)};
  }

  void state(const pugi::xml_node& node, std::size_t zone,
             std::pair<std::int32_t, std::int32_t> ends,
             std::pair<std::int32_t, std::int32_t> gateways) {
    auto [route, back] = links_of(node);
    const std::string_view symmetrical = node.attribute("symmetrical").value();
    auto& routes = zones_.zone(zone).routes;
    routes[ends] = {std::move(route), gateways.first, gateways.second};
    const bool both = symmetrical.empty() || symmetrical == "YES" || symmetrical == "yes";
    if (both && ends.first != ends.second) {
      routes[{ends.second, ends.first}] = {std::move(back), gateways.second, gateways.first};
    }
  }

  void add_route(const pugi::xml_node& node, std::size_t zone) {
    const std::pair ends{point_in(node, "src", zone), point_in(node, "dst", zone)};
    if (ends.first >= 0 && ends.second >= 0) {
      state(node, zone, ends, {-1, -1});
    }
  }

  /// Returns the zone's point, and a point in it that is its gateway.
  std::pair<std::int32_t, std::int32_t> end_of(const pugi::xml_node& node, const char* attribute,
                                               const char* gateway, std::size_t zone) {
    const auto inner = zone_of_.find(xml_.text(node, attribute));
    const auto point = point_of_.find(xml_.text(node, gateway));
    if (inner == zone_of_.end() || !zones_.is_in(inner->second, zone)) {
      xml_.mistake(node, attribute, "a zone directly in this one, before its routes");
    } else if (point == point_of_.end() ||
               !(point->second.second == inner->second ||
                 zones_.is_within(point->second.second, inner->second))) {
      xml_.mistake(node, gateway, "a host or router in that zone");
    } else {
      return {zones_.point_of(inner->second), point->second.first};
    }
    return {-1, -1};
  }

  void add_zone_route(const pugi::xml_node& node, std::size_t zone) {
    const auto from = end_of(node, "src", "gw_src", zone);
    const auto to = end_of(node, "dst", "gw_dst", zone);
    if (from.first >= 0 && to.first >= 0) {
      state(node, zone, {from.first, to.first}, {from.second, to.second});
    }
  }

  /// Reads the links of a host, or the backbone, of a zone with routing Cluster.
  void add_cluster_part(const pugi::xml_node& node, std::size_t zone) {
    SimgridZones::Zone& of = zones_.zone(zone);
    if (of.routing != ZoneRouting::cluster) {
      xml_.mistake(node, "", "a zone with routing Cluster around it");
    } else if (std::string_view(node.name()) == "backbone") {
      of.backbone =
          push(wire_of(xml_, node, "bandwidth", "latency"),
               sharing_of(xml_, node, "sharing_policy", Sharing::shared) == Sharing::fat_pipe,
               xml_.text(node, "id"));
    } else {
      const std::int32_t host = point_in(node, "id", zone);
      for (const auto& [attribute, links] :
           {std::pair("up", &of.up), std::pair("down", &of.down)}) {
        const auto found = links_.find(xml_.text(node, attribute));
        if (found == links_.end()) {
          xml_.mistake(node, attribute, "a link of the file");
        } else {
          (*links)[host].push_back(found->second);
        }
      }
    }
  }

  /// Hosts with a link up and one down each, a limiter that both pass, and a backbone.
  void add_cluster(const pugi::xml_node& node, std::size_t parent) {
    const std::string_view kind = node.attribute("topology").value();
    if (!kind.empty() && kind != "FLAT") {
      xml_.mistake(node, "topology",
                   "FLAT beside other elements, with a backbone or with limiters");
      return;
    }
    const std::string id = xml_.text(node, "id");
    const std::vector<std::int64_t> radical = radical_of(xml_, node);
    const Wire wire = wire_of(xml_, node, "bw", "lat");
    const Sharing sharing = sharing_of(xml_, node, "sharing_policy", Sharing::split);
    if (!xml_.error().empty() || radical.size() > kMostRoutedHosts) {
      too_many(node, radical.size());
      return;
    }
    const std::size_t zone = add_zone(node, parent, ZoneRouting::cluster);
    const std::string router = node.attribute("router_id").value();
    add_point(router.empty() ? node.attribute("prefix").value() + id + "_router" +
                                   node.attribute("suffix").value()
                             : router,
              node, zone);
    if (node.attribute("bb_bw")) {
      zones_.zone(zone).backbone =
          push(wire_of(xml_, node, "bb_bw", "bb_lat"),
               sharing_of(xml_, node, "bb_sharing_policy", Sharing::shared) == Sharing::fat_pipe,
               id + "_backbone");
    }
    for (const std::int64_t number : radical) {
      const std::int32_t point = add_host(cluster_host(node, number), node, zone);
      const std::string name = fmt::format("{}_link_{}", id, number);
      SimgridZones::Zone& of = zones_.zone(zone);
      if (node.attribute("limiter_link")) {
        const std::int32_t limiter =
            push(wire_of(xml_, node, "limiter_link", "no_latency"), false, name + "_limiter");
        of.up[point] = of.down[point] = {limiter};
      }
      const bool pipe = sharing == Sharing::fat_pipe;
      const bool split = sharing == Sharing::split;
      const std::int32_t up = push(wire, pipe, split ? name + "_UP" : name);
      of.up[point].push_back(up);
      const std::int32_t down = split ? push(wire, pipe, name + "_DOWN") : up;
      of.down[point].insert(of.down[point].begin(), down);
      if (node.attribute("loopback_bw")) {
        of.routes[{point, point}].links = {
            push(wire_of(xml_, node, "loopback_bw", "loopback_lat"), true, name + "_loopback")};
      }
    }
  }

  void too_many(const pugi::xml_node& node, std::size_t hosts) {
    if (hosts > kMostRoutedHosts) {
      xml_.mistake(node, "radical",
                   fmt::format("at most {} hosts between routes", kMostRoutedHosts));
    }
  }

  /// The route between two hosts, or of a host to itself, if there is one.
  void find_route(const Host& source, const Host& target) {
    std::vector<std::int32_t> links;
    if (source.point == target.point) {
      const auto& routes = zones_.zone(source.zone).routes;
      const auto own = routes.find({source.point, source.point});
      if (own != routes.end()) {
        graph_.routes[{source.number, source.number}] = own->second.links;
      }
    } else if (zones_.route(source.point, target.point, links)) {
      graph_.routes[{source.number, target.number}] = std::move(links);
    }
  }

  /// Finds the routes from every host to every other that the zones lead to.
  void find_routes() {
    too_many(xml_.document().child("platform"), hosts_.size());
    if (!xml_.error().empty()) {
      return;
    }
    graph_.routing = Routing::stated;
    for (const Host& source : hosts_) {
      for (const Host& target : hosts_) {
        find_route(source, target);
      }
    }
    if (hosts_.size() > 1 && graph_.routes.empty()) {
      xml_.mistake(xml_.document().child("platform"), "", "routes between its hosts");
    }
  }

  XmlText xml_;
  LinkGraph graph_;
  SimgridZones zones_;
  std::vector<Host> hosts_;
  std::map<std::string, std::pair<std::int32_t, std::size_t>> point_of_;  ///< and its zone
  std::map<std::string, std::size_t> zone_of_;
  std::map<std::string, std::int32_t> links_;
};

}  // namespace

Result<LinkGraph> read_simgrid(std::string_view text, const std::string& file) {
  return Platform(text, file).read();
}

}  // namespace orrery::topology
