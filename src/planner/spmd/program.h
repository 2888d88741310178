// SPDX-License-Identifier: Apache-2.0
/// A strategy as a workload for the event loop, which runs plans too.
///
///   kernels        of the stages, half 1 and half 2 in turn; backward from the last stage on, half
///                  2 before half 1, each kernel twice, fused attention and scans as their own
///   conversions    a collective of all devices each, on one stream; of a half's stage once its
///                  stage before is done, and backward once the stage itself is
///   optimizer      when all gradients are there
///
/// Kernels, buffers and what is moved once for both halves are those of MachinePrices. Where an
/// overlap (stage.h) hides nothing, everything runs one after the other. So without fused attention
/// and where kernels are not slowed by what runs beside them, the step takes what replay() says.
#pragma once

#include <optional>

#include "base/result.h"
#include "graph/workload.h"
#include "planner/spmd/machine_prices.h"
#include "planner/spmd/operator_graph.h"
#include "planner/spmd/strategy.h"

namespace orrery::spmd {

/// Returns the backward of kernels that have one of its own, not the forward's twice; operands and
/// their gradients. Fused attention: five products for the forward's two. A state-space scan: two
/// gradients of every product, and the products again (workload/zoo).
std::optional<graph::Operator> own_backward(const graph::Operator& forward);

/// Mistakes: those of replay(); signatures that the prices do not allow.
Result<graph::Workload> program_of(const OperatorGraph& graph, const Strategy& strategy,
                                   const MachinePrices& prices);

}  // namespace orrery::spmd
