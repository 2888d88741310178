// SPDX-License-Identifier: Apache-2.0
#include "estimate/pass_map.h"

#include <algorithm>

namespace orrery::estimate {
namespace {

using Kind = TimedNode::Kind;

/// Collectives that go on after the template for less than this part of its kernels only slow the
/// next ones down.
constexpr double kShortTail = 0.02;

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

/// Of all collectives of the template that slow kernels.
std::vector<std::uint32_t> ports_of_collectives(const TimedTemplate& nodes,
                                                const Transfers& transfers) {
  std::vector<std::uint32_t> ports;
  for (const TimedNode& node : nodes.nodes) {
    if (node.kind != Kind::collective || !slows(node) || node.transfer < 0) {
      continue;
    }
    for (const PortPhase& phase : transfers[static_cast<std::size_t>(node.transfer)]) {
      for (const PortLoad& load : phase.ports) {
        ports.push_back(load.port);
      }
    }
  }
  std::ranges::sort(ports);
  ports.erase(std::ranges::unique(ports).begin(), ports.end());
  return ports;
}

/// Whether it is a copy on the port of a collective.
bool has_congestion(const TimedNode& node, const Transfers& transfers,
                    const std::vector<std::uint32_t>& ports) {
  return node.kind == Kind::collective && !node.slows_kernels && node.transfer >= 0 &&
         std::any_of(transfers[static_cast<std::size_t>(node.transfer)].begin(),
                     transfers[static_cast<std::size_t>(node.transfer)].end(),
                     [&](const PortPhase& phase) {
                       return std::find(ports.begin(), ports.end(), phase.ports.front().port) !=
                              ports.end();
                     });
}

LooseCollectives loose_collectives(const TimedTemplate& nodes, const Transfers& transfers) {
  const std::vector<std::uint32_t> ports = ports_of_collectives(nodes, transfers);
  const std::size_t count = nodes.nodes.size();
  enum : std::uint8_t { follows = 1, precedes = 2 };  // kernels
  std::vector<std::uint8_t> place(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const TimedNode& node = nodes.nodes[i];
    const std::uint32_t* before = nodes.before.data() + node.first_before;
    for (std::uint32_t b = 0; b < node.befores; ++b) {
      const bool kernel = nodes.nodes[before[b]].lane == 0;
      place[i] |= kernel ? std::uint8_t{follows} : place[before[b]];
    }
  }
  LooseCollectives loose;
  for (std::size_t i = count; i-- > 0;) {
    const TimedNode& node = nodes.nodes[i];
    const std::uint8_t later =
        node.lane == 0 ? std::uint8_t{precedes} : static_cast<std::uint8_t>(place[i] & precedes);
    const std::uint32_t* before = nodes.before.data() + node.first_before;
    for (std::uint32_t b = 0; b < node.befores; ++b) {
      place[before[b]] |= later;
    }
    if (node.kind == Kind::collective && (slows(node) || has_congestion(node, transfers, ports))) {
      loose.ahead = loose.ahead || (place[i] & follows) == 0;
      loose.behind += (place[i] & precedes) != 0 ? Time(0) : node.work;
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

bool is_stepwise(const TimedTemplate& nodes, const LooseCollectives& loose, Time kernels) {
  return hears_in_between(nodes) || loose.ahead || loose.behind > kernels * kShortTail;
}

/// Collectives, and waits on their lanes, before all other nodes there: they wait for nothing that
/// is not like them.
std::vector<std::uint32_t> nodes_ahead(const TimedTemplate& nodes) {
  std::vector<std::uint32_t> ahead;
  std::vector<std::uint8_t> is_ahead(nodes.nodes.size(), 0);
  std::uint32_t lanes = 0;  // bits of those with another node
  for (std::uint32_t i = 0; i < nodes.nodes.size(); ++i) {
    const TimedNode& node = nodes.nodes[i];
    const std::uint32_t lane = std::uint32_t{1} << node.lane;
    const auto before = nodes.before.begin() + node.first_before;
    const bool can_be =
        node.kind == Kind::collective || (node.kind == Kind::wait && node.lane != 0);
    if (can_be && !node.host_sync && (lanes & lane) == 0 &&
        std::all_of(before, before + node.befores, [&](std::uint32_t b) { return is_ahead[b]; })) {
      is_ahead[i] = 1;
      ahead.push_back(i);
    } else {
      lanes |= lane;
    }
  }
  return ahead;
}

void sum_kernels(const TimedTemplate& nodes, PassMap& map) {
  double message = 0;
  double collective = 0;
  for (const TimedNode& node : nodes.nodes) {
    map.host += node.host_cost;
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
    Column column(input - map.clocks.size(), map.outputs.size());
    run.start(nodes, clocks);
    run.advance(column, works);
    std::size_t message = 0;
    for (std::size_t output = 0; output < map.outputs.size(); ++output) {
      const int clock = map.outputs[output].clock;
      const Time out =
          clock >= 0 ? run.clocks()[static_cast<std::size_t>(clock)] : column.departures[message++];
      map.entries[output * map.inputs() + input] =
          out < kNever / 2 ? kNever : std::min(out, kMostTime);
    }
  }
}

/// Compute waits for a message if it never is free before that arrives.
void find_awaited(PassMap& map) {
  for (std::size_t o = 0; o < map.outputs.size(); ++o) {
    PassMap::Output& message = map.outputs[o];
    message.awaited = message.clock < 0;
    for (std::size_t i = 0; message.awaited && i < map.inputs(); ++i) {
      message.awaited =
          map.entry(o, i) <= kNever / 2 || map.entry(kCompute, i) >= map.entry(o, i) + message.work;
    }
  }
}

}  // namespace

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
  const LooseCollectives loose = loose_collectives(nodes, transfers);
  map.stepwise = is_stepwise(nodes, loose, map.kernels);
  if (works == Works::slowed && loose.ahead) {
    map.ahead = nodes_ahead(nodes);
  }
  name_coordinates(nodes, works, map);
  if (works == Works::least) {
    fill_entries(nodes, plain_works(nodes, works), map);
  } else if (!map.stepwise) {
    fill_entries(nodes, slowed_works(nodes, transfers, map.spans), map);
    find_awaited(map);
  }
  return map;
}

Time compute_chain(const TimedTemplate& nodes, const Transfers& transfers) {
  Time kernels{0};
  for (const TimedNode& node : nodes.nodes) {
    kernels += node.kind == Kind::kernels ? node.work : Time(0);
  }
  std::vector<LaneSpan> spans;
  const std::vector<Time> works = is_stepwise(nodes, loose_collectives(nodes, transfers), kernels)
                                      ? plain_works(nodes, Works::least)
                                      : slowed_works(nodes, transfers, spans);
  Clocks clocks = all_at(kNever);
  clocks[kCompute] = Time(0);
  Column column(nodes.nodes.size(), 0);
  NodeRun run;
  run.start(nodes, clocks);
  run.advance(column, works);
  return run.clocks()[kCompute];
}

}  // namespace orrery::estimate
