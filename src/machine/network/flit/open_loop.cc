// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/open_loop.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "machine/network/flit/deadlock.h"

namespace orrery::flit {
namespace {

constexpr int kConverged = 3;         // periods in a row
constexpr Cycle kDrainPeriod = 1000;  // cycles between looks at a network that drains

/// Sums over packets that have arrived.
struct Sums {
  std::uint64_t packets = 0;
  std::uint64_t flits = 0;
  double packet_latency = 0;
  double network_latency = 0;
  double flit_latency = 0;
  double hops = 0;

  void add(const Arrived& packet, Cycle now) {
    ++packets;
    flits += packet.flits;
    packet_latency += static_cast<double>(now - packet.created);
    network_latency += static_cast<double>(now - packet.injected);
    flit_latency += static_cast<double>(packet.flits_arrived - packet.flits_injected);
    hops += packet.hops;
  }
};

enum class State : std::uint8_t { warming_up, running, draining };

class OpenLoop {
 public:
  OpenLoop(const RouterGraph& graph, const Routing& routing, const RouterSettings& router,
           const Traffic& traffic, const OpenLoopSettings& settings, const RunOptions& options)
      : graph_(graph),
        traffic_(traffic),
        settings_(settings),
        options_(options),
        engine_(graph, routing, router, settings.seed),
        next_(graph.nodes.size()),
        in_burst_(graph.nodes.size()) {
    probability_ = settings.rate / settings.packet;
    for (std::uint32_t node = 0; node < next_.size(); ++node) {
      next_[node] = next_creation(node, -1);
      engine_.wake(next_[node], node);
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
  void create(std::uint32_t node) {
    const Cycle created = next_[node];
    const bool counts = state_ == State::running || (state_ == State::draining && created < drain_);
    outstanding_ += counts ? 1 : 0;
    engine_.offer(node, {traffic_.target(node, engine_.random()),
                         static_cast<std::uint32_t>(settings_.packet), counts ? 1U : 0U, created});
    next_[node] = next_creation(node, created);
  }

  /// The first cycle after `last` in which a node creates a packet. Of bursts: a silent node begins
  /// one and may draw at once; in one it ends it or draws.
  Cycle next_creation(std::uint32_t node, Cycle last) {
    constexpr Cycle kNever = Cycle{1} << 60U;
    Random& random = engine_.random();
    if (!settings_.has_bursts()) {
      return last + random.trials(probability_);
    }
    const double draws = settings_.burst_probability();
    const double beta = settings_.burst_beta;
    const double changes = beta + (1 - beta) * draws;  // a burst ends or a packet is created
    while (last < kNever) {
      if (!in_burst_[node]) {
        last += random.trials(settings_.burst_alpha);
        in_burst_[node] = true;
        if (random.unit() < draws) {
          return last;
        }
      } else {
        last += random.trials(changes);
        if (random.unit() * changes >= beta) {
          return last;
        }
        in_burst_[node] = false;
      }
    }
    return kNever;
  }

  void create_or_wait(std::uint32_t node) {
    if (!engine_.is_free(node)) {
      return;  // looked at again when it is
    }
    if (next_[node] <= engine_.now()) {
      create(node);
    } else {
      engine_.wake(next_[node], node);
    }
  }

  void step(Cycle limit) {
    if (options_.skip) {
      engine_.skip(limit);
      if (engine_.now() >= limit) {
        return;
      }
    }
    const std::vector<std::uint32_t>& woken = engine_.woken();
    for (std::size_t i = 0; i < woken.size(); ++i) {
      create_or_wait(woken[i]);
    }
    engine_.step();
    const Cycle now = engine_.now() - 1;
    for (const Arrived& packet : engine_.arrived()) {
      if (packet.tag != 0 || state_ == State::warming_up) {
        sums_.add(packet, now);
      }
      if (packet.tag != 0) {
        --outstanding_;
        const auto latency = static_cast<std::size_t>(now - packet.created);
        if (latency >= histogram_.size()) {
          histogram_.resize(latency + 1 + latency / 2);
        }
        ++histogram_[latency];
      }
    }
    for (const std::uint32_t node : engine_.freed_sources()) {
      create_or_wait(node);
    }
  }

  void clear() {
    sums_ = {};
    begin_ = engine_.now();
    injected_ = engine_.flits_injected();
    arrived_ = engine_.flits_arrived();
    channel_flits_.resize(graph_.channels.size());
    for (std::uint32_t i = 0; i < channel_flits_.size(); ++i) {
      channel_flits_[i] = engine_.flits_over(i);
    }
  }

  /// With the age of what is under way.
  double mean_latency() const {
    const auto under_way = static_cast<double>(engine_.flits_under_way());
    const double ages = under_way * static_cast<double>(engine_.now()) -
                        static_cast<double>(engine_.created_under_way());
    const double count = static_cast<double>(sums_.packets) + under_way;
    return count > 0 ? (sums_.packet_latency + ages) / count : 0;
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

  /// Periods of the warm-up and those that count. False if it is unstable.
  bool sample(std::string& reason) {
    int converged = 0;
    double last_latency = 0;
    double last_accepted = 0;
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
      const double latency = sums_.packets > 0
                                 ? sums_.packet_latency / static_cast<double>(sums_.packets)
                                 : std::numeric_limits<double>::infinity();
      const double accepted = static_cast<double>(engine_.flits_arrived() - arrived_) /
                              static_cast<double>(engine_.now() - begin_);
      if (state_ == State::warming_up) {
        if (period + 1 >= settings_.warmup_periods) {
          state_ = State::running;
          clears = true;
        }
      } else {
        const bool same =
            std::abs(latency - last_latency) <= settings_.stopping_threshold * latency &&
            std::abs(accepted - last_accepted) <= settings_.stopping_threshold * accepted;
        converged = same ? converged + 1 : 0;
      }
      last_latency = latency;
      last_accepted = accepted;
    }
    return true;
  }

  bool all_created() const {
    for (const Cycle next : next_) {
      if (next < drain_) {
        return false;
      }
    }
    return true;
  }

  bool drain(std::string& reason) {
    drain_ = engine_.now();
    end_ = drain_;
    injected_ = engine_.flits_injected() - injected_;
    arrived_ = engine_.flits_arrived() - arrived_;
    for (std::uint32_t i = 0; i < channel_flits_.size(); ++i) {
      channel_flits_[i] = engine_.flits_over(i) - channel_flits_[i];
    }
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
    std::uint64_t sum = 0;
    for (const std::uint64_t count : histogram_) {
      sum += count;
    }
    return sum;
  }

  void finish(OpenLoopResult& result) {
    result.cycles = engine_.now();
    result.flit_hops = engine_.flit_hops();
    if (state_ != State::draining) {  // unstable before: what was measured so far
      end_ = engine_.now();
      injected_ = engine_.flits_injected() - injected_;
      arrived_ = engine_.flits_arrived() - arrived_;
      for (std::uint32_t i = 0; i < channel_flits_.size(); ++i) {
        channel_flits_[i] = engine_.flits_over(i) - channel_flits_[i];
      }
    }
    const double cycles = static_cast<double>(std::max<Cycle>(1, end_ - begin_));
    const double node_cycles = cycles * static_cast<double>(graph_.nodes.size());
    result.injected = static_cast<double>(injected_) / node_cycles;
    result.accepted = static_cast<double>(arrived_) / node_cycles;
    for (const std::uint64_t flits : channel_flits_) {
      result.channel_load.push_back(static_cast<double>(flits) / cycles);
    }
    const double infinite = std::numeric_limits<double>::infinity();
    const auto mean = [&](double sum, std::uint64_t count) {
      return count > 0 ? sum / static_cast<double>(count) : infinite;
    };
    result.packets = sums_.packets;
    result.packet_latency = mean(sums_.packet_latency, sums_.packets);
    result.network_latency = mean(sums_.network_latency, sums_.packets);
    result.flit_latency = mean(sums_.flit_latency, sums_.flits);
    result.hops = sums_.packets > 0 ? mean(sums_.hops, sums_.packets) : 0;
    if (sums_of_histogram() > 0) {
      result.latency_p50 = percentile(0.5);
      result.latency_p90 = percentile(0.9);
      result.latency_p99 = percentile(0.99);
      result.latency_max = percentile(1);
    }
  }

  const RouterGraph& graph_;
  const Traffic& traffic_;
  const OpenLoopSettings& settings_;
  const RunOptions& options_;
  Engine engine_;
  State state_ = State::warming_up;
  double probability_ = 0;
  std::vector<Cycle> next_;        ///< creation, by node
  std::vector<bool> in_burst_;     ///< by node
  std::uint64_t outstanding_ = 0;  ///< packets that count and have not arrived
  Sums sums_;
  std::vector<std::uint64_t> histogram_;  ///< packets that count, by latency
  std::vector<std::uint64_t> channel_flits_;
  Cycle begin_ = 0;  ///< of what counts
  Cycle drain_ = 0;
  Cycle end_ = 0;
  std::uint64_t injected_ = 0;  ///< at begin_, then from there to end_
  std::uint64_t arrived_ = 0;
};

}  // namespace

OpenLoopResult run_open_loop(const RouterGraph& graph, const Routing& routing,
                             const RouterSettings& router, const Traffic& traffic,
                             const OpenLoopSettings& settings, const RunOptions& options) {
  return OpenLoop(graph, routing, router, traffic, settings, options).run();
}

}  // namespace orrery::flit
