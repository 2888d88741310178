// SPDX-License-Identifier: Apache-2.0
/// Programs of all ranks, node by node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compat/astra/collectives.h"
#include "compat/astra/custom_run.h"
#include "compat/astra/mailboxes.h"
#include "compat/astra/memory_servers.h"
#include "compat/astra/node_time.h"
#include "compat/astra/ready_nodes.h"
#include "compat/astra/run.h"

namespace orrery::astra {

/// Starts nodes as their dependencies and slots allow, in ascending order:
///
///   comp, nodes of the CPU    end after node_time()
///   collectives               Collectives; those that the user brings CustomRuns
///   sends                     end when delivered; receives when the message is there
///   remote loads and stores   MemoryServers
///   metadata, invalid         end at once
///
/// With Quirk::one_communication a broadcast is replayed.
template <class Network>
class Programs {
 public:
  struct Runners {
    Collectives<Network>& native;
    CustomRuns<Network>& custom;
    Network& network;
    Events& events;
    Traffic* traffic;  ///< null: none
  };

  Programs(const RunInput& input, const RunOptions& options, const Population& population,
           Communicators& communicators, const Runners& runners)
      : input_(input),
        options_(options),
        population_(population),
        communicators_(communicators),
        collectives_(runners),
        network_(runners.network),
        events_(runners.events),
        memory_(input.memory, input.traces.ranks()),
        nodes_(input.traces.programs, programs_of(input, population),
               {input.system.replay_only, options.quirks[Quirk::one_communication]}),
        finish_(population.count(), Time(0)),
        computed_(population.count(), Time(0)),
        issued_(population.count(), 0),
        unsettled_(population.count(), false),
        memberships_(population.count() * communicators.kinds().size()) {
    for (std::uint32_t rank = 0; options.node_times && rank < population.count(); ++rank) {
      node_times_.emplace_back(input.traces.programs[program_of(rank)].nodes.size());
    }
  }

  void start() {
    for (std::uint32_t rank = 0; rank < population_.count(); ++rank) {
      issue_ready(rank);
    }
  }
  /// Handles events of the kinds that concern programs and their messages.
  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::node_done:
        return complete(event.step, event.subject);
      case Event::Kind::sent:
        return delivered(event.subject);
      case Event::Kind::post_ready:
        return receiver_ready(event.subject);
      default:
        return;
    }
  }
  void complete(std::uint32_t rank, std::uint32_t node) {
    finish_[rank] = events_.now();
    if (options_.node_times) {
      node_times_[rank][node].end = events_.now();
    }
    nodes_.complete(rank, node);
    if (!unsettled_[rank]) {
      unsettled_[rank] = true;
      settling_.push_back(rank);
    }
  }

  /// Nodes start when an instant is over, so that the order of what ends at it leaves no trace:
  /// ranks that issued their collectives in different orders would wait for each other for ever.
  bool unsettled() const { return !settling_.empty(); }
  void settle() {
    settled_.swap(settling_);
    for (std::uint32_t rank : settled_) {
      unsettled_[rank] = false;
      issue_ready(rank);
    }
    settled_.clear();
  }

  Time finish(std::uint32_t rank) const { return finish_[rank]; }
  Time computed(std::uint32_t rank) const { return computed_[rank]; }
  const ReadyNodes& nodes() const { return nodes_; }
  std::uint64_t messages() const { return messages_; }
  std::vector<std::vector<chakra::NodeTime>> take_node_times() { return std::move(node_times_); }

 private:
  static std::vector<std::uint32_t> programs_of(const RunInput& input,
                                                const Population& population) {
    std::vector<std::uint32_t> programs(population.count());
    for (std::uint32_t rank = 0; rank < population.count(); ++rank) {
      programs[rank] = input.traces.program_of[static_cast<std::size_t>(population.rank(rank))];
    }
    return programs;
  }
  std::uint32_t program_of(std::uint32_t rank) const {
    return input_.traces.program_of[static_cast<std::size_t>(population_.rank(rank))];
  }

  void issue_ready(std::uint32_t rank) {
    for (auto node = nodes_.next(rank); node.has_value(); node = nodes_.next(rank)) {
      issue(rank, *node);
    }
  }
  void issue(std::uint32_t rank, std::uint32_t index);
  void issue_collective(std::uint32_t rank, std::uint32_t index, const chakra::Node& node);
  void issue_send(std::uint32_t rank, std::uint32_t index, const chakra::Node& node);
  void issue_receive(std::uint32_t rank, std::uint32_t index, const chakra::Node& node);
  void done_at(Time when, std::uint32_t rank, std::uint32_t node) {
    events_.push_own(rank, when, {node, rank, 0, Event::Kind::node_done});
  }
  std::pair<std::int64_t, std::int64_t> priority(std::uint32_t rank, const chakra::Node& node);
  void put(std::int64_t from, std::int64_t to, Bytes bytes, Event arrival);
  const chakra::Node& node_of(const Post& post) const {
    return input_.traces.programs[program_of(post.rank)].nodes[post.node];
  }
  MessageKey key_of(const Post& sender, std::uint32_t receiver) const;
  void send(const Post& sender, const chakra::Node& node);
  void send_to_colours(const Post& sender, const chakra::Node& node);
  void delivered(std::uint32_t letter);
  void receiver_ready(std::uint32_t letter);

  const RunInput& input_;
  const RunOptions& options_;
  const Population& population_;
  Communicators& communicators_;
  Runners collectives_;
  Network& network_;
  Events& events_;
  MemoryServers memory_;
  ReadyNodes nodes_;
  Mail mail_;
  std::vector<Time> finish_;          ///< by rank
  std::vector<Time> computed_;        ///< by rank: sum of the GPU's compute
  std::vector<std::int64_t> issued_;  ///< by rank: collectives
  std::vector<bool> unsettled_;       ///< by rank
  std::vector<std::uint32_t> settling_;
  std::vector<std::uint32_t> settled_;  ///< of the present settle(); kept for its memory
  std::vector<Communicators::Membership> memberships_;  ///< by rank and kind
  std::uint64_t messages_ = 0;
  std::vector<std::vector<chakra::NodeTime>> node_times_;  ///< by rank; empty when not asked for
};

