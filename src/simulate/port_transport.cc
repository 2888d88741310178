// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "base/lists.h"
#include "machine/copy_time.h"
#include "simulate/transport.h"

namespace orrery::simulate {
namespace {

std::optional<LaidPhases> laid_on(const Wiring& wiring, Binding& binding,
                                  const machine::Machine& machine, const topology::LinkMap& links) {
  if (!machine.wires.graph) {
    return std::nullopt;
  }
  return std::optional<LaidPhases>(std::in_place, wiring, binding, machine, links.links());
}

}  // namespace

PortTransport::PortTransport(const Wiring& wiring, Binding& binding,
                             const machine::Machine& machine, engine::EventQueue& queue)
    : Transport(kTraits),
      wiring_(wiring),
      binding_(binding),
      machine_(machine),
      queue_(queue),
      links_(machine.network),
      occupancy_(links_, wiring.ranks(), wiring.folded()),
      laid_(laid_on(wiring, binding, machine, links_)),
      network_(links_.links() + (laid_ ? laid_->links() : 0)),
      plans_(wiring.communicator_count()),
      routes_(wiring.routes().size()) {}

PortTransport::Plan PortTransport::make_plan(CommunicatorIndex number, int collective) {
  const Communicator& communicator = wiring_.communicator(number);
  const std::vector<std::int64_t> members =
      mapped(communicator.members, [&](const RankIndex member) { return wiring_.ranks()[member]; });
  Plan plan{
      .phases = &binding_.phases(collective, members.front()), .serialisation = {}, .links = {}};
  for (std::size_t p = 0; p < plan.phases->size(); ++p) {
    const collective::CollectivePhase& phase = (*plan.phases)[p];
    if (laid_) {
      LaidPhases::Phase laid = laid_->of(number, collective, p);
      plan.serialisation.push_back(laid.stretch == 1 ? phase.serialisation
                                                     : phase.serialisation * laid.stretch);
      plan.links.push_back(std::move(laid.links));
    } else {
      plan.serialisation.push_back(phase.serialisation);
      plan.links.push_back(occupancy_.phase(phase, members));
    }
  }
  return plan;
}

const PortTransport::Plan& PortTransport::plan(CommunicatorIndex number, int collective) {
  auto& plans = plans_[static_cast<std::size_t>(number)];
  const auto what = static_cast<std::size_t>(collective);
  if (what >= plans.size()) {
    plans.resize(binding_.collectives().size());
  }
  if (plans[what] == nullptr) {
    plans[what] = std::make_unique<Plan>(make_plan(number, collective));
  }
  return *plans[what];
}

const topology::Route& PortTransport::laid_route(const FlowRoute& route) {
  if (routes_[route.number] == nullptr) {
    routes_[route.number] = std::make_unique<topology::Route>(
        laid_ ? laid_->message(route.from, route.to) : occupancy_.message(route.from, route.to));
  }
  return *routes_[route.number];
}

void PortTransport::own(network::TransferId transfer, Activity id) {
  if (transfer >= owners_.size()) {
    owners_.resize(transfer + 1);
  }
  owners_[transfer] = id;
  under_[id].transfer = transfer;
}

void PortTransport::begin_collective(Activity id, CommunicatorIndex communicator, int collective) {
  if (id >= under_.size()) {
    under_.resize(id + 1);
  }
  under_[id] = {.plan = &plan(communicator, collective)};
  start_phase(id);
}

std::span<const topology::LinkUse> PortTransport::copy_links(RankIndex rank,
                                                             const BoundCollective& copy) {
  const auto port = copy.host > Time(0) || copy.direction == graph::CopyDirection::none
                        ? std::nullopt
                        : machine::copy_port(copy.tier, machine_);
  if (!port) {
    return {};
  }
  const std::int64_t device = wiring_.ranks()[rank];
  const topology::LinkId link = copy.direction == graph::CopyDirection::out
                                    ? links_.up(device, port->dimension)
                                    : links_.down(device, port->dimension);
  const topology::LinkUse use{link, topology::counted(port->share)};
  return {&copies_.emplace(std::pair(link, copy.tier), use).first->second, 1};
}

void PortTransport::begin_copy(Activity id, RankIndex rank, int collective) {
  if (id >= under_.size()) {
    under_.resize(id + 1);
  }
  under_[id] = {};
  const collective::CollectivePhase& phase = binding_.phases(collective, 0).front();
  own(network_.start(queue_.now(), phase.serialisation, phase.latency,
                     copy_links(rank, binding_.collective(collective))),
      id);
}

void PortTransport::start_phase(Activity id) {
  const Under& under = under_[id];
  own(network_.start(queue_.now(), under.plan->serialisation[under.phase],
                     (*under.plan->phases)[under.phase].latency, under.plan->links[under.phase]),
      id);
}

void PortTransport::begin_message(Activity id, const FlowRoute& route, Bytes bytes) {
  const topology::Route& taken = laid_route(route);
  const Time serialisation =
      from_seconds(static_cast<double>(bytes.value()) * taken.seconds_per_byte);
  if (id >= under_.size()) {
    under_.resize(id + 1);
  }
  under_[id] = {};
  own(network_.start(queue_.now(), serialisation, taken.latency + taken.overhead, taken.links), id);
}

std::optional<Activity> PortTransport::handle(const engine::EventQueue::Event& event) {
  if (!network_.handle(event)) {
    return std::nullopt;
  }
  const Activity id = owners_[event.subject];
  Under& under = under_[id];
  if (under.plan != nullptr && ++under.phase < under.plan->phases->size()) {
    start_phase(id);
    return std::nullopt;
  }
  return id;
}

void PortTransport::describe(const std::vector<Activity>& live,
                             std::vector<std::int64_t>& state) const {
  std::vector<network::TransferId> transfers;
  for (const Activity id : live) {
    transfers.push_back(under_[id].transfer);
    state.push_back(static_cast<std::int64_t>(under_[id].phase));
  }
  network_.describe(queue_.now(), transfers, state);
}

void PortTransport::count_users() {
  const auto use = [this](std::span<const topology::LinkUse> links, CommunicatorIndex user) {
    for (const topology::LinkUse& link : links) {
      users_.use(link.link, user);
    }
  };
  users_.count(
      links_.links() + (laid_ ? laid_->links() : 0), wiring_, binding_,
      [&](CommunicatorIndex number, int collective) {
        for (const std::vector<topology::LinkUse>& links : plan(number, collective).links) {
          use(links, number);
        }
      });
  for (const FlowRoute& route : wiring_.routes()) {
    use(laid_route(route).links, LinkUsers::kSeveral);
  }
  for (const BoundCollective& copy : binding_.collectives()) {
    for (RankIndex rank = 0; copy.is_copy && rank < wiring_.ranks().size(); ++rank) {
      use(copy_links(rank, copy), LinkUsers::kSeveral);
    }
  }
}

std::optional<Time> PortTransport::undisturbed(CommunicatorIndex communicator, int collective) {
  if (wiring_.communicator(communicator).members.size() > 1) {
    return std::nullopt;
  }
  if (!users_.counted()) {
    count_users();
  }
  const Plan& plan = this->plan(communicator, collective);
  Time total{0};
  for (std::size_t phase = 0; phase < plan.links.size(); ++phase) {
    const bool alone = std::all_of(plan.links[phase].begin(), plan.links[phase].end(),
                                   [&](const topology::LinkUse& use) {
                                     return users_.only(use.link, communicator) && use.weight <= 1;
                                   });
    if (!alone) {
      return std::nullopt;
    }
    total += plan.serialisation[phase] + (*plan.phases)[phase].latency;
  }
  return total;
}

}  // namespace orrery::simulate
