// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_overlap.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery::spmd {
namespace {

/// Weights of the streams, kernels first, then activations and parameters of each group.
using ByStream = std::array<double, 1 + 2 * kMeshGroups>;

ByStream work_of(const MeshCost& cost) {
  ByStream work{to_seconds(cost.compute + cost.optimizer)};
  for (std::size_t group = 0; group < kMeshGroups; ++group) {
    work[1 + group] = to_seconds(cost.communication[group] - cost.of_parameters[group]);
    work[1 + kMeshGroups + group] = to_seconds(cost.of_parameters[group]);
  }
  return work;
}

MeshWeights weights_of(const ByStream& streams) {
  MeshWeights weights;
  weights.compute = streams[0];
  for (std::size_t group = 0; group < kMeshGroups; ++group) {
    weights.activations[group] = streams[1 + group];
    weights.parameters[group] = streams[1 + kMeshGroups + group];
  }
  return weights;
}

class OverlapSearch {
 public:
  OverlapSearch(const OperatorGraph& graph, const MeshPrices& prices, const MeshJudge& judge,
                std::optional<Bytes> limit, const MeshOptions& options)
      : graph_(graph), prices_(prices), judge_(judge), limit_(limit), options_(options) {}

  Result<MeshOverlapped> run() {
    constexpr std::array kCounted{1.0, 0.5, 0.1, 0.0};
    for (const double share : kCounted) {
      MeshWeights weights;
      weights.parameters = MeshWeights::alike(share);
      if (const auto point = look(weights, false); !point) {
        return fail(point.error());
      }
    }
    if (const auto bounded = bound(); !bounded) {
      return fail(bounded.error());
    }
    best_.bound = std::min(best_.bound, best_.time);
    return std::move(best_);
  }

 private:
  /// Searches by these weights and judges what is found, if it is new. Returns its work, and bounds
  /// the weighted sum.
  Result<std::pair<ByStream, Time>> look(const MeshWeights& weights, bool with_bound) {
    MeshOptions options = options_;
    options.weights = weights;
    options.with_bound = with_bound;
    auto point = search_mesh_within(graph_, prices_, limit_.value_or(Bytes::max()), options);
    if (!point) {
      return fail(std::move(point.error()));
    }
    const auto cost = replay(graph_, point->solution.strategy, prices_);
    if (!cost) {
      return fail(cost.error());
    }
    if (std::ranges::find(judged_, point->solution.strategy) == judged_.end()) {
      judged_.push_back(point->solution.strategy);
      const auto time = judge_(point->solution.strategy);
      if (!time) {
        return fail(time.error());
      }
      ++best_.candidates;
      if (best_.candidates == 1 || *time < best_.time) {
        best_.time = *time;
        best_.solution = std::move(point->solution);
      }
    }
    return std::pair(work_of(*cost), point->bound);
  }

  /// Moves the weights towards busy streams.
  Result<void> bound() {
    constexpr int kRounds = 6;
    constexpr double kNear = 0.999;  // of the best: enough
    constexpr double kPull = 2;
    ByStream streams{1};
    for (int round = 0; round < kRounds && best_.bound < best_.time * kNear; ++round) {
      const auto looked = look(weights_of(streams), true);
      if (!looked) {
        return fail(looked.error());
      }
      best_.bound = std::max(best_.bound, looked->second);
      const double most = std::ranges::max(looked->first);
      double sum = 0;
      for (std::size_t i = 0; i < streams.size(); ++i) {
        const double busy = most > 0 ? looked->first[i] / most : 0;
        streams[i] = std::max(streams[i], kLeast) * std::exp(kPull * (busy - 1));
        sum += streams[i];
      }
      for (double& weight : streams) {
        weight /= sum;
      }
    }
    return {};
  }

  static constexpr double kLeast = 1e-3;  ///< of a weight, so that it can grow

  const OperatorGraph& graph_;
  const MeshPrices& prices_;
  const MeshJudge& judge_;
  std::optional<Bytes> limit_;
  const MeshOptions& options_;
  std::vector<MeshStrategy> judged_;
  MeshOverlapped best_;
};

}  // namespace

Result<MeshOverlapped> search_overlapped(const OperatorGraph& graph, const MeshPrices& prices,
                                         const MeshJudge& judge, std::optional<Bytes> limit,
                                         const MeshOptions& options) {
  return OverlapSearch(graph, prices, judge, limit, options).run();
}

}  // namespace orrery::spmd
