// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/closed_loop.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>

#include "machine/network/flit/deadlock.h"
#include "machine/network/flit/fabric.h"
#include "machine/network/flit/loop_routes.h"

namespace orrery::flit {
namespace {

constexpr Cycle kNotDone = -1;
constexpr Cycle kNever = std::numeric_limits<Cycle>::max();
constexpr Cycle kBetweenReports = 1 << 16;

class ClosedLoop {
 public:
  ClosedLoop(const Routing& routing, const RouterSettings& router, const Packaging& packaging,
             const LoopSchedule& schedule, std::uint64_t seed, const RunOptions& options)
      : routing_(routing),
        router_(router),
        packaging_(packaging),
        schedule_(schedule),
        seed_(seed),
        options_(options),
        routes_(routing, router, packaging),
        missing_(schedule.size()),
        successors_(schedule.size()),
        waiting_(routing.graph().nodes.size()),
        busy_until_(routing.graph().channels.size() + 2 * routing.graph().nodes.size()) {
    result_.ends.assign(schedule.size(), kNotDone);
    for (std::uint32_t i = 0; i < schedule.size(); ++i) {
      missing_[i] = static_cast<std::uint32_t>(schedule[i].after.size());
      for (const std::uint32_t before : schedule[i].after) {
        successors_[before].push_back(i);
      }
    }
    refill();
  }

  LoopResult run() {
    while (!ready_.empty() && result_.deadlock.empty()) {
      const Start next = ready_.top();
      if (schedule_[next.event].work != LoopEvent::kMessage) {
        ready_.pop();
        begin_work(next);
      } else if (next.cycle >= idle_from_) {
        begin_epoch(next.cycle);
      } else if (!begin_alone(next)) {
        undo_epoch();
        simulate();
      }
    }
    for (const Cycle end : result_.ends) {
      result_.end = std::max(result_.end, end);
    }
    return std::move(result_);
  }

 private:
  struct Start {
    Cycle cycle = 0;
    std::uint32_t event = 0;
    bool operator>(const Start& other) const {
      return cycle != other.cycle ? cycle > other.cycle : event > other.event;
    }
  };
  struct Sending {
    std::uint32_t event = 0;
    Bytes left{0};
  };

  void begin_work(const Start& start) {
    started_.push_back(start.event);
    finish(start.event, start.cycle + schedule_[start.event].work);
  }

  /// No message is in flight: those that start now are the first of the next epoch.
  void begin_epoch(Cycle now) {
    started_.clear();
    origin_ = now;
    idle_from_ = now + 1;
    if (!options_.skip) {
      simulate();
    }
  }

  /// False if the message has no closed form or meets another; nothing is changed then.
  bool begin_alone(const Start& start) {
    const LoopEvent& event = schedule_[start.event];
    const LoopRoute& route = routes_.between(event.source, event.target);
    if (!route.has_closed_form ||
        std::any_of(route.ports.begin(), route.ports.end(),
                    [&](std::uint32_t port) { return busy_until_[port] > start.cycle; })) {
      return false;
    }
    ready_.pop();
    const std::int64_t flits = message_flits(event.bytes, packaging_.packet, packaging_.flit);
    const Cycle end =
        start.cycle + flit::alone(flits, kEveryCycle, route.routers, route.links, router_);
    for (const std::uint32_t port : route.ports) {
      busy_until_[port] = end;
    }
    idle_from_ = std::max(idle_from_, end);
    started_.push_back(start.event);
    ++result_.alone;
    finish(start.event, end);
    return true;
  }

  void finish(std::uint32_t event, Cycle end) {
    result_.ends[event] = end;
    for (const std::uint32_t next : successors_[event]) {
      if (--missing_[next] == 0) {
        ready_.push({start_of(next), next});
      }
    }
  }

  Cycle start_of(std::uint32_t event) const {
    Cycle start = 0;
    for (const std::uint32_t before : schedule_[event].after) {
      const Cycle release = schedule_[before].work != LoopEvent::kMessage ? 1 : 0;
      start = std::max(start, result_.ends[before] + release);
    }
    return start;
  }

  /// Takes back what the epoch has started.
  void undo_epoch() {
    for (const std::uint32_t event : started_) {
      result_.ends[event] = kNotDone;
      result_.alone -= schedule_[event].work == LoopEvent::kMessage ? 1 : 0;
      for (const std::uint32_t next : successors_[event]) {
        ++missing_[next];
      }
    }
    std::fill(busy_until_.begin(), busy_until_.end(), 0);
    refill();
  }

  void refill() {
    ready_ = {};
    for (std::uint32_t i = 0; i < schedule_.size(); ++i) {
      if (missing_[i] == 0 && result_.ends[i] == kNotDone) {
        ready_.push({start_of(i), i});
      }
    }
  }

