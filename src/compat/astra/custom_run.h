// SPDX-License-Identifier: Apache-2.0
/// Custom collectives of all ranks, step by step.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "compat/astra/communicators.h"
#include "compat/astra/custom.h"
#include "compat/astra/event.h"
#include "compat/astra/mailboxes.h"
#include "compat/astra/phase.h"
#include "compat/astra/planner.h"
#include "compat/astra/traffic.h"

namespace orrery::astra {

/// Runs the custom collectives that ranks issue; the loop uses it as it uses Collectives. Every
/// rank is simulated, position i is member i of the communicator.
///
/// Messages of one collective match by (source, destination, tag, size) in order. With rendezvous a
/// ready message of 8 KiB goes from the receiver to the sender when the send is due, whether or not
/// the receive is posted: waiting for it would stop programs that send before they receive.
/// Ignored: a shared bus (Bus), for which the endpoint delay stands.
template <class Network>
class CustomRuns {
 public:
  struct Finished {
    std::uint32_t rank;
    std::uint32_t node;
  };

  CustomRuns(const Communicators& communicators, const Planner& planner, Network& network,
             Events& events, bool rendezvous, Traffic* traffic)
      : communicators_(communicators),
        planner_(planner),
        network_(network),
        events_(events),
        rendezvous_(rendezvous),
        traffic_(traffic) {}

  /// Node `index` of `rank`, which is `node`, issues its next collective in the communicator of
  /// `membership`. Requires as many members as `collective` has programs.
  void issue(std::uint32_t rank, std::uint32_t index, Communicators::Membership& membership,
             const CustomCollective& collective, const chakra::Node& node);

  /// Events of the custom_ kinds. Subject: a collective, step: counted over all its programs; but
  /// of custom_begin and custom_done, which may be a rank's own, it names what is due.
  void handle(const Event& event);

  bool any_finished() const { return !finished_.empty(); }
  std::vector<Finished>& finished() { return finished_; }
  std::uint64_t messages() const { return messages_; }

 private:
  using Kind = CustomStep::Kind;
  static constexpr Bytes kReadyMessage{8192};

  struct Member {
    std::uint32_t rank = 0;
    std::uint32_t node = 0;
    std::uint32_t first_step = 0;  ///< counted over all programs
    std::uint32_t unfinished = 0;  ///< steps
    bool finished = false;
  };
  struct Step {
    std::uint32_t member = 0;
    std::uint32_t missing = 0;  ///< dependencies
    std::vector<std::uint32_t> next;
  };
  /// Source, destination, tag, bytes.
  using Address = std::tuple<std::int64_t, std::int64_t, std::uint32_t, std::int64_t>;
  struct Mailbox {
    std::uint32_t arrived = 0;           ///< messages without a receive
    std::deque<std::uint32_t> receives;  ///< steps without a message
  };
  struct Due {
    std::uint32_t run = 0;
    std::uint32_t what = 0;  ///< a member that starts, a step that is over
  };
  struct Run {
    const CustomCollective* collective = nullptr;
    Bytes buffer{0};
    Ends ends;
    std::uint32_t communicator = 0;
    std::uint32_t sequence = 0;
    std::vector<Member> members;
    std::vector<Step> steps;
    std::map<Address, Mailbox> mail;
    std::uint32_t unfinished = 0;  ///< members
  };

  std::uint32_t open(const Communicators::Membership& membership,
                     const CustomCollective& collective, const chakra::Node& node);
  const CustomStep& step_of(const Run& run, std::uint32_t step) const {
    const Step& at = run.steps[step];
    return run.collective->programs[at.member].steps[step - run.members[at.member].first_step];
  }
  void begin(std::uint32_t index, std::uint32_t member);
  void start(std::uint32_t index, std::uint32_t step);
  void complete(std::uint32_t index, std::uint32_t step);
  void transmit(std::uint32_t index, std::uint32_t step, bool ready_message);
  void delivered(std::uint32_t index, std::uint32_t step);
  void received(std::uint32_t index, std::uint32_t step);
  void finish(std::uint32_t index, std::uint32_t member);
  Event event_of(Event::Kind kind, const Due& due) { return {due_.put(due), 0, 0, kind}; }
  Address address(const Run& run, std::uint32_t step) const;

