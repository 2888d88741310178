// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/csv.h"
#include "base/names.h"
#include "base/reader.h"
#include "machine/network/fair.h"

namespace orrery::network {
namespace {

using topology::FlowEnds;
using topology::Piece;

constexpr std::uint32_t kStart = 0;
constexpr std::uint32_t kRaise = 1;

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
    flow.start = from_seconds(number(row, "start_s", 0, {0, 9e6, "seconds, 0 or more"}));
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
    error_.add({table_.where(row), std::string(column), text,
                "the name of a host, such as " + hosts_.begin()->first + ", or its number below " +
                    std::to_string(count_)});
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
        error_.add({table_.where(row),
                    std::string(column),
                    {},
                    std::string("missing; expected ") + expected});
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

/// Counts a piece's bytes on its links; the rate at which it may go at most, if its flow may `cap`.
Bandwidth lay(topology::Assigned& assigned, const Piece& piece, const topology::LinkGraph& graph,
              double bytes, Bandwidth cap, std::vector<double>& load) {
  cap = Bandwidth(cap.value() * piece.share);
  for (std::size_t h = piece.first_hop; h < piece.first_hop + piece.hops; ++h) {
    topology::Hop& hop = assigned.hops[h];
    const topology::GraphLink& link = graph.links[hop.link];
    load[hop.link] += bytes * (link.bandwidth.value() / hop.bandwidth.value());
    if (link.pipe) {  // a limit of each flow, and none of all of them
      constexpr double kPlenty = 1e6;
      cap = std::min(cap, hop.bandwidth);
      hop.bandwidth = Bandwidth(hop.bandwidth.value() * kPlenty);
    }
  }
  return cap;
}

/// Runs pieces of flows that have their ways.
class FlowLoop {
 public:
  FlowLoop(topology::Assigned& assigned, const topology::LinkGraph& graph,
           const std::vector<FlowRequest>& flows, const FlowOptions& options)
      : assigned_(assigned),
        graph_(graph),
        flows_(flows),
        options_(options),
        order_(by_start(flows)),
        network_(graph.links.size()),
        crowding_(graph, options) {
    run_.finish.resize(flows.size());
    run_.load.resize(graph.links.size());
    run_.pieces = assigned.pieces.size();
  }

  FlowRun run() {
    if (!assigned_.pieces.empty()) {
      queue_.push(start_of(0), kStart, 0);
    }
    while (!queue_.empty()) {
      handle(queue_.pop());
      if (queue_.instant_is_over()) {
        crowding_.settle(network_);
        network_.settle(queue_);
      }
    }
    for (const Time finish : run_.finish) {
      run_.end = std::max(run_.end, finish);
    }
    run_.solved = network_.solved();
    return std::move(run_);
  }

 private:
  /// A piece under way.
  struct Moving {
    std::uint32_t flow = 0;
    std::uint32_t serial = 0;  ///< how many have had its TransferId
    Bandwidth now{0};          ///< cap of the ramp
    Bandwidth most{0};         ///< cap without it
    Bandwidth fastest{0};      ///< at which no link of its way holds it up
    Time trip{0};
  };

  Time start_of(std::size_t piece) const {
    return flows_[order_[assigned_.pieces[piece].flow]].start;
  }

  void handle(const engine::EventQueue::Event& event) {
    if (event.kind == kStart) {
      for (; next_ < assigned_.pieces.size() && start_of(next_) == queue_.now(); ++next_) {
        start(assigned_.pieces[next_]);
      }
      if (next_ < assigned_.pieces.size()) {
        queue_.push(start_of(next_), kStart, 0);
      }
      return;
    }
    if (event.kind == kRaise) {
      raise(event.subject, event.generation);
      return;
    }
    const bool drains = event.kind == FairNetwork::kDrained && !network_.is_stale(event);
    if (network_.handle(event, queue_)) {
      Time& finish = run_.finish[moving_[event.subject].flow];
      finish = std::max(finish, queue_.now());
    } else if (drains) {
      ++moving_[event.subject].serial;
      if (options_.crowds()) {
        crowding_.leave(event.subject);
      }
    }
  }

  void start(const Piece& piece) {
    const FlowRequest& flow = flows_[order_[piece.flow]];
    const double bytes = piece.share * options_.overhead * static_cast<double>(flow.bytes.value());
    const Bandwidth cap = lay(assigned_, piece, graph_, bytes, flow.cap, run_.load);
    const std::span<const topology::Hop> way = assigned_.way(piece);
    const TransferId id = network_.start(Bytes::from_double(bytes), way, queue_,
                                         {flow.weight * piece.share, first_cap(way, piece, cap)});
    moving_.resize(std::max<std::size_t>(moving_.size(), id + 1));
    Moving& moving = moving_[id];
    moving.flow = order_[piece.flow];
    moving.most = cap;
    moving.now = first_cap(way, piece, cap);
    moving.trip = round_trip(way);
    moving.fastest = cap;
    for (const topology::Hop& hop : way) {
      moving.fastest = std::min(moving.fastest, hop.bandwidth);
    }
    if (options_.crowds()) {
      crowding_.enter(id, way);
    }
    if (moving.now < moving.most) {
      queue_.push(queue_.now() + moving.trip, kRaise, id, moving.serial);
    }
  }

  static Time round_trip(std::span<const topology::Hop> way) {
    Time sum{0};
    for (const topology::Hop& hop : way) {
      sum += hop.latency;
    }
    return sum * 2;
  }

  /// Of the ramp's first round trip, if that is less than the flow's own.
  Bandwidth first_cap(std::span<const topology::Hop> way, const Piece& piece, Bandwidth cap) const {
    const Time trip = round_trip(way);
    if (options_.ramp == Bytes(0) || trip == Time(0)) {
      return cap;
    }
    return std::min(cap, Bandwidth(static_cast<double>(options_.ramp.value()) * piece.share /
                                   to_seconds(trip)));
  }

  /// Doubles, up to what no link of the way exceeds.
  void raise(TransferId id, std::uint32_t serial) {
    Moving& moving = moving_[id];
    if (moving.serial != serial) {
      return;  // gone
    }
    moving.now = moving.now * 2.0 < moving.fastest ? moving.now * 2.0 : moving.most;
    network_.limit(id, moving.now);
    if (moving.now < moving.most) {
      queue_.push(queue_.now() + moving.trip, kRaise, id, serial);
    }
  }

  topology::Assigned& assigned_;
  const topology::LinkGraph& graph_;
  const std::vector<FlowRequest>& flows_;
  FlowOptions options_;
  std::vector<std::uint32_t> order_;
  FairNetwork network_;
  Crowding crowding_;
  engine::EventQueue queue_;
  FlowRun run_;
  std::vector<Moving> moving_;  ///< by TransferId
  std::size_t next_ = 0;
};

}  // namespace

Result<FlowRun> run_flows(topology::Router& router, const std::vector<FlowRequest>& flows,
                          const FlowOptions& options) {
  std::vector<FlowEnds> ends;
  ends.reserve(flows.size());
  for (const std::uint32_t f : by_start(flows)) {
    ends.push_back({flows[f].source, flows[f].target, flows[f].bytes});
  }
  Result<topology::Assigned> assigned = assign(router, ends);
  if (!assigned) {
    return fail(std::move(assigned.error()));
  }
  return FlowLoop(*assigned, router.graph(), flows, options).run();
}

Result<std::vector<FlowRequest>> load_flows(const std::string& file,
                                            const topology::LinkGraph& graph) {
  return load_csv(file).and_then(
      [&](const CsvTable& table) { return FlowTable(table, graph).read(); });
}

}  // namespace orrery::network
