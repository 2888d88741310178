// SPDX-License-Identifier: Apache-2.0
/// In some phases every NPU sends and receives one sequence of messages: places and peers in it.
#pragma once

#include <cstdint>

#include "compat/astra/phase.h"

namespace orrery::astra {

/// A Place is where a stream stands on the axis of one of its phases.
struct Place {
  std::uint32_t origin;   ///< stream of position 0
  std::uint32_t spacing;  ///< streams between neighbours
  std::uint32_t position;
  bool anticlockwise;
};

/// Returns a number of a direct phase's message that sender and receiver agree on, whichever way
/// round each counts: that of the sender if it runs clockwise. Others keep theirs.
inline std::uint32_t agreed(Pattern pattern, const Phase& phase, bool anticlockwise,
                            std::uint32_t message) {
  if (pattern != Pattern::direct || !anticlockwise) {
    return message;
  }
  const auto others = static_cast<std::uint32_t>(phase.steps.size());
  return message < others ? others - 1 - message : 3 * others - 1 - message;
}

/// Returns the stream that receives a message. `pattern`: the phase's.
[[gnu::always_inline]] inline std::uint32_t receiver(Pattern pattern, const Phase& phase,
                                                     const Place& place, std::uint32_t message) {
  const auto size = static_cast<std::uint32_t>(phase.axis.size);
  std::uint32_t to = place.position;
  switch (pattern) {
    case Pattern::chain:
      to += place.anticlockwise ? size - 1 : 1;
      break;
    case Pattern::direct: {
      const std::uint32_t distance = (message < size - 1 ? message : message - (size - 1)) + 1;
      to += place.anticlockwise ? size - distance : distance;
      break;
    }
    case Pattern::halving:
      to = partner(to, static_cast<std::uint32_t>(phase.steps[message].distance));
      break;
    case Pattern::cyclic:
      to += static_cast<std::uint32_t>(phase.steps[message].distance);
      break;
    case Pattern::tree:
      break;
  }
  return place.origin + (to >= size ? to - size : to) * place.spacing;
}

/// Returns the stream whose message of this number a stream receives.
inline std::uint32_t sender(const Phase& phase, const Place& place, std::uint32_t message) {
  const auto size = static_cast<std::uint32_t>(phase.axis.size);
  if (phase.pattern == Pattern::halving) {
    return receiver(phase.pattern, phase, place, message);
  }
  // Distance to the receiver; as far behind is the sender.
  const std::uint32_t next =
      receiver(phase.pattern, phase, {0, 1, 0, place.anticlockwise}, message);
  const std::uint32_t from = place.position + size - next;
  return place.origin + (from >= size ? from - size : from) * place.spacing;
}

}  // namespace orrery::astra
