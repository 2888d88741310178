// SPDX-License-Identifier: Apache-2.0
/// Fit advice says what would make a plan fit that does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::study {

struct FitChange {
  std::vector<std::string> fields;  ///< "recompute: selective"
  Time step_time{0};
  Bytes memory{0};  ///< of the fullest stage
};

/// Changes after which the plan fits, the fastest first, at most `most`: of one field, or of two
/// where no single one is enough, or of three. Tried are more recompute (of modules, then whole
/// layers), smaller microbatches, higher ZeRO stages, fewer chunks, offload of optimizer states and
/// activations, and up to eight times as many tensor- or context-parallel ranks or stages with
/// fewer replicas, with the same global batch on the same devices. Of what fits the twelve that
/// fill the memory most are simulated. `progress` is called now and then with the share done.
std::vector<FitChange> fit_advice(const zoo::Model& model, const machine::Machine& machine,
                                  const plan::Plan& plan, std::size_t most,
                                  const std::function<void(double)>& progress = {});

/// Returns the longest of half the plan's sequence, a quarter ... down to 128 tokens with which it
/// fits as it is: other work, so no advice where there is any. 0: none.
std::int64_t fitting_sequence(const zoo::Model& model, const machine::Machine& machine,
                              const plan::Plan& plan);

/// Returns "recompute: selective (12.3 s a step, 71.2 GiB of the fullest device)".
std::string to_string(const FitChange& change);

}  // namespace orrery::study
