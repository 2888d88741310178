// SPDX-License-Identifier: Apache-2.0
// What a lowered step's tensors hold at its fullest moment is the footprint of its plan, to the
// byte, for plans with everything that changes either.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "../workload/parallel/cases.h"
#include "graph/liveness.h"
#include "workload/memory/footprint.h"

namespace orrery {
namespace {

RC_GTEST_PROP(MemoryOfTensors, IsTheFootprint, ()) {
  const cases::Case c = *cases::any_case();
  const graph::Workload workload = cases::lowered(c.model, c.plan);
  const auto stages = footprint::memory_footprint(c.model, c.plan);
  RC_ASSERT(stages.has_value());
  for (std::size_t stage = 0; stage < stages->size(); ++stage) {
    const footprint::StageMemory& expected = (*stages)[stage];
    const graph::MemoryPeak peak = graph::memory_peak(workload, static_cast<int>(stage));
    if (c.plan.schedule ==
        plan::Schedule::dualpipe) {  // there a pair's fullest moments are taken at once
      RC_ASSERT(peak.bytes.total() <= expected.total());
      continue;
    }
    RC_ASSERT(peak.bytes.total() == expected.total());
    RC_ASSERT(peak.bytes == expected.bytes);
    RC_ASSERT(peak.highest == expected.highest);
    RC_ASSERT(peak.lower == expected.lower);
    RC_ASSERT(peak.end == graph::state_of(workload.role(static_cast<int>(stage))));
  }
}

}  // namespace
}  // namespace orrery
