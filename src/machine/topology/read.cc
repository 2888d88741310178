// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/read.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/file.h"
#include "base/lists.h"
#include "machine/topology/maker_fields.h"
#include "machine/topology/makers.h"
#include "machine/topology/routing.h"

namespace orrery::topology {
namespace {

constexpr std::size_t kLargestFile = std::size_t{256} << 20;

/// Returns the first word of a text, in front of which an XML declaration and comments may stand.
std::string_view first_word(std::string_view text) {
  for (;;) {
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) {
      return "";
    }
    text = text.substr(start);
    const auto skip_to = [&](std::string_view end) {
      const std::size_t at = text.find(end);
      text = at == std::string_view::npos ? "" : text.substr(at + end.size());
    };
    if (text.starts_with("<?")) {
      skip_to("?>");
    } else if (text.starts_with("<!--")) {
      skip_to("-->");
    } else if (text.starts_with("<!")) {
      const std::size_t end = text.find_first_of("[>");
      skip_to(end < text.size() && text[end] == '[' ? "]>" : ">");
    } else if (text.starts_with("#")) {
      skip_to("\n");
    } else {
      return text.substr(0, text.find_first_of(" \t\r\n>:"));
    }
  }
}

/// Vertices of a file by name.
class Names {
 public:
  explicit Names(LinkGraph& graph) : graph_(graph) {}

  void add(Reader& read, std::string_view field, VertexKind kind) {
    for (const ConfigNode* item : read.take_items(field, kind == VertexKind::host)) {
      if (item->kind != ConfigNode::Kind::scalar) {
        read.reject(field, "a list of names");
      } else if (!of_.emplace(item->text, graph_.vertices.size()).second) {
        read.reject(field, "every name once, but '" + item->text + "' is given twice");
      } else {
        graph_.add(kind, item->text, kind == VertexKind::host ? 0 : 1);
      }
    }
  }
  std::int32_t find(Reader& read, const std::string& field) const {
    const auto name = read.required<std::string>(field);
    const auto found = of_.find(name);
    if (found == of_.end()) {
      const std::vector<std::string> names =
          mapped(of_, [](const auto& entry) { return entry.first; });
      read.reject(field, "a name of `hosts` or `switches`" + did_you_mean(name, names));
      return 0;
    }
    return static_cast<std::int32_t>(found->second);
  }

 private:
  LinkGraph& graph_;
  std::map<std::string, std::size_t, std::less<>> of_;
};

struct ListedLink {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t count = 1;
  bool one_way = false;
  Wire wire;
};

Result<ListedLink> read_link(const ConfigNode& node, const Names& names) {
  Reader read(node);
  ListedLink link;
  link.from = names.find(read, "from");
  link.to = names.find(read, "to");
  link.wire.bandwidth = read.required<Bandwidth>("bandwidth");
  link.wire.latency = read.optional("latency", Time(0));
  link.count = read.optional("count", 1);
  link.one_way = read.optional("one_way", false);
  read.require(link.wire.bandwidth > Bandwidth(0), "bandwidth", "a rate above 0");
  read.require(link.count >= 1 && link.count <= 65536, "count", "1 to 65536 parallel cables");
  return read.finish(link);
}

Result<LinkGraph> read_lists(const ConfigNode& map) {
  Reader read(map);
  LinkGraph graph;
  graph.name = read.optional<std::string>("name", map.file());
  graph.hosts_forward = read.optional("hosts_forward", false);
  Names names(graph);
  names.add(read, "hosts", VertexKind::host);
  names.add(read, "switches", VertexKind::switch_);
  for (const ConfigNode* item : read.take_items("links", true)) {
    const ListedLink link = read.absorb(read_link(*item, names));
    for (std::int32_t i = 0; i < link.count; ++i) {
      if (link.one_way) {
        graph.links.push_back({link.from, link.to, link.wire.bandwidth, link.wire.latency});
      } else {
        graph.connect(link.from, link.to, link.wire.bandwidth, link.wire.latency);
      }
    }
    if (graph.links.size() > static_cast<std::size_t>(kMostLinks)) {
      read.reject("links", "at most " + std::to_string(kMostLinks) + " links");
      break;
    }
  }
  read.require(graph.hosts > 0, "hosts", "at least one host");
  return read.finish(std::move(graph));
}

/// Returns whether some host has links that are alike (of one length, the slower with at least half
/// of the faster's bandwidth) to several switches: planes, over which it spreads its messages.
bool has_planes(const LinkGraph& graph) {
  std::vector<const GraphLink*> first(static_cast<std::size_t>(graph.hosts));
  return std::ranges::any_of(graph.links, [&](const GraphLink& link) {
    if (link.source < 0 || link.source >= graph.hosts || link.target < graph.hosts) {
      return false;
    }
    const GraphLink*& one = first[static_cast<std::size_t>(link.source)];
    one = one == nullptr || link.bandwidth > one->bandwidth * 2.0 ? &link : one;
    return one->target != link.target && one->length == link.length &&
           link.bandwidth * 2.0 >= one->bandwidth;
  });
}

Result<LinkGraph> read_kind(std::string_view text, const std::string& file) {
  const std::string_view first = first_word(text);
  if (first == "<platform") {
    return read_simgrid(text, file);
  }
  if (first == "<system") {
    return read_nccl(text, file);
  }
  if (first.starts_with("<")) {
    return fail(Error(
        Mistake{file + ":1", {}, std::string(first), "<platform (SimGrid) or <system (NCCL)"}));
  }
  if (first == "Nodes" || first == "nodes") {
    return read_htsim(text, file);
  }
  if (!first.empty() && std::ranges::all_of(first, [](char c) { return c >= '0' && c <= '9'; })) {
    return read_ns3(text, file);
  }
  return parse_config(text, file, first.starts_with("{") ? ConfigSyntax::json : ConfigSyntax::yaml)
      .and_then(read_graph);
}

}  // namespace

Result<LinkGraph> read_graph(const ConfigNode& map) {
  return map.kind == ConfigNode::Kind::map && map.find("kind") != nullptr ? make_topology(map)
                                                                          : read_lists(map);
}

Result<LinkGraph> read_topology(std::string_view text, const std::string& file) {
  return read_kind(text, file).map([](LinkGraph graph) {
    const bool by_hash = graph.layout.family == Layout::Family::irregular &&
                         graph.routing == Routing::ecmp && graph.routes.empty();
    graph.routing = by_hash && has_planes(graph) ? Routing::spray : graph.routing;
    return graph;
  });
}

Result<LinkGraph> load_topology(const std::string& spec_or_file, std::string_view where) {
  if (is_topology_spec(spec_or_file)) {
    return parse_topology(spec_or_file, where);
  }
  if (spec_or_file.find_first_of("./-") == std::string::npos ||
      spec_or_file.find('=') != std::string::npos) {
    return parse_topology(spec_or_file, where);  // no file's name: the mistake of a description
  }
  return read_file(spec_or_file, kLargestFile).and_then([&](const std::string& text) {
    return read_topology(text, spec_or_file).map([&](LinkGraph graph) {
      graph.name = spec_or_file;
      return graph;
    });
  });
}

}  // namespace orrery::topology
