// SPDX-License-Identifier: Apache-2.0
#include "estimate/stretch.h"

#include <algorithm>

namespace orrery::estimate {
namespace {

/// Of a template's time, lost to one message: less is not worth a run node by node.
constexpr double kLeastLoss = 0.02;

/// Of the kernels of a template that sends one: a shorter message is not worth its ports.
constexpr double kLeastMessage = 0.01;

using MostWanted = std::vector<double>;  // by port

void take_most(const std::vector<PortLoad>& ports, MostWanted& most) {
  for (const PortLoad& port : ports) {
    most.resize(std::max<std::size_t>(most.size(), port.port + std::size_t{1}), 0);
    most[port.port] = std::max(most[port.port], port.load);
  }
}

/// What messages want of every port, the largest of them.
MostWanted load_of_messages(const TimedWorkload& timed) {
  MostWanted most;
  for (const std::shared_ptr<MappedTemplate>& one : timed.templates) {
    for (const TimedNode& node : one->nodes.nodes) {
      if (node.kind != TimedNode::Kind::message || node.transfer < 0) {
        continue;
      }
      for (const PortPhase& phase : (*timed.transfers)[static_cast<std::size_t>(node.transfer)]) {
        take_most(phase.ports, most);
        take_most(phase.arrival, most);
      }
    }
  }
  return most;
}

double slowdown_of(const PortPhase& phase, const MostWanted& messages) {
  double alone = 1;
  double beside = 1;
  for (const PortLoad& port : phase.ports) {
    const double message = port.port < messages.size() ? messages[port.port] : 0;
    alone = std::max(alone, port.load);
    beside = std::max(beside, port.load + message);
  }
  return beside / alone;
}

/// Of collectives: their time on ports of messages, and what of it is lost beside one.
struct Lost {
  Time work{0};
  Time lost{0};
};

Lost lost_by_collectives(const TimedTemplate& nodes, const TimedWorkload& timed,
                         const MostWanted& messages) {
  Lost sum;
  for (const TimedNode& node : nodes.nodes) {
    if (node.kind != TimedNode::Kind::collective || !node.slows_kernels || node.transfer < 0) {
      continue;
    }
    for (const PortPhase& phase : (*timed.transfers)[static_cast<std::size_t>(node.transfer)]) {
      const double slowdown = slowdown_of(phase, messages);
      if (slowdown > 1) {
        const Time work = phase.time() - phase.latency;
        sum.work += work;
        sum.lost += work * (1 - 1 / slowdown);
      }
    }
  }
  return sum;
}

Time longest_message(const TimedWorkload& timed) {
  Time longest{0};
  for (const std::shared_ptr<MappedTemplate>& one : timed.templates) {
    for (const TimedNode& node : one->nodes.nodes) {
      longest = node.kind == TimedNode::Kind::message ? std::max(longest, node.work) : longest;
    }
  }
  return longest;
}

}  // namespace

double share_of_messages(const TimedWorkload& timed) {
  Time shortest = Time::max();
  for (const std::shared_ptr<MappedTemplate>& one : timed.templates) {
    for (const TimedNode& node : one->nodes.nodes) {
      if (node.kind == TimedNode::Kind::message) {
        shortest = std::min(shortest, one->slowed->kernels);
      }
    }
  }
  return shortest.is_overflow() ? 0 : longest_message(timed) / shortest;
}

bool messages_matter(const TimedWorkload& timed) {
  return share_of_messages(timed) > kLeastMessage;
}

std::vector<Stretch> stretches_of(const TimedWorkload& timed) {
  const MostWanted messages = load_of_messages(timed);
  const Time message = longest_message(timed);
  double most_lost = 0;
  std::vector<Stretch> stretches;
  for (const std::shared_ptr<MappedTemplate>& one : timed.templates) {
    const PassMap& map = *one->slowed;
    Stretch& stretch =
        stretches.emplace_back(Stretch{.work = map.kernels, .slowdown = map.slowdown});
    if (map.stepwise || messages.empty()) {
      continue;
    }
    const Lost all = lost_by_collectives(one->nodes, timed, messages);
    const Time waited = std::min(all.work, map.entry(0, 0) - map.kernels);
    if (waited <= Time(0)) {
      continue;
    }
    const Time lost = all.lost * (waited / all.work);
    stretch.work += waited;
    stretch.crowded = true;
    most_lost =
        std::max(most_lost, std::min(message, waited) * (all.lost / all.work) / map.entry(0, 0));
    const Time by_message = map.kernels * (1 - 1 / map.slowdown.message) + lost;
    const Time by_collective = map.kernels * (1 - 1 / map.slowdown.collective);
    stretch.slowdown = {.message = 1 / (1 - by_message / stretch.work),
                        .collective = 1 / (1 - by_collective / stretch.work)};
  }
  for (Stretch& stretch : stretches) {
    stretch.crowded = stretch.crowded && most_lost > kLeastLoss;
  }
  return stretches;
}

}  // namespace orrery::estimate
