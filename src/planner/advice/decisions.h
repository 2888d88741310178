// SPDX-License-Identifier: Apache-2.0
/// Decisions tell what each choice of a plan is worth: for every field that a search chose, the
/// best plan with every other value of it, all else open.
///
/// Values of a field are those of the space (full/space.h); of degrees also the other divisors of
/// the devices, which the space leaves out for a reason that is then given. Each value is a search
/// of its own, of at most 100 estimates and 12 simulations, or what the search for another value
/// found: its best plan may be missed by a little, so that another value may even come out better
/// than the answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/advice/probe.h"

namespace orrery::advice {

struct Alternative {
  std::string value;
  std::optional<full::Found> best;
  Time bound{0};          ///< of a plan with it: none simulates with a lower score
  Bytes least_memory{0};  ///< where none fits: what the most frugal needs at the least
  std::string refused;    ///< why there is no plan with it
};

struct Decision {
  std::string field;
  std::string chosen;
  std::vector<Alternative> others;  ///< the best first, then what does not fit, then what cannot be
};

/// Returns the decisions, the dearest by its runner-up first. Requires an answer with a plan.
std::vector<Decision> decisions(const full::Task& task, const full::Options& options,
                                const full::Answer& answer, const Progress& progress);

}  // namespace orrery::advice
