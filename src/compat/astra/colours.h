// SPDX-License-Identifier: Apache-2.0
/// Ranks that do the same at the same times, when not all do.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compat/astra/communicators.h"
#include "compat/astra/planner.h"
#include "compat/astra/run.h"

namespace orrery::astra {

/// Returns the colour of every rank, in order of first occurrence, such that ranks of one colour
///   run one program,
///   stand in communicators of one shape, with partners of the same colours and the same message
///   times at the same distances (at the same position where an algorithm's parts differ),
///   exchange messages with ranks of the same colours over routes of the same times.
///
/// The coarsest colouring of that kind that refinement from the programs finds: ranks are told
/// apart by the colours of their partners until nothing changes. By induction over time ranks of
/// one colour then have equal events. Nothing when no two ranks are equal, or when it would cost
/// more than kMostWork.
std::optional<std::vector<std::uint32_t>> colour_ranks(const RunInput& input,
                                                       const RunOptions& options,
                                                       Communicators& communicators,
                                                       const Planner& planner);

/// Returns the kind under which `rank` knows the group that `peer` knows as `kind`;
/// Communicators::kUnknown when it does not use it.
std::uint32_t kind_of_partner(const chakra::TraceSet& traces, const Communicators& communicators,
                              std::int64_t peer, std::uint32_t kind, std::int64_t rank);

}  // namespace orrery::astra
