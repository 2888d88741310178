// SPDX-License-Identifier: Apache-2.0
/// Members of MessageTransport that time collectives which nothing can disturb; run.h includes it.
#pragma once

#include <algorithm>
#include <memory>

#include "simulate/message_moves.h"

namespace orrery::simulate {

/// Alone runs one collective at a time, from time 0.
template <class Links>
struct MessageTransport<Links>::Alone {
  Alone(const Wiring& wiring, Binding& binding, const machine::Machine& machine)
      : transport(wiring, binding, machine, queue) {}

  engine::EventQueue queue;
  MessageTransport transport;
};

template <class Links>
std::optional<Time> MessageTransport<Links>::undisturbed(CommunicatorIndex communicator,
                                                         int collective) {
  if constexpr (kLinks.repeats) {
    if (wiring_.communicator(communicator).members.size() > 1) {
      return std::nullopt;  // members come at times of their own
    }
    const auto [found, fresh] = times_alone_.try_emplace({communicator, collective});
    if (fresh && meets_nothing(communicator, collective)) {
      found->second = time_alone(communicator, collective);
    }
    return found->second;
  } else {
    return std::nullopt;
  }
}

template <class Links>
void MessageTransport<Links>::count_users() {
  users_.count(map_.links(), wiring_, binding_, [&](CommunicatorIndex number, int collective) {
    for (const PhasePlan& phase : plans_.of(number, collective)) {
      for (const topology::Hop& hop : phase.routes->hops()) {
        users_.use(hop.link, number);
      }
    }
  });
  for (const FlowRoute& route : wiring_.routes()) {
    for (const topology::Hop& hop : hops_of(route)) {
      users_.use(hop.link, LinkUsers::kSeveral);
    }
  }
}

template <class Links>
bool MessageTransport<Links>::meets_nothing(CommunicatorIndex communicator, int collective) {
  if (!users_.counted()) {
    count_users();
  }
  return std::ranges::all_of(plans_.of(communicator, collective), [&](const PhasePlan& phase) {
    return std::ranges::all_of(phase.routes->hops(), [&](const topology::Hop& hop) {
      return users_.only(hop.link, communicator);
    });
  });
}

template <class Links>
std::optional<Time> MessageTransport<Links>::time_alone(CommunicatorIndex communicator,
                                                        int collective) {
  if (!alone_) {
    alone_ = std::make_unique<Alone>(wiring_, binding_, machine_);
  }
  engine::EventQueue& queue = alone_->queue;
  MessageTransport& transport = alone_->transport;
  transport.begin_collective(0, communicator, collective);
  transport.settle();
  std::optional<Time> end;
  while (!queue.empty()) {
    if (transport.handle(queue.pop())) {
      end = queue.now();
    }
    if (queue.instant_is_over()) {
      transport.settle();
    }
  }
  queue.shift(Time(0) - queue.now());
  return end;
}

}  // namespace orrery::simulate
