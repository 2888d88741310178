// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/makers.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/lists.h"
#include "base/misread.h"
#include "base/one_of.h"
#include "machine/topology/maker_fields.h"

namespace orrery::topology {
namespace {

const TopologyMaker* maker_named(std::string_view name) {
  const auto* const found = std::ranges::find(kTopologies, name, &TopologyMaker::name);
  return found == kTopologies.end() ? nullptr : found;
}

std::string one_of_the_makers(std::string_view found) {
  const std::vector<std::string> names = mapped<std::string>(kTopologies, &TopologyMaker::name);
  return one_of(found, names);
}

/// "k=8" as a field of the map; "8x8" as its shape.
void add_field(ConfigNode& map, std::string_view part, std::string_view where, Error& error) {
  const bool extents =
      !part.empty() && part.find_first_not_of("0123456789x") == std::string_view::npos;
  const std::size_t equals = extents ? 0 : part.find('=');
  const std::string name(extents ? "shape" : part.substr(0, equals));
  if (equals == std::string_view::npos || name.empty()) {
    error.add({std::string(where), {}, std::string(part), "field=value, such as k=8"});
    return;
  }
  if (map.find(name) != nullptr) {
    error.add({std::string(where), name, {}, "is given twice"});
    return;
  }
  ConfigNode value;
  value.kind = ConfigNode::Kind::scalar;
  value.text = extents ? part : part.substr(equals + 1);
  value.source = map.source;
  value.path = name;
  map.fields.push_back({name, std::move(value)});
}

}  // namespace

Wire read_wire(Reader& read, const std::string& prefix, const Wire& otherwise) {
  Wire wire;
  const std::string bandwidth = prefix + "bandwidth";
  const std::string latency = prefix + "latency";
  wire.bandwidth = read.optional(bandwidth, otherwise.bandwidth);
  wire.latency = read.optional(latency, otherwise.latency);
  if (read.node().find(bandwidth) != nullptr) {
    read.require(wire.bandwidth > Bandwidth(0), bandwidth, "a rate above 0");
  }
  return wire;
}

std::vector<std::int32_t> read_extents(Reader& read, const std::string& name, std::size_t least,
                                       std::size_t most) {
  const auto text = read.required<std::string>(name);
  std::vector<std::int32_t> extents;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool good = at != end;
  while (good && at != end) {
    std::int32_t extent = 0;
    const auto [next, problem] = std::from_chars(at, end, extent);
    good = problem == std::errc{} && extent >= 1 && extent <= 1'000'000 &&
           (next == end || (*next == 'x' && next + 1 != end));
    extents.push_back(extent);
    at = next == end ? end : next + 1;
  }
  if (!good || extents.size() < least || extents.size() > most) {
    read.reject(name, std::to_string(least) + (least == most ? "" : " to " + std::to_string(most)) +
                          " numbers of at least 1 such as " +
                          (least == 1   ? "4x4x2"
                           : least == 2 ? "4x4"
                                        : "4x4x4"));
    extents.assign(std::max<std::size_t>(least, 1), 1);
  }
  return extents;
}

std::int32_t read_count(Reader& read, const std::string& name, std::int32_t fallback,
                        std::int32_t least, std::int32_t most) {
  const std::int32_t count = fallback < least ? read.required<std::int32_t>(name)
                                              : read.optional<std::int32_t>(name, fallback);
  if (count < least || count > most) {
    read.reject(name,
                "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }
  return count;
}

void check_size(Reader& read, const std::string& name, double vertices, double links) {
  if (vertices > static_cast<double>(kMostVertices) || links > static_cast<double>(kMostLinks)) {
    read.reject(name, "a network of at most " + std::to_string(kMostVertices) +
                          " hosts and switches and " + std::to_string(kMostLinks) + " links");
  }
}

void add_hosts(LinkGraph& graph, std::int64_t count) {
  for (std::int64_t h = 0; h < count; ++h) {
    graph.add(VertexKind::host, "host" + std::to_string(h), 0);
  }
}

std::int32_t add_switches(LinkGraph& graph, std::int64_t count, const std::string& name,
                          std::int32_t level) {
  const auto first = static_cast<std::int32_t>(graph.vertices.size());
  for (std::int64_t s = 0; s < count; ++s) {
    graph.add(VertexKind::switch_, name + std::to_string(s), level);
  }
  return first;
}

Result<LinkGraph> make_topology(const ConfigNode& map) {
  Reader read(map);
  const auto kind = read.required<std::string>("kind");
  const TopologyMaker* const maker = maker_named(kind);
  if (maker == nullptr) {
    read.reject("kind", one_of_the_makers(kind));
    return read.finish(LinkGraph{}).and_then([](const LinkGraph&) -> Result<LinkGraph> {
      return fail("a topology without a kind");
    });
  }
  ConfigNode fields = map;
  std::erase_if(fields.fields, [](const ConfigField& field) { return field.name == "kind"; });
  return maker->make(fields).map([&](LinkGraph graph) {
    graph.name = kind;
    char separator = ':';
    for (const ConfigField& field : fields.fields) {
      graph.name += separator + field.name + "=" + field.value.text;
      separator = ',';
    }
    return graph;
  });
}

bool is_topology_spec(std::string_view text) {
  return maker_named(text.substr(0, text.find(':'))) != nullptr;
}

Result<LinkGraph> parse_topology(std::string_view spec, std::string_view where) {
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  Error error;
  ConfigNode map;
  map.kind = ConfigNode::Kind::map;
  map.source = std::make_shared<const std::string>(where);
  if (maker_named(kind) == nullptr) {
    error.add(misread(std::string(where), {}, std::string(kind), one_of_the_makers(kind)));
  }
  std::string_view rest = colon == std::string_view::npos ? "" : spec.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    add_field(map, rest.substr(0, comma), where, error);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  add_field(map, "kind=" + std::string(kind), where, error);
  Result<LinkGraph> graph = make_topology(map);
  if (!graph) {  // a flag has no lines
    for (Mistake& mistake : graph.error().mistakes) {
      mistake.where = where;
    }
    return graph;
  }
  graph->name = spec;
  return graph;
}

}  // namespace orrery::topology
