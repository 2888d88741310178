// SPDX-License-Identifier: Apache-2.0
/// Senders say who sends what to whom in a phase.
#pragma once

#include <cstdint>
#include <vector>

#include "compat/astra/phase.h"

namespace orrery::astra {

/// A message that a position receives. `message` tells messages to different receivers apart: 0 of
/// a chain; the distance less 1 of direct; the number of halving and cyclic ones; the step (up,
/// down) of a tree.
struct Sender {
  std::uint32_t message = 0;
  std::uint32_t position = 0;
};

/// Returns the senders of `position`.
std::vector<Sender> senders_of(const Phase& phase, std::uint32_t position);

}  // namespace orrery::astra
