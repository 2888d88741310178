// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules, simulated: with equal stages and free messages a step takes exactly what the
// papers' formulas say; with everything a plan can switch on it ends, folded as unfolded.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "../simulate/builder.h"
#include "../workload/parallel/cases.h"
#include "../workload/plan/pipeline_executor.h"
#include "simulate/simulate.h"

namespace orrery {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

/// Time of one stage's forward, input gradients and weight gradients of a microbatch.
struct StageTimes {
  Time forward{0};
  Time input_gradient{0};
  Time weight_gradient{0};

  Time all() const { return forward + input_gradient + weight_gradient; }
};

/// One piece of work as a template: what it receives, computes and sends, of no bytes.
class PieceBuilder {
 public:
  PieceBuilder(const plan::PipelineShape& shape, const plan::RankLayout& layout,
               const StageTimes& times, std::int64_t stage)
      : shape_(shape), layout_(layout), times_(times), stage_(stage) {}

  std::vector<graph::Node> nodes(const plan::PipelineSlot& slot) const {
    const std::vector<Work> works = works_of(slot);
    std::vector<graph::Node> result;
    for (const Work& work : works) {
      if (exchanges(work, true)) {
        result.push_back(receive("in", channel(work)));
      }
    }
    const auto received = static_cast<int>(result.size());
    for (const Work& work : works) {
      result.push_back(compute_node("work", time(work)));
      for (int i = 0; i < received; ++i) {
        result.back().after.push_back(i);
      }
    }
    const auto last = static_cast<int>(result.size()) - 1;
    for (const Work& work : works) {
      if (exchanges(work, false)) {
        result.push_back(send("out", channel(work), 0_B, {last}));
      }
    }
    for (graph::Node& node : result) {
      if (node.kind != graph::Node::Kind::compute) {
        node.peer = layout_.peer(node.kind, static_cast<plan::Channel>(node.channel), stage_);
      }
    }
    return result;
  }

 private:
  Time time(const Work& work) const {
    const Time whole = work.kind == Work::forward          ? times_.forward
                       : work.kind == Work::input_gradient ? times_.input_gradient
                                                           : times_.weight_gradient;
    return shape_.schedule == plan::Schedule::zb_v ? whole / 2 : whole;
  }
  /// Returns whether there is a message; between the two chunks of zb-v's last stage there is none.
  bool exchanges(const Work& work, bool arriving) const {
    if (work.kind == Work::weight_gradient) {
      return false;
    }
    const std::int64_t part = plan::part_of(shape_, stage_, work.chunk);
    const std::int64_t other = part + ((work.kind == Work::forward) == arriving ? -1 : 1);
    const bool turn =
        shape_.schedule == plan::Schedule::zb_v && part + other == plan::part_count(shape_) - 1;
    return other >= 0 && other < plan::part_count(shape_) && !turn;
  }
  plan::Channel channel(const Work& work) const {
    const bool back = plan::flows_back(shape_, work.chunk);
    return work.kind == Work::forward
               ? (back ? plan::Channel::returning_forward : plan::Channel::forward)
               : (back ? plan::Channel::returning_backward : plan::Channel::backward);
  }

  const plan::PipelineShape& shape_;
  const plan::RankLayout& layout_;
  const StageTimes& times_;
  std::int64_t stage_;
};

/// Every piece is a template of its own.
graph::Workload pieces_of(const plan::PipelineShape& shape, const StageTimes& times) {
  const plan::RankLayout layout{
      {{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, shape.stages}}};
  graph::Workload workload = plan::step_workload(layout);
  std::vector<std::vector<graph::Instance>> lists;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    graph::Program program;
    std::vector<graph::Instance>& list = lists.emplace_back();
    for (const plan::PipelineSlot& slot : all_slots(shape, stage)) {
      list.push_back({.template_index = static_cast<int>(list.size())});
      program.templates.push_back({"piece", PieceBuilder(shape, layout, times, stage).nodes(slot)});
    }
    workload.programs.push_back(std::move(program));
  }
  workload.source = std::make_shared<graph::InstanceLists>(std::move(lists));
  return workload;
}

