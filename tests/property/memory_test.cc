// SPDX-License-Identifier: Apache-2.0
// What a lowered step's tensors hold at its fullest moment is the footprint of its plan, to the
// byte, for plans with everything that changes either.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "../workload/parallel/cases.h"
#include "graph/liveness.h"
#include "graph/workload.h"
#include "workload/memory/footprint.h"

namespace orrery {
namespace {

RC_GTEST_PROP(MemoryOfTensors, IsTheFootprint, ()) {
  const cases::Case c = *cases::any_case();
  machine::Machine machine;
  machine.device.framework_memory = 1000_B;
  machine.device.communicator_memory = 10_B;
  const graph::Workload workload = cases::lowered(c.model, c.plan, {.machine = &machine});
  const auto stages = footprint::memory_footprint(c.model, c.plan, &machine);
  RC_ASSERT(stages.has_value());
  for (std::size_t stage = 0; stage < stages->size(); ++stage) {
    const footprint::StageMemory& expected = (*stages)[stage];
    const graph::MemoryPeak peak = graph::memory_peak(workload, static_cast<int>(stage));
    RC_ASSERT(peak.bytes.total() == expected.total());
    RC_ASSERT(peak.bytes == expected.bytes);
    RC_ASSERT(peak.highest == expected.highest);
    RC_ASSERT(peak.lower == expected.lower);
    RC_ASSERT(peak.end == graph::state_of(workload.role(static_cast<int>(stage))));
  }
}

RC_GTEST_PROP(MemoryOfTensors, OfPairsBlockByBlockIsAtMostTheFootprint, ()) {
  // The footprint lets the backward be any number of blocks ahead.
  cases::Case c;
  c.model = cases::small_llama(0);
  c.model.experts = 4;
  c.model.top_k = 2;
  c.model.expert.ffn = 32;
  c.model.kinds = {zoo::LayerKind{.name = "dense"},
                   zoo::LayerKind{.name = "moe", .feed_forward = zoo::FeedForwardKind::experts}};
  c.plan.pp = *rc::gen::element<std::int64_t>(2, 4);
  c.plan.tp = *rc::gen::element<std::int64_t>(1, 2);
  c.plan.sequence_parallel = c.plan.tp > 1;
  c.plan.dp = c.plan.ep = *rc::gen::element<std::int64_t>(1, 2);
  c.plan.schedule = *rc::gen::element(plan::Schedule::dualpipe, plan::Schedule::one_f_one_b,
                                      plan::Schedule::interleaved);
  c.plan.chunks = c.plan.schedule == plan::Schedule::interleaved ? 2 : 1;
  c.model.layers = c.plan.pp * c.plan.chunks * *rc::gen::inRange<std::int64_t>(1, 5);
  for (std::int64_t layer = 0; layer < c.model.layers; ++layer) {
    c.model.layout.push_back(*rc::gen::inRange(0, 2));
  }
  c.plan.overlap_ep = c.plan.schedule == plan::Schedule::dualpipe
                          ? plan::OverlapExperts::shared
                          : plan::OverlapExperts::microbatch;
  c.plan.global_batch = c.plan.dp * 4 * c.plan.pp;
  c.plan.quantization = *rc::gen::element(plan::Quantization::none, plan::Quantization::fp8_block);
  const graph::Workload workload = cases::lowered(c.model, c.plan);
  const auto stages = footprint::memory_footprint(c.model, c.plan);
  RC_ASSERT(stages.has_value());
  for (std::size_t stage = 0; stage < stages->size(); ++stage) {
    const graph::MemoryPeak peak = graph::memory_peak(workload, static_cast<int>(stage));
    RC_ASSERT(peak.bytes.total() <= (*stages)[stage].total());
    RC_ASSERT(peak.highest[plan::MemoryCategory::activations] <=
              (*stages)[stage].highest[plan::MemoryCategory::activations]);
  }
}

}  // namespace
}  // namespace orrery
