// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_limits.h"

#include <utility>

namespace orrery::spmd {
namespace {

class MeshPricer {
 public:
  MeshPricer(const OperatorGraph& graph, const MeshPrices& prices, const MeshOptions& options)
      : graph_(graph), prices_(prices), options_(options) {}

  Result<MeshPoint> operator()(double seconds_per_byte) const {
    MeshOptions options = options_;
    options.weights.seconds_per_byte = seconds_per_byte;
    auto found = search_mesh(graph_, prices_, options);
    if (!found) {
      return fail(std::move(found.error()));
    }
    const auto cost = replay(graph_, found->strategy, prices_);
    if (!cost) {
      return fail(cost.error());
    }
    const Time bound = found->bound - (options.weights == MeshWeights() ? Time(0) : rounding());
    found->total = cost->weighted(options.weights);
    return MeshPoint{std::move(*found), found->total, cost->holdings.total(), bound};
  }
  PricedSearch<MeshSolution, MeshPricer> search_by_price() const { return {*this, rounding()}; }

 private:
  /// A picosecond for everything that is weighted: nodes, and what tensors are converted to.
  Time rounding() const {
    return Time(static_cast<std::int64_t>(graph_.nodes.size() + 4 * graph_.tensors.size()));
  }

  const OperatorGraph& graph_;
  const MeshPrices& prices_;
  const MeshOptions& options_;
};

}  // namespace

Result<MeshPoint> search_mesh_within(const OperatorGraph& graph, const MeshPrices& prices,
                                     Bytes limit, const MeshOptions& options) {
  return MeshPricer(graph, prices, options).search_by_price().within(limit);
}

Result<std::vector<MeshPoint>> mesh_frontier(const OperatorGraph& graph, const MeshPrices& prices,
                                             const MeshOptions& options, std::size_t most) {
  return MeshPricer(graph, prices, options).search_by_price().corners(most);
}

}  // namespace orrery::spmd
