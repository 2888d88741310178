// SPDX-License-Identifier: Apache-2.0
// Gathers of updated parameters (ZeRO 1 and 2) beside the first microbatch.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "../simulate/builder.h"
#include "../workload/parallel/cases.h"
#include "simulate/simulate.h"

namespace orrery {
namespace {

Time step_time(const graph::Workload& workload, const machine::Machine& machine) {
  const auto timeline = simulate::simulate(workload, machine);
  if (!timeline) {
    ADD_FAILURE() << timeline.error().to_string();
    return Time(0);
  }
  return timeline->step_time;
}

bool gathers_parameters(const graph::Node& node) {
  return node.kind == graph::Node::Kind::collective &&
         node.collective == graph::CollectiveKind::all_gather && node.group == plan::Axis::dp;
}

/// The same step whose parameters need no gather.
graph::Workload without_gathers(graph::Workload workload) {
  for (graph::Program& program : workload.programs) {
    for (graph::Template& work : program.templates) {
      for (graph::Node& node : work.nodes) {
        node.bytes = gathers_parameters(node) ? Bytes(0) : node.bytes;
      }
    }
  }
  return workload;
}

Bytes gathered(const graph::Workload& workload, int role) {
  Bytes sum{0};
  cases::each_node(workload, role, [&](const graph::Node& node) {
    sum += gathers_parameters(node) ? node.bytes : Bytes(0);
  });
  return sum;
}

/// tp, dp and pp on dimensions of their own, so that nothing else is on the gathers' links.
machine::Machine gathering_machine(const plan::Plan& plan, Bandwidth rate) {
  std::vector<topology::NetworkDimension> network;
  for (const std::int64_t size : {plan.tp, plan.dp, plan.pp}) {
    if (size > 1) {
      network.push_back(testing::dimension(topology::DimensionKind::switched, size));
      network.back().bandwidth = rate;
      network.back().latency = Time(0);
    }
  }
  machine::Machine machine = testing::machine_of(std::move(network));
  machine.device.memory.push_back({"host", 1_GiB, rate, Time(0)});
  machine.device.memory.push_back({"nvme", 1_GiB, rate, Time(0)});
  return machine;
}

cases::Case any_sharded() {
  cases::Case c = *cases::any_case();
  c.plan.zero = std::clamp<std::int64_t>(c.plan.zero, 1, 2);
  c.plan.dp = std::max<std::int64_t>(2, c.plan.dp);
  c.plan.global_batch = c.plan.dp * c.plan.microbatch * c.plan.pp * 2;
  c.plan.order = "tp-dp-pp";
  return c;
}

RC_GTEST_PROP(ParameterGather, IsNeverSlowerBesideTheFirstMicrobatchThanBeforeTheStep, ()) {
  // (n - 1) / n of the longest stage's parameters over the ring's link. Messages of both directions
  // share a link, so that a shift may cost a little more than itself: a ten-thousandth is allowed.
  cases::Case c = any_sharded();
  const Bandwidth rate(static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1000)) * 1e6);
  const machine::Machine machine = gathering_machine(c.plan, rate);
  c.plan.overlap_param_gather = false;
  const Time free = step_time(without_gathers(cases::lowered(c.model, c.plan)), machine);
  c.plan.overlap_param_gather = true;
  const graph::Workload beside = cases::lowered(c.model, c.plan);
  Bytes longest{0};
  for (int stage = 0; stage < static_cast<int>(c.plan.pp); ++stage) {
    longest = std::max(longest, gathered(beside, stage));
  }
  const Time before = longest * (c.plan.dp - 1) / c.plan.dp / rate;
  const Time time = step_time(beside, machine);
  RC_ASSERT(time >= free);
  RC_ASSERT(time <= free * 1.0001 + before);
}

/// Latency makes many small gathers dearer than one large one, and kernels beside them run slower;
/// both cost less than what is hidden as soon as layers are of a usual size.
RC_GTEST_PROP(ParameterGather, IsNeverSlowerBesideThanAtTheEndForLayersOfUsualSize, ()) {
  const std::string name = *rc::gen::element<std::string>("dgx-h100", "selene");
  plan::Plan plan{.zero = 1, .attention = zoo::AttentionKernel::flash};
  plan.tp = *rc::gen::element<std::int64_t>(1, 2, 8);
  plan.sequence_parallel = plan.tp > 1;
  plan.dp = *rc::gen::element<std::int64_t>(4, 8);
  plan.pp = *rc::gen::element<std::int64_t>(1, 2, 4);
  plan.chunks = plan.pp > 1 ? *rc::gen::element<std::int64_t>(1, 2, 3) : 1;
  plan.schedule = plan.chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
  plan.microbatch = *rc::gen::element<std::int64_t>(1, 2);
  plan.global_batch =
      plan.dp * plan.microbatch * plan.pp * *rc::gen::element<std::int64_t>(1, 2, 8);
  plan.overlap_p2p = *rc::gen::arbitrary<bool>();
  plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  plan.order = *rc::gen::element<std::string>("tp-dp-pp", "tp-pp-dp");
  const zoo::Model model = zoo::gpt_model("GPT", 24, 3072, 32, 2048, 51200);
  const auto preset = machine::load_machine(name);
  RC_ASSERT(preset.has_value());
  const auto machine = machine::with_devices(*preset, plan.devices());
  RC_PRE(machine.has_value());
  const Time apart = step_time(cases::lowered(model, plan), *machine);
  plan.overlap_param_gather = true;
  RC_ASSERT(step_time(cases::lowered(model, plan), *machine) <= apart);
}

}  // namespace
}  // namespace orrery
