// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/open_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "machine/network/flit/deadlock.h"
#include "machine/network/flit/even_draws.h"

namespace orrery::flit {
namespace {

constexpr int kConverged = 3;         // periods in a row
constexpr Cycle kDrainPeriod = 1000;  // cycles between looks at a network that drains

/// Sums over packets that have arrived.
struct Sums {
  std::uint64_t packets = 0;
  double packet_latency = 0;
  double network_latency = 0;
  double hops = 0;
  std::uint64_t flits = 0;  ///< of all packets, those that do not count too
  double flit_latency = 0;

  void add(const Arrived& packet, Cycle now) {
    ++packets;
    packet_latency += static_cast<double>(now - packet.created);
    network_latency += static_cast<double>(now - packet.injected);
    hops += packet.hops;
  }
  void add(const Sums& other) {
    packets += other.packets;
    flits += other.flits;
    packet_latency += other.packet_latency;
    network_latency += other.network_latency;
    flit_latency += other.flit_latency;
    hops += other.hops;
  }
};

enum class State : std::uint8_t { warming_up, running, draining, emptying };

class OpenLoop {
 public:
  OpenLoop(const Network& network, const OpenLoopSettings& settings, const RunOptions& options)
      : graph_(network.graph),
        settings_(settings),
        options_(options),
        engine_(network.graph, network.routing, network.router, settings.seed,
                {.count = static_cast<std::uint32_t>(network.classes.size()),
                 .counts_flit_latency = true,
                 .kinds = network.kinds}),
        even_(network, settings.rate),
        sums_(network.classes.size()),
        before_(network.classes.size()),
        injected_(network.classes.size()),
        arrived_(network.classes.size()) {
    if (!EvenDraws::can_draw(network)) {
      draws_.emplace(network, settings.rate);
    }
  }

  OpenLoopResult run() {
    OpenLoopResult result;
    result.offered = settings_.rate;
    result.stable = sample(result.reason) && drain(result.reason);
    result.deadlocked = !result.stable && !circle_of(engine_.waiting()).empty();
    finish(result);
    return result;
  }

 private:
  static constexpr std::uint32_t kCounts = 1;  // of a tag

  bool counts(Cycle created) const {
    return state_ == State::running || (state_ == State::draining && created < drain_);
  }

  void offer(std::uint32_t source, Created packet) {
    packet.counts = packet.counts || counts(packet.when);
    outstanding_ += packet.counts ? 1 : 0;
    engine_.offer(source, {.target = packet.target,
                           .flits = packet.flits,
                           .tag = packet.counts ? kCounts : 0,
                           .created = packet.when,
                           .priority = packet.priority,
                           .kind = packet.kind});
  }

  /// All nodes draw for this cycle.
  bool draw() {
    const auto create = [&](std::uint32_t source, const Created& packet) { offer(source, packet); };
    return draws_ ? draws_->draw(engine_, create) : even_.draw(engine_, create);
  }
  bool draw_together(Cycle end) {
    return even_.draw_together(
        engine_, end, [&](std::uint32_t source, const Created& packet) { offer(source, packet); });
  }
  bool draws_together() const { return !draws_ && even_.draws_together(); }

  /// Draws for the cycles before `end`, in which nothing else happens, until one with a packet.
  bool draw_while_quiet(Cycle end) {
    while (engine_.now() < end) {
      const bool together = draws_together();
      if (together ? draw_together(end) : draw()) {
        return true;
      }
      engine_.skip(together ? end : engine_.now() + 1);
    }
    return false;
  }

  void step(Cycle limit) {
    const Cycle quiet = options_.skip ? engine_.quiet_until(limit) : engine_.now();
    if (state_ == State::emptying) {
      engine_.skip(quiet);
    } else if (quiet > engine_.now()) {
      if (!draw_while_quiet(quiet)) {
        return;
      }
    } else if (draws_together()) {
      draw_together(engine_.now() + 1);
    } else {
      draw();
    }
    engine_.step();
    for (const Arrived& packet : engine_.arrived()) {
      take(packet, engine_.now() - 1);
    }
    if (!draws_) {
      even_.catch_up(engine_);
    }
  }

  void take(const Arrived& packet, Cycle now) {
    const bool counts = packet.tag == kCounts;
    Sums& sums = sums_[packet.traffic_class];
    if (counts || state_ == State::warming_up) {
      sums.add(packet, now);
      const auto latency = static_cast<std::size_t>(now - packet.created);
      if (latency >= histogram_.size()) {
        histogram_.resize(latency + 1 + latency / 2);
      }
      ++histogram_[latency];
    }
    outstanding_ -= counts ? 1 : 0;
    const auto purpose = static_cast<Purpose>(packet.kind);
    if (purpose == Purpose::read_request || purpose == Purpose::write_request) {
      draws_->answer(packet, now, counts);
    }
  }

