// SPDX-License-Identifier: Apache-2.0
#include "simulate/message_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace orrery::simulate {
namespace {

/// A share of a buffer that is a whole number of bytes may come out a little larger.
constexpr double kRounding = 1 - 1e-12;

/// One extent of a communicator, and from one of its members to the next in the list of them all.
struct Place {
  collective::Extent extent;
  std::int64_t step = 1;
};

std::vector<Place> phase_places(const std::vector<collective::CollectivePhase>& phases) {
  std::vector<Place> places;
  for (const collective::CollectivePhase& phase : phases) {
    for (const collective::PortUse& port : phase.ports) {
      const bool known = std::any_of(places.begin(), places.end(), [&](const Place& place) {
        return place.extent == port.extent;
      });
      if (!known) {
        places.push_back({port.extent});
      }
    }
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.extent.dimension < b.extent.dimension; });
  std::int64_t step = 1;
  for (Place& place : places) {
    place.step = step;
    step *= place.extent.count;
  }
  return places;
}

}  // namespace

Bytes PhasePlan::bytes(std::uint32_t message) const {
  const double part = list->share(message) * static_cast<double>(size.value());
  return Bytes(static_cast<std::int64_t>(std::ceil(part * kRounding)));
}

std::vector<std::vector<std::int64_t>> groups_of(
    const collective::CollectivePhase& phase,
    const std::vector<collective::CollectivePhase>& phases,
    const std::vector<std::int64_t>& members) {
  const std::vector<Place> places = phase_places(phases);
  const auto runs_over = [&](const Place& place) {
    return std::any_of(
        phase.ports.begin(), phase.ports.end(),
        [&](const collective::PortUse& port) { return port.extent == place.extent; });
  };
  std::vector<std::int64_t> inside{0};   // numbers of the members of the first group
  std::vector<std::int64_t> outside{0};  // of the first members of all groups
  for (const Place& place : places) {
    std::vector<std::int64_t>& numbers = runs_over(place) ? inside : outside;
    const std::size_t before = numbers.size();
    for (std::int64_t i = 1; i < place.extent.count; ++i) {
      for (std::size_t n = 0; n < before; ++n) {
        numbers.push_back(numbers[n] + i * place.step);
      }
    }
  }
  assert(inside.size() * outside.size() == members.size() && "extents span the communicator");
  std::vector<std::vector<std::int64_t>> groups;
  for (const std::int64_t first : outside) {
    std::vector<std::int64_t>& group = groups.emplace_back();
    for (const std::int64_t number : inside) {
      group.push_back(members[static_cast<std::size_t>(first + number)]);
    }
  }
  return groups;
}

MessagePlans::Shape MessagePlans::shape_of(const collective::CollectivePhase& phase) {
  Shape shape{.kind = phase.kind, .algorithm = phase.algorithm, .ports = {}};
  for (const collective::PortUse& port : phase.ports) {
    shape.ports.insert(shape.ports.end(), {port.extent.dimension, port.extent.count,
                                           port.extent.stride, port.protocol});
  }
  return shape;
}

const collective::MessageList& MessagePlans::two_rounds(const collective::CollectivePhase& phase) {
  Shape shape = shape_of(phase);
  const auto known = two_rounds_.find(shape);
  return known != two_rounds_.end()
             ? known->second
             : two_rounds_.emplace(std::move(shape), collective::list_of(phase, machine_))
                   .first->second;
}

const collective::MessageList& MessagePlans::list(const collective::CollectivePhase& phase) {
  const collective::MessageList& brief = two_rounds(phase);
  if (brief.left_out() == 0 || rounds_ == Rounds::two) {
    return brief;
  }
  Shape shape = shape_of(phase);
  const auto known = lists_.find(shape);
  return known != lists_.end() ? known->second
                               : lists_.emplace(std::move(shape), brief.whole()).first->second;
}

/// A message stands for those that shifts of the folded digits map onto it (message_fold.h): its
/// sender is simulated, and it is the n-th of its pair as they are of theirs.
const collective::MessageList& MessagePlans::list(CommunicatorIndex communicator,
                                                  const collective::CollectivePhase& phase,
                                                  const Groups& groups) {
  Shape shape = shape_of(phase);
  shape.communicator = communicator;
  const auto known = folded_lists_.find(shape);
  if (known != folded_lists_.end()) {
    return known->second;
  }
  const collective::MessageList& all = two_rounds(phase);
  const std::vector<std::int64_t>& group = groups.front();
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> pair_of;
  for (const auto& [sender, receiver] : all.pairs()) {
    const auto number = static_cast<std::uint32_t>(pair_of.size());
    pair_of.emplace(std::pair(group[sender], group[receiver]), number);
  }
  std::vector<std::uint32_t> images;
  for (const auto& [sender, receiver] : all.pairs()) {
    std::int64_t from = group[sender];
    std::int64_t to = group[receiver];
    for (const graph::Digit& digit : wiring_.folded()) {
      const std::int64_t by = digit.of(from);
      const std::int64_t value = digit.of(to);
      from -= by * digit.stride;
      to += ((value - by + digit.size) % digit.size - value) * digit.stride;
    }
    images.push_back(pair_of.at({from, to}));
  }
  return folded_lists_.emplace(std::move(shape), all.folded(all.images(images)).whole())
      .first->second;
}

