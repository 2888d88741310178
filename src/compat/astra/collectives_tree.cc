// SPDX-License-Identifier: Apache-2.0
/// Trees (members of Collectives).
///
/// Up: a leaf sends after the endpoint delay, any other node when it has received from all its
/// children and processed that. Down: the root sends to its children, they to theirs. A node is
/// done when it has sent its last message (Phase::holds_senders: when that is there), a leaf when
/// it has processed its parent's.
#include "compat/astra/collectives.h"

namespace orrery::astra {

namespace tree {
inline std::uint32_t children(const Phase& phase, std::uint32_t node) {
  return phase.tree.first_child[node + 1] - phase.tree.first_child[node];
}
inline std::uint32_t child(const Phase& phase, std::uint32_t node, std::uint32_t ordinal) {
  return static_cast<std::uint32_t>(phase.tree.children[phase.tree.first_child[node] + ordinal]);
}
inline bool is_root(const Phase& phase, std::uint32_t node) {
  return phase.tree.parent[node] < 0;
}
inline std::uint32_t parent(const Phase& phase, std::uint32_t node) {
  return static_cast<std::uint32_t>(phase.tree.parent[node]);
}
}  // namespace tree

/// `posted` counts what this node has to send: 1 up, 2 down.
void Collectives::start_tree(std::uint32_t stream) {
  Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  const bool starts =
      phase.up ? tree::children(phase, at.position) == 0 : tree::is_root(phase, at.position);
  if (starts) {
    if (on_memory_bus(phase)) {
      pass_out(stream, phase.steps[0].bytes, Event::Kind::begin);
      return;
    }
    const Time passed = endpoints_.pass(events_.now(), at.rank, Endpoints::Direction::out,
                                        phase.steps[0].bytes, phase);
    events_.push_own(at.rank, passed, {stream, 0, 0, Event::Kind::begin});
    return;
  }
  if (rendezvous_) {
    const std::uint32_t count = phase.up ? tree::children(phase, at.position) : 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t from = at.origin + tree::child(phase, at.position, i) * at.spacing;
      announce(stream, from, phase.steps[0], false,
               {from, kNone, at.phase_index, Event::Kind::ready});
    }
    if (!phase.up) {
      announce_to_parent(stream);
    }
  }
  const std::uint64_t early = std::exchange(table_.marks().word(at.word), 0);
  for (std::uint64_t i = 0; i < (early & (kFromParent - 1)); ++i) {
    receive_in_tree(stream, kUp);
  }
  if ((early & kFromParent) != 0) {
    receive_in_tree(stream, kDown);
  }
}

/// The parent may send down: its message will be received.
void Collectives::announce_to_parent(std::uint32_t stream) {
  const Stream& at = table_.streams()[stream];
  const std::uint32_t above = at.origin + tree::parent(*at.phase, at.position) * at.spacing;
  announce(stream, above, at.phase->steps[0], false,
           {above, at.phase->tree.child_ordinal[at.position], at.phase_index, Event::Kind::ready});
}

void Collectives::begin_tree(std::uint32_t stream) {
  if (table_.streams()[stream].phase->up) {
    send_up(stream);
  } else {
    send_down(stream);
  }
}

void Collectives::receive_in_tree(std::uint32_t stream, TreeStep step) {
  Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  const bool leaf = tree::children(phase, at.position) == 0;
  const bool reduces = step == kUp || (phase.reduces_down && !leaf);
  const Time reduction = reduces ? phase.reductions[0] : Time(0);
  if (on_memory_bus(phase)) {
    const bool first_of_two = step == kUp && ++at.received < tree::children(phase, at.position);
    memory_bus_->to_npu(events_, at.rank,
                        {.bytes = phase.steps[0].bytes,
                         .processed = reduces,
                         .sent_back = !leaf && !first_of_two,
                         .afterwards = reduction,
                         .then = processed_event(stream, step)});
    return;
  }
  const Time copied = endpoints_.pass(events_.now(), at.rank, Endpoints::Direction::in,
                                      phase.steps[0].bytes, phase);
  events_.push_own(at.rank, copied + reduction, processed_event(stream, step));
}

