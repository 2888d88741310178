// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/event_queue.h"
#include "machine/faults/faults.h"
#include "machine/network/congestion.h"
#include "machine/network/fair.h"
#include "machine/network/flow_fold.h"
#include "machine/network/flows.h"
#include "machine/network/link_faults.h"
#include "machine/topology/assign.h"

namespace orrery::network {

/// Counts a piece's bytes on its links; the rate at which it may go at most, if its flow may `cap`.
inline Bandwidth lay(topology::Assigned& assigned, const topology::Piece& piece,
                     const topology::LinkGraph& graph, double bytes, Bandwidth cap,
                     std::vector<double>& load) {
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

/// Runs pieces of flows that have their routes, event by event.
class FlowLoop {
 public:
  FlowLoop(const topology::Router& router, const LaidFlows& flows, const FlowOptions& options,
           const faults::Schedule& faults)
      : graph_(router.graph()),
        flows_(flows.all),
        order_(flows.order),
        assigned_(flows.assigned),
        options_(options),
        faults_(faults),
        network_(graph_.links.size()),
        congestion_(graph_, options) {
    if (!faults.changes.empty()) {
      links_.emplace(network_, graph_, router.routing(), router.seed());
    }
    if (faults.recolour && links_) {
      links_->replan_by([this](const std::vector<bool>& lost, topology::Detours& detours) {
        recolour(lost, detours);
      });
      unfinished_.resize(flows_.size());
      for (const topology::Piece& piece : assigned_.pieces) {
        ++unfinished_[order_[piece.flow]];
      }
    }
    run_.finish.resize(flows_.size());
    run_.load.resize(graph_.links.size());
    run_.pieces = run_.simulated = left_ = assigned_.pieces.size();
  }

  Result<FlowRun> run() {
    if (left_ > 0) {
      queue_.push(start_of(0), kStart, 0);
    }
    push_fault();
    while (!queue_.empty() && left_ > 0) {
      handle(queue_.pop());
      if (queue_.instant_is_over()) {
        congestion_.settle(network_);
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
  static constexpr std::uint32_t kStart = 0;
  static constexpr std::uint32_t kRaise = 1;
  static constexpr std::uint32_t kFault = 2;
  static constexpr std::uint32_t kReroute = 3;
  static_assert(kReroute < FairNetwork::kDrained);

  /// A piece in flight.
  struct Moving {
    std::uint32_t flow = 0;
    std::uint32_t serial = 0;  ///< how many have had its TransferId
  };
  struct Ramp {
    Bandwidth now{0};      ///< cap
    Bandwidth most{0};     ///< cap without it
    Bandwidth fastest{0};  ///< at which no link of its route holds it up
    Time trip{0};
  };

  Time start_of(std::size_t piece) const {
    return flows_[order_[assigned_.pieces[piece].flow]].start;
  }

  void handle(const engine::EventQueue::Event& event) {
    switch (event.kind) {
      case kStart:
        return start_all();
      case kRaise:
        return raise(event.subject, event.generation);
      case kFault:
        return apply_faults();
      case kReroute:
        return reroute();
      default:
        break;
    }
    const bool drains = event.kind == FairNetwork::kDrained && !network_.is_stale(event);
    if (network_.handle(event, queue_)) {
      Time& finish = run_.finish[moving_[event.subject].flow];
      finish = std::max(finish, queue_.now());
      --left_;
      if (!unfinished_.empty()) {
        --unfinished_[moving_[event.subject].flow];
      }
    } else if (drains) {
      ++moving_[event.subject].serial;
      if (options_.has_congestion()) {
        congestion_.leave(event.subject);
      }
    }
  }

  void start_all() {
    for (; next_ < assigned_.pieces.size() && start_of(next_) == queue_.now(); ++next_) {
      start(assigned_.pieces[next_]);
    }
    if (next_ < assigned_.pieces.size()) {
      queue_.push(start_of(next_), kStart, 0);
    }
  }

  void start(const topology::Piece& piece) {
    const FlowRequest& flow = flows_[order_[piece.flow]];
    const double bytes = piece.share * options_.overhead * static_cast<double>(flow.bytes.value());
    const Bandwidth cap = lay(assigned_, piece, graph_, bytes, flow.cap, run_.load);
    const std::span<const topology::Hop> route = assigned_.route(piece);
    const std::span<const topology::Hop> taken = links_ ? links_->route(route) : route;
    const TransferId id = network_.start(Bytes::from_double(bytes), taken, queue_,
                                         {flow.weight * piece.share, first_cap(route, piece, cap)});
    if (links_) {
      links_->began(id, route, taken);
      move(route, taken, bytes);
    }
    moving_.resize(std::max<std::size_t>(moving_.size(), id + 1));
    moving_[id].flow = order_[piece.flow];
    if (options_.has_congestion()) {
      congestion_.enter(id, route);
    }
    if (options_.ramp > Bytes(0)) {
      begin_ramp(id, route, {first_cap(route, piece, cap), cap, cap, round_trip(route)});
    }
  }

  void begin_ramp(TransferId id, std::span<const topology::Hop> route, Ramp ramp) {
    for (const topology::Hop& hop : route) {
      ramp.fastest = std::min(ramp.fastest, hop.bandwidth);
    }
    ramps_.resize(moving_.size());
    ramps_[id] = ramp;
    if (ramp.now < ramp.most) {
      queue_.push(queue_.now() + ramp.trip, kRaise, id, moving_[id].serial);
    }
  }

  static Time round_trip(std::span<const topology::Hop> route) {
    Time sum{0};
    for (const topology::Hop& hop : route) {
      sum += hop.latency;
    }
    return sum * 2;
  }

  /// Returns the cap of the ramp's first round trip, if that is less than the flow's own.
  Bandwidth first_cap(std::span<const topology::Hop> route, const topology::Piece& piece,
                      Bandwidth cap) const {
    const Time trip = round_trip(route);
    if (options_.ramp == Bytes(0) || trip == Time(0)) {
      return cap;
    }
    return std::min(cap, Bandwidth(static_cast<double>(options_.ramp.value()) * piece.share /
                                   to_seconds(trip)));
  }

  /// Doubles the flow's cap, up to what no link of the route exceeds.
  void raise(TransferId id, std::uint32_t serial) {
    if (moving_[id].serial != serial) {
      return;  // gone
    }
    Ramp& ramp = ramps_[id];
    ramp.now = ramp.now * 2.0 < ramp.fastest ? ramp.now * 2.0 : ramp.most;
    network_.limit(id, ramp.now);
    if (ramp.now < ramp.most) {
      queue_.push(queue_.now() + ramp.trip, kRaise, id, serial);
    }
  }

  /// Moves bytes that go another way than was planned.
  void move(std::span<const topology::Hop> from, std::span<const topology::Hop> to, double bytes) {
    if (from.data() == to.data()) {
      return;
    }
    const auto add = [&](std::span<const topology::Hop> route, double sign) {
      for (const topology::Hop& hop : route) {
        run_.load[hop.link] +=
            sign * bytes * (graph_.links[hop.link].bandwidth.value() / hop.bandwidth.value());
      }
    };
    add(from, -1);
    add(to, 1);
    ++run_.rerouted;
  }

  void reroute() {
    if (links_) {
      links_->reroute(queue_, [&](const LinkFaults::Moved& moved) {
        move(moved.from, moved.to, static_cast<double>(moved.left.value()));
      });
    }
  }

  /// All flows that have not ended are coloured again without what is lost; if that cannot be, and
  /// when all is back, routes are those of Detours.
  void recolour(const std::vector<bool>& lost, topology::Detours& detours) {
    if (std::ranges::find(lost, true) == lost.end()) {
      return;
    }
    std::vector<topology::FlowEnds> ends;
    std::vector<std::size_t> place(order_.size());  // in `ends`, by start
    for (std::size_t f = 0; f < order_.size(); ++f) {
      place[f] = ends.size();
      if (const FlowRequest& flow = flows_[order_[f]]; unfinished_[order_[f]] > 0) {
        ends.push_back({flow.source, flow.target, flow.bytes});
      }
    }
    topology::Router router(graph_, topology::Routing::colour);
    const auto planned = topology::assign(router, ends, lost);
    if (!planned) {
      return;
    }
    const auto& routes = planned_.emplace_back(topology::as_one(*planned, ends.size()));
    for (const topology::Piece& piece : assigned_.pieces) {
      if (piece.hops > 0 && unfinished_[order_[piece.flow]] > 0) {
        detours.plan(assigned_.route(piece), routes[place[piece.flow]]);
      }
    }
  }

  void apply_faults() {
    bool routes = false;
    for (; links_ && fault_ < faults_.changes.size() && faults_.changes[fault_].at == queue_.now();
         ++fault_) {
      const faults::Change& change = faults_.changes[fault_];
      routes |= links_->change(static_cast<topology::LinkId>(change.place), change.value);
    }
    if (routes) {
      queue_.push(queue_.now() + faults_.reroute_after, kReroute, 0);
    }
    push_fault();
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
  const std::vector<std::uint32_t>& order_;
  topology::Assigned& assigned_;
  const FlowOptions options_;
  const faults::Schedule& faults_;
  engine::EventQueue queue_;
  FairNetwork network_;
  Congestion congestion_;
  std::optional<LinkFaults> links_;
  FlowRun run_;
  std::vector<Moving> moving_;             ///< by TransferId
  std::vector<std::uint32_t> unfinished_;  ///< pieces by flow, where routes may be planned again
  std::deque<std::vector<std::vector<topology::Hop>>> planned_;  ///< messages may be on older ones
  std::vector<Ramp> ramps_;  ///< by TransferId, where the options have one
  std::size_t next_ = 0;     ///< piece
  std::size_t fault_ = 0;    ///< change
  std::size_t left_ = 0;     ///< pieces that have not arrived
};

}  // namespace orrery::network
