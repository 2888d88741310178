// SPDX-License-Identifier: Apache-2.0
/// The cheapest sequence of steps from one layout to another.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collective/layout/steps.h"
#include "machine/machine.h"

namespace orrery::layout {

/// A Cost prices a step on a tensor of this shape: never negative, the same for the same step.
using Cost = std::function<double(const Step&, const Shape&)>;

/// Returns the bytes that the busiest rank sends.
Cost byte_cost(const Mesh& mesh);

/// Returns the seconds on the machine alone, whose first devices the mesh has, its first axis
/// innermost.
///
///   all_gather, reduce_scatter, all_reduce, all_to_all of one axis: collective/cost.h, algorithm
///     auto
///   all_to_all of several axes, send_recv, many_to_many: all messages at once,
///     the longest way's latency and overhead + bytes / bandwidth of the busiest link, which its
///     peers lessen (NetworkDimension::bandwidth_by_peers)
///
/// Requires as many devices as ranks.
Cost machine_cost(const Mesh& mesh, const machine::Machine& machine);

/// Returns the sequence of least cost, of equal ones that of fewest steps that move something. It
/// searches (Dijkstra) over all layouts of the mesh before and after the work: copies, slices of
/// every dimension, partial sums where there are some already, coordinates. It returns nothing
/// where there is none (copies that would have to become partial sums, work that needs what no
/// layout gives).
std::optional<std::vector<Step>> cheapest(const Problem& problem, const Cost& cost);

double total_cost(const Problem& problem, const std::vector<Step>& steps, const Cost& cost);

/// Returns nothing, or the mistake that a sequence of this name takes longer than Time can say.
Error beyond_time(std::string_view name, const Problem& problem, const std::vector<Step>& steps,
                  const Cost& seconds);

}  // namespace orrery::layout
