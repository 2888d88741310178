// SPDX-License-Identifier: Apache-2.0
/// Attention and MLPs on devices of their own (attention/FFN disaggregation): every copy of
/// attention, tp devices, keeps its requests' keys and values, embedding and output head; `ffn`
/// further devices behind them have all MLPs and experts. A step's tokens go around in m
/// micro-batches: while one is attended to another one's experts run. With the times of a
/// micro-batch and a layer, a attending, e of the experts, t there and b back,
///
///   step = fill + (m - 1) s + (layers - 1) max(m s, fill) + embedding and head
///   fill = a + t + e + b                 s = max(a, t, e, b)
///
/// which is fill + s (m layers - 1) where m >= 2 (1 + t / s) hides the exchange. Source: Zhu et
/// al. 2025, MegaScale-Infer (arXiv 2504.02263), equations 4 and 5.
///
///   experts    lie whole on the devices, E / ffn each, which share MLPs of other layers and shared
///              experts by tokens; without experts a device has a part of every MLP's width, whose
///              results are summed over all
///   there      a token goes to k devices: its top_k experts' and one that has the shared one, one
///              of a layer without experts, all `ffn` of an MLP that is split. Rows leave
///              ceil(T / tp) k a device of attention and come copies T k load / ffn to the busiest
///              of the others; the longer of both is a message between the sides, in the type in
///              which experts compute, and in 16 bits on its way back
///
/// Attention of prompts and of decodes is cut in m equal parts. Load, clock and energy are those of
/// the mean device.
///
/// Ignores: that the router runs where attention does, adding up what comes back, and which
/// micro-batch of unequal ones is the longest.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/units.h"
#include "machine/machine.h"

namespace orrery::step {

/// PingPong has the times of a micro-batch in a layer.
struct PingPong {
  Time attention{0};
  Time there{0};
  Time ffn{0};
  Time back{0};
  std::int64_t micro_batches = 1;
  std::int64_t layers = 1;
};

/// Returns what the layers take (above).
Time ping_pong(const PingPong& of);

/// Returns a machine of at least so many devices, filling its inner dimensions.
Result<machine::Machine> with_room(const machine::Machine& machine, std::int64_t devices);

}  // namespace orrery::step
