// SPDX-License-Identifier: Apache-2.0
/// Members of MessageTransport; message_alone.h includes it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "machine/topology/assign.h"
#include "simulate/laid_phases.h"
#include "simulate/message_transport.h"

namespace orrery::simulate {

/// Packets times the links that they pass: a few million a second.
inline constexpr double kMostPassesOfARun = 2e10;

template <class Links>
Links make_links(const topology::LinkMap& map, const machine::Machine& machine, bool shortcuts) {
  if constexpr (std::is_constructible_v<Links, std::size_t>) {
    return Links(map.links());
  } else if constexpr (requires { Links(map, machine.flit, shortcuts); }) {
    return Links(map, machine.flit, shortcuts);
  } else {
    network::PacketOptions options = machine.packet;
    options.seed = machine.wires.seed;
    return Links(map, options);
  }
}

template <class Links>
MessageTransport<Links>::MessageTransport(const Wiring& wiring, Binding& binding,
                                          const machine::Machine& machine,
                                          engine::EventQueue& queue, bool shortcuts)
    : Transport(kTraits),
      wiring_(wiring),
      binding_(binding),
      machine_(machine),
      queue_(queue),
      map_(laid_links(machine)),
      plans_(wiring, binding, machine),
      links_(make_links<Links>(map_, machine, shortcuts)),
      routes_(wiring.routes().size()) {}

template <class Links>
bool MessageTransport<Links>::change_link(topology::LinkId link, double share) {
  return faults_ && faults_->change(link, share);
}

template <class Links>
void MessageTransport<Links>::expect_faults() {
  if constexpr (kLinks.links_change) {
    const topology::Wires& wires = machine_.wires;
    if (wires.graph) {
      faults_.emplace(links_, *wires.graph, wires.routing, wires.seed);
    } else {
      faults_.emplace(links_, map_.links());
    }
  }
}

template <class Links>
network::TransferId MessageTransport<Links>::start(Bytes bytes,
                                                   std::span<const topology::Hop> route,
                                                   RankPair ends) {
  const std::span<const topology::Hop> taken = faults_ ? faults_->route(route) : route;
  const network::TransferId id = [&] {
    const topology::FlowEnds between{static_cast<std::int32_t>(ends.source),
                                     static_cast<std::int32_t>(ends.target), bytes};
    if constexpr (requires { links_.start(between, taken, queue_); }) {
      return links_.start(between, taken, queue_);
    } else {
      return links_.start(bytes, taken, queue_);
    }
  }();
  if (faults_) {
    faults_->began(id, route, taken);
  }
  if (record_) {
    message_span_.resize(std::max<std::size_t>(message_span_.size(), id + 1));
    message_span_[id] = messages_.size();
    messages_.push_back({ends.source, ends.target, bytes, queue_.now(), Time::max()});
  }
  return id;
}

template <class Links>
Result<void> MessageTransport<Links>::count_work(const graph::Workload& workload,
                                                 std::string_view network) {
  if constexpr (kLinks.by_byte) {
    work_ = plans_.cost_of(
        workload, [&](Bytes bytes, std::size_t links) { return links_.passes(bytes, links); },
        [&](const FlowRoute& route) { return hops_of(route).size(); });
    if (work_ > kMostPassesOfARun) {
      return fail(fmt::format(
          "network {}: packets pass links about {:.1e} times, at most {:.0e} end within hours; "
          "take fewer devices or microbatches, a larger packet.wire in the machine file, or "
          "network flow",
          network, work_, kMostPassesOfARun));
    }
  }
  return {};
}

template <class Links>
void MessageTransport<Links>::settle() {
  links_.settle(queue_);
  if constexpr (kLinks.by_byte) {
    constexpr double kTellEvery = 1e5;  // passes
    if (progress_ && work_ > 0 && links_.passed() > told_at_ + kTellEvery) {
      told_at_ = links_.passed();
      progress_(std::min(1.0, told_at_ / work_), links_.events());
    }
  }
}

template <class Links>
std::vector<std::string> MessageTransport<Links>::stalls() const {
  if constexpr (requires { links_.stall(); }) {
    if (auto stall = links_.stall()) {
      return {std::move(*stall)};
    }
  }
  return {};
}

template <class Links>
typename MessageTransport<Links>::Under& MessageTransport<Links>::under(Activity id) {
  if (id >= under_.size()) {
    under_.resize(id + 1);
  }
  return under_[id];
}

template <class Links>
void MessageTransport<Links>::begin_collective(Activity id, CommunicatorIndex communicator,
                                               int collective) {
  Under& begun = under(id);
  begun.phases = &plans_.of(communicator, collective);
  begun.phase = 0;
  begin_phase(id);
}

template <class Links>
void MessageTransport<Links>::begin_copy(Activity id, RankIndex /*rank*/, int collective) {
  const collective::CollectivePhase& phase = binding_.phases(collective, 0).front();
  queue_.push(queue_.now() + phase.serialisation + phase.latency, kCopied, id);
}

template <class Links>
void MessageTransport<Links>::begin_message(Activity id, const FlowRoute& route, Bytes bytes) {
  own(start(bytes, hops_of(route), {route.from, route.to}), {.activity = id});
}

/// Returns the links of a route; what the sender's software costs is part of the last latency: it
/// occupies nothing.
template <class Links>
std::span<const topology::Hop> MessageTransport<Links>::hops_of(const FlowRoute& route) {
  std::vector<topology::Hop>& hops = routes_[route.number];
  if (hops.empty() && route.from != route.to) {
    map_.route(route.from, route.to, hops);
    const auto outermost = static_cast<std::size_t>(map_.outermost(route.from, route.to));
    hops.back().latency += map_.dimensions()[outermost].message_overhead;
    wiring_.mirrors().mirror(hops);
  }
  return hops;
}

template <class Links>
void MessageTransport<Links>::begin_phase(Activity id) {
  under_[id].waits.clear();
  const Time setup = phase_of(under_[id]).setup;
  if (setup > Time(0)) {
    queue_.push(queue_.now() + setup, kBegin, id);
  } else {
    send_first(id);
  }
}

template <class Links>
void MessageTransport<Links>::send_first(Activity id) {
  Under& begun = under_[id];
  const PhasePlan& phase = phase_of(begun);
  const std::vector<std::uint32_t>& waits = phase.list->waits();
  begun.left = phase.messages();
  for (std::uint32_t group = 0; group < phase.groups; ++group) {
    begun.waits.insert(begun.waits.end(), waits.begin(), waits.end());
  }
  const bool holds = kLinks.holds && phase.list->in_order();
  for (std::size_t i = 0; holds && i < begun.waits.size(); ++i) {
    const std::size_t first = i / waits.size() * waits.size();  // of the group
    const std::uint32_t next = phase.list->next(static_cast<std::uint32_t>(i - first));
    if (next != collective::MessageList::kNone) {
      ++begun.waits[first + next];
    }
  }
  for (std::uint32_t group = 0; group < phase.groups; ++group) {
    for (std::uint32_t message = 0; message < waits.size(); ++message) {
      if (begun.waits[group * waits.size() + message] == 0) {
        send({id, group, message});
      }
    }
  }
}

template <class Links>
void MessageTransport<Links>::send(const Owner& owner) {
  const PhasePlan& phase = phase_of(under_[owner.activity]);
  own(start(phase.bytes(owner.message), phase.route(owner.group, owner.message),
            phase.ends(owner.group, owner.message)),
      owner);
}

template <class Links>
void MessageTransport<Links>::own(network::TransferId transfer, const Owner& owner) {
  if (transfer >= owners_.size()) {
    owners_.resize(transfer + 1);
  }
  owners_[transfer] = owner;
  owners_[transfer].moves = true;
}

template <class Links>
std::optional<Activity> MessageTransport<Links>::handle(const engine::EventQueue::Event& event) {
  if (event.kind == kCopied) {
    return event.subject;
  }
  if (event.kind == kBegin) {
    send_first(event.subject);
    return std::nullopt;
  }
  const bool leaving = leaves(event);
  const bool arrives = links_.handle(event, queue_);
  if (leaving) {
    send_next(Owner(owners_[event.subject]));
  }
  if (!arrives) {
    return std::nullopt;
  }
  if (record_) {
    messages_[message_span_[event.subject]].end = queue_.now();
  }
  owners_[event.subject].moves = false;
  const Owner owner = owners_[event.subject];
  if (owner.message == kWhole || arrive(owner)) {
    return owner.activity;
  }
  return std::nullopt;
}

template <class Links>
bool MessageTransport<Links>::leaves(const engine::EventQueue::Event& event) const {
  if constexpr (kLinks.tells_leaving) {
    return event.kind == Links::kDrained && !links_.is_stale(event);
  } else {
    return false;
  }
}

/// Sends the next message of the pair of ranks that the message goes between.
template <class Links>
void MessageTransport<Links>::send_next(const Owner& owner) {
  if (owner.message == kWhole) {
    return;
  }
  Under& under = under_[owner.activity];
  const collective::MessageList& list = *phase_of(under).list;
  const std::uint32_t next = list.next(owner.message);
  if (next != list.kNone && --under.waits[owner.group * list.size() + next] == 0) {
    send({owner.activity, owner.group, next});
  }
}

/// Sends what waited only for this. True when it was the last of the collective.
template <class Links>
bool MessageTransport<Links>::arrive(const Owner& owner) {
  Under& under = under_[owner.activity];
  const collective::MessageList& list = *phase_of(under).list;
  if (kLinks.holds &&
      (!kLinks.tells_leaving || phase_of(under).route(owner.group, owner.message).empty())) {
    send_next(owner);
  }
  std::uint32_t* const waits = under.waits.data() + owner.group * list.size();
  for (const std::uint32_t next : list.unlocks(owner.message)) {
    if (--waits[next] == 0) {
      send({owner.activity, owner.group, next});
    }
  }
  return --under.left == 0 && end_phase(owner.activity);
}

template <class Links>
bool MessageTransport<Links>::end_phase(Activity id) {
  Under& under = under_[id];
  if (++under.phase == under.phases->size()) {
    under.phases = nullptr;
    return true;
  }
  begin_phase(id);
  return false;
}

template <class Links>
void MessageTransport<Links>::describe(const std::vector<Activity>& live,
                                       std::vector<std::int64_t>& state) const {
  std::vector<std::size_t> place;  // of activities in `live`
  for (std::size_t i = 0; i < live.size(); ++i) {
    place.resize(std::max<std::size_t>(place.size(), live[i] + 1));
    place[live[i]] = i;
  }
  std::vector<network::TransferId> moving;
  for (network::TransferId id = 0; id < owners_.size(); ++id) {
    if (owners_[id].moves) {
      moving.push_back(id);
    }
  }
  const auto order = [&](network::TransferId id) {
    const Owner& owner = owners_[id];
    return std::tuple(place[owner.activity], owner.group, owner.message);
  };
  std::ranges::sort(moving, {}, order);
  for (const network::TransferId id : moving) {
    const auto [activity, group, message] = order(id);
    state.insert(state.end(), {static_cast<std::int64_t>(activity), group, message});
  }
  for (const Activity id : live) {
    if (id < under_.size() && under_[id].phases != nullptr) {
      state.push_back(static_cast<std::int64_t>(under_[id].phase));
      state.push_back(static_cast<std::int64_t>(under_[id].left));
      state.insert(state.end(), under_[id].waits.begin(), under_[id].waits.end());
    }
  }
  if constexpr (kLinks.repeats) {
    links_.describe(queue_.now(), moving, state);
  }
}

template <class Links>
std::optional<Activity> MessageTransport<Links>::activity_of(
    const engine::EventQueue::Event& event) const {
  if (event.kind == kBegin || event.kind == kCopied) {
    return event.subject;
  }
  if constexpr (kLinks.repeats) {
    return links_.is_stale(event) ? std::nullopt : std::optional(owners_[event.subject].activity);
  }
  return std::nullopt;
}

}  // namespace orrery::simulate
