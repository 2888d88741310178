// SPDX-License-Identifier: Apache-2.0
/// Attention whose keys and values come in a ring.
///
/// Each of r ranks has 1/r of the keys. The kernel becomes r pieces, each over 1/r of the keys, and
/// step i of r - 1 brings those of another rank beside piece i - 1; piece i waits for it. Backward
/// the same with keys, values and their gradients, twice the bytes.
///
/// After an all-to-all from tokens to heads over u ranks the kernel has 1/u of the heads, and u
/// times the queries that the rank has itself.
///
/// Every rank has two parts of the sequence, one from each end, so that causal attention is
/// balanced. What merges partial results is in plan/key_exchange.h.
/// Source: Liu et al. 2023 (ring attention); Fang & Zhao 2024 (USP).
#pragma once

#include <vector>

#include "workload/lower/layouts.h"
#include "workload/lower/step.h"

namespace orrery::lower {

/// Appends the kernel of `attention` as such pieces. Requires a compute step of one operator.
void append_ring(Step attention, const KeyRing& ring, plan::Axis axis, plan::StepPhase phase,
                 std::vector<Step>& steps);

}  // namespace orrery::lower
