// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/collect.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/lists.h"
#include "base/names.h"
#include "base/reader.h"
#include "base/table_reader.h"
#include "base/words.h"
#include "machine/network/connection_matrix.h"
#include "machine/network/flow_fold.h"
#include "machine/network/flow_loop.h"

namespace orrery::network {
namespace {

using topology::FlowEnds;

/// Rows of a table as flows.
class FlowTable {
 public:
  FlowTable(const CsvTable& table, const topology::LinkGraph& graph)
      : table_(table), cells_(table) {
    for (std::int32_t v = 0; v < std::ssize(graph.vertices); ++v) {
      (v < graph.hosts ? hosts_ : switches_)
          .emplace(graph.vertices[static_cast<std::size_t>(v)].name, v);
    }
    count_ = graph.hosts;
  }

  Result<std::vector<FlowRequest>> read() {
    cells_.know({"source", "target", "bytes", "start_s", "weight", "rate_cap", "via", "finish_s"});
    cells_.need_all(std::array{"source", "target", "bytes"});
    std::vector<FlowRequest> flows =
        mapped(cells_.rows(), [&](const CsvRow& row) { return flow_of(row); });
    return or_mistakes(std::move(flows),
                       cells_.finish("no rows: expected a flow on each line after the header"));
  }

 private:
  FlowRequest flow_of(const CsvRow& row) {
    FlowRequest flow;
    flow.source = host(row, "source");
    flow.target = host(row, "target");
    flow.bytes = bytes(row);
    const auto number = [&](std::string_view column, double otherwise, double least, double most,
                            const char* expected) {
      return cells_.text(row, column).empty() ? otherwise
                                              : cells_.number(row, column, least, most, expected);
    };
    flow.start = from_seconds(number("start_s", 0, 0, 9e6, "seconds from 0 to 9000000"));
    flow.weight = number("weight", 1, 1e-9, 1e9, "a number from 1e-9 to 1e9");
    const double unlimited = std::numeric_limits<double>::infinity();
    flow.cap =
        Bandwidth(number("rate_cap", unlimited, 1e-3, 1e18, "bytes per second, at least 0.001"));
    flow.via = stops(row);
    return flow;
  }

  std::vector<std::int32_t> stops(const CsvRow& row) {
    std::vector<std::int32_t> via;
    for (const std::string_view name : words_of(cells_.text(row, "via"))) {
      const auto found = switches_.find(name);
      if (found == switches_.end()) {
        cells_.add(Mistake{table_.where(row), "via", std::string(name),
                           "names of switches" + did_you_mean(name, known_switches())});
        break;
      }
      via.push_back(found->second);
    }
    return via;
  }

  std::vector<std::string> known_switches() const {
    return mapped(switches_, [](const auto& entry) { return entry.first; });
  }

  std::int32_t host(const CsvRow& row, std::string_view column) {
    const std::string_view text = cells_.text(row, column);
    if (const auto found = hosts_.find(text); found != hosts_.end()) {
      return found->second;
    }
    const auto index = parse_integer(text);
    if (index && *index >= 0 && *index < count_) {
      return static_cast<std::int32_t>(*index);
    }
    cells_.mistake(row, column,
                   "the name of a host, such as " + hosts_.begin()->first +
                       ", or its number below " + std::to_string(count_));
    return 0;
  }

  Bytes bytes(const CsvRow& row) {
    constexpr const char* kExpected = "a whole number of bytes from 0 to 9e18";
    const double number = cells_.number(row, "bytes", 0, 9e18, kExpected);
    if (number != std::floor(number)) {
      cells_.mistake(row, "bytes", kExpected);
    }
    return Bytes(static_cast<std::int64_t>(number));
  }

