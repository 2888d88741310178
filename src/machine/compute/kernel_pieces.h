// SPDX-License-Identifier: Apache-2.0
/// Times of a kernel that runs in pieces (graph::Operator::pieces), which compute_model.h returns.
#pragma once

#include "machine/compute/compute_model.h"

namespace orrery::compute {

/// Returns the piece's part of the whole kernel's times, beside communication no less than alone.
/// Requires op.pieces > 1.
KernelTime piece_time(const graph::Operator& op, const Device& device);
/// Returns piece_time(op, device).alone at this share of the tables' rate, at a third of the work.
Time lone_piece_time(const graph::Operator& op, const Device& device, double clock);

}  // namespace orrery::compute
