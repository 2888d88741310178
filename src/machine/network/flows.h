// SPDX-License-Identifier: Apache-2.0
/// Bare flows on a network of links: no machine, no model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "machine/faults/faults.h"
#include "machine/network/congestion.h"
#include "machine/topology/assign.h"
#include "machine/topology/link_graph.h"
#include "machine/topology/routing.h"

namespace orrery::network {

/// Vertices that a flow passes one after the other; a word where it says nothing of them.
class Stops {
 public:
  Stops() = default;
  Stops(std::vector<std::int32_t> vertices)
      : of_(vertices.empty() ? nullptr
                             : std::make_unique<std::vector<std::int32_t>>(std::move(vertices))) {}
  Stops(std::initializer_list<std::int32_t> vertices)
      : Stops(std::vector<std::int32_t>(vertices)) {}
  Stops(const Stops& other) : Stops(other.of_ ? *other.of_ : std::vector<std::int32_t>()) {}
  Stops(Stops&&) noexcept = default;
  Stops& operator=(const Stops& other) { return *this = Stops(other); }
  Stops& operator=(Stops&&) noexcept = default;
  ~Stops() = default;

  bool empty() const { return !of_; }
  std::span<const std::int32_t> all() const {
    return of_ ? std::span<const std::int32_t>(*of_) : std::span<const std::int32_t>();
  }
  friend bool operator==(const Stops& a, const Stops& b) {
    return std::ranges::equal(a.all(), b.all());
  }
  friend bool operator<(const Stops& a, const Stops& b) {
    return std::ranges::lexicographical_compare(a.all(), b.all());
  }

 private:
  std::unique_ptr<std::vector<std::int32_t>> of_;
};

struct FlowRequest {
  std::int32_t source = 0;  ///< hosts
  std::int32_t target = 0;
  Bytes bytes{0};
  Time start{0};
  double weight = 1;  ///< FlowTerms
  Bandwidth cap{std::numeric_limits<double>::infinity()};
  Stops via{};  ///< whatever the routing (Router::through); none: as that says

  friend bool operator==(const FlowRequest&, const FlowRequest&) = default;
};

struct FlowRun {
  std::vector<Time> finish;   ///< by flow: the last byte has arrived
  std::vector<double> load;   ///< bytes that have passed, by link
  Time end{0};                ///< of the last flow
  std::uint64_t solved = 0;   ///< rates computed (FairNetwork::solved)
  std::size_t pieces = 0;     ///< of flows, as the routing has cut them
  std::size_t simulated = 0;  ///< of these, the others being alike (flow_fold.h)
  std::size_t rerouted = 0;   ///< pieces that went another way since a fault, each time
  std::uint64_t skipped = 0;  ///< of packets (packet.h), as all below
  std::uint64_t resent = 0;
  std::uint64_t pauses = 0;
  std::uint64_t marks = 0;
};

/// Runs flows under max-min fairness (fair.h). A flow that the routing cuts into pieces shares as
/// so many flows of a share of its weight and cap, and ends with the last. The order of `flows` has
/// no influence: they begin in the order of (start, source, target, bytes, weight, cap).
///
/// Pieces that symmetry makes alike are simulated as one (flow_fold.h), unless options.fold is off
/// or something else changes links and caps.
///
/// `faults`: changes of links (link_faults.h); without `options` that change links too, else a
/// mistake. A flow that never ends for them is a mistake, which names the losses.
///
/// Ignores, but for what `options` say: packets and headers; what congestion control needs to find
/// the rates.
Result<FlowRun> run_flows(topology::Router& router, const std::vector<FlowRequest>& flows,
                          const FlowOptions& options = {}, const faults::Schedule& faults = {});

/// Says that the flow has none.
std::string no_route(const topology::LinkGraph& graph, const FlowRequest& flow);

/// Reads a table with the columns source, target (names of hosts, or their numbers), bytes, and
/// optional start_s, weight, rate_cap (bytes per second), via (names of vertices that the flow
/// passes, separated by spaces).
Result<std::vector<FlowRequest>> load_flows(const std::string& file,
                                            const topology::LinkGraph& graph);

}  // namespace orrery::network
