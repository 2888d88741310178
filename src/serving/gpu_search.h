// SPDX-License-Identifier: Apache-2.0
/// Says how few devices, and which machines, serve a load within limits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "serving/plan_search.h"

namespace orrery::serving {

/// PlanSearch's `requests` (required) on any number of engines; `devices`: of one of them, at most.
struct GpuChoice {
  Layout layout;  ///< its engine with as many replicas as needed
  Metrics metrics;
  double attained = 0;
  Money per_hour{0};  ///< of all devices; 0: the machine has no price
};

struct GpusFound {
  std::vector<GpuChoice> choices;  ///< the best of each machine and format, fewest devices first
  std::vector<Loser> losers;       ///< layouts by number in `layouts`
  std::vector<Layout> layouts;
  std::int64_t runs = 0;
  double wall_s = 0;
};

/// Returns the fewest replicas of each layout (tp, and of experts dp = ep, over 1, 2, 4 ...
/// devices) that keep the objectives for `attainment` of the requests, behind a router that gives a
/// request to the engine with the fewest. Layouts are tried in the order of
///
///   bound = devices x ceil(0.9 x tokens/s of the load / most tokens/s by formula within tpot)
///
/// and left out where the bound is no better, in devices and in money, than what the same machine
/// and format has. From its bound on, replicas grow by a quarter until they do, then the interval
/// is halved.
GpusFound search_gpus(const zoo::Model& model, const Engine& engine, const PlanSearch& search);

/// Returns what a model that does not fit would need: "it fits 4 in bf16, 2 in fp8, 1 in awq" of
/// the machine's devices, by tensor and beyond a node pipeline parallelism; "": nothing is found.
std::string what_fits(const zoo::Model& model, const machine::Machine& machine,
                      const Engine& engine);

}  // namespace orrery::serving
