// SPDX-License-Identifier: Apache-2.0
/// Says where the first token's time and the time between tokens go: parts of each request's times,
/// on the mean of all requests and of the slowest hundredth.
///
///   TTFT = front end (queued - sent) + fetching (lower tiers) + queue (until a step computes some
///          of it) + computing (until the first token, with steps that leave it out)
///   TPOT = moving (to where it decodes) + stalled (from a preemption to the next token) + beside
///          prompts (steps in which some copy computes a prompt, too) + decoding; over output - 1
#pragma once

#include <array>
#include <string_view>

#include "serving/serve.h"

namespace orrery::serving {

/// A part, in mean over all requests, and over those whose sum is at least the 99th percentile.
struct TimePart {
  std::string_view name;
  Time mean{0};
  Time slowest{0};
};
struct Breakdown {
  std::array<TimePart, 4> ttft;
  std::array<TimePart, 4> tpot;
};
Breakdown breakdown(const Run& run);

}  // namespace orrery::serving
