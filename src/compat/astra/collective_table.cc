// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/collective_table.h"

#include <cstddef>

namespace orrery::astra {

std::uint32_t CollectiveTable::unused() {
  if (unused_instances_.empty()) {
    instances_.emplace_back();
    states_after_.resize(states_.empty() ? 0 : instances_.size());
    return static_cast<std::uint32_t>(instances_.size() - 1);
  }
  const std::uint32_t index = unused_instances_.back();
  unused_instances_.pop_back();
  return index;
}

std::uint32_t CollectiveTable::open(const Issuer& issuer,
                                    const Communicators::Membership& membership,
                                    const CollectiveRequest& request) {
  if (open_.size() <= membership.communicator) {
    open_.resize(population_.communicators());
  }
  OpenInstances& open = open_[membership.communicator];
  const std::uint32_t place = membership.sequence - open.first;
  PlannerState none;
  PlannerState& state = states_.empty() ? none : states_[issuer.rank];
  if (place < open.instances.size()) {
    if (!states_.empty()) {
      state = states_after_[open.instances[place]];
    }
    return open.instances[place];
  }
  const std::uint32_t index = unused();
  Instance& made = instances_[index];
  made.request = request;
  made.first_rank = issuer.rank;
  made.first_node = issuer.node;
  made.plan = &planner_.plan(population_.shape_of(membership.communicator), request, state);
  if (!states_.empty()) {
    states_after_[index] = state;
  }
  made.communicator = membership.communicator;
  made.sequence = membership.sequence;
  made.members = made.unfinished = population_.members(membership.communicator);
  const std::size_t streams = std::size_t{made.members} * made.chunks();
  made.streams = streams_.allocate(streams);
  made.words = marks_.allocate(streams * made.plan->words);
  made.first_member = members_.allocate(made.members);
  for (std::uint32_t i = 0; i < streams; ++i) {
    streams_[made.streams + i].instance = index;
    streams_[made.streams + i].local = i / made.chunks();
  }
  open.instances.push_back(index);
  return index;
}

void CollectiveTable::join(std::uint32_t index, std::uint32_t local, const Issuer& issuer,
                           std::pair<std::int64_t, std::int64_t> priority) {
  const Instance& instance = instances_[index];
  members_[instance.first_member + local] = {
      instance.chunks(),
      issuer.rank,
      issuer.node,
      turns_.begin(issuer.rank, instance.plan->chunks[0]->phases, instance.chunks()),
      priority.first,
      priority.second};
}

std::optional<Issuer> CollectiveTable::end(std::uint32_t stream) {
  const std::uint32_t index = streams_[stream].instance;
  Instance& instance = instances_[index];
  Member& member = members_[instance.first_member + streams_[stream].local];
  if (--member.unfinished > 0) {
    return std::nullopt;
  }
  const Issuer issuer{member.rank, member.node};
  if (--instance.unfinished == 0) {
    close(index);
  }
  return issuer;
}

void CollectiveTable::close(std::uint32_t index) {
  const Instance& instance = instances_[index];
  const std::size_t streams = std::size_t{instance.members} * instance.chunks();
  for (std::uint32_t member = 0; member < instance.members; ++member) {
    turns_.end(members_[instance.first_member + member].turns);
  }
  streams_.free(instance.streams, streams);
  marks_.free(instance.words, streams * instance.plan->words);
  members_.free(instance.first_member, instance.members);
  unused_instances_.push_back(index);
  OpenInstances& open = open_[instance.communicator];
  open.instances[instance.sequence - open.first] = kNone;
  std::size_t closed = 0;
  while (closed < open.instances.size() && open.instances[closed] == kNone) {
    ++closed;
  }
  open.instances.erase(open.instances.begin(),
                       open.instances.begin() + static_cast<std::ptrdiff_t>(closed));
  open.first += static_cast<std::uint32_t>(closed);
}

Place CollectiveTable::place_of(std::uint32_t stream, const Phase& phase) const {
  const bool anticlockwise = turn_of(stream, phase).anticlockwise;
  if (population_.single()) {
    return {stream, 0, 0, anticlockwise};
  }
  const Stream& at = streams_[stream];
  const Axis& axis = phase.axis;
  if (population_.quotient() != nullptr) {
    const std::uint32_t of = instances_[at.instance].communicator;
    return {stream, 0, population_.quotient()->position(of, at.local, axis), anticlockwise};
  }
  const auto position = static_cast<std::uint32_t>(at.local / axis.local_stride %
                                                   static_cast<std::uint64_t>(axis.size));
  const std::uint32_t spacing = axis.local_stride * instances_[at.instance].chunks();
  return {stream - position * spacing, spacing, position, anticlockwise};
}

}  // namespace orrery::astra