  const Communicators& communicators_;
  const Planner& planner_;
  Network& network_;
  Events& events_;
  bool rendezvous_;
  Traffic* traffic_;  ///< null: none
  std::deque<Run> runs_;
  std::vector<std::uint32_t> unused_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> open_;
  std::vector<Finished> finished_;
  Kept<Due> due_;
  std::uint64_t messages_ = 0;
};

template <class Network>
void CustomRuns<Network>::issue(std::uint32_t rank, std::uint32_t index,
                                Communicators::Membership& membership,
                                const CustomCollective& collective, const chakra::Node& node) {
  const auto known = open_.find({membership.communicator, membership.custom_sequence});
  const std::uint32_t at =
      known == open_.end() ? open(membership, collective, node) : known->second;
  ++membership.custom_sequence;
  Member& member = runs_[at].members[membership.local];
  member.rank = rank;
  member.node = index;
  const Time delay = collective.endpoint_delay ? runs_[at].ends.delay : Time(0);
  events_.push_own(rank, events_.now() + delay,
                   event_of(Event::Kind::custom_begin, {at, membership.local}));
}

template <class Network>
std::uint32_t CustomRuns<Network>::open(const Communicators::Membership& membership,
                                        const CustomCollective& collective,
                                        const chakra::Node& node) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(runs_.size()));
    runs_.emplace_back();
  }
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  Run run;
  run.collective = &collective;
  run.ends = planner_.ends(communicators_.shape_of(membership.communicator));
  run.communicator = membership.communicator;
  run.sequence = membership.custom_sequence;
  run.unfinished = static_cast<std::uint32_t>(collective.programs.size());
  const bool gathers = node.collective == chakra::CollectiveType::all_gather;
  run.buffer = node.size * (gathers ? static_cast<std::int64_t>(run.unfinished) : 1);
  for (const CustomProgram& program : collective.programs) {
    const auto member = static_cast<std::uint32_t>(run.members.size());
    const auto first = static_cast<std::uint32_t>(run.steps.size());
    run.members.push_back(
        {.first_step = first, .unfinished = static_cast<std::uint32_t>(program.steps.size())});
    for (const CustomStep& step : program.steps) {
      for (std::uint32_t i = 0; i < step.dependencies; ++i) {
        run.steps[first + program.dependencies[step.first_dependency + i]].next.push_back(
            static_cast<std::uint32_t>(run.steps.size()));
      }
      run.steps.push_back({member, step.dependencies, {}});
    }
  }
  runs_[index] = std::move(run);
  open_.emplace(std::pair{membership.communicator, membership.custom_sequence}, index);
  return index;
}

template <class Network>
void CustomRuns<Network>::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::custom_begin: {
      const Due due = due_.take(event.subject);
      return begin(due.run, due.what);
    }
    case Event::Kind::custom_ready:
      return transmit(event.subject, event.step, false);
    case Event::Kind::custom_sent:
      return delivered(event.subject, event.step);
    case Event::Kind::custom_done: {
      const Due due = due_.take(event.subject);
      return complete(due.run, due.what);
    }
    default:
      return;
  }
}

template <class Network>
void CustomRuns<Network>::begin(std::uint32_t index, std::uint32_t member) {
  const Member& at = runs_[index].members[member];
  if (at.unfinished == 0) {
    finish(index, member);
    return;
  }
  const auto steps =
      static_cast<std::uint32_t>(runs_[index].collective->programs[member].steps.size());
  for (std::uint32_t step = at.first_step; step < at.first_step + steps; ++step) {
    if (step_of(runs_[index], step).dependencies == 0) {
      start(index, step);
    }
  }
}

