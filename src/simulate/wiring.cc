// SPDX-License-Identifier: Apache-2.0
#include "simulate/wiring.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

namespace orrery {

Time longest_serialisation(const CollectivePhase& phase) {
  return phase.serialisation;
}

namespace {

std::array<bool, kChannelCount> used_channels(const BoundWorkload& bound) {
  std::array<bool, kChannelCount> used{};
  for (const std::vector<BoundTemplate>& role : bound.roles) {
    for (const BoundTemplate& shape : role) {
      for (const BoundNode& node : shape.nodes) {
        used[static_cast<std::size_t>(node.channel)] |= node.kind == Node::Kind::send;
      }
    }
  }
  return used;
}

}  // namespace

Wiring::Wiring(const RankLayout& layout, const BoundWorkload& bound, LinkMap topology,
               std::vector<std::int64_t> ranks)
    : bound_(bound), topology_(std::move(topology)), ranks_(std::move(ranks)) {
  build_groups(layout);
  build_ways(layout);
}

void Wiring::build_groups(const RankLayout& layout) {
  std::array<int, kAxisCount> none;
  none.fill(kNone);
  group_of_.assign(ranks_.size(), none);
  for (const auto& named : kNames<Axis>) {
    const Axis axis = named.value;
    const bool own_host = axis == Axis::to_host || axis == Axis::from_host;
    // The embedding communicator holds first and last stage, every other one all of its axis.
    const bool ends_only = axis == Axis::embedding;
    const std::int64_t last = layout.size(ends_only ? Axis::pp : axis) - 1;
    if (last == 0 && !own_host) {
      continue;
    }
    std::map<std::int64_t, int> by_first_member;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const std::int64_t stage = layout.coordinate(ranks_[i], Axis::pp);
      if (ends_only && stage > 0 && stage < last) {
        continue;
      }
      const std::int64_t first = layout.with(ranks_[i], ends_only ? Axis::pp : axis, 0);
      const auto [entry, is_new] = by_first_member.emplace(first, static_cast<int>(groups_.size()));
      if (is_new) {
        groups_.emplace_back().links.assign(bound_.collectives.size(), kNone);
      }
      group_of_[i][static_cast<std::size_t>(axis)] = entry->second;
      groups_[static_cast<std::size_t>(entry->second)].members.push_back(static_cast<RankIndex>(i));
    }
  }
}

void Wiring::build_ways(const RankLayout& layout) {
  const std::int64_t stages = layout.size(Axis::pp);
  const auto used = used_channels(bound_);
  way_of_.resize(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    way_of_[i].fill(kNone);
    if (stages == 1) {
      continue;
    }
    const std::int64_t stage = layout.coordinate(ranks_[i], Axis::pp);
    for (const auto& named : kNames<Channel>) {
      const Channel channel = named.value;
      const std::int64_t other = target_stage(channel, stage, stages);
      if (!used[static_cast<std::size_t>(channel)] || other == stage) {
        continue;
      }
      const std::int64_t target = layout.with(ranks_[i], Axis::pp, other);
      const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), target);
      assert(found != ranks_.end() && *found == target && "stages are never folded");
      Way way{static_cast<RankIndex>(i),
              static_cast<RankIndex>(found - ranks_.begin()),
              channel,
              Occupancy(topology_, ranks_).message(ranks_[i], target),
              {}};
      way.links = way.route.links;
      way_of_[i][static_cast<std::size_t>(channel)] = static_cast<int>(ways_.size());
      ways_.push_back(std::move(way));
    }
  }
}

const std::vector<LinkUse>& Wiring::links(int group, int collective, std::size_t phase) {
  Group& who = groups_[static_cast<std::size_t>(group)];
  const auto what = static_cast<std::size_t>(collective);
  if (who.links[what] == kNone) {
    who.links[what] = make_links(who, bound_.collectives[what]);
  }
  return link_lists_[static_cast<std::size_t>(who.links[what]) + phase];
}

std::vector<LinkUse> Wiring::phase_links(const Group& group, const CollectivePhase& phase) const {
  std::vector<std::int64_t> members;
  members.reserve(group.members.size());
  for (const RankIndex member : group.members) {
    members.push_back(ranks_[member]);
  }
  return Occupancy(topology_, ranks_).phase(phase, members);
}

int Wiring::make_links(const Group& group, const BoundCollective& collective) {
  const auto first = static_cast<int>(link_lists_.size());
  for (const CollectivePhase& phase : collective.phases) {
    link_lists_.push_back(phase_links(group, phase));
  }
  return first;
}

}  // namespace orrery
