// SPDX-License-Identifier: Apache-2.0
// The lower bound of a step is never above its simulation, for plans with everything that changes
// the graph, on machines whose links are shared or not.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "../simulate/builder.h"
#include "../workload/parallel/cases.h"
#include "estimate/estimate.h"
#include "simulate/simulate.h"
#include "workload/parallel/step_clock.h"
#include "workload/plan/machine_check.h"

namespace orrery {
namespace {

/// Returns a machine with every number format and memory tier that a plan may ask for.
machine::Machine any_machine(std::int64_t devices) {
  const auto kind =
      *rc::gen::element(topology::DimensionKind::switched, topology::DimensionKind::fully_connected,
                        topology::DimensionKind::ring, topology::DimensionKind::mesh);
  // Stages may straddle nodes, so that not all of their messages cross the same links.
  const std::int64_t inside = devices % 4 == 0 ? *rc::gen::element(1, 2, 4) : 2 - devices % 2;
  std::vector<topology::NetworkDimension> network;
  if (inside > 1 && inside < devices) {
    network.push_back(testing::dimension(topology::DimensionKind::switched, inside));
    network.back().bandwidth = Bandwidth(8e9);
  }
  network.push_back(testing::dimension(kind, network.empty() ? devices : devices / inside));
  network.back().shape = {network.back().size};
  machine::Machine machine = testing::machine_of(network);
  machine.device.peak.fill(FlopRate(1e12));
  machine.device.overlap_memory = *rc::gen::element(0.0, 0.3);
  if (*rc::gen::arbitrary<bool>()) {  // under a power cap that holds the clock, or not
    machine.device.power = Power(100);
    machine.device.power_cap = Power(*rc::gen::element(40, 70, 100));
    machine.device.idle_power = Power(17);
    machine.device.power_model = {
        .busy_power = Power(12), .gemm_power = Power(150), .memory_energy = EnergyPerByte(1e-9)};
  }
  machine.device.memory.resize(1);
  for (const char* tier : {"host", "nvme"}) {
    machine.device.memory.push_back({.name = tier, .capacity = 1_GiB, .bandwidth = Bandwidth(1e9)});
  }
  return machine;
}

RC_GTEST_PROP(LowerBound, IsNeverAboveTheSimulation, ()) {
  const cases::Case c = *cases::any_case();
  auto machine = machine::with_devices(any_machine(c.plan.devices()), c.plan.devices());
  RC_ASSERT(machine.has_value());
  RC_PRE(plan::check_machine(c.plan, *machine).has_value());
  parallel::set_clocks(*machine, c.model, c.plan);
  const auto timeline = simulate::simulate(cases::lowered(c.model, c.plan), *machine);
  RC_PRE(timeline.has_value());
  estimate::Estimator estimator(c.model, *machine);
  const auto bound = estimator.lower_bound(c.plan);
  const auto interval = estimator.interval(c.plan);
  RC_ASSERT(bound.has_value() && interval.has_value());
  RC_ASSERT(*bound <= timeline->step_time);
  RC_ASSERT(*bound > Time(0));
  RC_ASSERT(interval->least == *bound);
  RC_ASSERT(interval->least <= interval->value && interval->value <= interval->most);
  RC_ASSERT(interval->compute + interval->exposed + interval->bubble + interval->tail ==
            interval->value);
}

}  // namespace
}  // namespace orrery
