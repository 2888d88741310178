// SPDX-License-Identifier: Apache-2.0
#include "collective/themis.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;
using Order = std::vector<int>;

/// 24 orders per chunk can be tried one by one, 120 hardly.
constexpr std::size_t kTryAllOrders = 4;

std::vector<Bytes> chunk_sizes(const ChunkedCollective& collective) {
  if (!collective.sizes.empty()) {
    return collective.sizes;
  }
  const std::int64_t bytes = std::max<std::int64_t>(1, collective.size.value());
  const std::int64_t chunks = std::min<std::int64_t>(collective.chunks, bytes);
  std::vector<Bytes> sizes(static_cast<std::size_t>(chunks));
  for (std::int64_t c = 0; c < chunks; ++c) {
    sizes[static_cast<std::size_t>(c)] = Bytes(bytes * (c + 1) / chunks - bytes * c / chunks);
  }
  return sizes;
}

Order natural_order(std::size_t dimensions) {
  Order order(dimensions);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Busy time by dimension if a chunk takes `path` too, and the latency of that path.
struct Load {
  std::vector<Time> busy;
  Time latency{0};

  Time busiest() const { return *std::max_element(busy.begin(), busy.end()); }
  void add(const ChunkPath& path, const PhaseModel& model) {
    latency = Time(0);
    for (const ChunkPhase& phase : path) {
      const PhaseCost cost = model(phase);
      busy[static_cast<std::size_t>(phase.dimension)] += cost.busy;
      latency += cost.latency;
    }
  }
};

class Greedy {
 public:
  Greedy(const ChunkedCollective& collective, const PhaseModel& model)
      : collective_(collective), model_(model) {
    load_.busy.resize(collective.members.size());
    Order order = natural_order(collective.members.size());
    if (order.size() <= kTryAllOrders) {
      do {
        orders_.push_back(order);
      } while (std::next_permutation(order.begin(), order.end()));
    }
  }

  ChunkPath next(Bytes size) {
    if (orders_.empty()) {
      return take(path(size, by_load()));
    }
    ChunkPath best;
    std::pair<Time, Time> least{Time::max(), Time::max()};
    for (const Order& order : orders_) {
      ChunkPath tried = path(size, order);
      Load load = load_;
      load.add(tried, model_);
      const std::pair<Time, Time> rank{load.busiest(), load.latency};
      if (rank < least) {
        least = rank;
        best = std::move(tried);
      }
    }
    return take(std::move(best));
  }

 private:
  ChunkPath path(Bytes size, const Order& order) const {
    return chunk_path(collective_.kind, size, order, collective_.members);
  }
  ChunkPath take(ChunkPath path) {
    load_.add(path, model_);
    return path;
  }
  Order by_load() const {
    Order order = natural_order(load_.busy.size());
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return load_.busy[static_cast<std::size_t>(a)] < load_.busy[static_cast<std::size_t>(b)];
    });
    return order;
  }

  const ChunkedCollective& collective_;
  const PhaseModel& model_;
  Load load_;
  std::vector<Order> orders_;  ///< empty: too many
};

std::vector<ChunkPath> paths_of(const ChunkedCollective& collective, ChunkScheduler scheduler,
                                const PhaseModel& model) {
  Greedy greedy(collective, model);
  Order order = natural_order(collective.members.size());
  std::vector<ChunkPath> paths;
  for (const Bytes size : chunk_sizes(collective)) {
    if (scheduler == ChunkScheduler::themis) {
      paths.push_back(greedy.next(size));
      continue;
    }
    paths.push_back(chunk_path(collective.kind, size, order, collective.members,
                               scheduler == ChunkScheduler::baseline));
    if (scheduler == ChunkScheduler::round_robin) {
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
  }
  return paths;
}

ChunkSchedule predict(const ChunkedCollective& collective, ChunkScheduler scheduler,
                      ChunkQueue queue, const PhaseModel& model) {
  ChunkSchedule schedule{
      .chunks = paths_of(collective, scheduler, model), .scheduler = scheduler, .predicted = {}};
  schedule.predicted =
      run_chunks(schedule.chunks, static_cast<int>(collective.members.size()), queue, model);
  return schedule;
}

}  // namespace

ChunkPath chunk_path(Kind kind, Bytes size, std::span<const int> order,
                     std::span<const std::int64_t> members, bool baseline) {
  ChunkPath path;
  Bytes inside = size;
  const bool shrinks = kind != Kind::all_to_all && !(baseline && kind == Kind::all_reduce);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool scatters = kind == Kind::all_reduce && shrinks && i + 1 < order.size();
    path.push_back({order[i], scatters ? Kind::reduce_scatter : kind, inside});
    if (shrinks) {
      inside = inside / members[static_cast<std::size_t>(order[i])];
    }
  }
  if (kind == Kind::all_gather) {
    std::reverse(path.begin(), path.end());
  }
  if (kind == Kind::all_reduce && shrinks) {
    for (std::size_t i = order.size() - 1; i-- > 0;) {
      path.push_back({order[i], Kind::all_gather, path[i].size});
    }
  }
  return path;
}

ChunkSchedule schedule_chunks(const ChunkedCollective& collective, ChunkScheduler scheduler,
                              ChunkQueue queue, const PhaseModel& model) {
  if (scheduler != ChunkScheduler::themis) {
    return predict(collective, scheduler, queue, model);
  }
  ChunkSchedule best = predict(collective, ChunkScheduler::natural, queue, model);
  if (collective.kind == Kind::all_to_all || collective.members.size() < 2) {
    return best;
  }
  for (const auto other : {ChunkScheduler::themis, ChunkScheduler::round_robin}) {
    ChunkSchedule tried = predict(collective, other, queue, model);
    if (tried.predicted.end < best.predicted.end) {
      best = std::move(tried);
    }
  }
  return best;
}

}  // namespace orrery::collective