  std::uint32_t classes() const { return static_cast<std::uint32_t>(sums_.size()); }

  void clear() {
    begin_ = engine_.now();
    histogram_.clear();
    for (std::uint32_t of = 0; of < classes(); ++of) {
      sums_[of] = {};
      before_[of] = engine_.counts(of);
    }
    channel_flits_.resize(graph_.channels.size());
    for (std::uint32_t i = 0; i < channel_flits_.size(); ++i) {
      channel_flits_[i] = engine_.flits_over(i);
    }
  }

  /// Returns the largest mean latency of a class, with the age of what is in flight.
  double mean_latency() const {
    double largest = 0;
    for (std::uint32_t of = 0; of < classes(); ++of) {
      const FlitCounts& counts = engine_.counts(of);
      const auto in_flight = static_cast<double>(counts.in_flight);
      const double ages = in_flight * static_cast<double>(engine_.now()) -
                          static_cast<double>(counts.created_in_flight);
      const double count = static_cast<double>(sums_[of].packets) + in_flight;
      largest = std::max(largest, count > 0 ? (sums_[of].packet_latency + ages) / count : 0);
    }
    return largest;
  }

  bool is_too_late(std::string& reason) const {
    if (mean_latency() <= settings_.latency_limit) {
      return false;
    }
    reason = fmt::format(
        "the mean packet latency, {:.0f} cycles at cycle {}, is above the limit of {:.0f}: {}",
        mean_latency(), engine_.now(), settings_.latency_limit, explain_waiting(engine_));
    return true;
  }

  /// Returns whether latency and throughput are those of the period before, in all classes.
  bool has_settled() {
    last_.resize(classes());
    bool settled = true;
    for (std::uint32_t of = 0; of < classes(); ++of) {
      const Sums& sums = sums_[of];
      const double latency = sums.packets > 0
                                 ? sums.packet_latency / static_cast<double>(sums.packets)
                                 : std::numeric_limits<double>::infinity();
      const double accepted =
          static_cast<double>(engine_.counts(of).arrived - before_[of].arrived) /
          static_cast<double>(engine_.now() - begin_);
      const double throughput_threshold = settings_.throughput_threshold > 0
                                              ? settings_.throughput_threshold
                                              : settings_.stopping_threshold;
      settled = settled &&
                std::abs(latency - last_[of].latency) <= settings_.stopping_threshold * latency &&
                std::abs(accepted - last_[of].accepted) <= throughput_threshold * accepted;
      last_[of] = {latency, accepted};
    }
    return settled;
  }

  /// Periods of the warm-up and those that count. False if it is unstable.
  bool sample(std::string& reason) {
    int converged = 0;
    bool clears = true;
    for (int period = 0; period < settings_.max_samples && converged < kConverged; ++period) {
      if (clears || (state_ == State::warming_up && period % 2 == 0)) {
        clears = false;
        clear();
      }
      for (const Cycle end = engine_.now() + settings_.sample_period; engine_.now() < end;) {
        step(end);
      }
      if (options_.progress) {
        options_.progress((period + 1.0) / settings_.max_samples);
      }
      if (is_too_late(reason)) {
        return false;
      }
      const bool settled = has_settled();
      if (state_ != State::warming_up) {
        converged = settled ? converged + 1 : 0;
      } else if (period + 1 >= settings_.warmup_periods) {
        state_ = State::running;
        clears = true;
      }
    }
    return true;
  }

  bool all_created() const { return draws_ ? draws_->has_drawn(drain_) : even_.has_drawn(drain_); }

  /// Sums up what was counted since begin_.
  void end_counting() {
    end_ = engine_.now();
    for (std::uint32_t of = 0; of < classes(); ++of) {
      injected_[of] = engine_.counts(of).injected - before_[of].injected;
      arrived_[of] = engine_.counts(of).arrived - before_[of].arrived;
    }
    for (std::uint32_t i = 0; i < channel_flits_.size(); ++i) {
      channel_flits_[i] = engine_.flits_over(i) - channel_flits_[i];
    }
  }

  bool drain(std::string& reason) {
    drain_ = engine_.now();
    end_counting();
    state_ = State::draining;
    Cycle look = drain_ + kDrainPeriod;
    while (outstanding_ > 0 || !all_created()) {
      step(look);
      if (engine_.now() >= look) {
        if (is_too_late(reason)) {
          return false;
        }
        look += kDrainPeriod;
      }
    }
    state_ = State::emptying;
    while (engine_.packets_in_flight() > 0) {
      step(engine_.now() + kDrainPeriod);
    }
    if (mean_latency() > settings_.latency_limit) {
      reason = fmt::format("the mean packet latency, {:.1f} cycles, is above the limit of {:.0f}",
                           mean_latency(), settings_.latency_limit);
      return false;
    }
    return true;
  }

