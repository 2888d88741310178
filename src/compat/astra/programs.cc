// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/programs.h"

namespace orrery::astra {

void Programs::issue(std::uint32_t rank, std::uint32_t index) {
  using chakra::NodeType;
  const chakra::Node& node = input_.traces.programs[program_of(rank)].nodes[index];
  if (options_.node_times) {
    node_times_[rank][index].start = events_.now();
  }
  const Issue how = issue_of(node, input_.system.replay_only, options_.quirks);
  switch (how) {
    case Issue::nothing:
      return done_at(events_.now(), rank, index);
    case Issue::timed: {
      const Time taken = node_time(node, input_.system, input_.speed(population_.rank(rank)));
      if (node.type == NodeType::comp && !node.on_cpu) {
        computed_[rank] += taken;
      }
      return done_at(events_.now() + taken, rank, index);
    }
    case Issue::memory:
      return done_at(memory_.access(events_.now(), population_.rank(rank), node.size), rank, index);
    case Issue::collective:
      return issue_collective(rank, index, node);
    case Issue::send:
      return issue_send(rank, index, node);
    case Issue::receive:
      return issue_receive(rank, index, node);
  }
}

/// Greater runs first: LIFO counts up, FIFO down. And the number of the collective.
std::pair<std::int64_t, std::int64_t> Programs::priority(std::uint32_t rank,
                                                         const chakra::Node& node) {
  const std::int64_t number = ++issued_[rank];
  switch (input_.system.policy) {
    case Policy::lifo:
      return {number, number};
    case Policy::fifo:
      return {-number, number};
    case Policy::explicit_priority:
      return {node.priority, number};
  }
  return {0, number};
}

void Programs::issue_collective(std::uint32_t rank, std::uint32_t index, const chakra::Node& node) {
  const std::uint32_t kind = communicators_.kind(program_of(rank), index);
  Communicators::Membership& membership = memberships_[rank * communicators_.kinds().size() + kind];
  if (membership.communicator == Communicators::kUnknown) {
    membership = population_.quotient() != nullptr
                     ? population_.quotient()->membership(rank, kind)
                     : communicators_.find(population_.rank(rank), kind);
  }
  const auto urgency = priority(rank, node);
  if (const CustomCollective* const custom = input_.customs.find(node)) {
    collectives_.custom.issue(rank, index, membership, *custom, node);
    return;
  }
  collectives_.native.issue(rank, index, membership, {phase_type_of(node.collective), node.size},
                            urgency);
}

void Programs::put(std::int64_t from, std::int64_t to, Bytes bytes, Event arrival) {
  if (collectives_.traffic != nullptr) {
    collectives_.traffic->add(from, to, bytes);
  }
  network_.send(events_, from, to, bytes, arrival);
}

MessageKey Programs::key_of(const Post& sender, std::uint32_t receiver) const {
  const chakra::Node& node = node_of(sender);
  return {sender.rank, receiver, static_cast<std::int32_t>(node.peer), node.tag, node.size};
}

void Programs::issue_send(std::uint32_t rank, std::uint32_t index, const chakra::Node& node) {
  if (population_.quotient() != nullptr) {
    send_to_colours({rank, index}, node);
    return;
  }
  const auto receiver = static_cast<std::uint32_t>(rank + node.peer);
  if (!options_.rendezvous ||
      mail_.ready.meet(key_of({rank, index}, receiver), Meetings::Side::message, {rank, index})) {
    send({rank, index}, node);
  }
}

void Programs::send(const Post& sender, const chakra::Node& node) {
  const std::int64_t from = population_.rank(sender.rank);
  const std::uint32_t letter = mail_.put({sender, static_cast<std::uint32_t>(from + node.peer)});
  ++messages_;
  put(from, from + node.peer, node.size, {letter, 0, 0, Event::Kind::sent});
}

/// The message and those that equal senders send at the same time, as far as they are received.
void Programs::send_to_colours(const Post& sender, const chakra::Node& node) {
  const std::int64_t from = population_.rank(sender.rank);
  std::vector<std::uint32_t> receivers = population_.quotient()->receivers(sender.rank, node.peer);
  if (receivers.empty()) {
    receivers.push_back(kNone);  // nobody listens, but the sender's node ends
  }
  bool first = true;
  for (std::uint32_t receiver : receivers) {
    const std::uint32_t letter = mail_.put({sender, receiver, std::exchange(first, false)});
    ++messages_;
    put(from, from + node.peer, node.size, {letter, 0, 0, Event::Kind::sent});
  }
}

void Programs::delivered(std::uint32_t letter) {
  const Mail::Letter mail = mail_.take(letter);
  const std::optional<Post> receiver =
      mail_.arrived.meet(key_of(mail.sender, mail.receiver), Meetings::Side::message, mail.sender);
  if (mail.ends_sender) {
    complete(mail.sender.rank, mail.sender.node);
  }
  if (receiver) {
    complete(receiver->rank, receiver->node);
  }
}

void Programs::issue_receive(std::uint32_t rank, std::uint32_t index, const chakra::Node& node) {
  const std::int64_t to = population_.rank(rank);
  std::int64_t from = to + node.peer;
  if (const Quotient* quotient = population_.quotient(); quotient != nullptr) {
    from = quotient->colour_of()[static_cast<std::size_t>(from)];
  }
  const MessageKey key{static_cast<std::uint32_t>(from), rank,
                       static_cast<std::int32_t>(-node.peer), node.tag, node.size};
  if (options_.rendezvous) {
    const std::uint32_t letter = mail_.put({{rank, index}, key.from});
    put(to, to + node.peer, kReadyMessage, {letter, 0, 0, Event::Kind::post_ready});
  }
  if (mail_.arrived.meet(key, Meetings::Side::receiver, {rank, index})) {
    events_.push(events_.now(), {index, rank, 0, Event::Kind::node_done});
  }
}

/// The sender of a message, which is the receiver of its ready message, may go on.
void Programs::receiver_ready(std::uint32_t letter) {
  const Mail::Letter mail = mail_.take(letter);
  const chakra::Node& receive = node_of(mail.sender);
  const MessageKey key{mail.receiver, mail.sender.rank, static_cast<std::int32_t>(-receive.peer),
                       receive.tag, receive.size};
  if (const auto sender = mail_.ready.meet(key, Meetings::Side::receiver, mail.sender)) {
    send(*sender, node_of(*sender));
  }
}

}  // namespace orrery::astra
