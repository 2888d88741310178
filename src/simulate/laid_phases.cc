// SPDX-License-Identifier: Apache-2.0
#include "simulate/laid_phases.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orrery::simulate {
namespace {

/// A stretch this near to 1 differs from it by the order of sums only.
constexpr double kSame = 1e-9;

/// Messages by round: the numbers of one round after those of the round before.
std::vector<std::vector<std::uint32_t>> rounds_of(const collective::MessageList& list) {
  std::vector<std::uint32_t> round(list.size(), 0);
  std::vector<std::vector<std::uint32_t>> rounds;
  for (std::uint32_t message = 0; message < list.size(); ++message) {
    if (round[message] >= rounds.size()) {
      rounds.resize(round[message] + 1);
    }
    rounds[round[message]].push_back(message);
    const auto after = [&](std::uint32_t next) {
      round[next] = std::max(round[next], round[message] + 1);
    };
    std::ranges::for_each(list.unlocks(message), after);
    if (list.next(message) != list.kNone) {
      after(list.next(message));
    }
  }
  return rounds;
}

/// Seconds for each byte of the phase's buffer.
struct LinkLoads {
  double sum_of_busiest = 0;
  std::vector<double> on_link;
};

/// The hops of the round's messages in all groups.
template <typename Visit>
void for_hops(const PhasePlan& plan, const std::vector<std::uint32_t>& round, Visit visit) {
  for (std::uint32_t group = 0; group < plan.groups; ++group) {
    for (const std::uint32_t message : round) {
      for (const topology::Hop& hop : plan.route(group, message)) {
        visit(message, hop);
      }
    }
  }
}

LinkLoads loads_of(const PhasePlan& plan, std::size_t links) {
  LinkLoads loads{.on_link = std::vector<double>(links, 0)};
  std::vector<double> now(links, 0);
  std::vector<topology::LinkId> touched;
  for (const std::vector<std::uint32_t>& round : rounds_of(*plan.list)) {
    for_hops(plan, round, [&](std::uint32_t message, const topology::Hop& hop) {
      touched.push_back(hop.link);
      now[hop.link] += plan.list->share(message) / hop.bandwidth.value();
    });
    double busiest = 0;
    for (const topology::LinkId link : touched) {
      busiest = std::max(busiest, now[link]);
      loads.on_link[link] += now[link];
      now[link] = 0;
    }
    loads.sum_of_busiest += busiest;
    touched.clear();
  }
  return loads;
}

machine::Machine without_wires(machine::Machine machine) {
  machine.wires = {};
  return machine;
}

}  // namespace

topology::LinkMap laid_links(const machine::Machine& machine) {
  topology::LinkMap map(machine.network);
  map.lay(machine.wires);
  return map;
}

LaidPhases::LaidPhases(const Wiring& wiring, Binding& binding, const machine::Machine& machine,
                       std::size_t first_link)
    : first_(static_cast<topology::LinkId>(first_link)),
      machine_(machine),
      flat_(without_wires(machine)),
      map_(laid_links(machine)),
      flat_links_(topology::LinkMap(machine.network).links()),
      on_links_(wiring, binding, machine_),
      on_dimensions_(wiring, binding, flat_) {}

LaidPhases::Phase LaidPhases::of(CommunicatorIndex communicator, int collective,
                                 std::size_t phase) {
  const LinkLoads here = loads_of(on_links_.of(communicator, collective)[phase], map_.links());
  const LinkLoads flat = loads_of(on_dimensions_.of(communicator, collective)[phase], flat_links_);
  Phase laid;
  if (flat.sum_of_busiest > 0) {
    laid.stretch = here.sum_of_busiest / flat.sum_of_busiest;
  }
  if (std::abs(laid.stretch - 1) < kSame) {
    laid.stretch = 1;
  }
  for (std::size_t link = 0; link < here.on_link.size(); ++link) {
    if (here.on_link[link] > 0) {
      laid.links.push_back({first_ + static_cast<topology::LinkId>(link),
                            topology::counted(here.on_link[link] / here.sum_of_busiest)});
    }
  }
  return laid;
}

topology::Route LaidPhases::message(std::int64_t source, std::int64_t destination) const {
  topology::Route route = map_.message(source, destination);
  for (topology::LinkUse& use : route.links) {
    use.link += first_;
  }
  return route;
}

}  // namespace orrery::simulate
