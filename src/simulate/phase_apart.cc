// SPDX-License-Identifier: Apache-2.0
#include "simulate/phase_apart.h"

#include <algorithm>
#include <map>
#include <vector>

#include "engine/event_queue.h"
#include "machine/network/fair.h"

namespace orrery::simulate {
namespace {

/// A phase alone on its links.
class PhaseRun {
 public:
  PhaseRun(const PhasePlan& phase, std::size_t links) : phase_(phase), network_(links) {}

  Time run() {
    const std::vector<std::uint32_t>& waits = phase_.list->waits();
    for (std::uint32_t group = 0; group < phase_.groups; ++group) {
      waits_.insert(waits_.end(), waits.begin(), waits.end());
      for (std::uint32_t message = 0; message < waits.size(); ++message) {
        if (waits[message] == 0) {
          send({group, message});
        }
      }
    }
    Time end{0};
    network_.settle(queue_);
    while (!queue_.empty()) {
      const engine::EventQueue::Event event = queue_.pop();
      if (network_.handle(event, queue_)) {
        end = queue_.now();
        arrive(sent_[event.subject]);
      }
      if (queue_.instant_is_over()) {
        network_.settle(queue_);
      }
    }
    return end;
  }

 private:
  struct Sent {
    std::uint32_t group = 0;
    std::uint32_t message = 0;
  };

  void send(const Sent& what) {
    const network::TransferId id =
        network_.start(phase_.bytes(what.message), phase_.way(what.group, what.message), queue_);
    sent_.resize(std::max<std::size_t>(sent_.size(), id + 1));
    sent_[id] = what;
  }
  void arrive(const Sent& what) {
    for (const std::uint32_t next : phase_.list->unlocks(what.message)) {
      if (--waits_[what.group * phase_.list->size() + next] == 0) {
        send({what.group, next});
      }
    }
  }

  const PhasePlan& phase_;
  network::FairNetwork network_;
  engine::EventQueue queue_;
  std::vector<std::uint32_t> waits_;  ///< by group and message: arrivals that it waits for
  std::vector<Sent> sent_;            ///< by TransferId
};

}  // namespace

bool may_run_apart(const PhasePlan& phase) {
  constexpr Bytes kMost{4096};  // more is not looked at: no link is that fast
  if (phase.size > kMost) {
    return false;
  }
  std::map<topology::LinkId, Time> taken;
  for (std::uint32_t group = 0; group < phase.groups; ++group) {
    for (std::uint32_t message = 0; message < phase.list->size(); ++message) {
      for (const topology::Hop& hop : phase.way(group, message)) {
        Time& of_link = taken[hop.link];
        of_link += phase.bytes(message) / hop.bandwidth;
        if (of_link > kMostApart) {
          return false;
        }
      }
    }
  }
  return true;
}

Time time_apart(const PhasePlan& phase) {
  std::size_t links = 0;
  for (std::uint32_t group = 0; group < phase.groups; ++group) {
    for (std::uint32_t message = 0; message < phase.list->size(); ++message) {
      for (const topology::Hop& hop : phase.way(group, message)) {
        links = std::max<std::size_t>(links, hop.link + 1);
      }
    }
  }
  return PhaseRun(phase, links).run();
}

}  // namespace orrery::simulate
