// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/csv.h"
#include "base/misread.h"
#include "base/names.h"
#include "base/reader.h"
#include "machine/network/flow_loop.h"

namespace orrery::network {
namespace {

using topology::FlowEnds;

/// Rows of a table as flows.
class FlowTable {
 public:
  FlowTable(const CsvTable& table, const topology::LinkGraph& graph) : table_(table) {
    for (std::int32_t h = 0; h < graph.hosts; ++h) {
      hosts_.emplace(graph.vertices[static_cast<std::size_t>(h)].name, h);
    }
    count_ = graph.hosts;
  }

  Result<std::vector<FlowRequest>> read() {
    const std::vector<std::string> known{"source",  "target", "bytes",
                                         "start_s", "weight", "rate_cap"};
    for (const std::string& name : table_.header) {
      if (std::ranges::find(known, name) == known.end() && name != "finish_s") {
        error_.add({table_.file + ":1", name, {}, "unknown column" + did_you_mean(name, known)});
      }
    }
    for (const char* name : {"source", "target", "bytes"}) {
      if (!table_.column(name)) {
        error_.add({table_.file + ":1", name, {}, "missing column"});
      }
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    std::vector<FlowRequest> flows;
    flows.reserve(table_.rows.size());
    for (const CsvRow& row : table_.rows) {
      flows.push_back(flow_of(row));
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return flows;
  }

 private:
  FlowRequest flow_of(const CsvRow& row) {
    FlowRequest flow;
    flow.source = host(row, "source");
    flow.target = host(row, "target");
    flow.bytes = Bytes(static_cast<std::int64_t>(
        number(row, "bytes", 0, {0, 9e18, "a whole number of bytes, 0 or more", true})));
    flow.start = from_seconds(number(row, "start_s", 0, {0, 9e6, "seconds from 0 to 9000000"}));
    flow.weight = number(row, "weight", 1, {1e-9, 1e9, "a number from 1e-9 to 1e9"});
    const double unlimited = std::numeric_limits<double>::infinity();
    flow.cap = Bandwidth(
        number(row, "rate_cap", unlimited, {1e-3, 1e18, "bytes per second, at least 0.001"}));
    return flow;
  }

  std::int32_t host(const CsvRow& row, std::string_view column) {
    const std::string& text = row.cells[table_.column(column).value_or(0)];
    if (const auto found = hosts_.find(text); found != hosts_.end()) {
      return found->second;
    }
    const auto index = parse_integer(text);
    if (index && *index >= 0 && *index < count_) {
      return static_cast<std::int32_t>(*index);
    }
    error_.add(misread(table_.where(row), std::string(column), text,
                       "the name of a host, such as " + hosts_.begin()->first +
                           ", or its number below " + std::to_string(count_)));
    return 0;
  }

  struct Limits {
    double least = 0;
    double most = 0;
    const char* expected = "";
    bool whole = false;  ///< and required
  };
  double number(const CsvRow& row, std::string_view column, double fallback, const Limits& limits) {
    const auto& [least, most, expected, whole] = limits;
    const auto place = table_.column(column);
    if (!place || row.cells[*place].empty()) {
      if (whole) {
        error_.add(misread(table_.where(row), std::string(column), {}, expected));
      }
      return fallback;
    }
    const auto value = parse_number(row.cells[*place]);
    if (!value || *value < least || *value > most || (whole && *value != std::floor(*value))) {
      error_.add({table_.where(row), std::string(column), row.cells[*place], expected});
      return fallback;
    }
    return *value;
  }

  const CsvTable& table_;
  std::map<std::string, std::int32_t, std::less<>> hosts_;
  std::int32_t count_ = 0;
  Error error_;
};

/// Whatever order they came in.
std::vector<std::uint32_t> by_start(const std::vector<FlowRequest>& flows) {
  std::vector<std::uint32_t> order(flows.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t f) {
    const FlowRequest& flow = flows[f];
    return std::tuple(flow.start, flow.source, flow.target, flow.bytes, flow.weight, flow.cap);
  });
  return order;
}

Result<topology::Assigned> ways_of(topology::Router& router, const std::vector<FlowRequest>& flows,
                                   const std::vector<std::uint32_t>& order) {
  std::vector<FlowEnds> ends;
  ends.reserve(flows.size());
  for (const std::uint32_t f : order) {
    ends.push_back({flows[f].source, flows[f].target, flows[f].bytes});
  }
  return assign(router, ends);
}

}  // namespace

Result<FlowRun> run_flows(topology::Router& router, const std::vector<FlowRequest>& flows,
                          const FlowOptions& options, const faults::Schedule& faults) {
  if (!faults.changes.empty() && (options.crowds() || options.ramp > Bytes(0))) {
    return fail(Error("faults change the links that crowding and the ramp change: one of them"));
  }
  if (faults.recolour && router.routing() != topology::Routing::colour) {
    return fail(Error(Mistake{{},
                              "recolour",
                              std::string(name_of(router.routing())),
                              "routing colour: others look at each flow by itself"}));
  }
  const std::vector<std::uint32_t> order = by_start(flows);
  Result<topology::Assigned> assigned = ways_of(router, flows, order);
  if (!assigned) {
    return fail(std::move(assigned.error()));
  }
  return FlowLoop(router, {flows, order, *assigned}, options, faults).run();
}

Result<std::vector<FlowRequest>> load_flows(const std::string& file,
                                            const topology::LinkGraph& graph) {
  return load_csv(file).and_then(
      [&](const CsvTable& table) { return FlowTable(table, graph).read(); });
}

}  // namespace orrery::network