void Collectives::processed_in_tree(std::uint32_t stream, TreeStep step) {
  Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  if (step == kDown) {
    send_down(stream);
    return;
  }
  if (++at.processed < tree::children(phase, at.position)) {
    return;
  }
  if (!tree::is_root(phase, at.position)) {
    send_up(stream);
  } else if (phase.down) {
    send_down(stream);
  } else {
    ended_.push_back(stream);
  }
}

void Collectives::send_up(std::uint32_t stream) {
  Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  at.posted |= 1;
  at.in_flight = 1;
  if (rendezvous_ && phase.down) {
    announce_to_parent(stream);  // first, as in sequences
  }
  if (population_.quotient() != nullptr) {
    send_to_colours(stream, phase, kUp);
  } else if (!rendezvous_ || (table_.marks().word(at.word + phase.words) & 1) != 0) {
    send_in_tree(stream, at.phase_index, kNone);
  }
  if (!phase.down && !phase.holds_senders) {
    ended_.push_back(stream);
  }
}

void Collectives::send_down(std::uint32_t stream) {
  Stream& at = table_.streams()[stream];
  const Phase& phase = *at.phase;
  at.posted |= 2;
  if (population_.quotient() != nullptr) {
    send_to_colours(stream, phase, kDown);
    ended_.push_back(stream);
    return;
  }
  at.in_flight = tree::children(phase, at.position);
  for (std::uint32_t i = 0; i < at.in_flight; ++i) {
    if (!rendezvous_ || table_.marks().take(at.word + phase.words, phase.pattern, i + 1)) {
      send_in_tree(stream, at.phase_index, i);
    }
  }
  if (!phase.holds_senders || at.in_flight == 0) {
    ended_.push_back(stream);
  }
}

/// A message is there: its sender is done when it was the last of them.
void Collectives::deliver(const Event& event) {
  const Phase& phase = table_.plan_of(event.subject).phases[event.phase];
  const Place place = table_.place_of(event.subject, phase);
  const bool down = (event.step & 1U) == kDown;
  const std::uint32_t from = down ? tree::parent(phase, place.position)
                                  : tree::child(phase, place.position, event.step >> 1U);
  const std::uint32_t sender = place.origin + from * place.spacing;
  if (--table_.streams()[sender].in_flight == 0) {
    ended_.push_back(sender);
  }
  arrive({event.subject, down ? kDown : kUp, event.phase, Event::Kind::arrive});
}

/// The parent (`which` == kNone) or a child is ready.
void Collectives::ready_in_tree(const Event& event) {
  const Stream& at = table_.streams()[event.subject];
  const Phase& phase = table_.plan_of(event.subject).phases[event.phase];
  const std::uint32_t bit = event.step == kNone ? 1 : 2;
  const bool due =
      at.phase_index > event.phase || (at.is_in(event.phase) && (at.posted & bit) != 0);
  if (due) {
    send_in_tree(event.subject, event.phase, event.step);
  } else {
    table_.marks().leave(table_.first_word(event.subject) + phase.first_word + phase.words,
                         phase.pattern, event.step == kNone ? 0 : event.step + 1);
  }
}

/// Sends to the parent (`which` == kNone) or to a child.
void Collectives::send_in_tree(std::uint32_t stream, std::uint16_t phase_index,
                               std::uint32_t which) {
  const Phase& phase = table_.plan_of(stream).phases[phase_index];
  const Place place = table_.place_of(stream, phase);
  const bool up = which == kNone;
  const std::uint32_t node =
      up ? tree::parent(phase, place.position) : tree::child(phase, place.position, which);
  const std::uint32_t to = place.origin + node * place.spacing;
  if (phase.holds_senders) {
    const std::uint32_t step = up ? phase.tree.child_ordinal[place.position] << 1U : kDown;
    transmit(stream, to, phase.steps[0], false, {to, step, phase_index, Event::Kind::deliver});
    return;
  }
  transmit(stream, to, phase.steps[0], false,
           {to, up ? kUp : kDown, phase_index, Event::Kind::arrive});
}

}  // namespace orrery::astra
