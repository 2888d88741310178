// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "compat/astra/chunk_orders.h"

namespace orrery::astra {
namespace {

/// A group smaller than the world has this endpoint delay, whatever the system says.
constexpr Time kGroupDelay = 10_ns;

Operation operation_of(PhaseType type) {
  switch (type) {
    case PhaseType::all_gather:
      return Operation::all_gather;
    case PhaseType::reduce_scatter:
      return Operation::reduce_scatter;
    case PhaseType::all_to_all:
      return Operation::all_to_all;
    default:
      return Operation::all_reduce;
  }
}

bool chosen_by_list(PhaseType type) {
  return type == PhaseType::all_reduce || type == PhaseType::all_gather ||
         type == PhaseType::reduce_scatter || type == PhaseType::all_to_all;
}

bool is_one(Algorithm algorithm) {
  return algorithm == Algorithm::one_ring || algorithm == Algorithm::one_direct ||
         algorithm == Algorithm::one_halving_doubling;
}

std::vector<int> dimensions_in(const Shape& shape) {
  std::vector<int> order(shape.axes.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

Planner::Planner(const System& system, const Wires& wires, const RunOptions& options)
    : system_(system),
      wires_(wires),
      options_(options),
      themis_(wires, options.quirks),
      loads_(themis_.initial()) {}

bool Planner::one_ring(const Shape& shape, PhaseType type) const {
  const auto& list = system_.implementation[static_cast<std::size_t>(operation_of(type))];
  return !shape.logical && (!chosen_by_list(type) || (!list.empty() && is_one(list[0].algorithm)));
}

bool Planner::rooted(PhaseType type) {
  return !chosen_by_list(type) && type != PhaseType::barrier;
}

bool Planner::schedules_chunks(const Shape& shape, PhaseType type) const {
  return system_.inter_dimension != InterDimension::ascending && chosen_by_list(type) &&
         !shape.logical && !one_ring(shape, type);
}

std::int64_t Planner::chunk_size(const CollectiveRequest& request) const {
  std::int64_t chunk = request.size.value() / system_.splits;
  if (request.type != PhaseType::all_gather && chosen_by_list(request.type)) {
    chunk = std::max(chunk, wires_.npus());
  }
  return std::max<std::int64_t>(1, chunk);
}

bool Planner::has_state() const {
  return system_.inter_dimension == InterDimension::round_robin ||
         std::any_of(system_.implementation.begin(), system_.implementation.end(),
                     [](const std::vector<Implementation>& list) {
                       return std::any_of(list.begin(), list.end(), [](const Implementation& each) {
                         return each.algorithm == Algorithm::double_binary_tree;
                       });
                     });
}

const CollectivePlan& Planner::plan(const Shape& shape, const CollectiveRequest& request,
                                    PlannerState& state) {
  const bool variable = (schedules_chunks(shape, request.type) && !balances(shape, request.type)) ||
                        alternates(shape, request.type);
  const Key key{shape.id, static_cast<std::int64_t>(request.type), request.size.value()};
  if (const auto known = plans_.find(key); !variable && known != plans_.end()) {
    return *known->second;
  }
  auto made = std::make_unique<CollectivePlan>(make_plan(shape, request, state));
  if (variable) {
    const std::vector<const ChunkPlan*> chunks = made->chunks;
    return *variable_plans_.try_emplace(chunks, std::move(made)).first->second;
  }
  return *plans_.emplace(key, std::move(made)).first->second;
}

CollectivePlan Planner::make_plan(const Shape& shape, const CollectiveRequest& request,
                                  PlannerState& state) {
  const bool scheduled = schedules_chunks(shape, request.type);
  const std::int64_t nominal = chunk_size(request);
  // A chunk that was raised to the number of NPUs keeps the number of chunks.
  const bool raised = nominal > std::max<std::int64_t>(1, request.size.value() / system_.splits);
  const std::int64_t whole = raised ? nominal * system_.splits : request.size.value();
  const std::int64_t count = std::max<std::int64_t>(1, (whole + nominal - 1) / nominal);
  const bool rest_last = !options_.quirks[Quirk::full_last_chunk] ||
                         (scheduled && system_.inter_dimension == InterDimension::themis &&
                          request.type != PhaseType::all_to_all);
  CollectivePlan made;
  std::vector<Bytes> sizes(static_cast<std::size_t>(count), Bytes(nominal));
  if (rest_last) {
    sizes.back() = Bytes(whole - nominal * (count - 1));
  }
  const auto balanced = balances(shape, request.type) ? balanced_orders(shape, request.type, sizes)
                                                      : std::vector<std::vector<int>>();
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    const CollectiveRequest part{request.type, sizes[static_cast<std::size_t>(chunk)]};
    const std::vector<int> order = !balanced.empty() ? balanced[static_cast<std::size_t>(chunk)]
                                   : scheduled
                                       ? order_of(shape, request.type, Bytes(nominal), state)
                                       : dimensions_in(shape);
    made.chunks.push_back(&chunk_plan(shape, part, order, state));
    made.words = std::max(made.words, made.chunks.back()->words);
  }
  return made;
}

bool Planner::balances(const Shape& shape, PhaseType type) const {
  return schedules_chunks(shape, type) && system_.inter_dimension == InterDimension::themis &&
         !options_.quirks[Quirk::themis_link_bandwidth];
}

std::vector<std::vector<int>> Planner::balanced_orders(const Shape& shape, PhaseType whole,
                                                       const std::vector<Bytes>& chunks) const {
  ChunkOrdersRequest wanted{.type = whole, .chunks = chunks, .dimensions = {}, .members = {}};
  for (const int d : dimensions_in(shape)) {
    if (shape.axes[static_cast<std::size_t>(d)].size > 1) {
      wanted.dimensions.push_back(d);
      wanted.members.push_back(shape.axes[static_cast<std::size_t>(d)].size);
    }
  }
  const bool all_of_it = whole == PhaseType::all_reduce && !system_.local_bandwidth_aware;
  if (wanted.dimensions.size() < 2 || all_of_it) {
    // One order, or none in which anything shrinks.
    if (whole == PhaseType::all_gather) {
      std::reverse(wanted.dimensions.begin(), wanted.dimensions.end());
    }
    return {chunks.size(), wanted.dimensions};
  }
  wanted.queue = system_.intra_dimension == IntraDimension::smallest_chunk_first
                     ? collective::ChunkQueue::smallest_first
                     : collective::ChunkQueue::fifo;
  return chunk_orders(wanted, [&](PhaseType type, int place, Bytes size) {
    const int d = wanted.dimensions[static_cast<std::size_t>(place)];
    PhaseRequest alone_in_it;
    alone_in_it.type = type;
    alone_in_it.implementation = implementation(shape, whole, {type, d});
    alone_in_it.axis = shape.axes[static_cast<std::size_t>(d)];
    alone_in_it.size = std::max(size, Bytes(2));
    return alone(phase(shape, alone_in_it), wires_);
  });
}

std::vector<int> Planner::order_of(const Shape& shape, PhaseType type, Bytes chunk,
                                   PlannerState& state) {
  std::vector<int> order = dimensions_in(shape);
  if (system_.inter_dimension == InterDimension::themis) {
    return type == PhaseType::all_to_all
               ? order
               : themis_.next(loads_, shape, type == PhaseType::all_gather, chunk);
  }
  if (type == PhaseType::all_gather) {
    std::reverse(order.begin(), order.end());
  }
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(state.rotation),
              order.end());
  state.rotation = (state.rotation + 1) % order.size();
  return order;
}

std::vector<Planner::Leg> Planner::legs(const Shape& shape, PhaseType type,
                                        const std::vector<int>& order) const {
  if (one_ring(shape, type)) {
    return shape.members > 1 ? std::vector<Leg>{{type, -1}} : std::vector<Leg>{};
  }
  std::vector<int> used;
  for (int d : order) {
    if (shape.axes[static_cast<std::size_t>(d)].size > 1) {
      used.push_back(d);
    }
  }
  if (type == PhaseType::all_reduce && system_.local_bandwidth_aware) {
    return all_reduce_legs(used);
  }
  if (type == PhaseType::all_gather && system_.inter_dimension == InterDimension::ascending) {
    std::reverse(used.begin(), used.end());
  }
  std::vector<Leg> all;
  all.reserve(used.size());
  for (int d : used) {
    all.push_back({type, d});
  }
  return all;
}

std::vector<Planner::Leg> Planner::possible_legs(const Shape& shape, PhaseType type) const {
  std::vector<Leg> all = legs(shape, type, dimensions_in(shape));
  if (type == PhaseType::all_reduce && schedules_chunks(shape, type)) {
    for (int d : dimensions_in(shape)) {
      if (shape.axes[static_cast<std::size_t>(d)].size > 1) {
        all.push_back({PhaseType::reduce_scatter, d});
        all.push_back({PhaseType::all_reduce, d});
        all.push_back({PhaseType::all_gather, d});
      }
    }
  }
  return all;
}

std::vector<Planner::Leg> Planner::all_reduce_legs(const std::vector<int>& used) const {
  const bool themis = system_.inter_dimension == InterDimension::themis &&
                      options_.quirks[Quirk::themis_link_bandwidth];
  std::vector<Leg> all;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const bool last = i + 1 == used.size() && !themis;
    all.push_back({last ? PhaseType::all_reduce : PhaseType::reduce_scatter, used[i]});
  }
  for (std::size_t i = used.size() - (themis || used.empty() ? 0 : 1); i > 0; --i) {
    all.push_back({PhaseType::all_gather, used[i - 1]});
  }
  return all;
}

Operation Planner::list_of(PhaseType whole, const Leg& leg) const {
  const bool own = whole == PhaseType::all_reduce && !options_.quirks[Quirk::all_reduce_list];
  return operation_of(own ? leg.type : whole);
}

Implementation Planner::implementation(const Shape& shape, PhaseType whole, const Leg& leg) const {
  if (!chosen_by_list(whole)) {
    return {};
  }
  const auto& list = system_.implementation[static_cast<std::size_t>(list_of(whole, leg))];
  if (leg.axis < 0) {
    return list.empty() ? Implementation{} : list[0];
  }
  if (shape.logical) {
    return list.size() == 1 ? list[0] : Implementation{};
  }
  return list[static_cast<std::size_t>(leg.axis)];
}

Ends Planner::ends(const Shape& shape) const {
  const std::int64_t scaled = static_cast<std::int64_t>(
      static_cast<double>(system_.endpoint_delay.value()) / 1000 * options_.injection_scale);
  return {shape.group_ring ? kGroupDelay : Time(scaled * 1000), system_.local_memory_bandwidth};
}

Phase Planner::phase(const Shape& shape, const PhaseRequest& request) const {
  return make_phase(request, {wires_, ends(shape), options_.quirks});
}

QueueShare Planner::share(PhaseType whole, PhaseType phase) const {
  if (whole != PhaseType::all_reduce || !system_.local_bandwidth_aware) {
    return QueueShare::all;
  }
  return phase == PhaseType::all_gather ? QueueShare::second_half : QueueShare::first_half;
}

std::vector<PhaseRequest> Planner::requests(const Shape& shape, const CollectiveRequest& request,
                                            const std::vector<int>& order,
                                            PlannerState& state) const {
  std::vector<PhaseRequest> all;
  for (const Leg& leg : legs(shape, request.type, order)) {
    PhaseRequest next;
    next.type = leg.type;
    next.implementation = implementation(shape, request.type, leg);
    next.axis = leg.axis < 0 ? Axis{0, shape.members, 1, wires_.dimensions() == 1}
                             : shape.axes[static_cast<std::size_t>(leg.axis)];
    next.share = share(request.type, leg.type);
    next.group_ring = shape.group_ring;
    if (next.implementation.algorithm == Algorithm::double_binary_tree) {
      std::uint32_t& made =
          state.trees[{static_cast<int>(operation_of(request.type)), next.axis.queue}];
      next.second_tree = made++ % 2 == 1;
    }
    all.push_back(next);
  }
  return all;
}

const ChunkPlan& Planner::chunk_plan(const Shape& shape, const CollectiveRequest& request,
                                     const std::vector<int>& order, PlannerState& state) {
  std::vector<PhaseRequest> all = requests(shape, request, order, state);
  Key key{shape.id, static_cast<std::int64_t>(request.type), request.size.value()};
  key.insert(key.end(), order.begin(), order.end());
  for (const PhaseRequest& each : all) {
    key.push_back(each.second_tree ? 1 : 0);
  }
  std::unique_ptr<ChunkPlan>& known = chunk_plans_[key];
  if (known != nullptr) {
    return *known;
  }
  known = std::make_unique<ChunkPlan>();
  Bytes size = request.size;
  for (PhaseRequest& each : all) {
    each.size = size;
    known->phases.push_back(phase(shape, each));
    Phase& made = known->phases.back();
    made.first_word = known->words;
    known->words += made.words * (options_.rendezvous ? 2 : 1);
    size = made.out;
  }
  return *known;
}

std::optional<std::string> Planner::refuse(const Shape& shape, PhaseType type) const {
  for (const Leg& leg : possible_legs(shape, type)) {
    const std::int64_t ranks =
        leg.axis < 0 ? shape.members : shape.axes[static_cast<std::size_t>(leg.axis)].size;
    if (chosen_by_list(type) && leg.axis >= 0 && !shape.logical) {
      const Operation operation = list_of(type, leg);
      const auto& list = system_.implementation[static_cast<std::size_t>(operation)];
      if (list.size() != shape.axes.size()) {
        return fmt::format("{}-implementation has {} entries for {} dimensions: expected one each",
                           name_of(operation), list.size(), shape.axes.size());
      }
    }
    const Algorithm algorithm = implementation(shape, type, leg).algorithm;
    if (auto reason = unsupported(leg.type, algorithm, ranks, options_.quirks)) {
      return reason;
    }
    if (auto reason = too_many_messages(type, algorithm, ranks)) {
      return reason;
    }
  }
  return std::nullopt;
}

bool Planner::one_sender_per_link(const Shape& shape, PhaseType type) const {
  constexpr std::int64_t kAllNeighbours = 3;
  for (const Leg& leg : possible_legs(shape, type)) {
    const int d = leg.axis < 0 ? 0 : shape.axes[static_cast<std::size_t>(leg.axis)].queue;
    const Algorithm algorithm = implementation(shape, type, leg).algorithm;
    const bool neighbours = algorithm == Algorithm::ring || algorithm == Algorithm::one_ring;
    const bool one_hop = (neighbours && chosen_by_list(type)) || wires_.size(d) <= kAllNeighbours;
    if (wires_.dimension(d).building == Building::ring && !one_hop) {
      return false;
    }
  }
  return true;
}

bool Planner::alternates(const Shape& shape, PhaseType type) const {
  const std::vector<Leg> all = possible_legs(shape, type);
  return chosen_by_list(type) && std::any_of(all.begin(), all.end(), [&](const Leg& leg) {
           return implementation(shape, type, leg).algorithm == Algorithm::double_binary_tree;
         });
}

bool Planner::symmetric(const Shape& shape, PhaseType type) const {
  for (const Leg& leg : possible_legs(shape, type)) {
    const bool uniform = leg.axis < 0 ? wires_.dimensions() == 1
                                      : shape.axes[static_cast<std::size_t>(leg.axis)].uniform;
    if (!uniform || !(chosen_by_list(type) || type == PhaseType::barrier)) {
      return false;
    }
  }
  return !alternates(shape, type);
}

}  // namespace orrery::astra
