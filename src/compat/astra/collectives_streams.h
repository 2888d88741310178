// SPDX-License-Identifier: Apache-2.0
/// Collectives: how chunks go from phase to phase. Included by collectives.h.
#pragma once

#include "compat/astra/collectives.h"

namespace orrery::astra {

template <class Network>
void Collectives<Network>::issue(std::uint32_t rank, std::uint32_t node,
                                 Communicators::Membership& membership,
                                 const CollectiveRequest& request,
                                 std::pair<std::int64_t, std::int64_t> priority) {
  if (population_.rank(rank) == 0) {
    planner_.begin(events_.now());
  }
  const std::uint32_t index = instance_for({rank, node}, membership, request);
  if (!states_.empty()) {
    states_[rank] = states_after_[index];
  }
  const Instance instance = instances_[index];
  if (instance.request.type != request.type || instance.request.size != request.size) {
    mismatch_ = Mismatch{{instance.first_rank, instance.first_node}, {rank, node}};
    return;
  }
  const std::uint32_t local = population_.single() ? 0 : membership.local;
  ++membership.sequence;
  members_[instance.first_member + local] = {
      instance.chunks(),
      rank,
      node,
      turns_.begin(rank, instance.plan->chunks[0]->phases, instance.chunks()),
      priority.first,
      priority.second};
  for (std::uint32_t chunk = 0; chunk < instance.chunks(); ++chunk) {
    const std::uint32_t stream = instance.streams + local * instance.chunks() + chunk;
    streams_[stream].rank = rank;
    if (instance.plan->chunks[chunk]->phases.empty()) {
      member_finished(stream);
    } else {
      enter(stream);
      refill(queues_.of(streams_[stream]));
    }
  }
}

/// The first member to issue a collective opens it for all.
template <class Network>
std::uint32_t Collectives<Network>::instance_for(const Finished& issuer,
                                                 const Communicators::Membership& membership,
                                                 const CollectiveRequest& request) {
  if (open_.size() <= membership.communicator) {
    open_.resize(population_.communicators());
  }
  OpenInstances& open = open_[membership.communicator];
  const std::uint32_t place = membership.sequence - open.first;
  if (place < open.instances.size()) {
    return open.instances[place];
  }
  if (unused_instances_.empty()) {
    unused_instances_.push_back(static_cast<std::uint32_t>(instances_.size()));
    instances_.emplace_back();
  }
  const std::uint32_t index = unused_instances_.back();
  unused_instances_.pop_back();
  const Shape& shape = population_.shape_of(membership.communicator);
  Instance& made = instances_[index];
  made.request = request;
  made.first_rank = issuer.rank;
  made.first_node = issuer.node;
  made.plan = &plan_for(issuer.rank, index, shape, request);
  made.communicator = membership.communicator;
  made.sequence = membership.sequence;
  made.members = made.unfinished = population_.members(membership.communicator);
  const std::size_t streams = std::size_t{made.members} * made.chunks();
  made.streams = streams_.allocate(streams);
  made.words = words_.allocate(streams * made.plan->words);
  made.first_member = members_.allocate(made.members);
  for (std::uint32_t i = 0; i < streams; ++i) {
    streams_[made.streams + i].instance = index;
    streams_[made.streams + i].local = i / made.chunks();
  }
  open.instances.push_back(index);
  return index;
}

template <class Network>
const CollectivePlan& Collectives<Network>::plan_for(std::uint32_t rank, std::uint32_t instance,
                                                     const Shape& shape,
                                                     const CollectiveRequest& request) {
  if (states_.empty()) {
    PlannerState none;
    return planner_.plan(shape, request, none);
  }
  const CollectivePlan& plan = planner_.plan(shape, request, states_[rank]);
  states_after_.resize(instances_.size());
  states_after_[instance] = states_[rank];
  return plan;
}

template <class Network>
void Collectives<Network>::close(std::uint32_t index) {
  const Instance& instance = instances_[index];
  const std::size_t streams = std::size_t{instance.members} * instance.chunks();
  for (std::uint32_t member = 0; member < instance.members; ++member) {
    turns_.end(members_[instance.first_member + member].turns);
  }
  streams_.free(instance.streams, streams);
  words_.free(instance.words, streams * instance.plan->words);
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

template <class Network>
typename Collectives<Network>::Place Collectives<Network>::place_of(std::uint32_t stream,
                                                                    const Phase& phase) const {
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

/// Into the queue of its present phase.
template <class Network>
void Collectives<Network>::enter(std::uint32_t stream) {
  Stream& entering = streams_[stream];
  const std::vector<Phase>& phases = plan_of(stream).phases;
  const Phase& phase = phases[entering.phase_index];
  const Place place = place_of(stream, phase);
  entering.phase = &phase;
  entering.waiting = true;
  entering.origin = place.origin;
  entering.spacing = place.spacing;
  entering.position = place.position;
  entering.queue = turn_of(stream, phase).queue;
  entering.anticlockwise = place.anticlockwise;
  entering.posted = entering.received = entering.processed = 0;
  entering.word = first_word(stream) + phase.first_word;
  const auto about = [this](std::uint32_t other) -> ChunkQueues::Waiting {
    const Stream& waiting = streams_[other];
    const Instance& instance = instances_[waiting.instance];
    return {*waiting.phase, members_[instance.first_member + waiting.local].priority,
            waiting.phase_index + 2U == plan_of(other).phases.size()};
  };
  queues_.insert(streams_, queues_.of(entering), stream, about);
}

template <class Network>
void Collectives<Network>::refill(std::size_t queue) {
  for (std::uint32_t stream = queues_.take(streams_, queue); stream != kNone;
       stream = queues_.take(streams_, queue)) {
    start(stream);
  }
}

template <class Network>
void Collectives<Network>::start(std::uint32_t stream) {
  Stream& starting = streams_[stream];
  const Phase& phase = *starting.phase;
  starting.waiting = false;
  if (!phase.sequence()) {
    start_tree(stream);
    return;
  }
  if (on_memory_bus(phase)) {
    for (std::uint32_t i = 0; i < phase.window; ++i) {
      pass_out(stream, phase.step(i).bytes, Event::Kind::processed);
    }
    return;
  }
  if (!endpoints_.has_bus()) {
    events_.push_own(starting.rank, events_.now() + phase.delay,
                     {stream, 0, 0, Event::Kind::begin});
    return;
  }
  for (std::uint32_t i = 0; i < phase.window; ++i) {
    const Time passed = endpoints_.pass(events_.now(), starting.rank, Endpoints::Direction::out,
                                        phase.step(i).bytes, phase);
    events_.push_own(starting.rank, passed, processed_event(stream));
  }
}

/// Chunks of a rank that end a phase at one instant go on when it is over, so that the order of its
/// events leaves no trace and ranks that do the same stay equal. First goes the one whose end was
/// known first: whose last message took longest to process, then to travel; then by age. Equal
/// chunks of different ranks go on in the order in which they ended, as ASTRA-sim's events do.
template <class Network>
void Collectives<Network>::settle() {
  const auto order = [this](std::uint32_t stream) {
    const Stream& at = streams_[stream];
    const Phase& phase = *at.phase;
    const std::uint32_t last = phase.sequence() ? phase.messages - 1 : 0;
    const Time processing = phase.sequence() ? phase.reduction(last) + phase.delay : phase.delay;
    const Instance& instance = instances_[at.instance];
    return std::tuple(-processing.value(), -phase.step(last).transfer.value(),
                      members_[instance.first_member + at.local].number, chunk_of(stream));
  };
  std::vector<std::pair<decltype(order(0)), std::uint32_t>> ended;
  ended.reserve(ended_.size());
  for (const std::uint32_t stream : ended_) {
    ended.emplace_back(order(stream), stream);
  }
  ended_.clear();
  std::ranges::stable_sort(ended, {}, [](const auto& each) { return each.first; });
  for (const auto& each : ended) {
    leave(each.second);
  }
}

/// The present phase is over: into the next queue, then both queues take their next.
template <class Network>
void Collectives<Network>::leave(std::uint32_t stream) {
  Stream& done = streams_[stream];
  const std::size_t old_queue = queues_.of(done);
  ++done.phase_index;
  done.waiting = true;
  if (done.phase_index < plan_of(stream).phases.size()) {
    queues_.finished(old_queue);
    enter(stream);
    const std::size_t new_queue = queues_.of(done);
    refill(old_queue);
    refill(new_queue);
    return;
  }
  if (member_finished(stream)) {
    vacated_.push_back(old_queue);
    return;
  }
  queues_.finished(old_queue);
  refill(old_queue);
}

template <class Network>
void Collectives<Network>::release() {
  for (const std::size_t queue : std::exchange(vacated_, {})) {
    queues_.finished(queue);
    refill(queue);
  }
}

template <class Network>
bool Collectives<Network>::member_finished(std::uint32_t stream) {
  const std::uint32_t index = streams_[stream].instance;
  Instance& instance = instances_[index];
  Member& member = members_[instance.first_member + streams_[stream].local];
  if (--member.unfinished > 0) {
    return false;
  }
  finished_.push_back({member.rank, member.node});
  if (--instance.unfinished == 0) {
    close(index);
  }
  return true;
}

}  // namespace orrery::astra
