// SPDX-License-Identifier: Apache-2.0
#include "estimate/lower_bound.h"

#include <algorithm>
#include <array>
#include <optional>

#include "estimate/least_replay.h"

namespace orrery::estimate {
namespace {

// Both as input and as output of every map: the first coordinate.
constexpr std::size_t kOfCompute = 0;

/// What a template takes of every lane, of the ports and of the host.
struct StageLoad {
  std::array<Time, kMostLanes> lanes{};
  PortTimes ports{};
  Time host{0};

  void add(const TimedTemplate& nodes, const TimedWorkload& timed, std::int64_t times) {
    for (const TimedNode& node : nodes.nodes) {
      lanes[node.lane] += node.least * times;
      host += node.host_cost * times;
      const bool everywhere = node.kind != TimedNode::Kind::message || timed.messages_alike;
      if (node.transfer >= 0 && everywhere) {
        add_ports(ports, (*timed.transfers)[index_of(node.transfer)], times);
      }
    }
  }
};

/// A message that an instance sends or receives: `coordinate` of its map.
struct Port {
  std::int64_t instance = 0;
  std::size_t coordinate = 0;
};

class Bound {
 public:
  explicit Bound(const PreparedPlan& plan)
      : plan_(plan), first_(plan.timed.roles.size()), in_flight_(plan.timed.roles.size(), false) {}

  Time run() {
    Time bound{0};
    for (std::size_t s = 0; s < plan_.timed.roles.size(); ++s) {
      bound = std::max({bound, work_of(s), load(s)});
    }
    return bound;
  }

 private:
  const PassMap& map(std::size_t s, std::int64_t i) const { return plan_.least(s, i); }
  std::int64_t length(std::size_t s) const { return std::ssize(plan_.lists.templates[s]); }

  /// Least time from compute free to compute free over instances [from, to). Rounds that the lists
  /// lack come before the last one of their repetition, where no first instance of a template is,
  /// and after which every last one is.
  Time own(std::size_t s, std::int64_t from, std::int64_t to) const {
    const Repetition& repetition = plan_.lists.repetition;
    Time sum = sum_of(s, from, to);
    if (repetition.omitted > 0) {
      const std::int64_t last = repetition.until[s] - repetition.length;
      sum += from <= last && last <= to ? sum_of(s, last, repetition.until[s]) * repetition.omitted
                                        : Time(0);
    }
    return sum;
  }

  Time sum_of(std::size_t s, std::int64_t from, std::int64_t to) const {
    Time sum{0};
    for (std::int64_t i = from; i < to; ++i) {
      sum += map(s, i).entry(kOfCompute, kOfCompute);
    }
    return sum;
  }

  /// Fill, own work, and drain.
  Time work_of(std::size_t s) {
    const Time first = after_first(s);
    const Time all = first + own(s, 1, length(s));
    const auto last = last_message(s);
    if (!last || last->instance == 0) {
      return all;
    }
    in_flight_.assign(in_flight_.size(), false);
    in_flight_[s] = true;
    const Time before = first + own(s, 1, last->instance);
    const Time leaves = map(s, last->instance).entry(last->coordinate, kOfCompute);
    return std::max(all, before + leaves + from_message(s, *last));
  }

  /// When the first instance's kernels are done at the earliest.
  Time after_first(std::size_t s) {
    const PassMap& first = map(s, 0);
    const std::size_t receive = first.clocks.size();
    const Time done = std::max(Time(0), first.entry(kOfCompute, kOfCompute));
    if (first.leading == 0) {
      return done;
    }
    return std::max(done, arrival(s) + std::max(Time(0), first.entry(kOfCompute, receive)));
  }

  /// Of the first message that the first instance of the stage waits for.
  Time arrival(std::size_t s) {
    if (const auto known = first_[s]) {
      return *known;
    }
    first_[s] = Time(0);  // of stages that wait for one another
    Time earliest{0};
    const int flow = map(s, 0).receives.front();
    for (std::size_t from = 0; from < plan_.timed.roles.size(); ++from) {
      const bool sends = plan_.timed.targets[from][at(flow)] == static_cast<int>(s) && from != s;
      if (const auto port = sends ? first_message(from, flow) : std::nullopt) {
        earliest = leaves_first(from, *port) + output(from, *port).work;
        break;
      }
    }
    first_[s] = earliest;
    return earliest;
  }