/// Step time less m (F + B + W).
Time bubble(plan::Schedule schedule, std::int64_t stages, std::int64_t microbatches,
            const StageTimes& times) {
  const bool two = schedule == plan::Schedule::zb_v || schedule == plan::Schedule::dualpipe;
  const plan::PipelineShape shape{
      schedule, stages, two ? 2 : 1,
      schedule == plan::Schedule::dualpipe ? microbatches / 2 : microbatches};
  const graph::Workload workload = pieces_of(shape, times);
  const auto verified = graph::verify(workload);
  RC_ASSERT(verified.has_value());
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, stages)});
  machine.network[0].latency = Time(0);
  const auto timeline = simulate::simulate(workload, machine);
  RC_ASSERT(timeline.has_value());
  return timeline->step_time - times.all() * microbatches;
}

Time any_stage_time(std::int64_t least, std::int64_t most) {
  return 2_us * *rc::gen::inRange<std::int64_t>(least, most);
}

RC_GTEST_PROP(SimulatedPipeline, BubblesAreThoseOfThePapers, ()) {
  // With B including W: 1F1B (p-1)(F+B); ZB-H1 (p-1)(F+B-2W); DualPipe (p/2-1)(F&B+B-3W) with
  // F&B = F + B. W <= B - W = F: see tests/workload/plan/schedule_test.cc for other times.
  const std::int64_t p = *rc::gen::inRange<std::int64_t>(2, 9);
  const std::int64_t m = 2 * p + *rc::gen::inRange<std::int64_t>(0, 6);
  const Time forward = any_stage_time(1, 20);
  const Time weight = std::min(forward, any_stage_time(1, 20));
  const StageTimes times{forward, forward, weight};
  const Time backward = forward + weight;
  RC_ASSERT(bubble(plan::Schedule::one_f_one_b, p, m, times) == (forward + backward) * (p - 1));
  RC_ASSERT(bubble(plan::Schedule::zb_h1, p, m, times) ==
            (forward + backward - 2 * weight) * (p - 1));
  if (p % 2 == 0) {
    RC_ASSERT(bubble(plan::Schedule::dualpipe, p, m - m % 2, times) ==
              (forward + backward + backward - 3 * weight) * (p / 2 - 1));
  }
}

RC_GTEST_PROP(SimulatedPipeline, VOfEqualPassesOnlyWaitsForTheFirstMicrobatch, ()) {
  const std::int64_t p = *rc::gen::inRange<std::int64_t>(2, 9);
  const std::int64_t m = 2 * p + *rc::gen::inRange<std::int64_t>(0, 6);
  const Time each = any_stage_time(1, 20);
  RC_ASSERT(bubble(plan::Schedule::zb_v, p, m, {each, each, each}) == each / 2 * (p - 1));
}

RC_GTEST_PROP(SimulatedPipeline, EveryPlanEndsFoldedAsUnfolded, ()) {
  const cases::Case c = *cases::any_case();
  const graph::Workload workload = cases::lowered(c.model, c.plan);
  // With every number format and memory tier that a plan may ask for.
  machine::Machine machine =
      machine_of({dimension(topology::DimensionKind::switched, c.plan.devices())});
  machine.device.peak.fill(FlopRate(1e12));
  machine.device.memory.resize(1);
  for (const char* tier : {"host", "nvme"}) {
    machine.device.memory.push_back({.name = tier, .capacity = 1_GiB, .bandwidth = Bandwidth(1e9)});
  }
  simulate::SimulateOptions unfolded;
  unfolded.fold = false;
  const auto step = simulate::simulate(workload, machine);
  const auto every = simulate::simulate(workload, machine, unfolded);
  RC_ASSERT(step.has_value() && every.has_value());
  RC_ASSERT(step->step_time == every->step_time);
  RC_ASSERT(step->fold.simulated <= every->fold.simulated);
}

}  // namespace
}  // namespace orrery
