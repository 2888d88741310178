// SPDX-License-Identifier: Apache-2.0
#include "estimate/placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collective/group_extents.h"

namespace orrery::estimate {
namespace {

/// The phase with its parts in millionths of its time: phases that want as much of every link are
/// then equal, whatever their size.
collective::CollectivePhase scaled(collective::CollectivePhase phase) {
  constexpr double kParts = 1e6;
  if (phase.serialisation <= Time(0)) {
    return phase;
  }
  const auto part = [&](Time& time) {
    time = Time(std::llround(time / phase.serialisation * kParts));
  };
  for (collective::PortUse& port : phase.ports) {
    part(port.serialisation);
    part(port.port);
    part(port.through);
    part(port.node);
  }
  part(phase.serialisation);
  return phase;
}

bool same_uses(const collective::CollectivePhase& a, const collective::CollectivePhase& b) {
  return a.kind == b.kind && a.algorithm == b.algorithm && a.serialisation == b.serialisation &&
         std::equal(a.ports.begin(), a.ports.end(), b.ports.begin(), b.ports.end(),
                    [](const collective::PortUse& one, const collective::PortUse& other) {
                      return one.extent == other.extent &&
                             one.serialisation == other.serialisation && one.port == other.port &&
                             one.through == other.through && one.node == other.node;
                    });
}

/// Groups whose first member is among these ranks.
std::vector<GroupMembers> groups_of(const graph::Members& members,
                                    const std::vector<std::int64_t>& ranks) {
  std::vector<GroupMembers> groups;
  for (const std::int64_t rank : ranks) {
    if (members.holds(rank) && members.coordinate(rank) == 0) {
      groups.push_back(members.group(rank));
    }
  }
  return groups;
}

bool same_layout(const plan::RankLayout& a, const plan::RankLayout& b) {
  using Layout = plan::RankLayout;
  return std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                    [](const Layout::Entry& one, const Layout::Entry& other) {
                      return one.axis == other.axis && one.size == other.size;
                    }) &&
         std::equal(a.communicators.begin(), a.communicators.end(), b.communicators.begin(),
                    b.communicators.end(),
                    [](const Layout::Communicator& one, const Layout::Communicator& other) {
                      return one.axis == other.axis && one.digits == other.digits;
                    });
}

}  // namespace

Placement::Placement(plan::RankLayout layout, const machine::Machine& machine)
    : layout_(std::move(layout)),
      machine_(machine),
      tables_(plan::step_workload(layout_)),
      links_(machine),
      stages_(layout_.size(plan::Axis::pp)),
      way_numbers_(static_cast<std::size_t>(stages_)) {
  for (auto& of_stage : way_numbers_) {
    of_stage.fill(-1);
  }
}

const std::vector<std::int64_t>& Placement::first_stage() {
  if (first_stage_.empty()) {
    for (std::int64_t rank = 0; rank < layout_.ranks(); ++rank) {
      if (layout_.coordinate(rank, plan::Axis::pp) == 0) {
        first_stage_.push_back(rank);
      }
    }
  }
  return first_stage_;
}

Communicator& Placement::communicator(graph::GroupIndex group) {
  auto& known = communicators_[*group];
  if (known == nullptr) {
    known = std::make_unique<Communicator>();
    known->members = layout_.members(static_cast<plan::Axis>(*group));
    known->extents = collective::group_extents(known->members, 0, machine_);
    known->first = known->members.group(0);
    known->crossing = links_.crossing(known->extents);
    if (known->crossing) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(layout_.ranks()));
      std::iota(all.begin(), all.end(), 0);
      known->crowd = {.stage = groups_of(known->members, first_stage()),
                      .all = groups_of(known->members, all)};
    }
  }
  return *known;
}