template <class Network>
void CustomRuns<Network>::start(std::uint32_t index, std::uint32_t step) {
  Run& run = runs_[index];
  const CustomStep& what = step_of(run, step);
  const std::uint32_t rank = run.members[run.steps[step].member].rank;
  switch (what.kind) {
    case Kind::send:
      return transmit(index, step, rendezvous_);
    case Kind::receive: {
      Mailbox& box = run.mail[address(run, step)];
      if (box.arrived == 0) {
        box.receives.push_back(step);
        return;
      }
      --box.arrived;
      return received(index, step);
    }
    case Kind::compute:
      return events_.push_own(rank, events_.now() + what.duration,
                              event_of(Event::Kind::custom_done, {index, step}));
    case Kind::reduce:
      return events_.push_own(
          rank,
          events_.now() +
              reduction_time(size_of(what, *run.collective, run.buffer), run.ends.memory),
          event_of(Event::Kind::custom_done, {index, step}));
  }
}

template <class Network>
typename CustomRuns<Network>::Address CustomRuns<Network>::address(const Run& run,
                                                                   std::uint32_t step) const {
  const CustomStep& what = step_of(run, step);
  const std::int64_t own = run.steps[step].member;
  const std::int64_t bytes = size_of(what, *run.collective, run.buffer).value();
  return what.kind == Kind::send ? Address{own, what.peer, what.tag, bytes}
                                 : Address{what.peer, own, what.tag, bytes};
}

/// The message of a send, or first the receiver's word that it is ready.
template <class Network>
void CustomRuns<Network>::transmit(std::uint32_t index, std::uint32_t step, bool ready_message) {
  const Run& run = runs_[index];
  const CustomStep& what = step_of(run, step);
  std::int64_t from = communicators_.rank_of(run.communicator, run.steps[step].member);
  std::int64_t to = communicators_.rank_of(run.communicator, static_cast<std::uint32_t>(what.peer));
  Bytes bytes = size_of(what, *run.collective, run.buffer);
  Event arrival{index, step, 0, Event::Kind::custom_sent};
  if (ready_message) {
    std::swap(from, to);
    bytes = kReadyMessage;
    arrival.kind = Event::Kind::custom_ready;
  } else {
    ++messages_;
  }
  if (traffic_ != nullptr) {
    traffic_->add(from, to, bytes);
  }
  if constexpr (Network::kStateless) {
    events_.push(events_.now() + network_.delay(from, to, bytes), arrival);
  } else {
    network_.send(events_, from, to, bytes, arrival);
  }
}

template <class Network>
void CustomRuns<Network>::delivered(std::uint32_t index, std::uint32_t step) {
  Mailbox& box = runs_[index].mail[address(runs_[index], step)];
  if (box.receives.empty()) {
    ++box.arrived;
  } else {
    const std::uint32_t receive = box.receives.front();
    box.receives.pop_front();
    received(index, receive);
  }
  complete(index, step);
}

template <class Network>
void CustomRuns<Network>::received(std::uint32_t index, std::uint32_t step) {
  const Time delay = runs_[index].collective->endpoint_delay ? runs_[index].ends.delay : Time(0);
  events_.push(events_.now() + delay, event_of(Event::Kind::custom_done, {index, step}));
}

template <class Network>
void CustomRuns<Network>::complete(std::uint32_t index, std::uint32_t step) {
  Run& run = runs_[index];
  const std::uint32_t member = run.steps[step].member;
  --run.members[member].unfinished;
  for (const std::uint32_t next : run.steps[step].next) {
    if (--run.steps[next].missing == 0) {
      start(index, next);
    }
  }
  if (run.members[member].unfinished == 0 && !run.members[member].finished) {
    finish(index, member);
  }
}

template <class Network>
void CustomRuns<Network>::finish(std::uint32_t index, std::uint32_t member) {
  Run& run = runs_[index];
  run.members[member].finished = true;
  finished_.push_back({run.members[member].rank, run.members[member].node});
  if (--run.unfinished == 0) {
    open_.erase({run.communicator, run.sequence});
    unused_.push_back(index);
  }
}

}  // namespace orrery::astra
