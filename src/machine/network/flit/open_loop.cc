// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/open_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "machine/network/flit/deadlock.h"

namespace orrery::flit {
namespace {

constexpr Cycle kEven = -1;
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
    packet_latency += static_cast<double>(now - packet.created);
    network_latency += static_cast<double>(now - packet.injected);
    hops += packet.hops;
  }
  /// Of all packets, those that do not count too.
  void add_flits(const Arrived& packet) {
    flits += packet.flits;
    flit_latency += static_cast<double>(packet.flits_arrived - packet.flits_injected);
  }
};

enum class State : std::uint8_t { warming_up, running, draining, emptying };

class OpenLoop {
 public:
  OpenLoop(const RouterGraph& graph, const Routing& routing, const RouterSettings& router,
           const Traffic& traffic, const OpenLoopSettings& settings, const RunOptions& options)
      : graph_(graph),
        traffic_(traffic),
        settings_(settings),
        options_(options),
        engine_(graph, routing, router, settings.seed),
        next_(graph.nodes.size(), kEven),
        in_burst_(graph.nodes.size()) {
    probability_ =
        settings.has_bursts() ? settings.burst_probability() : settings.rate / settings.packet;
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
  void create(std::uint32_t node, Cycle created) {
    const bool counts = state_ == State::running || (state_ == State::draining && created < drain_);
    outstanding_ += counts ? 1 : 0;
    Random& random = engine_.random();
    const std::uint32_t target = traffic_.target(node, random);
    random.below(1);  // which of the one network
    engine_.offer(
        node, {target, static_cast<std::uint32_t>(settings_.packet), counts ? 1U : 0U, created});
    behind_ += next_[node] == kEven ? 1 : 0;
    next_[node] = created + 1;
  }

  /// A node's draw of one cycle. Of bursts: first whether it is in one.
  bool draws_packet(std::uint32_t node) {
    Random& random = engine_.random();
    if (settings_.has_bursts()) {
      in_burst_[node] = in_burst_[node] ? random.unit() >= settings_.burst_beta
                                        : random.unit() < settings_.burst_alpha;
      return in_burst_[node] && random.unit() < probability_;
    }
    return random.unit() < probability_;
  }

  /// All nodes draw in turn for this cycle; one whose packet has left for the cycles before, too,
  /// until it creates the next.
  bool draw() {
    bool created = false;
    const Cycle now = engine_.now();
    for (std::uint32_t node = 0; node < next_.size(); ++node) {
      if (next_[node] == kEven) {
        if (draws_packet(node)) {
          create(node, now);
          created = true;
        }
        continue;
      }
      while (engine_.is_free(node) && next_[node] <= now) {
        if (draws_packet(node)) {
          create(node, next_[node]);
          created = true;
        } else {
          ++next_[node];
        }
      }
      catch_up(node, now + 1);
    }
    return created;
  }

  void catch_up(std::uint32_t node, Cycle next) {
    if (engine_.is_free(node) && next_[node] == next) {
      next_[node] = kEven;
      --behind_;
    }
  }

  /// As draw(), for all cycles before `end` until one in which a packet is created; that is now()
  /// then. Requires that no node is behind and that there are no bursts.
  bool draw_together(Cycle end) {
    const auto nodes = static_cast<std::int64_t>(next_.size());
    Random& random = engine_.random();
    const std::int64_t draws = nodes * (end - engine_.now());
    const std::int64_t missed = random.until_below(probability_, draws);
    if (missed == draws) {
      return false;
    }
    engine_.skip(engine_.now() + missed / nodes);
    for (std::int64_t node = missed % nodes; node < nodes;) {
      create(static_cast<std::uint32_t>(node), engine_.now());
      ++node;
      node += random.until_below(probability_, nodes - node);
    }
    return true;
  }

  /// Draws for the cycles before `end`, in which nothing else happens, until one with a packet.
  bool draw_while_quiet(Cycle end) {
    while (engine_.now() < end) {
      const bool together = behind_ == 0 && !settings_.has_bursts();
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
    } else if (behind_ == 0 && !settings_.has_bursts()) {
      draw_together(engine_.now() + 1);
    } else {
      draw();
    }
    engine_.step();
    const Cycle now = engine_.now() - 1;
    for (const Arrived& packet : engine_.arrived()) {
      sums_.add_flits(packet);
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
      catch_up(node, engine_.now());
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
    return std::all_of(next_.begin(), next_.end(),
                       [&](Cycle next) { return next == kEven || next >= drain_; });
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
    state_ = State::emptying;
    while (engine_.packets_under_way() > 0) {
      step(engine_.now() + kDrainPeriod);
    }
    const double latency =
        sums_.packets > 0 ? sums_.packet_latency / static_cast<double>(sums_.packets) : 0;
    if (latency > settings_.latency_limit) {
      reason = fmt::format("the mean packet latency, {:.1f} cycles, is above the limit of {:.0f}",
                           latency, settings_.latency_limit);
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
    std::uint64_t sum = 0;
    for (const std::uint64_t count : histogram_) {
      sum += count;
    }
    return sum;
  }

  void finish(OpenLoopResult& result) {
    result.cycles = engine_.now();
    result.flit_hops = engine_.flit_hops();
    if (state_ < State::draining) {  // unstable before: what was measured so far
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
  std::vector<Cycle> next_;  ///< by node, the cycle that it draws for next; kEven: this one
  std::uint64_t behind_ =
      0;  ///< nodes that wait for their packet to leave, or draw for cycles before
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
