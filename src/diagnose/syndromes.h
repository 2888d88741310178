// SPDX-License-Identifier: Apache-2.0
/// The parts of diagnose(), each of which adds what it finds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/telemetry.h"

namespace orrery::diagnose {

/// The operations of one collective, by rank.
using Calls = std::vector<const Operation*>;
/// Holds the calls of collectives by communicator and sequence number.
using Collectives = std::map<std::pair<std::size_t, std::int64_t>, Calls>;

/// Finds mismatch, wrong_order, missing_rank, communication_hang.
void find_hangs(const Telemetry& telemetry, const Collectives& collectives, const Options& options,
                Diagnosis& diagnosis);
/// Finds slow_rank, slow_sender, slow_receiver, slow_link.
void find_slow_messages(const Telemetry& telemetry, const Options& options, Diagnosis& diagnosis);
/// Finds straggler.
void find_stragglers(const Telemetry& telemetry, const Collectives& collectives,
                     Diagnosis& diagnosis);

/// Returns the median; of an even number the mean of the middle two. Requires values.
template <class T>
double median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const auto upper = static_cast<double>(*middle);
  return values.size() % 2 == 1
             ? upper
             : (upper + static_cast<double>(*std::max_element(values.begin(), middle))) / 2;
}

/// Returns "rank 3", "ranks 0, 1, 2 and 13 more".
std::string ranks_text(const std::vector<std::int64_t>& ranks);

}  // namespace orrery::diagnose
