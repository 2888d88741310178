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
class Programs {
 public:
  struct Runners {
    Collectives& native;
    CustomRuns& custom;
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

}  // namespace orrery::astra
