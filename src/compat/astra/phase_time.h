// SPDX-License-Identifier: Apache-2.0
/// Closed forms: how long a phase takes when all its NPUs start together and no message delays
/// another.
#pragma once

#include <optional>

#include "base/units.h"
#include "compat/astra/phase.h"

namespace orrery::astra {

/// Returns the time of the phase on the slowest NPU. With T_k the time of message k, d the delay,
/// r_k reductions:
///
///   ring                          d + n (T + d) + sum r              n messages
///   halving-doubling, cyclic      d + sum over k (T_k + d) + sum r_k
///   direct, all at once           d + T + d + r, T of the farthest peer; all-reduce: twice T + d
///   tree, up                      a leaf sends after d, others d + r after the last of their
///                                 children
///   tree, down                    a node sends d (+ r) after its parent's message came, a leaf
///                                 ends
///
/// Nothing where messages overtake each other so that no simple form holds: direct with a smaller
/// window, or an all-reduce to peers at different distances; axes that are not uniform.
std::optional<Time> phase_time(const Phase& phase, const Wires& wires);

}  // namespace orrery::astra
