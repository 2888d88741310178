// SPDX-License-Identifier: Apache-2.0
/// Says how chunks go from phase to phase (members of Collectives).
#include "compat/astra/collectives.h"

namespace orrery::astra {

void Collectives::issue(std::uint32_t rank, std::uint32_t node,
                        Communicators::Membership& membership, const CollectiveRequest& request,
                        std::pair<std::int64_t, std::int64_t> priority) {
  if (population_.rank(rank) == 0) {
    planner_.begin(events_.now());
  }
  const std::uint32_t index = table_.open({rank, node}, membership, request);
  const Instance instance = table_.instance(index);
  if (instance.request.type != request.type || instance.request.size != request.size) {
    mismatch_ = Mismatch{{instance.first_rank, instance.first_node}, {rank, node}};
    return;
  }
  const std::uint32_t local = population_.single() ? 0 : membership.local;
  ++membership.sequence;
  table_.join(index, local, {rank, node}, priority);
  for (std::uint32_t chunk = 0; chunk < instance.chunks(); ++chunk) {
    const std::uint32_t stream = instance.streams + local * instance.chunks() + chunk;
    table_.streams()[stream].rank = rank;
    if (instance.plan->chunks[chunk]->phases.empty()) {
      end_at_member(stream);
    } else {
      enter(stream);
      refill(queues_.of(table_.streams()[stream]));
    }
  }
}

/// Puts the stream into the queue of its present phase.
void Collectives::enter(std::uint32_t stream) {
  Stream& entering = table_.streams()[stream];
  const std::vector<Phase>& phases = table_.plan_of(stream).phases;
  const Phase& phase = phases[entering.phase_index];
  const Place place = table_.place_of(stream, phase);
  entering.phase = &phase;
  entering.waiting = true;
  entering.origin = place.origin;
  entering.spacing = place.spacing;
  entering.position = place.position;
  entering.queue = table_.turn_of(stream, phase).queue;
  entering.anticlockwise = place.anticlockwise;
  entering.posted = entering.received = entering.processed = 0;
  entering.word = table_.first_word(stream) + phase.first_word;
  const auto about = [this](std::uint32_t other) -> ChunkQueues::Waiting {
    const Stream& waiting = table_.streams()[other];
    return {*waiting.phase, table_.member_of(waiting).priority,
            waiting.phase_index + 2U == table_.plan_of(other).phases.size()};
  };
  queues_.insert(table_.streams(), queues_.of(entering), stream, about);
}

void Collectives::refill(std::size_t queue) {
  for (std::uint32_t stream = queues_.take(table_.streams(), queue); stream != kNone;
       stream = queues_.take(table_.streams(), queue)) {
    start(stream);
  }
}

void Collectives::start(std::uint32_t stream) {
  Stream& starting = table_.streams()[stream];
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
void Collectives::settle() {
  const auto order = [this](std::uint32_t stream) {
    const Stream& at = table_.streams()[stream];
    const Phase& phase = *at.phase;
    const std::uint32_t last = phase.sequence() ? phase.messages - 1 : 0;
    const Time processing = phase.sequence() ? phase.reduction(last) + phase.delay : phase.delay;
    return std::tuple(-processing.value(), -phase.step(last).transfer.value(),
                      table_.member_of(at).number, table_.chunk_of(stream));
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
void Collectives::leave(std::uint32_t stream) {
  Stream& done = table_.streams()[stream];
  const std::size_t old_queue = queues_.of(done);
  ++done.phase_index;
  done.waiting = true;
  if (done.phase_index < table_.plan_of(stream).phases.size()) {
    queues_.finished(old_queue);
    enter(stream);
    const std::size_t new_queue = queues_.of(done);
    refill(old_queue);
    refill(new_queue);
    return;
  }
  if (end_at_member(stream)) {
    vacated_.push_back(old_queue);
    return;
  }
  queues_.finished(old_queue);
  refill(old_queue);
}

void Collectives::release() {
  for (const std::size_t queue : std::exchange(vacated_, {})) {
    queues_.finished(queue);
    refill(queue);
  }
}

bool Collectives::end_at_member(std::uint32_t stream) {
  const std::optional<Issuer> finished = table_.end(stream);
  if (finished) {
    finished_.push_back(*finished);
  }
  return finished.has_value();
}

}  // namespace orrery::astra