template <class Network>
void Programs<Network>::issue(std::uint32_t rank, std::uint32_t index) {
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
template <class Network>
std::pair<std::int64_t, std::int64_t> Programs<Network>::priority(std::uint32_t rank,
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

template <class Network>
void Programs<Network>::issue_collective(std::uint32_t rank, std::uint32_t index,
                                         const chakra::Node& node) {
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

template <class Network>
void Programs<Network>::put(std::int64_t from, std::int64_t to, Bytes bytes, Event arrival) {
  if (collectives_.traffic != nullptr) {
    collectives_.traffic->add(from, to, bytes);
  }
  if constexpr (Network::kStateless) {
    events_.push(events_.now() + network_.delay(from, to, bytes), arrival);
  } else {
    network_.send(events_, from, to, bytes, arrival);
  }
}

template <class Network>
MessageKey Programs<Network>::key_of(const Post& sender, std::uint32_t receiver) const {
  const chakra::Node& node = node_of(sender);
  return {sender.rank, receiver, static_cast<std::int32_t>(node.peer), node.tag, node.size};
}

template <class Network>
void Programs<Network>::issue_send(std::uint32_t rank, std::uint32_t index,
                                   const chakra::Node& node) {
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

template <class Network>
void Programs<Network>::send(const Post& sender, const chakra::Node& node) {
  const std::int64_t from = population_.rank(sender.rank);
  const std::uint32_t letter = mail_.put({sender, static_cast<std::uint32_t>(from + node.peer)});
  ++messages_;
  put(from, from + node.peer, node.size, {letter, 0, 0, Event::Kind::sent});
}

/// The message and those that equal senders send at the same time, as far as they are received.
template <class Network>
void Programs<Network>::send_to_colours(const Post& sender, const chakra::Node& node) {
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

template <class Network>
void Programs<Network>::delivered(std::uint32_t letter) {
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

template <class Network>
void Programs<Network>::issue_receive(std::uint32_t rank, std::uint32_t index,
                                      const chakra::Node& node) {
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
template <class Network>
void Programs<Network>::receiver_ready(std::uint32_t letter) {
  const Mail::Letter mail = mail_.take(letter);
  const chakra::Node& receive = node_of(mail.sender);
  const MessageKey key{mail.receiver, mail.sender.rank, static_cast<std::int32_t>(-receive.peer),
                       receive.tag, receive.size};
  if (const auto sender = mail_.ready.meet(key, Meetings::Side::receiver, mail.sender)) {
    send(*sender, node_of(*sender));
  }
}

}  // namespace orrery::astra