const Communicator::Known& Placement::loads(Communicator& communicator,
                                            const collective::CollectivePhase& phase,
                                            std::optional<double> meanwhile) {
  const collective::CollectivePhase uses = scaled(phase);
  const auto same = std::find_if(communicator.known.begin(), communicator.known.end(),
                                 [&](const Communicator::Known& one) {
                                   return one.meanwhile == meanwhile && same_uses(one.phase, uses);
                                 });
  if (same != communicator.known.end()) {
    return *same;
  }
  if (communicator.known.size() == Communicator::kMostKnown) {
    communicator.known.clear();
  }
  Communicator::Known& known = communicator.known.emplace_back();
  known.meanwhile = meanwhile;
  if (meanwhile) {
    communicator.crowd.meanwhile = *meanwhile;
    communicator.crowd.crosses = false;
    known.ports = links_.loads(uses, communicator.crowd);
    known.crosses = communicator.crowd.crosses;
  } else {
    known.ports = links_.loads(uses, communicator.first);
  }
  known.phase = uses;
  return known;
}

std::uint32_t Placement::port(const machine::CopyPort& port, graph::CopyDirection direction) const {
  return links_.port(port.dimension, direction == graph::CopyDirection::out);
}

/// Every block of dimensions is a whole number of times inside or around what lies between two
/// neighbouring stages: coordinates then differ by as much for every rank.
bool Placement::is_aligned() const {
  const std::int64_t inside = layout_.stride(plan::Axis::pp);
  const std::int64_t all = inside * stages_;
  std::int64_t block = 1;
  return std::all_of(machine_.network.begin(), machine_.network.end(),
                     [&](const topology::NetworkDimension& dimension) {
                       block *= dimension.size;
                       return inside % block == 0 || block % all == 0;
                     });
}

MessageWay Placement::find_way(plan::Channel channel, std::int64_t stage) {
  std::vector<Pair> messages;
  const auto add = [&](std::int64_t rank, std::int64_t from) {
    const std::int64_t to = plan::target_stage(channel, from, stages_);
    messages.push_back(
        {layout_.with(rank, plan::Axis::pp, from), layout_.with(rank, plan::Axis::pp, to)});
  };
  if (!links_.crossing() && is_aligned()) {
    add(0, stage);
    return links_.slowest(std::move(messages));
  }
  const bool all = channel == plan::Channel::mirror && links_.crossing();
  for (std::int64_t from = all ? 0 : stage; from < (all ? stages_ : stage + 1); ++from) {
    for (const std::int64_t rank : first_stage()) {
      add(rank, from);
    }
  }
  return links_.slowest(std::move(messages));
}

int Placement::way(plan::Channel channel, std::int64_t stage) {
  int& number = way_numbers_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(channel)];
  if (number < 0) {
    MessageWay found = find_way(channel, stage);
    const auto same = std::find(ways_.begin(), ways_.end(), found);
    number = static_cast<int>(same - ways_.begin());
    if (same == ways_.end()) {
      ways_.push_back(std::move(found));
    }
  }
  return number;
}

const CollectiveTime* price_of(const GroupCollective& one,
                               const collective::AlgorithmChoice& choice, Placement& placement,
                               Prices& prices) {
  Communicator& where = placement.communicator(one.group);
  if (where.extents.empty() || one.bytes == Bytes(0)) {
    return nullptr;
  }
  LoadsOf alone;
  if (!where.crossing) {
    alone = [&](const collective::CollectivePhase& phase) {
      return placement.loads(where, phase, std::nullopt).ports;
    };
  }
  return &prices.collective({.kind = one.kind,
                             .algorithm = choice[one.group],
                             .bytes = one.bytes,
                             .route = one.route,
                             .extents = where.extents,
                             .devices = placement.tables().ranks},
                            placement.machine(), alone);
}

Placement& Placements::of(plan::RankLayout layout, const machine::Machine& machine) {
  const auto known = std::find_if(placements_.begin(), placements_.end(), [&](const auto& one) {
    return &one->machine() == &machine && same_layout(one->layout(), layout);
  });
  if (known != placements_.end()) {
    return **known;
  }
  if (placements_.size() == kMost) {
    placements_.clear();
  }
  return *placements_.emplace_back(std::make_unique<Placement>(std::move(layout), machine));
}

}  // namespace orrery::estimate