const RouteTable& MessagePlans::routes(CommunicatorIndex communicator,
                                       const collective::CollectivePhase& phase,
                                       const collective::MessageList& list, const Groups& groups,
                                       bool mirrored) {
  Shape shape = shape_of(phase);
  shape.communicator = communicator;
  shape.mirrored = mirrored;
  const auto [found, fresh] = routes_.try_emplace(std::move(shape));
  if (!fresh) {
    return found->second;
  }
  const collective::PhaseRoutes routes(phase, machine_);
  std::vector<topology::Hop> hops;
  for (const std::vector<std::int64_t>& group : groups) {
    for (const collective::MessageList::Pair& pair : list.pairs()) {
      hops.clear();
      routes.append(group[pair.sender], group[pair.receiver], hops);
      if (mirrored) {
        wiring_.mirrors().mirror(hops);
      }
      found->second.add(hops, group[pair.sender], group[pair.receiver]);
    }
  }
  return found->second;
}

Result<void> MessagePlans::check(const graph::Workload& workload, std::string_view network) {
  if (auto known = check_algorithms(workload, network); !known) {
    return known;
  }
  const double messages = sum_of(workload, [this](RankIndex rank, const BoundTemplate& shape) {
    return messages_of(rank, shape);
  });
  if (messages > kMostMessagesOfARun) {
    return fail(fmt::format(
        "network {}: about {:.1e} messages, at most {:.0e} end within hours; take fewer devices or "
        "microbatches, or network ports",
        network, messages, kMostMessagesOfARun));
  }
  return {};
}

double MessagePlans::share_sent(CommunicatorIndex communicator, int collective) const {
  if (rounds_ == Rounds::two) {
    return 0;
  }
  if (wiring_.folded().empty() || wiring_.mirrors().apart.contains(collective)) {
    return 1;
  }
  const Communicator& of = wiring_.communicator(communicator);
  const auto members =
      binding_.workload().group(of.group).members.group(first_member(communicator)).size();
  return static_cast<double>(of.members.size()) / static_cast<double>(members);
}