  /// Simulates from the epoch's first message until the network is idle. Every epoch draws from the
  /// seed on: those that take the closed form draw nothing.
  void simulate() {
    Engine engine(routing_.graph(), routing_, router_, seed_);
    packets_.resize(schedule_.size());
    begin_due(engine);
    while (in_flight_ > 0) {
      const Cycle next = ready_.empty() ? kNever : ready_.top().cycle - origin_;
      if (engine.is_stuck() && next == kNever) {
        result_.deadlock = explain_waiting(engine);
        break;
      }
      if (options_.skip) {
        engine.skip(next);
      }
      if (engine.now() < next) {
        step(engine);
      }
      if (in_flight_ > 0) {
        begin_due(engine);
      }
    }
    idle_from_ = origin_ + engine.now();
    result_.flit_hops += engine.flit_hops();
    started_.clear();
  }

  void begin_due(Engine& engine) {
    while (!ready_.empty() && ready_.top().cycle <= origin_ + engine.now()) {
      const Start start = ready_.top();
      ready_.pop();
      if (schedule_[start.event].work != LoopEvent::kMessage) {
        begin_work(start);
      } else {
        enqueue(engine, start.event);
      }
    }
  }

  void step(Engine& engine) {
    engine.step();
    ++result_.cycles_simulated;
    if (options_.progress && result_.cycles_simulated % kBetweenReports == 0) {
      options_.progress(static_cast<double>(done_) / static_cast<double>(schedule_.size()));
    }
    for (const std::uint32_t source : engine.freed_sources()) {
      offer_next(engine, source);
    }
    for (const Arrived& packet : engine.arrived()) {
      if (--packets_[packet.tag] == 0) {
        --in_flight_;
        ++done_;
        finish(packet.tag, origin_ + engine.now());
      }
    }
  }

  void enqueue(Engine& engine, std::uint32_t event) {
    const LoopEvent& of = schedule_[event];
    packets_[event] = std::max<std::int64_t>(
        1, (of.bytes.value() + packaging_.packet.value() - 1) / packaging_.packet.value());
    ++in_flight_;
    waiting_[of.source].push_back({event, of.bytes});
    if (engine.is_free(of.source)) {
      offer_next(engine, of.source);
    }
  }

  void offer_next(Engine& engine, std::uint32_t source) {
    std::deque<Sending>& list = waiting_[source];
    if (list.empty()) {
      return;
    }
    Sending& message = list.front();
    const std::uint32_t event = message.event;
    const Bytes part = std::min(message.left, packaging_.packet);
    message.left -= part;
    if (message.left <= Bytes(0)) {
      list.pop_front();
    }
    engine.offer(source, {.target = schedule_[event].target,
                          .flits = static_cast<std::uint32_t>(
                              message_flits(part, packaging_.packet, packaging_.flit)),
                          .tag = event,
                          .created = engine.now()});
  }

  const Routing& routing_;
  const RouterSettings& router_;
  const Packaging& packaging_;
  const LoopSchedule& schedule_;
  std::uint64_t seed_;
  const RunOptions& options_;
  LoopRoutes routes_;
  LoopResult result_;
  std::vector<std::uint32_t> missing_;  ///< by event: how many it waits for
  std::vector<std::vector<std::uint32_t>> successors_;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> ready_;

  // Since the network was last idle:
  Cycle origin_ = 0;
  Cycle idle_from_ = 0;                       ///< by the closed form
  std::vector<std::uint32_t> started_;        ///< events
  std::vector<std::deque<Sending>> waiting_;  ///< by source
  std::vector<Cycle> busy_until_;             ///< by port
  std::vector<std::int64_t> packets_;         ///< by event: not yet arrived
  std::uint64_t in_flight_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace

LoopResult run_closed_loop(const Routing& routing, const RouterSettings& router,
                           const Packaging& packaging, const LoopSchedule& schedule,
                           std::uint64_t seed, const RunOptions& options) {
  return ClosedLoop(routing, router, packaging, schedule, seed, options).run();
}

LoopSchedule batch_schedule(const Traffic& traffic, std::uint32_t nodes, const Batch& batch,
                            std::uint64_t seed) {
  Random random(seed);
  LoopSchedule schedule;
  schedule.reserve(std::size_t{nodes} * static_cast<std::size_t>(batch.packets));
  for (int i = 0; i < batch.packets; ++i) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      LoopEvent event{
          .source = node, .target = traffic.target(node, random), .bytes = batch.each, .after = {}};
      if (batch.outstanding > 0 && i >= batch.outstanding) {
        event.after.push_back(static_cast<std::uint32_t>(schedule.size()) -
                              nodes * static_cast<std::uint32_t>(batch.outstanding));
      }
      schedule.push_back(std::move(event));
    }
  }
  return schedule;
}

}  // namespace orrery::flit
