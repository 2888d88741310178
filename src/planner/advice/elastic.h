// SPDX-License-Identifier: Apache-2.0
/// The best plan when one node is lost, and what has to change for it.
///
/// Of N nodes N - 1 are left (a node: devices_of_node()). Tried
/// are, with R the devices of a replica of the plan so far (tp cp pp) and r = its replicas:
///
///   same batch    all devices that are left
///   idle          same batch, the most replicas r' < r that fit and divide the batch by whole
///                 microbatches: r' R devices, the others wait
///   other batch   the most replicas r' that fit, the batch rounded to the nearest multiple of
///                 r' microbatches
///
/// each with a search of its own, all fields open. Compared by tokens per second; the batch changes
/// what is trained, so it is named. Uneven shares of a batch are no plan.
///
/// Of a machine of several sorts of devices: the same batch, for every part that loses the node;
/// the search leaves devices idle and shares the batch as it does with all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/advice/probe.h"

namespace orrery::advice {

struct Fallback {
  std::int64_t devices = 0;
  std::int64_t idle = 0;  ///< of those that are left
  std::int64_t batch = 0;
  std::string part{};  ///< that lost the node; "": all devices are alike
  full::Found best;
  std::vector<std::string> changes;  ///< fields, "tp: 8 -> 4", without the batch
};

struct Elastic {
  std::int64_t node = 0;            ///< devices lost
  std::vector<Fallback> fallbacks;  ///< the most tokens per second first; empty: none fits
};

/// Requires an answer with a plan.
Elastic elastic(const full::Task& task, const full::Options& options, const full::Answer& answer);

}  // namespace orrery::advice
