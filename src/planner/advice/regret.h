// SPDX-License-Identifier: Apache-2.0
/// Plans under rates that differ from the machine's file.
///
///   scenario   as the file says, and one rate r at a time 20 % lower and higher: compute (peak of
///              every number format), bandwidth of the device's memory, of each lower memory tier,
///              of each network dimension (node_bandwidth with it)
///   T(p, s)    simulated step time of plan p in scenario s
///   regret     R(p, s) = T(p, s) / min over plans T(., s) - 1,  worst R(p) = max over s R(p, s)
///
/// The plans are the answer's and the best that a search finds in each scenario, so that no plan's
/// regret is small only for lack of rivals; all together in as many simulations as the options
/// allow, but at least one plan. What fits does not change with rates.
/// Source: minimax regret (Savage, JASA 46, 1951).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/advice/probe.h"

namespace orrery::advice {

/// One rate of a machine, and how to change it.
struct Rate {
  std::string name;  ///< "compute", "hbm", "nvlink"
  std::function<void(machine::Machine&, double factor)> scale;
};
std::vector<Rate> rates(const machine::Machine& machine);

struct Scenario {
  std::string rate;  ///< "": as the file says
  double factor = 1;
  std::size_t best = 0;  ///< plan
};

struct Regret {
  full::Found plan;
  std::vector<Time> times;      ///< by scenario
  std::vector<double> regrets;  ///< by scenario
  std::size_t worst = 0;        ///< scenario

  double worst_regret() const { return regrets[worst]; }
};

struct RegretTable {
  std::vector<Scenario> scenarios;  ///< the first is the file's
  std::vector<Regret> plans;        ///< the least worst regret first; of equal ones the faster
};

/// Requires an answer with a plan, of the objective time.
RegretTable regret_table(const full::Task& task, const full::Options& options,
                         const full::Answer& answer, const Progress& progress);

/// Makes it the answer's best plan, before those that are faster.
void choose(full::Answer& answer, const full::Found& plan);

}  // namespace orrery::advice
