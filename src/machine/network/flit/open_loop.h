// SPDX-License-Identifier: Apache-2.0
/// Latency under a constant offered load, and the load at which a network saturates.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "machine/network/flit/engine.h"
#include "machine/network/flit/traffic.h"
#include "machine/network/flit/traffic_class.h"

namespace orrery::flit {

/// Says when a run is in steady state and how long it is measured, as BookSim 2 does.
struct OpenLoopSettings {
  double rate = 0.1;  ///< flits per node and cycle
  int packet = 1;     ///< flits
  Cycle sample_period = 1000;
  int warmup_periods = 3;
  int max_samples = 10;              ///< periods at most, those of the warm-up counted
  double latency_limit = 500;        ///< cycles; a mean above it: unstable
  double stopping_threshold = 0.05;  ///< of latency from period to period, three times
  double throughput_threshold = 0;   ///< of throughput; 0: that of latency
  std::uint64_t seed = 1;
  double burst_alpha = 0;  ///< chance a cycle that a silent node begins a burst; 0: no bursts
  double burst_beta = 0;   ///< that a burst ends

  /// Returns the one class of nodes that offer packets of one size.
  TrafficClass one_class() const {
    TrafficClass made;
    made.sizes = {packet};
    made.burst_alpha = burst_alpha;
    made.burst_beta = burst_beta;
    return made;
  }

  template <class V>
  static void fields(V&& visit) {
    using S = OpenLoopSettings;
    visit("rate", &S::rate, "flits that each node offers per cycle");
    visit("packet", &S::packet, "flits of a packet");
    visit("sample_period", &S::sample_period, "cycles of one period");
    visit("warmup_periods", &S::warmup_periods, "periods before the first that counts");
    visit("max_samples", &S::max_samples, "periods at most, those of the warm-up counted");
    visit("latency_limit", &S::latency_limit, "mean packet latency above which a run is unstable");
    visit("stopping_threshold", &S::stopping_threshold,
          "largest change of latency from period to period, of throughput too");
    visit("throughput_threshold", &S::throughput_threshold,
          "largest change of throughput; 0: as stopping_threshold");
    visit("seed", &S::seed, "of everything at random");
    visit("burst_alpha", &S::burst_alpha,
          "chance a cycle that a silent node begins a burst; 0: no bursts");
    visit("burst_beta", &S::burst_beta, "chance a cycle that a burst ends");
  }
};

/// ClassResult has the figures of one class, as in OpenLoopResult.
struct ClassResult {
  double packet_latency = 0;
  double network_latency = 0;
  double flit_latency = 0;
  double hops = 0;
  double injected = 0;
  double accepted = 0;
  std::uint64_t packets = 0;
};

struct OpenLoopResult {
  bool stable = true;
  std::string reason;       ///< why not
  bool deadlocked = false;  ///< a circle of buffers waits for itself; `reason` names it
  double offered = 0;       ///< flits per node and cycle
  /// Means over the packets created in the periods that count, cycles. All infinite, and hops 0, if
  /// none of them has arrived.
  double packet_latency = 0;   ///< creation to the tail's arrival
  double network_latency = 0;  ///< the head leaving the node to the tail's arrival
  double flit_latency = 0;     ///< by flit, leaving the node to arrival
  double hops = 0;             ///< routers visited
  Cycle latency_p50 = 0;       ///< of packet latency; the smallest that so many do not exceed
  Cycle latency_p90 = 0;
  Cycle latency_p99 = 0;
  Cycle latency_max = 0;
  std::uint64_t packets = 0;  ///< that these are of
  double injected = 0;        ///< flits per node and cycle in the periods that count
  double accepted = 0;
  Cycle cycles = 0;  ///< simulated
  std::uint64_t flit_hops = 0;
  /// Flits per cycle over each channel in the periods that count.
  std::vector<double> channel_load;
  std::vector<ClassResult> classes;  ///< at least one
};

/// `skip` false: every cycle is simulated. `progress` is told the share of the longest run.
struct RunOptions {
  bool skip = true;
  std::function<void(double)> progress = {};
};

/// Runs a warm-up, then periods until mean latency and throughput of all of them so far have
/// changed by less than the thresholds three times in a row, in every class, then the time until
/// what was created in them has arrived. Nodes draw each cycle with probability rate x share / mean
/// size, or in bursts; a node whose packet has not left draws for that time later, with the right
/// time of creation. Requires settings in range (experiment.h).
OpenLoopResult run_open_loop(const Network& network, const OpenLoopSettings& settings,
                             const RunOptions& options = {});

/// Runs one class, with settings.packet and bursts.
OpenLoopResult run_open_loop(const RouterGraph& graph, const Routing& routing,
                             const RouterSettings& router, const Traffic& traffic,
                             const OpenLoopSettings& settings, const RunOptions& options = {});

}  // namespace orrery::flit
