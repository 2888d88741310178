// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/custom_run.h"

namespace orrery::astra {

void CustomRuns::issue(std::uint32_t rank, std::uint32_t index,
                       Communicators::Membership& membership, const CustomCollective& collective,
                       const chakra::Node& node) {
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

std::uint32_t CustomRuns::open(const Communicators::Membership& membership,
                               const CustomCollective& collective, const chakra::Node& node) {
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

void CustomRuns::handle(const Event& event) {
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

void CustomRuns::begin(std::uint32_t index, std::uint32_t member) {
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

void CustomRuns::start(std::uint32_t index, std::uint32_t step) {
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

CustomRuns::Address CustomRuns::address(const Run& run, std::uint32_t step) const {
  const CustomStep& what = step_of(run, step);
  const std::int64_t own = run.steps[step].member;
  const std::int64_t bytes = size_of(what, *run.collective, run.buffer).value();
  return what.kind == Kind::send ? Address{own, what.peer, what.tag, bytes}
                                 : Address{what.peer, own, what.tag, bytes};
}

/// The message of a send, or first the receiver's word that it is ready.
void CustomRuns::transmit(std::uint32_t index, std::uint32_t step, bool ready_message) {
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
  network_.send(events_, from, to, bytes, arrival);
}

void CustomRuns::delivered(std::uint32_t index, std::uint32_t step) {
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

void CustomRuns::received(std::uint32_t index, std::uint32_t step) {
  const Time delay = runs_[index].collective->endpoint_delay ? runs_[index].ends.delay : Time(0);
  events_.push(events_.now() + delay, event_of(Event::Kind::custom_done, {index, step}));
}

void CustomRuns::complete(std::uint32_t index, std::uint32_t step) {
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

void CustomRuns::finish(std::uint32_t index, std::uint32_t member) {
  Run& run = runs_[index];
  run.members[member].finished = true;
  finished_.push_back({run.members[member].rank, run.members[member].node});
  if (--run.unfinished == 0) {
    open_.erase({run.communicator, run.sequence});
    unused_.push_back(index);
  }
}

}  // namespace orrery::astra
