// SPDX-License-Identifier: Apache-2.0
#include "estimate/block_timer.h"

#include <algorithm>
#include <optional>

#include "machine/copy_time.h"

namespace orrery::estimate {
namespace {

/// Minus infinity: far enough below every time for sums of it to stay there.
constexpr Time kNever = Time(std::int64_t{-1} << 60);

/// The part of the time in which a stage's groups share links that other stages' groups do, too.
constexpr double kMeanwhile = 0.5;

constexpr std::size_t kMostLanes = index_of(plan::StepStream::from_host) + 1;

}  // namespace

PassCost& PassCost::operator+=(const PassCost& other) {
  chain += other.chain;
  kernels += other.kernels;
  host += other.host;
  exchanges += other.exchanges;
  for (std::size_t lane = 0; lane < kBlockLanes; ++lane) {
    lanes[lane] += other.lanes[lane];
  }
  for (std::size_t i = 0; i < kSlowdowns.size(); ++i) {
    by_slowdown[i] += other.by_slowdown[i];
  }
  add_ports(ports, other.ports);
  return *this;
}
PassCost& PassCost::operator-=(const PassCost& other) {
  return *this += other * -1;
}
PassCost operator*(PassCost cost, std::int64_t times) {
  cost.chain = cost.chain * times;
  cost.kernels = cost.kernels * times;
  cost.host = cost.host * times;
  cost.exchanges = cost.exchanges * times;
  for (Time& lane : cost.lanes) {
    lane = lane * times;
  }
  for (Time& kernels : cost.by_slowdown) {
    kernels = kernels * times;
  }
  for (Time& port : cost.ports) {
    port = port * times;
  }
  return cost;
}

Time time_together(const CollectiveTime& time, Communicator& where, Placement& placement) {
  if (!where.crossing) {
    return time.alone;
  }
  Time sum{0};
  for (const collective::CollectivePhase& phase : time.phases) {
    sum += PortPhase{.serialisation = phase.serialisation,
                     .latency = phase.latency,
                     .ports = placement.loads(where, phase, kMeanwhile).ports}
               .time();
  }
  return sum;
}

PassCost BlockTimer::cost_of(const parallel::StepList& list) {
  PassCost cost;
  parallel::StepDependencies dependencies(list.lanes);
  std::array<Time, kMostLanes> free{};
  free.fill(kNever);
  free.front() = Time(0);
  std::vector<Time> ends;
  std::vector<Span> collectives;
  std::vector<int> after;
  for (const parallel::PlacedStep& placed : list.steps) {
    const TimedStep& step = timed(*placed.step);
    Time begin = free[step.lane];
    after.clear();
    dependencies.next(placed, after);
    for (const int before : after) {
      begin = std::max(begin, ends[index_of(before)]);
    }
    const Time end = step.kernels ? stretched(begin, step, collectives) : begin + step.time;
    if (step.slows && begin > kNever / 2) {
      collectives.push_back({begin, end});
    }
    free[step.lane] = end;
    ends.push_back(end);
    cost.host += step.host;
    cost.lanes[step.lane] += step.time;
    cost.exchanges += step.slows && step.lane == kExpertLane ? step.time : Time(0);
    add_ports(cost.ports, step.ports);
    if (step.kernels) {
      const auto above = std::upper_bound(kSlowdowns.begin() + 1, kSlowdowns.end(), step.beside);
      cost.by_slowdown[index_of(above - kSlowdowns.begin() - 1)] += step.time;
    }
  }
  cost.chain = free.front();
  cost.kernels = cost.lanes.front();
  return cost;
}

/// Returns when kernels end that run slower in the spans.
Time BlockTimer::stretched(Time begin, const TimedStep& kernels,
                           const std::vector<Span>& collectives) {
  Time now = begin;
  Time left = kernels.time;
  while (kernels.beside > 1 && left > Time(0)) {
    Time covered = now;
    Time next = Time::max();
    for (const Span& span : collectives) {
      if (span.begin <= now && span.end > now) {
        covered = std::max(covered, span.end);
      } else if (span.begin > now) {
        next = std::min(next, span.begin);
      }
    }
    const double slow = covered > now ? kernels.beside : 1;
    const Time until = covered > now ? covered : next;
    if (until == Time::max() || now + left * slow <= until) {
      return now + left * slow;
    }
    left -= (until - now) * (1 / slow);
    now = until;
  }
  return now + left;
}

const BlockTimer::TimedStep& BlockTimer::timed(const parallel::Step& step) {
  const auto [found, is_new] = known_.try_emplace(&step);
  TimedStep& timed = found->second;
  if (!is_new) {
    return timed;
  }
  const graph::Node& node = step.node;
  timed.lane = static_cast<std::uint8_t>(*node.stream);
  if (node.kind == graph::Node::Kind::compute) {
    time_kernels(node, timed);
  } else if (node.kind == graph::Node::Kind::collective) {
    time_collective(node, timed);
  } else if (node.kind == graph::Node::Kind::host) {
    for (const graph::Operator& op : node.operators) {
      timed.time += op.duration;
    }
  } else if (node.kind == graph::Node::Kind::copy) {
    timed.time = machine::copy_time(placement_.tables(), node.bytes, node.tier, node.sharers,
                                    placement_.machine());
    timed.host = host_dispatch_;
  }
  return timed;
}

void BlockTimer::time_kernels(const graph::Node& node, TimedStep& timed) {
  timed.kernels = true;
  Time beside{0};
  for (const graph::Operator& op : node.operators) {
    const compute::KernelTime& kernel = prices_.kernel(op, placement_.machine());
    timed.time += kernel.alone;
    beside += kernel.beside_collective;
    timed.host += graph::issue_time(op, host_dispatch_);
  }
  timed.beside = timed.time > Time(0) ? beside / timed.time : 1;
}

void BlockTimer::time_collective(const graph::Node& node, TimedStep& timed) {
  const CollectiveTime* time = price_of({node.collective, node.group, node.bytes, node.route},
                                        algorithms_, placement_, prices_);
  if (time == nullptr) {
    return;
  }
  timed.slows = time->alone > Time(0) && !node.by_engine;
  timed.host = node.by_engine ? Time(0) : host_dispatch_;
  timed.time = sharing_ == Sharing::together
                   ? time_together(*time, placement_.communicator(node.group), placement_)
                   : time->alone;
  add_ports(timed.ports, time->on_ports);
}

}  // namespace orrery::estimate
