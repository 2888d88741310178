// SPDX-License-Identifier: Apache-2.0
#include "collective/chunked.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collective/price.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;

/// Phase times by plan_collective; chunks of one size come back often.
PhaseModel phase_model(const std::vector<Extent>& extents, const machine::Machine& machine) {
  using Key = std::tuple<int, Kind, Bytes>;
  return [&extents, &machine, known = std::map<Key, PhaseCost>()](const ChunkPhase& phase) mutable {
    const auto [found, fresh] = known.try_emplace({phase.dimension, phase.kind, phase.size});
    if (fresh) {
      const Extent& extent = extents[static_cast<std::size_t>(phase.dimension)];
      const auto phases = plan_collective(phase.kind, phase.size, {extent},
                                          CollectiveAlgorithm::automatic, machine);
      for (const CollectivePhase& part : phases) {
        found->second.busy += part.serialisation;
        found->second.latency += part.latency;
      }
    }
    return found->second;
  };
}

}  // namespace

ChunkSchedule chunk_schedule(Kind kind, Bytes size, const std::vector<Extent>& extents,
                             const ChunkOptions& options, const machine::Machine& machine) {
  ChunkedCollective collective{
      .kind = kind, .size = size, .chunks = options.chunks, .members = {}, .sizes = {}};
  for (const Extent& extent : extents) {
    collective.members.push_back(extent.count);
  }
  const PhaseModel model = phase_model(extents, machine);
  const bool natural = options.scheduler == ChunkScheduler::natural;
  ChunkSchedule best{.chunks = {}, .predicted = {.end = Time::max(), .busy = {}, .chunk_end = {}}};
  const auto try_queue = [&](ChunkQueue queue) {
    ChunkSchedule tried = schedule_chunks(collective, options.scheduler, queue, model);
    if (tried.predicted.end < best.predicted.end) {
      best = std::move(tried);
    }
  };
  const auto try_queues = [&] {
    try_queue(ChunkQueue::fifo);
    if (!natural) {
      try_queue(ChunkQueue::smallest_first);
    }
  };
  try_queues();
  while (options.or_fewer && collective.chunks > 1) {
    collective.chunks = std::max(1, collective.chunks / 4);
    try_queues();
  }
  return best;
}

std::vector<CollectivePhase> plan_chunked(Kind kind, Bytes size, const std::vector<Extent>& extents,
                                          const ChunkOptions& options,
                                          const machine::Machine& machine) {
  if (!reorders(kind) || extents.size() < 2 || size <= Bytes(0)) {
    return plan_collective(kind, size, extents, CollectiveAlgorithm::automatic, machine);
  }
  const ChunkSchedule schedule = chunk_schedule(kind, size, extents, options, machine);
  CollectivePhase phase{.kind = kind,
                        .algorithm = options.scheduler == ChunkScheduler::themis
                                         ? CollectiveAlgorithm::themis
                                         : CollectiveAlgorithm::hierarchical,
                        .protocol = -1,
                        .size = size,
                        .latency = Time(0),
                        .serialisation = Time(0),
                        .ports = {}};
  std::vector<LinkSeconds> busy;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Time own = schedule.predicted.busy[i];
    phase.ports.push_back({.extent = extents[i], .serialisation = own, .port = own});
    busy.push_back({.own = to_seconds(own), .port = to_seconds(own)});
  }
  phase.serialisation = from_seconds(busiest_link(kind, busy, extents, machine));
  phase.latency = std::max(Time(0), schedule.predicted.end - phase.serialisation);
  return {phase};
}

}  // namespace orrery::collective
