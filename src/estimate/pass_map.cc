// SPDX-License-Identifier: Apache-2.0
#include "estimate/pass_map.h"

#include <algorithm>

namespace orrery::estimate {
namespace {

using Kind = TimedNode::Kind;

/// Collectives that go on after the template for less than this part of its kernels only slow the
/// next ones down.
constexpr double kShortTail = 0.02;
constexpr std::size_t kFlightsToForget = 16;  // looked through at once
constexpr std::size_t kLookAhead = 64;        // nodes, for the next transfers

bool slows(const TimedNode& node) {
  return node.slows_kernels && node.work > Time(0);
}

bool communicates(const TimedNode& node) {
  return slows(node) && (node.kind == Kind::collective || node.kind == Kind::message);
}

/// Inputs of one column: one at zero, all others never. Meetings wait for nobody.
class Column final : public Listener {
 public:
  Column(std::size_t receive, std::size_t messages) : receive_(receive) {
    departures.reserve(messages);
  }
  Time hears(const TimedNode& node) override {
    const bool input = node.kind == Kind::receive && received_++ == receive_;
    return input ? Time(0) : kFar;
  }
  Time says(const TimedNode& node, Time when, Time end) override {
    if (node.kind == Kind::message) {
      departures.push_back(when);
    }
    return end;
  }

  std::vector<Time> departures;

