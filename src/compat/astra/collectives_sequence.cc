// SPDX-License-Identifier: Apache-2.0
/// Algorithms in which every NPU sends and receives the same sequence of messages (members of
/// Collectives).
#include "compat/astra/collectives.h"

namespace orrery::astra {

void Collectives::begin(std::uint32_t stream) {
  if (!table_.streams()[stream].phase->sequence()) {
    begin_tree(stream);
    return;
  }
  const std::uint32_t window = table_.streams()[stream].phase->window;
  for (std::uint32_t i = 0; i < window; ++i) {
    processed(processed_event(stream));
  }
}

void Collectives::processed(const Event& event) {
  switch (table_.streams()[event.subject].phase->pattern) {
    case Pattern::chain:
      return advance<Pattern::chain>(event.subject);
    case Pattern::direct:
      return advance<Pattern::direct>(event.subject);
    case Pattern::halving:
      return advance<Pattern::halving>(event.subject);
    case Pattern::cyclic:
      return advance<Pattern::cyclic>(event.subject);
    case Pattern::tree:
      return processed_in_tree(event.subject, static_cast<TreeStep>(event.phase));
  }
}

/// One more message may go out. After a barrier as many as were held back, at most a window.
template <Pattern pattern>
void Collectives::advance(std::uint32_t stream) {
  Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  ++at.processed;
  std::uint32_t sends = 1;
  if (phase.barrier != 0 && at.posted >= phase.barrier) {
    const std::uint32_t in =
        phase.barrier_waits_for_processing ? at.processed - phase.window : at.received;
    sends = in < phase.barrier ? 0 : phase.window;
  }
  for (; sends > 0 && at.posted < at.processed && at.posted < phase.messages; --sends) {
    post<pattern>(stream, at, phase);
  }
  if (at.processed == phase.messages + phase.window) {
    ended_.push_back(stream);
  }
}

/// The next message goes out and the receive of the same number is posted.
template <Pattern pattern>
[[gnu::always_inline]] inline void Collectives::post(std::uint32_t stream, Stream& at,
                                                     const Phase& phase) {
  const std::uint32_t message = at.posted++;
  const Place place{at.origin, at.spacing, at.position, at.anticlockwise};
  const std::uint32_t number = agreed(pattern, phase, at.anticlockwise, message);
  if (!rendezvous_) {
    send(pattern, stream, number, receiver(pattern, phase, place, message));
  } else {
    if (table_.marks().take(at.word + phase.words, pattern, number)) {
      events_.push(events_.now(), {stream, number, at.phase_index, Event::Kind::ready});
    }
    const std::uint32_t from = sender(phase, place, message);
    announce(stream, from, phase.step(message), phase.axis.uniform,
             {from, number, at.phase_index, Event::Kind::ready});
  }
  if (table_.marks().take(at.word, pattern, number)) {
    events_.push(events_.now(), {stream, number, at.phase_index, Event::Kind::arrive});
  }
}

[[gnu::always_inline]] inline void Collectives::receive(std::uint32_t stream,
                                                        std::uint32_t message) {
  Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  const std::uint32_t reception = at.received++;
  if (on_memory_bus(phase)) {
    pass_in(stream, reception);
    return;
  }
  const Time copied = endpoints_.has_bus()
                          ? endpoints_.pass(events_.now(), at.rank, Endpoints::Direction::in,
                                            phase.step(message).bytes, phase)
                          : events_.now() + phase.delay;
  events_.push_own(at.rank, copied + phase.reduction(reception), processed_event(stream));
}

/// A message of a phase's beginning goes out over the shared bus; `then` when it is through.
void Collectives::pass_out(std::uint32_t stream, Bytes bytes, Event::Kind then) {
  const Stream& at = table_.streams()[stream];
  memory_bus_->to_memory(events_, at.rank, {.bytes = bytes, .then = {stream, 0, 0, then}});
}

/// Passes in what a sequence has received over the shared bus: to the NPU and, but for the last of
/// a turn, back; after each turn a window of them to memory.
void Collectives::pass_in(std::uint32_t stream, std::uint32_t reception) {
  const Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  const std::uint32_t place = reception % (phase.up_in_turn + phase.window);
  const bool up = place < phase.up_in_turn;
  const SharedBus::Transfer transfer{.bytes = phase.size_after(reception),
                                     .processed = phase.reduces(reception),
                                     .sent_back = up && phase.up_in_turn - place > phase.window,
                                     .afterwards = phase.reduction(reception),
                                     .then = processed_event(stream)};
  up ? memory_bus_->to_npu(events_, at.rank, transfer)
     : memory_bus_->to_memory(events_, at.rank, transfer);
}

void Collectives::arrive(const Event& event) {
  const Stream& at = table_.streams()[event.subject];
  if (at.is_in(event.phase)) {
    const Phase& phase = *at.phase;
    const std::uint32_t number = phase.pattern == Pattern::chain
                                     ? at.received
                                     : agreed(phase.pattern, phase, at.anticlockwise, event.step);
    if (!phase.sequence() || number < at.posted) {
      phase.sequence() ? receive(event.subject, number)
                       : receive_in_tree(event.subject, static_cast<TreeStep>(event.step));
    } else {
      table_.marks().leave(at.word, phase.pattern, event.step);
    }
    return;
  }
  const Phase& phase = table_.plan_of(event.subject).phases[event.phase];
  const std::uint32_t word = table_.first_word(event.subject) + phase.first_word;
  if (phase.sequence()) {
    table_.marks().leave(word, phase.pattern, event.step);
  } else {
    table_.marks().word(word) += event.step == kDown ? kFromParent : 1;
  }
}

/// The receiver of a message is ready: the message goes out, now or when its turn comes.
void Collectives::ready(const Event& event) {
  const std::uint32_t stream = event.subject;
  const Stream& at = table_.streams()[stream];
  const Phase& phase = table_.plan_of(stream).phases[event.phase];
  const Place place = table_.place_of(stream, phase);
  const std::uint32_t word = table_.first_word(stream) + phase.first_word + phase.words;
  if (!phase.sequence()) {
    ready_in_tree(event);
    return;
  }
  // Ready messages of a chain come in order, so that a count would do; the number says it too.
  const std::uint32_t message = agreed(phase.pattern, phase, place.anticlockwise, event.step);
  const bool due = at.phase_index > event.phase || (at.is_in(event.phase) && message < at.posted);
  if (!due) {
    table_.marks().leave(word, phase.pattern, event.step);
    return;
  }
  const std::uint32_t to = receiver(phase.pattern, phase, place, message);
  transmit(stream, to, phase.step(message), phase.axis.uniform,
           {to, event.step, event.phase, Event::Kind::arrive});
}

/// Message of a sequence, by its agreed number, to the stream of its receiver.
[[gnu::always_inline]] inline void Collectives::send(Pattern pattern, std::uint32_t stream,
                                                     std::uint32_t number, std::uint32_t to) {
  const Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  if (population_.quotient() != nullptr) {
    send_to_colours(stream, phase, number);
  } else {
    transmit(stream, to, phase.step(pattern, number), phase.axis.uniform,
             {to, number, at.phase_index, Event::Kind::arrive});
  }
}

/// Sends to every representative that receives such a message. `message`: of a tree, up or down.
void Collectives::send_to_colours(std::uint32_t stream, const Phase& phase, std::uint32_t message) {
  const Stream& at = table_.streams()[stream];
  const Instance& instance = table_.instance(at.instance);
  const std::uint32_t chunk = table_.chunk_of(stream);
  std::uint32_t number = message;
  if (phase.pattern == Pattern::chain) {
    number = 0;
  } else if (phase.pattern == Pattern::direct) {
    number = message % static_cast<std::uint32_t>(phase.steps.size());
  }
  for (const Quotient::Recipient& each :
       population_.quotient()->recipients(instance.communicator, phase, at.local, number)) {
    ++messages_;
    const Step& step = phase.step(message);
    const std::uint32_t to = instance.streams + each.local * instance.chunks() + chunk;
    const Event arrival{to, message, at.phase_index, Event::Kind::arrive};
    if (phase.axis.uniform && phase.sequence() && network_.stateless()) {
      events_.push(events_.now() + step.transfer, arrival);
    } else {
      network_.send(events_, each.from, each.to, step.bytes, arrival);
    }
  }
}

/// `receiver` tells `sender` that it is ready.
void Collectives::announce(std::uint32_t receiver, std::uint32_t sender, const Step& step,
                           bool uniform, Event arrival) {
  if (traffic_ != nullptr) {
    traffic_->add(table_.npu(receiver), table_.npu(sender), kReadyMessage);
  }
  if (uniform && network_.stateless()) {
    events_.push(events_.now() + step.ready, arrival);
  } else {
    network_.send(events_, table_.npu(receiver), table_.npu(sender), kReadyMessage, arrival);
  }
}

}  // namespace orrery::astra
