// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "simulate/simulate.h"

namespace orrery::study {

/// Returns what of a workload is beyond simulated time, 106 days (Time): nodes that take longer
/// alone, on an idle machine; without such nodes, roles whose nodes one after the other do. Nothing
/// when neither is: then a run that got stuck did so for another reason.
///
/// Requires: a verified workload, the machine fitted to its ranks.
Error overflowing_time(const graph::Workload& workload, const machine::Machine& machine);

/// Runs simulate(), of which a run that fails is explained by overflowing_time(), if that explains
/// it.
Result<simulate::Timeline> simulate_in_range(const graph::Workload& workload,
                                             const machine::Machine& machine,
                                             const simulate::SimulateOptions& options);

}  // namespace orrery::study