  const CsvTable& table_;
  TableReader cells_;
  std::map<std::string, std::int32_t, std::less<>> hosts_;
  std::map<std::string, std::int32_t, std::less<>> switches_;
  std::int32_t count_ = 0;
};

/// Whatever order they came in.
std::vector<std::uint32_t> by_start(const std::vector<FlowRequest>& flows) {
  std::vector<std::uint32_t> order(flows.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t f) {
    const FlowRequest& flow = flows[f];
    return std::tie(flow.start, flow.source, flow.target, flow.bytes, flow.weight, flow.cap,
                    flow.via);
  };
  if (!std::ranges::is_sorted(order, {}, key)) {  // patterns are made in order
    std::ranges::stable_sort(order, {}, key);
  }
  return order;
}

/// The flows with stops beside `rest`, which are the pieces of those at `free`.
Result<topology::Assigned> with_stated(topology::Router& router,
                                       const std::vector<FlowRequest>& flows,
                                       const std::vector<std::uint32_t>& order,
                                       const std::vector<std::uint32_t>& free,
                                       topology::Assigned&& rest) {
  for (topology::Piece& piece : rest.pieces) {
    piece.flow = free[piece.flow];
  }
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    const FlowRequest& flow = flows[order[place]];
    if (flow.via.empty()) {
      continue;
    }
    const std::size_t first = rest.hops.size();
    if (!router.through(flow.source, flow.via.all(), flow.target, place, rest.hops)) {
      return fail(no_route(router.graph(), flow));
    }
    rest.pieces.push_back({place, static_cast<std::uint32_t>(rest.hops.size() - first), 1, first});
  }
  std::ranges::stable_sort(rest.pieces, {}, &topology::Piece::flow);
  return std::move(rest);
}

Result<topology::Assigned> routes_of(topology::Router& router,
                                     const std::vector<FlowRequest>& flows,
                                     const std::vector<std::uint32_t>& order) {
  std::vector<FlowEnds> ends;
  std::vector<std::uint32_t> free;  // places in `order` of flows whose route nobody states
  ends.reserve(flows.size());
  free.reserve(flows.size());
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    if (const FlowRequest& flow = flows[order[place]]; flow.via.empty()) {
      ends.push_back({flow.source, flow.target, flow.bytes});
      free.push_back(place);
    }
  }
  Result<topology::Assigned> assigned = assign(router, ends);
  return free.size() == flows.size()
             ? std::move(assigned)
             : std::move(assigned).and_then([&](topology::Assigned&& rest) {
                 return with_stated(router, flows, order, free, std::move(rest));
               });
}

}  // namespace

std::string no_route(const topology::LinkGraph& graph, const FlowRequest& flow) {
  const auto name = [&](std::int32_t vertex) {
    return graph.vertices[static_cast<std::size_t>(vertex)].name;
  };
  std::string text = "no way leads from " + name(flow.source) + " to " + name(flow.target);
  const auto stops = flow.via.all();
  for (std::size_t s = 0; s < stops.size(); ++s) {
    text += (s == 0 ? " via " : " ") + name(stops[s]);
  }
  return text;
}

Result<FlowRun> run_flows(topology::Router& router, const std::vector<FlowRequest>& flows,
                          const FlowOptions& options, const faults::Schedule& faults) {
  if (!faults.changes.empty() && (options.has_congestion() || options.ramp > Bytes(0))) {
    return fail(Error("faults change the links that crowding and the ramp change: one of them"));
  }
  if (faults.recolour && router.routing() != topology::Routing::colour) {
    return fail(Error(Mistake{{},
                              "recolour",
                              std::string(name_of(router.routing())),
                              "routing colour: others look at each flow by itself"}));
  }
  const std::vector<std::uint32_t> order = by_start(flows);
  Result<topology::Assigned> assigned = routes_of(router, flows, order);
  if (!assigned) {
    return fail(std::move(assigned.error()));
  }
  const LaidFlows laid{flows, order, *assigned};
  if (options.fold && faults.changes.empty() && !options.has_congestion() &&
      options.ramp == Bytes(0)) {
    if (auto folded = fold(router.graph(), laid)) {
      std::vector<std::uint32_t> by_class(folded->flows.size());
      std::iota(by_class.begin(), by_class.end(), 0U);
      return FlowLoop(router, {folded->flows, by_class, folded->assigned}, options, faults)
          .run()
          .map([&](const FlowRun& run) { return unfold(*folded, laid, run); });
    }
  }
  return FlowLoop(router, laid, options, faults).run();
}

Result<std::vector<FlowRequest>> load_flows(const std::string& file,
                                            const topology::LinkGraph& graph) {
  const auto read = [&](const CsvTable& table) { return FlowTable(table, graph).read(); };
  return file.ends_with(".cm")
             ? read_file(file)
                   .and_then([&](const std::string& text) { return parse_connections(text, file); })
                   .and_then(read)
             : load_csv(file, read);
}

}  // namespace orrery::network