  Cycle percentile(double share) const {
    std::uint64_t left =
        static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(sums_of_histogram())));
    for (std::size_t latency = 0; latency < histogram_.size(); ++latency) {
      if (histogram_[latency] >= left) {
        return static_cast<Cycle>(latency);
      }
      left -= histogram_[latency];
    }
    return 0;
  }

  std::uint64_t sums_of_histogram() const {
    return std::accumulate(histogram_.begin(), histogram_.end(), std::uint64_t{0});
  }

  ClassResult result_of(const Sums& sums, std::uint64_t injected, std::uint64_t arrived,
                        double cycles) const {
    const double node_cycles = cycles * static_cast<double>(graph_.nodes.size());
    const double infinite = std::numeric_limits<double>::infinity();
    const auto mean = [&](double sum, std::uint64_t count) {
      return count > 0 ? sum / static_cast<double>(count) : infinite;
    };
    return {.packet_latency = mean(sums.packet_latency, sums.packets),
            .network_latency = mean(sums.network_latency, sums.packets),
            .flit_latency = mean(sums.flit_latency, sums.flits),
            .hops = sums.packets > 0 ? mean(sums.hops, sums.packets) : 0,
            .injected = static_cast<double>(injected) / node_cycles,
            .accepted = static_cast<double>(arrived) / node_cycles,
            .packets = sums.packets};
  }

  void finish(OpenLoopResult& result) {
    result.cycles = engine_.now();
    result.flit_hops = engine_.flit_hops();
    if (state_ < State::draining) {  // unstable before: what was measured so far
      end_counting();
    }
    const double cycles = static_cast<double>(std::max<Cycle>(1, end_ - begin_));
    for (const std::uint64_t flits : channel_flits_) {
      result.channel_load.push_back(static_cast<double>(flits) / cycles);
    }
    Sums all;
    std::uint64_t injected = 0;
    std::uint64_t arrived = 0;
    for (std::uint32_t of = 0; of < classes(); ++of) {
      const FlitCounts& counts = engine_.counts(of);
      sums_[of].flits = counts.arrived - before_[of].arrived;
      sums_[of].flit_latency = static_cast<double>(counts.flit_latency - before_[of].flit_latency);
      result.classes.push_back(result_of(sums_[of], injected_[of], arrived_[of], cycles));
      all.add(sums_[of]);
      injected += injected_[of];
      arrived += arrived_[of];
    }
    const ClassResult total = result_of(all, injected, arrived, cycles);
    result.packets = total.packets;
    result.packet_latency = total.packet_latency;
    result.network_latency = total.network_latency;
    result.flit_latency = total.flit_latency;
    result.hops = total.hops;
    result.injected = total.injected;
    result.accepted = total.accepted;
    if (sums_of_histogram() > 0) {
      result.latency_p50 = percentile(0.5);
      result.latency_p90 = percentile(0.9);
      result.latency_p99 = percentile(0.99);
      result.latency_max = percentile(1);
    }
  }

  struct Period {
    double latency = 0;
    double accepted = 0;
  };

  const RouterGraph& graph_;
  const OpenLoopSettings& settings_;
  const RunOptions& options_;
  Engine engine_;
  State state_ = State::warming_up;
  EvenDraws even_;
  std::optional<ClassDraws> draws_;       ///< where those cannot
  std::uint64_t outstanding_ = 0;         ///< packets that count and have not arrived
  std::vector<Sums> sums_;                ///< by class
  std::vector<Period> last_;              ///< by class
  std::vector<std::uint64_t> histogram_;  ///< packets of sums_, by latency
  std::vector<std::uint64_t> channel_flits_;
  Cycle begin_ = 0;  ///< of what counts
  Cycle drain_ = 0;
  Cycle end_ = 0;
  std::vector<FlitCounts> before_;       ///< by class, at begin_
  std::vector<std::uint64_t> injected_;  ///< by class, from begin_ to end_
  std::vector<std::uint64_t> arrived_;
};

}  // namespace

OpenLoopResult run_open_loop(const Network& network, const OpenLoopSettings& settings,
                             const RunOptions& options) {
  return OpenLoop(network, settings, options).run();
}

OpenLoopResult run_open_loop(const RouterGraph& graph, const Routing& routing,
                             const RouterSettings& router, const Traffic& traffic,
                             const OpenLoopSettings& settings, const RunOptions& options) {
  return run_open_loop({graph, routing, router, {settings.one_class()}, {&traffic}}, settings,
                       options);
}

}  // namespace orrery::flit
