// SPDX-License-Identifier: Apache-2.0
/// Collectives: algorithms in which every NPU sends and receives the same sequence of messages.
/// Included by collectives.h.
#pragma once

#include "compat/astra/collectives.h"

namespace orrery::astra {

template <class Network>
[[gnu::always_inline]] inline std::uint32_t Collectives<Network>::receiver(Pattern pattern,
                                                                           const Phase& phase,
                                                                           const Place& place,
                                                                           std::uint32_t message) {
  const auto size = static_cast<std::uint32_t>(phase.axis.size);
  std::uint32_t to = place.position;
  switch (pattern) {
    case Pattern::chain:
      to += place.anticlockwise ? size - 1 : 1;
      break;
    case Pattern::direct: {
      const std::uint32_t distance = (message < size - 1 ? message : message - (size - 1)) + 1;
      to += place.anticlockwise ? size - distance : distance;
      break;
    }
    case Pattern::halving:
      to = partner(to, static_cast<std::uint32_t>(phase.steps[message].distance));
      break;
    case Pattern::cyclic:
      to += static_cast<std::uint32_t>(phase.steps[message].distance);
      break;
    case Pattern::tree:
      break;
  }
  return place.origin + (to >= size ? to - size : to) * place.spacing;
}

template <class Network>
std::uint32_t Collectives<Network>::sender(const Phase& phase, const Place& place,
                                           std::uint32_t message) {
  const auto size = static_cast<std::uint32_t>(phase.axis.size);
  if (phase.pattern == Pattern::halving) {
    return receiver(phase.pattern, phase, place, message);
  }
  // Distance to the receiver; as far behind is the sender.
  const std::uint32_t next =
      receiver(phase.pattern, phase, {0, 1, 0, place.anticlockwise}, message);
  const std::uint32_t from = place.position + size - next;
  return place.origin + (from >= size ? from - size : from) * place.spacing;
}

template <class Network>
void Collectives<Network>::begin(std::uint32_t stream) {
  if (!streams_[stream].phase->sequence()) {
    begin_tree(stream);
    return;
  }
  const std::uint32_t window = streams_[stream].phase->window;
  for (std::uint32_t i = 0; i < window; ++i) {
    processed(processed_event(stream));
  }
}

template <class Network>
void Collectives<Network>::processed(const Event& event) {
  switch (streams_[event.subject].phase->pattern) {
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
template <class Network>
template <Pattern pattern>
void Collectives<Network>::advance(std::uint32_t stream) {
  Stream& at = streams_[stream];
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
    finish(stream);
  }
}

/// The next message goes out and the receive of the same number is posted.
template <class Network>
template <Pattern pattern>
[[gnu::always_inline]] inline void Collectives<Network>::post(std::uint32_t stream, Stream& at,
                                                              const Phase& phase) {
  const std::uint32_t message = at.posted++;
  const Place place{at.origin, at.spacing, at.position, at.anticlockwise};
  const std::uint32_t number = agreed(pattern, phase, at.anticlockwise, message);
  if (!rendezvous_) {
    send(pattern, stream, number, receiver(pattern, phase, place, message));
  } else {
    if (take_mark(at.word + phase.words, pattern, number)) {
      events_.push(events_.now(), {stream, number, at.phase_index, Event::Kind::ready});
    }
    const std::uint32_t from = sender(phase, place, message);
    announce(stream, from, phase.step(message), phase.axis.uniform,
             {from, number, at.phase_index, Event::Kind::ready});
  }
  if (take_mark(at.word, pattern, number)) {
    events_.push(events_.now(), {stream, number, at.phase_index, Event::Kind::arrive});
  }
}

template <class Network>
[[gnu::always_inline]] inline void Collectives<Network>::receive(std::uint32_t stream,
                                                                 std::uint32_t message) {
  Stream& at = streams_[stream];
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
template <class Network>
void Collectives<Network>::pass_out(std::uint32_t stream, Bytes bytes, Event::Kind then) {
  const Stream& at = streams_[stream];
  memory_bus_->to_memory(events_, at.rank, {.bytes = bytes, .then = {stream, 0, 0, then}});
}

/// Passes in what a sequence has received over the shared bus: to the NPU and, but for the last of
/// a turn, back; after each turn a window of them to memory.
template <class Network>
void Collectives<Network>::pass_in(std::uint32_t stream, std::uint32_t reception) {
  const Stream& at = streams_[stream];
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

template <class Network>
void Collectives<Network>::arrive(const Event& event) {
  const Stream& at = streams_[event.subject];
  if (in_phase(at, event.phase)) {
    const Phase& phase = *at.phase;
    const std::uint32_t number = phase.pattern == Pattern::chain
                                     ? at.received
                                     : agreed(phase.pattern, phase, at.anticlockwise, event.step);
    if (!phase.sequence() || number < at.posted) {
      phase.sequence() ? receive(event.subject, number)
                       : receive_in_tree(event.subject, static_cast<TreeStep>(event.step));
    } else {
      leave_mark(at.word, phase.pattern, event.step);
    }
    return;
  }
  const Phase& phase = plan_of(event.subject).phases[event.phase];
  const std::uint32_t word = first_word(event.subject) + phase.first_word;
  if (phase.sequence()) {
    leave_mark(word, phase.pattern, event.step);
  } else {
    words_[word] += event.step == kDown ? kFromParent : 1;
  }
}

/// The receiver of a message is ready: the message goes out, now or when its turn comes.
template <class Network>
void Collectives<Network>::ready(const Event& event) {
  const std::uint32_t stream = event.subject;
  const Stream& at = streams_[stream];
  const Phase& phase = plan_of(stream).phases[event.phase];
  const Place place = place_of(stream, phase);
  const std::uint32_t word = first_word(stream) + phase.first_word + phase.words;
  if (!phase.sequence()) {
    ready_in_tree(event);
    return;
  }
  // Ready messages of a chain come in order, so that a count would do; the number says it too.
  const std::uint32_t message = agreed(phase.pattern, phase, place.anticlockwise, event.step);
  const bool due =
      at.phase_index > event.phase || (in_phase(at, event.phase) && message < at.posted);
  if (!due) {
    leave_mark(word, phase.pattern, event.step);
    return;
  }
  const std::uint32_t to = receiver(phase.pattern, phase, place, message);
  transmit(stream, to, phase.step(message), phase.axis.uniform,
           {to, event.step, event.phase, Event::Kind::arrive});
}

template <class Network>
[[gnu::always_inline]] inline bool Collectives<Network>::take_mark(std::uint32_t word,
                                                                   Pattern pattern,
                                                                   std::uint32_t message) {
  const bool counts = pattern == Pattern::chain;
  std::uint64_t& marks = words_[counts ? word : word + message / kBitsPerWord];
  const std::uint64_t mark = counts ? 1 : std::uint64_t{1} << (message % kBitsPerWord);
  const bool marked = counts ? marks > 0 : (marks & mark) != 0;
  if (marked) {
    marks -= mark;
  }
  return marked;
}

template <class Network>
void Collectives<Network>::leave_mark(std::uint32_t word, Pattern pattern, std::uint32_t message) {
  if (pattern == Pattern::chain) {
    ++words_[word];
  } else {
    words_[word + message / kBitsPerWord] |= std::uint64_t{1} << (message % kBitsPerWord);
  }
}

/// NPU of stream `to`. When one NPU stands for all, the one that would be there: it has coordinate
/// 0 in every dimension of its line.
template <class Network>
std::int64_t Collectives<Network>::destination(std::uint32_t from, std::uint32_t to,
                                               Event arrival) const {
  if (!population_.single()) {
    return npu(to);
  }
  const Phase& phase = plan_of(from).phases[arrival.phase];
  const std::uint32_t position = receiver(phase.pattern, phase, {0, 1, 0, false}, arrival.step);
  return communicators_.rank_of(instances_[streams_[from].instance].communicator,
                                position * phase.axis.local_stride);
}

/// Message of a sequence, by its agreed number, to the stream of its receiver.
template <class Network>
[[gnu::always_inline]] inline void Collectives<Network>::send(Pattern pattern, std::uint32_t stream,
                                                              std::uint32_t number,
                                                              std::uint32_t to) {
  const Stream& at = streams_[stream];
  const Phase& phase = *at.phase;
  if (population_.quotient() != nullptr) {
    send_to_colours(stream, phase, number);
  } else {
    transmit(stream, to, phase.step(pattern, number), phase.axis.uniform,
             {to, number, at.phase_index, Event::Kind::arrive});
  }
}

/// To every representative that receives such a message. `message`: of a tree, up or down.
template <class Network>
void Collectives<Network>::send_to_colours(std::uint32_t stream, const Phase& phase,
                                           std::uint32_t message) {
  const Stream& at = streams_[stream];
  const Instance& instance = instances_[at.instance];
  const std::uint32_t chunk = chunk_of(stream);
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
    if constexpr (Network::kStateless) {
      const bool known = phase.axis.uniform && phase.sequence();
      events_.push(
          events_.now() + (known ? step.transfer : network_.delay(each.from, each.to, step.bytes)),
          arrival);
    } else {
      network_.send(events_, each.from, each.to, step.bytes, arrival);
    }
  }
}

template <class Network>
[[gnu::always_inline]] inline void Collectives<Network>::transmit(std::uint32_t from,
                                                                  std::uint32_t to,
                                                                  const Step& step, bool uniform,
                                                                  Event arrival) {
  ++messages_;
  if (traffic_ != nullptr) {
    traffic_->add(npu(from), destination(from, to, arrival), step.bytes);
  }
  if constexpr (Network::kStateless) {
    const Time taken = uniform ? step.transfer : network_.delay(npu(from), npu(to), step.bytes);
    events_.push(events_.now() + taken, arrival);
  } else {
    network_.send(events_, npu(from), destination(from, to, arrival), step.bytes, arrival);
  }
}

/// `receiver` tells `sender` that it is ready.
template <class Network>
void Collectives<Network>::announce(std::uint32_t receiver, std::uint32_t sender, const Step& step,
                                    bool uniform, Event arrival) {
  if (traffic_ != nullptr) {
    traffic_->add(npu(receiver), npu(sender), kReadyMessage);
  }
  if constexpr (Network::kStateless) {
    const Time taken =
        uniform ? step.ready : network_.delay(npu(receiver), npu(sender), kReadyMessage);
    events_.push(events_.now() + taken, arrival);
  } else {
    network_.send(events_, npu(receiver), npu(sender), kReadyMessage, arrival);
  }
}

}  // namespace orrery::astra
