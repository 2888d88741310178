// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulate/rank_state.h"
#include "simulate/transport.h"
#include "simulate/waiting_line.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

/// Nodes that run, by number; a number is used again after its node is complete.
class RunningNodes {
 public:
  Running& operator[](RunningId id) { return nodes_[id]; }
  const Running& operator[](RunningId id) const { return nodes_[id]; }
  RunningId add(const Running& running) {
    if (free_.empty()) {
      nodes_.push_back(running);
      return static_cast<RunningId>(nodes_.size() - 1);
    }
    const RunningId id = free_.back();
    free_.pop_back();
    nodes_[id] = running;
    return id;
  }
  void remove(RunningId id) { free_.push_back(id); }
  /// Returns all places, those that are free too.
  std::vector<Running>& places() { return nodes_; }

 private:
  std::vector<Running> nodes_;
  std::vector<RunningId> free_;
};

/// A Rendezvous is where nodes of several ranks meet: members of a collective, sends and receives;
/// and it keeps what the transport moves until that is done.
class Rendezvous {
 public:
  /// The members that have come to the collective of a communicator.
  struct Meeting {
    std::vector<RunningId> arrived;
  };
  struct Mailbox {
    WaitingLine<std::uint32_t> arrived;  ///< not yet received: the receiver's spans (if recorded)
    WaitingLine<RunningId> waiting;      ///< receives
  };
  /// Moving is what the transport moves.
  struct Moving {
    bool message = false;
    std::vector<RunningId> nodes;  ///< a collective's members; a message's send; a copy
  };

  explicit Rendezvous(const Wiring& wiring)
      : wiring_(wiring),
        meetings_(wiring.communicator_count()),
        mailboxes_(wiring.mailbox_count()) {}

  /// Begins a copy, or the send of a message, by itself.
  Activity begin(RunningId node, bool message) {
    const Activity activity = new_activity(message);
    moving_[activity].nodes.push_back(node);
    return activity;
  }
  /// A member comes to its collective: whether it is the last.
  bool join(CommunicatorIndex communicator, RunningId member) {
    std::vector<RunningId>& arrived = meetings_[static_cast<std::size_t>(communicator)].arrived;
    arrived.push_back(member);
    return arrived.size() == wiring_.communicator(communicator).members.size();
  }
  /// All members have come.
  Activity begin_collective(CommunicatorIndex communicator) {
    const Activity activity = new_activity(false);
    moving_[activity].nodes.swap(meetings_[static_cast<std::size_t>(communicator)].arrived);
    return activity;
  }
  const std::vector<RunningId>& nodes(Activity activity) const { return moving_[activity].nodes; }
  /// Ends an activity and returns what it was, moved. `give_back` keeps its memory.
  Moving end(Activity activity) {
    free_.push_back(activity);
    return {moving_[activity].message, std::move(moving_[activity].nodes)};
  }
  void give_back(Activity activity, Moving moved) {
    moved.nodes.clear();
    moving_[activity].nodes.swap(moved.nodes);
  }
  Mailbox& mailbox(std::size_t number) { return mailboxes_[number]; }

  const std::vector<Meeting>& meetings() const { return meetings_; }
  const std::vector<Mailbox>& mailboxes() const { return mailboxes_; }
  const std::vector<Moving>& moving() const { return moving_; }

 private:
  Activity new_activity(bool message) {
    if (free_.empty()) {
      free_.push_back(static_cast<Activity>(moving_.size()));
      moving_.emplace_back();
    }
    const Activity activity = free_.back();
    free_.pop_back();
    moving_[activity].message = message;
    moving_[activity].nodes.clear();
    return activity;
  }

  const Wiring& wiring_;
  std::vector<Meeting> meetings_;  ///< by communicator
  std::vector<Mailbox> mailboxes_;
  std::vector<Moving> moving_;  ///< by Activity
  std::vector<Activity> free_;
};

}  // namespace orrery::simulate