  const PassMap::Output& output(std::size_t s, const Port& port) const {
    return map(s, port.instance).outputs[port.coordinate];
  }

  Time leaves_first(std::size_t s, const Port& port) {
    const PassMap& sender = map(s, port.instance);
    if (port.instance > 0) {
      const Time before = after_first(s) + own(s, 1, port.instance);
      return before + std::max(Time(0), sender.entry(port.coordinate, kOfCompute));
    }
    const Time leaves = std::max(Time(0), sender.entry(port.coordinate, kOfCompute));
    if (sender.leading == 0) {
      return leaves;
    }
    const Time passes = sender.entry(port.coordinate, sender.clocks.size());
    return std::max(leaves, arrival(s) + std::max(Time(0), passes));
  }

  /// From the moment when a stage's last message leaves to the end of what waits for it.
  Time from_message(std::size_t s, const Port& port) {
    const PassMap::Output& message = output(s, port);
    const auto target = at(plan_.timed.targets[s][at(message.flow)]);
    if (in_flight_[target]) {
      return message.work;
    }
    in_flight_[target] = true;
    const auto received = last_receive(target, message.flow);
    if (!received) {
      return message.work;
    }
    return message.work + std::max(Time(0), from_receive(target, *received));
  }

  /// Below zero when nothing waits for it.
  Time from_receive(std::size_t s, const Port& received) {
    const PassMap& receiver = map(s, received.instance);
    const Time done = receiver.entry(kOfCompute, received.coordinate);
    const Time rest = done + own(s, received.instance + 1, length(s));
    const auto last = last_message(s);
    if (!last || last->instance < received.instance) {
      return rest;
    }
    const Time leaves = last->instance == received.instance
                            ? receiver.entry(last->coordinate, received.coordinate)
                            : done + own(s, received.instance + 1, last->instance) +
                                  map(s, last->instance).entry(last->coordinate, kOfCompute);
    return leaves < Time(0) ? rest : std::max(rest, leaves + from_message(s, *last));
  }

  std::optional<Port> first_message(std::size_t s, int flow) const {
    for (std::int64_t i = 0; i < length(s); ++i) {
      const auto& outputs = map(s, i).outputs;
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (outputs[o].flow == flow) {
          return Port{i, o};
        }
      }
    }
    return std::nullopt;
  }

  std::optional<Port> last_message(std::size_t s) const {
    for (std::int64_t i = length(s); i-- > 0;) {
      const auto& outputs = map(s, i).outputs;
      for (std::size_t o = outputs.size(); o-- > 0;) {
        if (outputs[o].flow >= 0) {
          return Port{i, o};
        }
      }
    }
    return std::nullopt;
  }

  std::optional<Port> last_receive(std::size_t s, int flow) const {
    for (std::int64_t i = length(s); i-- > 0;) {
      const auto& receives = map(s, i).receives;
      for (std::size_t r = receives.size(); r-- > 0;) {
        if (receives[r] == flow) {
          return Port{i, map(s, i).clocks.size() + r};
        }
      }
    }
    return std::nullopt;
  }

  /// Of the busiest lane or port or the host, over the step.
  Time load(std::size_t s) const {
    std::vector<std::int64_t> times(plan_.timed.templates.size(), 0);
    for (std::int64_t i = 0; i < length(s); ++i) {
      ++times[at(plan_.template_of(s, i))];
    }
    const Repetition& repetition = plan_.lists.repetition;
    for (std::int64_t i = 0; repetition.omitted > 0 && i < repetition.length; ++i) {
      times[at(plan_.template_of(s, repetition.from[s] + i))] += repetition.omitted;
    }
    StageLoad sum;
    for (std::size_t t = 0; t < times.size(); ++t) {
      if (times[t] > 0) {
        sum.add(plan_.timed.templates[t]->nodes, plan_.timed, times[t]);
      }
    }
    const Time lane = *std::max_element(sum.lanes.begin(), sum.lanes.end());
    return std::max({sum.host, lane, plan_.timed.own_ports ? busiest_port(sum.ports) : Time(0)});
  }

  const PreparedPlan& plan_;
  std::vector<std::optional<Time>> first_;
  std::vector<bool> in_flight_;
};

}  // namespace

Time least_time(const PreparedPlan& plan) {
  return std::max(Bound(plan).run(), least_replay(plan));
}

}  // namespace orrery::estimate
