// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/chunk_orders.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace orrery::astra {
namespace {

graph::CollectiveKind kind_of(PhaseType type) {
  switch (type) {
    case PhaseType::all_gather:
      return graph::CollectiveKind::all_gather;
    case PhaseType::reduce_scatter:
      return graph::CollectiveKind::reduce_scatter;
    case PhaseType::all_to_all:
      return graph::CollectiveKind::all_to_all;
    default:
      return graph::CollectiveKind::all_reduce;
  }
}

PhaseType type_of(graph::CollectiveKind kind) {
  switch (kind) {
    case graph::CollectiveKind::all_gather:
      return PhaseType::all_gather;
    case graph::CollectiveKind::reduce_scatter:
      return PhaseType::reduce_scatter;
    case graph::CollectiveKind::all_to_all:
      return PhaseType::all_to_all;
    default:
      return PhaseType::all_reduce;
  }
}

Time tree_time(const Phase& phase, const Wires& wires) {
  const int d = phase.axis.queue;
  const std::int64_t hops = wires.hops(d, 0, 1);
  const Time step = wires.along(d, hops, phase.steps[0].bytes) + phase.delay;
  const auto levels = std::bit_width(static_cast<std::uint64_t>(phase.axis.size - 1));
  Time time = phase.delay;
  if (phase.up) {
    time += (step + (phase.reductions.empty() ? Time(0) : phase.reductions[0])) * levels;
  }
  return phase.down ? time + step * levels : time;
}

}  // namespace

Time alone(const Phase& phase, const Wires& wires) {
  if (!phase.sequence()) {
    return tree_time(phase, wires);
  }
  Time time = phase.delay;
  const std::uint32_t round = std::max<std::uint32_t>(1, phase.window);
  for (std::uint32_t message = 0; message < phase.messages; message += round) {
    const Step& step = phase.step(message);
    const std::int64_t to = step.distance % wires.size(phase.axis.queue);
    const std::int64_t hops = wires.hops(phase.axis.queue, 0, to);
    time += wires.along(phase.axis.queue, hops, step.bytes);
    time += phase.delay + phase.reduction(message);
  }
  return time;
}

std::vector<std::vector<int>> chunk_orders(
    const ChunkOrdersRequest& request,
    const std::function<Time(PhaseType type, int place, Bytes size)>& time) {
  collective::ChunkedCollective collective{
      .kind = kind_of(request.type), .members = request.members, .sizes = request.chunks};
  if (request.type == PhaseType::all_gather) {
    for (Bytes& size : collective.sizes) {
      for (const std::int64_t members : request.members) {
        size = size * members;
      }
    }
  }
  std::map<std::tuple<int, graph::CollectiveKind, Bytes>, Time> known;
  const auto model = [&](const collective::ChunkPhase& phase) {
    const auto [found, fresh] = known.try_emplace({phase.dimension, phase.kind, phase.size});
    if (fresh) {
      const std::int64_t members = request.members[static_cast<std::size_t>(phase.dimension)];
      const bool gathers = phase.kind == graph::CollectiveKind::all_gather;
      const Bytes in = std::max(Bytes(1), gathers ? phase.size / members : phase.size);
      found->second = time(type_of(phase.kind), phase.dimension, in);
    }
    return collective::PhaseCost{found->second, Time(0)};
  };
  const collective::ChunkSchedule schedule = collective::schedule_chunks(
      collective, collective::ChunkScheduler::themis, request.queue, model);
  std::vector<std::vector<int>> orders;
  for (const collective::ChunkPath& path : schedule.chunks) {
    orders.emplace_back();
    for (std::size_t i = 0; i < request.dimensions.size(); ++i) {
      orders.back().push_back(request.dimensions[static_cast<std::size_t>(path[i].dimension)]);
    }
  }
  return orders;
}

}  // namespace orrery::astra