/// Checks the algorithms once for each group and collective: communicators by digits lie alike.
Result<void> MessagePlans::check_algorithms(const graph::Workload& workload,
                                            std::string_view network) {
  Error mistakes;
  for (std::size_t c = 0; c < wiring_.communicator_count(); ++c) {
    const auto number = static_cast<CommunicatorIndex>(c);
    const graph::GroupIndex index = wiring_.communicator(number).group;
    const graph::Group& group = workload.group(index);
    const bool repeats = c > 0 && wiring_.communicator(number - 1).group == index;
    for (std::size_t i = 0; i < binding_.collectives().size(); ++i) {
      const BoundCollective& collective = binding_.collectives()[i];
      if (collective.is_copy || collective.group != index ||
          (repeats && group.members.by_digits())) {
        continue;
      }
      const auto& phases = binding_.phases(static_cast<int>(i), first_member(number));
      if (auto ok =
              collective::check_messages(phases, machine_, share_sent(number, static_cast<int>(i)));
          !ok) {
        Mistake mistake = std::move(ok.error().mistakes.front());
        mistake.where = fmt::format("network {}", network);
        mistake.field = fmt::format("{} of group {}", name_of(collective.kind), group.name);
        mistake.expected += machine_.wires.graph ? ", or no topology" : ", or network ports";
        mistakes.add(std::move(mistake));
        break;
      }
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return {};
}

/// Returns what one member's part of the collective comes to in messages.
double MessagePlans::messages_of(CommunicatorIndex communicator, int collective) {
  double messages = 0;
  for (const collective::CollectivePhase& phase :
       binding_.phases(collective, first_member(communicator))) {
    double inside = 1;
    for (const collective::PortUse& port : phase.ports) {
      inside *= static_cast<double>(port.extent.count);
    }
    messages += two_rounds(phase).whole_size() / inside;
  }
  return messages;
}

double MessagePlans::messages_of(RankIndex rank, const BoundTemplate& shape) {
  double messages = 0;
  for (const BoundNode& node : shape.nodes) {
    messages += node.kind == graph::Node::Kind::send ? 1 : 0;
    if (node.kind == graph::Node::Kind::collective) {
      const CommunicatorIndex communicator = wiring_.communicator_of(rank, node.group);
      messages += communicator == Wiring::kNone ? 0 : messages_of(communicator, node.collective);
    }
  }
  return messages;
}

/// Returns the sum over a list of work; of other sources nobody knows. The ranks of a role count as
/// its first does.
double MessagePlans::sum_of(const graph::Workload& workload, const OfTemplate& of) const {
  const graph::IssueList* list = workload.source->list();
  if (list == nullptr) {
    return 0;
  }
  std::vector<double> ranks(workload.roles.size());
  std::vector<RankIndex> first(workload.roles.size());
  for (std::size_t i = wiring_.ranks().size(); i-- > 0;) {
    const auto role = static_cast<std::size_t>(workload.role_of(wiring_.ranks()[i]));
    first[role] = static_cast<RankIndex>(i);
    ++ranks[role];
  }
  const graph::Excerpt excerpt(*list, workload.roles.size(), 1);
  double sum = 0;
  for (std::size_t role = 0; role < ranks.size(); ++role) {
    const std::size_t program = workload.roles[role].program;
    std::map<int, double> issued;  // by template
    excerpt.for_each(static_cast<int>(role),
                     [&](const graph::Instance& instance, std::int64_t times) {
                       issued[instance.template_index] += static_cast<double>(times);
                     });
    for (const auto& [number, times] : issued) {
      sum += ranks[role] * times * of(first[role], binding_.shape(program, number));
    }
  }
  return sum;
}

/// Returns what one member's part of the collective comes to in cost.
double MessagePlans::cost_of(CommunicatorIndex communicator, int collective, const Cost& cost) {
  double sum = 0;
  for (const PhasePlan& phase : of(communicator, collective)) {
    for (std::uint32_t group = 0; group < phase.groups; ++group) {
      for (std::uint32_t message = 0; message < phase.list->size(); ++message) {
        sum += cost(phase.bytes(message), phase.route(group, message).size());
      }
    }
  }
  return sum / static_cast<double>(wiring_.communicator(communicator).members.size());
}

double MessagePlans::cost_of(const graph::Workload& workload, const Cost& cost,
                             const Links& links) {
  std::map<std::pair<CommunicatorIndex, int>, double> known;
  const auto of_collective = [&](RankIndex rank, const BoundNode& node) {
    const CommunicatorIndex communicator = wiring_.communicator_of(rank, node.group);
    if (communicator == Wiring::kNone) {
      return 0.0;
    }
    const auto [found, fresh] = known.try_emplace({communicator, node.collective});
    if (fresh) {
      found->second = cost_of(communicator, node.collective, cost);
    }
    return found->second;
  };
  return sum_of(workload, [&](RankIndex rank, const BoundTemplate& shape) {
    double sum = 0;
    for (const BoundNode& node : shape.nodes) {
      sum += node.kind == graph::Node::Kind::collective ? of_collective(rank, node)
             : node.kind == graph::Node::Kind::send
                 ? cost(node.bytes, links(wiring_.route_of(rank, node.flow)))
                 : 0;
    }
    return sum;
  });
}

PhasePlan MessagePlans::plan_of(CommunicatorIndex communicator,
                                const collective::CollectivePhase& phase, Groups groups,
                                bool apart) {
  const bool folds = !wiring_.folded().empty() && !apart;
  if (folds) {
    std::erase_if(groups, [&](const std::vector<std::int64_t>& ranks) {
      return std::ranges::none_of(ranks, [&](std::int64_t rank) {
        return std::ranges::binary_search(wiring_.ranks(), rank);
      });
    });
  }
  const collective::MessageList& list =
      folds ? this->list(communicator, phase, groups) : this->list(phase);
  return {.list = &list,
          .routes = &routes(communicator, phase, list, groups, !apart),
          .groups = static_cast<std::uint32_t>(groups.size()),
          .size = phase.size,
          .setup = collective::setup_of(phase, machine_)};
}

const std::vector<PhasePlan>& MessagePlans::of(CommunicatorIndex number, int collective) {
  auto& plans = plans_[static_cast<std::size_t>(number)];
  const auto what = static_cast<std::size_t>(collective);
  if (what >= plans.size()) {
    plans.resize(binding_.collectives().size());
  }
  if (plans[what] == nullptr) {
    const graph::Group& group = binding_.workload().group(wiring_.communicator(number).group);
    std::vector<std::int64_t> members = group.members.group(first_member(number));
    std::ranges::sort(members);
    const std::vector<collective::CollectivePhase>& phases =
        binding_.phases(collective, members.front());
    plans[what] = std::make_unique<std::vector<PhasePlan>>();
    for (const collective::CollectivePhase& phase : phases) {
      plans[what]->push_back(plan_of(number, phase, groups_of(phase, phases, members),
                                     wiring_.mirrors().apart.contains(collective)));
    }
  }
  return *plans[what];
}

}  // namespace orrery::simulate
