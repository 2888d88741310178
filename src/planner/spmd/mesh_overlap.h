// SPDX-License-Identifier: Apache-2.0
/// The fastest program on a mesh whose collectives run beside kernels (program_of() with an
/// overlap), as a simulation of each judges it.
///
/// Time is no sum, since what hides depends on the order of everything: no search of sums is exact.
/// Candidates are the optima of sums in which communication of parameters and of their gradients,
/// which can run ahead and behind, counts as a whole, a half, a tenth and nothing, and those that
/// the bound finds. Every kernel runs on one stream, and the steps of every group on two, one after
/// the other, at best as fast as alone. So of any program
///
///   step >= max over streams of its work >= sum over streams of w * its work ,  w >= 0, sum w = 1
///
/// and the least of the last over all programs is a search of a sum: a bound. Weights begin with
/// kernels alone and move to the streams that the program found there keeps busy.
#pragma once

#include <functional>
#include <optional>

#include "planner/spmd/mesh_limits.h"

namespace orrery::spmd {

/// Says how long a program takes.
using MeshJudge = std::function<Result<Time>(const MeshStrategy&)>;

struct MeshOverlapped {
  MeshSolution solution;
  Time time{0};        ///< as judged
  Time bound{0};       ///< no program within the limit takes less
  int candidates = 0;  ///< that were judged
};

/// Mistakes: those of search_mesh_within() and of the judge.
Result<MeshOverlapped> search_overlapped(const OperatorGraph& graph, const MeshPrices& prices,
                                         const MeshJudge& judge, std::optional<Bytes> limit,
                                         const MeshOptions& options = {});

}  // namespace orrery::spmd
