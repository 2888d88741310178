// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/csv.h"
#include "base/names.h"
#include "base/reader.h"
#include "machine/network/fair.h"
#include "machine/network/link_faults.h"

namespace orrery::network {
namespace {

using topology::FlowEnds;
using topology::Piece;

constexpr std::uint32_t kStart = 0;
constexpr std::uint32_t kFault = 1;
constexpr std::uint32_t kReroute = 2;

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

/// One run, event by event.
class FlowLoop {
 public:
  FlowLoop(topology::Router& router, const std::vector<FlowRequest>& flows,
           const faults::Schedule& faults)
      : graph_(router.graph()),
        flows_(flows),
        order_(by_start(flows)),
        faults_(faults),
        network_(graph_.links.size()) {
    if (!faults.changes.empty()) {
      links_.emplace(network_, graph_, router.routing(), router.seed());
    }
    run_.finish.resize(flows.size());
    run_.load.resize(graph_.links.size());
  }

  Result<FlowRun> run(topology::Router& router) {
    std::vector<FlowEnds> ends;
    ends.reserve(flows_.size());
    for (const std::uint32_t f : order_) {
      ends.push_back({flows_[f].source, flows_[f].target, flows_[f].bytes});
    }
    Result<topology::Assigned> assigned = assign(router, ends);
    if (!assigned) {
      return fail(std::move(assigned.error()));
    }
    assigned_ = std::move(*assigned);
    run_.pieces = left_ = assigned_.pieces.size();
    if (left_ > 0) {
      queue_.push(start_of(0), kStart, 0);
    }
    push_fault();
    while (!queue_.empty() && left_ > 0) {
      handle(queue_.pop());
      if (queue_.instant_is_over()) {
        network_.settle(queue_);
      }
    }
    if (left_ > 0) {
      return fail(stalled());
    }
    for (const Time finish : run_.finish) {
      run_.end = std::max(run_.end, finish);
    }
    run_.solved = network_.solved();
    return std::move(run_);
  }

 private:
  Time start_of(std::size_t piece) const {
    return flows_[order_[assigned_.pieces[piece].flow]].start;
  }

  void start(const Piece& piece) {
    const FlowRequest& flow = flows_[order_[piece.flow]];
    const double bytes = piece.share * static_cast<double>(flow.bytes.value());
    const Bandwidth cap = lay(assigned_, piece, graph_, bytes, flow.cap, run_.load);
    const std::span<const topology::Hop> way = assigned_.way(piece);
    const std::span<const topology::Hop> taken = links_ ? links_->way(way) : way;
    const TransferId id =
        network_.start(Bytes::from_double(bytes), taken, queue_, {flow.weight * piece.share, cap});
    if (links_) {
      links_->began(id, way, taken);
      move(way, taken, bytes);
    }
    flow_of_.resize(std::max<std::size_t>(flow_of_.size(), id + 1));
    flow_of_[id] = order_[piece.flow];
  }

  /// Bytes that go another way than was planned.
  void move(std::span<const topology::Hop> from, std::span<const topology::Hop> to, double bytes) {
    if (from.data() == to.data()) {
      return;
    }
    const auto add = [&](std::span<const topology::Hop> way, double sign) {
      for (const topology::Hop& hop : way) {
        run_.load[hop.link] +=
            sign * bytes * (graph_.links[hop.link].bandwidth.value() / hop.bandwidth.value());
      }
    };
    add(from, -1);
    add(to, 1);
    ++run_.rerouted;
  }

  void handle(const engine::EventQueue::Event& event) {
    if (event.kind == kStart) {
      for (; next_ < assigned_.pieces.size() && start_of(next_) == queue_.now(); ++next_) {
        start(assigned_.pieces[next_]);
      }
      if (next_ < assigned_.pieces.size()) {
        queue_.push(start_of(next_), kStart, 0);
      }
    } else if (event.kind == kFault) {
      bool ways = false;
      for (; fault_ < faults_.changes.size() && faults_.changes[fault_].at == queue_.now();
           ++fault_) {
        const faults::Change& change = faults_.changes[fault_];
        ways |= links_->change(static_cast<topology::LinkId>(change.place), change.value);
      }
      if (ways) {
        queue_.push(queue_.now() + faults_.reroute_after, kReroute, 0);
      }
      push_fault();
    } else if (event.kind == kReroute) {
      links_->reroute(queue_, [&](const LinkFaults::Moved& moved) {
        move(moved.from, moved.to, static_cast<double>(moved.left.value()));
      });
    } else if (network_.handle(event, queue_)) {
      Time& finish = run_.finish[flow_of_[event.subject]];
      finish = std::max(finish, queue_.now());
      --left_;
    }
  }

  void push_fault() {
    if (fault_ < faults_.changes.size()) {
      queue_.push(faults_.changes[fault_].at, kFault, 0);
    }
  }

  Error stalled() const {
    Error error(fmt::format(
        "{} of {} flows (or pieces of them) never end, for no way is left:", left_, run_.pieces));
    for (const std::string& loss : faults_.losses) {
      error.add({{}, {}, {}, loss});
    }
    return error;
  }

  const topology::LinkGraph& graph_;
  const std::vector<FlowRequest>& flows_;
  std::vector<std::uint32_t> order_;
  const faults::Schedule& faults_;
  topology::Assigned assigned_;
  engine::EventQueue queue_;
  FairNetwork network_;
  std::optional<LinkFaults> links_;
  FlowRun run_;
  std::vector<std::uint32_t> flow_of_;  ///< by TransferId
  std::size_t next_ = 0;                ///< piece
  std::size_t fault_ = 0;               ///< change
  std::size_t left_ = 0;                ///< pieces that have not arrived
};

}  // namespace

Result<FlowRun> run_flows(topology::Router& router, const std::vector<FlowRequest>& flows,
                          const faults::Schedule& faults) {
  return FlowLoop(router, flows, faults).run(router);
}

Result<std::vector<FlowRequest>> load_flows(const std::string& file,
                                            const topology::LinkGraph& graph) {
  return load_csv(file).and_then(
      [&](const CsvTable& table) { return FlowTable(table, graph).read(); });
}

}  // namespace orrery::network