 private:
  /// Never, but told apart from not known.
  static constexpr Time kFar = kNever + Time(1);
  std::size_t receive_;
  std::size_t received_ = 0;
};

/// Everything at once: all messages are there.
class Ready final : public Listener {
 public:
  Time hears(const TimedNode&) override { return Time(0); }
  Time says(const TimedNode&, Time, Time end) override { return end; }
};

std::vector<Time> plain_works(const TimedTemplate& nodes, Works works) {
  std::vector<Time> result;
  result.reserve(nodes.nodes.size());
  for (const TimedNode& node : nodes.nodes) {
    result.push_back(works == Works::least ? node.least : node.work);
  }
  return result;
}

Clocks all_at(Time when) {
  Clocks clocks;
  clocks.fill(when);
  return clocks;
}

/// Works slowed as in a run from one moment on, and when that transfers.
std::vector<Time> slowed_works(const TimedTemplate& nodes, const Transfers& transfers,
                               std::vector<LaneSpan>& spans) {
  std::vector<Time> works = plain_works(nodes, Works::slowed);
  if (std::none_of(nodes.nodes.begin(), nodes.nodes.end(), communicates)) {
    return works;
  }
  Beside beside;
  Ports ports;
  Ready ready;
  NodeRun run;
  run.start(nodes, all_at(Time(0)));
  run.advance(ready, {.transfers = transfers, .beside = beside, .ports = ports});
  for (std::size_t i = 0; i < works.size(); ++i) {
    const Kind kind = nodes.nodes[i].kind;
    works[i] = kind == Kind::kernels || kind == Kind::collective ? run.taken()[i] : works[i];
  }
  spans = run.spans();
  return works;
}

/// Collectives that are not between kernels of the template.
struct LooseCollectives {
  bool ahead = false;  ///< follow no kernel: begin as soon as the template is visible
  Time behind{0};      ///< no kernel waits for them: go on beside what comes next
};

LooseCollectives loose_collectives(const TimedTemplate& nodes) {
  const std::size_t count = nodes.nodes.size();
  std::vector<bool> follows(count, false);
  std::vector<bool> precedes(count, false);
  const auto each_before = [&](std::size_t i, auto&& visit) {
    for (std::uint32_t b = 0; b < nodes.nodes[i].befores; ++b) {
      visit(nodes.before[nodes.nodes[i].first_before + b]);
    }
  };
  for (std::size_t i = 0; i < count; ++i) {
    each_before(i, [&](std::size_t before) {
      follows[i] = follows[i] || follows[before] || nodes.nodes[before].lane == 0;
    });
  }
  LooseCollectives loose;
  for (std::size_t i = count; i-- > 0;) {
    const TimedNode& node = nodes.nodes[i];
    each_before(i, [&](std::size_t before) {
      precedes[before] = precedes[before] || precedes[i] || node.lane == 0;
    });
    if (node.kind == Kind::collective && slows(node)) {
      loose.ahead = loose.ahead || !follows[i];
      loose.behind += precedes[i] ? Time(0) : node.work;
    }
  }
  return loose;
}

/// Meetings, and receives after messages.
bool hears_in_between(const TimedTemplate& nodes) {
  bool said = false;
  for (const TimedNode& node : nodes.nodes) {
    if (node.kind == Kind::meeting || (node.kind == Kind::receive && said)) {
      return true;
    }
    said = said || node.kind == Kind::message;
  }
  return false;
}

void sum_kernels(const TimedTemplate& nodes, PassMap& map) {
  double message = 0;
  double collective = 0;
  for (const TimedNode& node : nodes.nodes) {
    if (node.kind == Kind::kernels) {
      map.kernels += node.work;
      message += static_cast<double>(node.work.value()) * node.beside_message;
      collective += static_cast<double>(node.work.value()) * node.beside_collective;
    }
  }
  if (map.kernels > Time(0)) {
    const auto all = static_cast<double>(map.kernels.value());
    map.slowdown = {.message = message / all, .collective = collective / all};
  }
}

void name_coordinates(const TimedTemplate& nodes, Works works, PassMap& map) {
  std::array<bool, kMostClocks> used{};
  std::array<bool, kMostClocks> collective{};
  used[kCompute] = used[kVisible] = true;
  for (const TimedNode& node : nodes.nodes) {
    const auto clock = static_cast<std::size_t>(clock_of(node.lane));
    used[clock] = true;
    collective[clock] = collective[clock] || (node.kind == Kind::collective && slows(node));
    used[kHost] = used[kHost] || node.host_cost > Time(0) || node.host_sync;
  }
  for (std::size_t clock = 0; clock < used.size(); ++clock) {
    if (used[clock]) {
      map.clocks.push_back(static_cast<int>(clock));
      if (clock != kVisible) {
        map.outputs.push_back({.clock = static_cast<int>(clock), .collective = collective[clock]});
      }
    }
  }
  bool said = false;
  for (const TimedNode& node : nodes.nodes) {
    said = said || node.kind == Kind::message || node.kind == Kind::meeting;
    if (node.kind == Kind::receive) {
      map.receives.push_back(node.flow);
      map.leading += said ? 0 : 1;
    } else if (node.kind == Kind::message) {
      map.outputs.push_back({.flow = node.flow,
                             .work = works == Works::least ? node.least : node.work,
                             .transfer = node.transfer});
    }
  }
}

void fill_entries(const TimedTemplate& nodes, const std::vector<Time>& works, PassMap& map) {
  map.entries.assign(map.outputs.size() * map.inputs(), kNever);
  NodeRun run;
  for (std::size_t input = 0; input < map.inputs(); ++input) {
    Clocks clocks = all_at(kNever);
    if (input < map.clocks.size()) {
      clocks[static_cast<std::size_t>(map.clocks[input])] = Time(0);
    }
    Column column(input - map.clocks.size(), nodes.nodes.size());
    run.start(nodes, clocks);
    run.advance(column, works);
    std::size_t message = 0;
    for (std::size_t output = 0; output < map.outputs.size(); ++output) {
      const int clock = map.outputs[output].clock;
      const Time out =
          clock >= 0 ? run.clocks()[static_cast<std::size_t>(clock)] : column.departures[message++];
      map.entries[output * map.inputs() + input] = out < kNever / 2 ? kNever : out;
    }
  }
}

}  // namespace

void NodeRun::start(const TimedTemplate& nodes, const Clocks& clocks) {
  template_ = &nodes;
  next_ = 0;
  said_ = false;
  clocks_ = clocks;
  ends_.assign(nodes.nodes.size(), kNever);
  taken_.assign(nodes.nodes.size(), Time(0));
  spans_.clear();
  forget_at_ = kFlightsToForget;
  last_transfer_.fill(0);
  for (std::size_t i = 0; i < nodes.nodes.size(); ++i) {
    if (nodes.nodes[i].transfer >= 0) {
      last_transfer_[nodes.nodes[i].lane] = i;
    }
  }
}

/// `times` says how long a node takes from a moment on.
template <class Times>
bool NodeRun::advance_with(Listener& listener, Times&& times) {
  const std::vector<TimedNode>& nodes = template_->nodes;
  for (; next_ < nodes.size(); ++next_) {
    const TimedNode& node = nodes[next_];
    Time& lane = clocks_[static_cast<std::size_t>(clock_of(node.lane))];
    Time begin = std::max(lane, clocks_[kVisible]);
    for (std::uint32_t b = 0; b < node.befores; ++b) {
      begin = std::max(begin, ends_[template_->before[node.first_before + b]]);
    }
    const bool comes = node.kind == Kind::collective || (node.kind == Kind::meeting && !said_);
    if (comes) {
      clocks_[kHost] += node.host_cost;
      begin = std::max(begin, clocks_[kHost]);
    }
    if (node.kind == Kind::meeting && !said_) {
      listener.says(node, begin, begin);
      said_ = true;
    }
    if (node.kind == Kind::meeting || node.kind == Kind::receive) {
      const Time heard = listener.hears(node);
      if (heard == kNever) {
        return false;
      }
      begin = std::max(begin, heard);
      said_ = false;
    }
    const Time taken = taken_[next_] = times(next_, begin);
    Time end = begin + taken;
    if (node.kind == Kind::message) {
      end = listener.says(node, begin, end);
    } else if (node.kind == Kind::kernels) {
      end = std::max(end, clocks_[kHost] + node.host_span);
      clocks_[kHost] += node.host_cost;
    }
    if (node.host_sync) {
      clocks_[kHost] = std::max(clocks_[kHost], end);
    }
    lane = std::max(lane, end);
    ends_[next_] = end;
  }
  return true;
}

bool NodeRun::advance(Listener& listener, const std::vector<Time>& works) {
  return advance_with(listener, [&](std::size_t i, Time) { return works[i]; });
}

bool NodeRun::advance(Listener& listener, const Surroundings& around) {
  return advance_with(listener, [&](std::size_t i, Time begin) {
    const TimedNode& node = template_->nodes[i];
    if (node.kind == Kind::kernels) {
      around.beside.forget(begin);
      return around.beside.stretched(
          begin, node.work, {.message = node.beside_message, .collective = node.beside_collective});
    }
    Time taken = node.work;
    if (node.transfer >= 0) {
      const auto& phases = around.transfers[static_cast<std::size_t>(node.transfer)];
      const Ports::Sender sender{node.lane, i, node.kind == Kind::message};
      if (around.ports.size() >= forget_at_) {
        around.ports.forget(earliest_begin());
        forget_at_ = around.ports.size() + kFlightsToForget;
      }
      taken = around.ports.start(sender, begin, phases) - begin;
      follow_moved(around.ports, around.beside, clocks_);
      if (node.kind == Kind::collective) {
        spans_.push_back({node.lane, begin, begin + taken});
      }
    }
    if (slows(node)) {
      around.beside.put({begin, begin + taken, node.kind != Kind::message, i});
    }
    return taken;
  });
}

/// Of the nodes that are left. One that waits for a node still to come begins after it, and nothing
/// on the compute lane begins before its clock; no lane's next transfer begins before the lane is
/// free.
Time NodeRun::earliest_begin() const {
  std::array<bool, kMostLanes> seen{};
  Time earliest = Time::max();
  const std::size_t end = std::min(template_->nodes.size(), next_ + kLookAhead);
  const auto free = [&](std::size_t lane) {
    return std::max(clocks_[static_cast<std::size_t>(clock_of(static_cast<int>(lane)))],
                    clocks_[kVisible]);
  };
  for (std::size_t i = next_; i < end; ++i) {
    const TimedNode& node = template_->nodes[i];
    if (seen[node.lane] || node.transfer < 0) {
      continue;
    }
    seen[node.lane] = true;
    Time begin = free(node.lane);
    for (std::uint32_t b = 0; b < node.befores; ++b) {
      const std::size_t before = template_->before[node.first_before + b];
      begin = std::max(begin, before < next_ ? ends_[before] : clocks_[kCompute]);
    }
    earliest = std::min(earliest, begin);
  }
  for (std::size_t lane = 0; lane < seen.size(); ++lane) {
    if (!seen[lane] && last_transfer_[lane] >= end) {
      earliest = std::min(earliest, free(lane));
    }
  }
  return earliest;
}

void NodeRun::follow_moved(const Ports& ports, Beside& beside, Clocks& clocks) {
  bool own = false;
  for (const Ports::Moved& moved : ports.moved()) {
    if (moved.lane != Ports::kIncoming) {
      Time& lane = clocks[static_cast<std::size_t>(clock_of(moved.lane))];
      lane = std::max(lane, moved.end);
    }
    if (moved.node != kNoNode) {
      ends_[moved.node] = moved.end;
      own = true;
    }
  }
  if (own) {
    beside.prolong(ends_);
  }
}

void map_templates(TimedWorkload& timed, Works works) {
  for (const std::shared_ptr<MappedTemplate>& one : timed.templates) {
    std::optional<PassMap>& map = works == Works::least ? one->least : one->slowed;
    if (!map) {
      map = map_of(one->nodes, *timed.transfers, works);
    }
  }
}

PassMap map_of(const TimedTemplate& nodes, const Transfers& transfers, Works works) {
  PassMap map;
  sum_kernels(nodes, map);
  const LooseCollectives loose = loose_collectives(nodes);
  map.stepwise = hears_in_between(nodes) || loose.ahead || loose.behind > map.kernels * kShortTail;
  name_coordinates(nodes, works, map);
  if (works == Works::least) {
    fill_entries(nodes, plain_works(nodes, works), map);
  } else if (!map.stepwise) {
    fill_entries(nodes, slowed_works(nodes, transfers, map.spans), map);
  }
  return map;
}

}  // namespace orrery::estimate
