// SPDX-License-Identifier: Apache-2.0
/// Memory over time of traces: of a run on the event loop (memory_over_time.h) and of the times of
/// nodes (workload/chakra/footprint.h), which must agree where the times are the same.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "study/memory_over_time.h"
#include "study/trace_workload.h"
#include "study/workload_run.h"
#include "workload/chakra/footprint.h"

namespace orrery::study {
namespace {

constexpr graph::MemoryIndex kTensors(std::size_t{0});

machine::Machine traced_device() {
  machine::Machine machine;
  machine.name = "test";
  machine.device.peak.fill(1_TFLOPs);
  machine.device.memory = {{"memory", 1_GiB, 1_GBps, Time(0)}};
  topology::NetworkDimension dimension;
  dimension.name = "switch";
  dimension.kind = topology::DimensionKind::switched;
  dimension.size = 1;
  dimension.bandwidth = 1_GBps;
  machine.network = {dimension};
  return machine;
}

chakra::Node computation(Time duration) {
  chakra::Node node;
  node.duration = duration;
  return node;
}

/// A node after others, by position.
void add(chakra::Program& program, chakra::Node node, const std::vector<std::uint32_t>& after) {
  node.id = program.nodes.size() + 1;
  node.type = chakra::NodeType::comp;
  node.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  node.dependencies = static_cast<std::uint32_t>(after.size());
  program.dependencies.insert(program.dependencies.end(), after.begin(), after.end());
  program.nodes.push_back(node);
}

Result<WorkloadRun> run_on_loop(const chakra::Program& program, const chakra::TensorUses& uses) {
  chakra::TraceSet traces;
  traces.programs = {program};
  traces.program_of = {0};
  traces.groups = {{}};
  auto workload = workload_of(traces, traced_device(), true,
                              [&](std::int64_t) -> Result<chakra::TensorUses> { return uses; });
  if (!workload) {
    return fail(workload.error());
  }
  simulate::SimulateOptions how;
  how.record_spans = true;
  return run_workload("test", std::move(*workload), traced_device(), how);
}

/// Returns the nodes' times by position in the program.
std::vector<chakra::NodeTime> node_times_of(const WorkloadRun& run) {
  std::vector<chakra::NodeTime> times(run.timeline.spans.size());
  for (const simulate::Span& span : run.timeline.spans) {
    times[static_cast<std::size_t>(span.node)] = {span.begin, span.end};  // in order of ids
  }
  return times;
}

/// 2 us, then 3 us, then 1 us: a (100 bytes) -> b (50) -> c (10) -> nothing.
TEST(TraceMemory, AChainHoldsWhatTheEngineOfAstraSimHolds) {
  chakra::Program program;
  program.names = std::string(1, '\0');
  add(program, computation(2_us), {});
  add(program, computation(3_us), {0});
  add(program, computation(1_us), {1});
  const chakra::TensorUses uses{
      {{"a", Bytes(100)}, {"b", Bytes(50)}, {"c", Bytes(10)}},
      {{1, 0, false}, {1, 1, true}, {2, 1, false}, {2, 2, true}, {3, 2, false}}};
  const auto run = run_on_loop(program, uses);
  ASSERT_TRUE(run.has_value()) << run.error().to_string();
  // tests/compat/astra/local_memory_test.cc: a to 2 us, b to 5 us, c from 2 to 6 us.
  std::map<Time, std::int64_t> bytes;
  for (const MemorySample& sample : MemoryOverTime(run->workload, run->timeline).of(0)) {
    bytes[sample.at] = sample.bytes[kTensors].value();
  }
  const std::map<Time, std::int64_t> expected{{0_us, 150}, {2_us, 60}, {5_us, 10}, {6_us, 0}};
  EXPECT_EQ(bytes, expected);
  ASSERT_EQ(run->peaks.size(), 1U);
  EXPECT_EQ(run->peaks[0].fullest.bytes.total(), Bytes(150));
  EXPECT_EQ(run->peaks[0].fullest.at, 0_us);
}

TEST(TraceMemory, WithoutTensorsThereAreNoPeaks) {
  chakra::Program program;
  program.names = std::string(1, '\0');
  add(program, computation(2_us), {});
  const auto run = run_on_loop(program, {});
  ASSERT_TRUE(run.has_value()) << run.error().to_string();
  EXPECT_TRUE(run->peaks.empty());
}

struct Generated {
  chakra::Program program;
  chakra::TensorUses uses;
};

/// Nodes on the device and on the CPU, which run beside each other. Two uses of a tensor are
/// ordered by dependencies if one of them writes, as those of a program that means something are.
Generated any_program() {
  Generated made;
  made.program.names = std::string(1, '\0');
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 12);
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (std::uint32_t n = 0; n < count; ++n) {
    std::vector<std::uint32_t> after;
    for (std::uint32_t d = 0; d < n; ++d) {
      if (*rc::gen::inRange(0, 3) == 0) {
        after.push_back(d);
        before[d][n] = true;
        for (std::uint32_t e = 0; e < d; ++e) {
          before[e][n] = before[e][n] || before[e][d];
        }
      }
    }
    chakra::Node node = computation(1_us * *rc::gen::inRange<std::int64_t>(1, 9));
    node.on_cpu = *rc::gen::inRange(0, 3) == 0;
    add(made.program, node, after);
  }
  made.program.nodes[0].on_cpu = false;  // durations of the CPU alone are none (to_workload.h)
  for (std::uint32_t t = 0; t < 6; ++t) {
    made.uses.tensors.push_back(
        {"t" + std::to_string(t), Bytes(*rc::gen::inRange<std::int64_t>(1, 100))});
    std::vector<chakra::TensorUses::Use> uses;
    for (std::uint32_t n = 0; n < count; ++n) {
      const chakra::TensorUses::Use use{n + 1, t, *rc::gen::arbitrary<bool>()};
      const bool ordered = std::all_of(uses.begin(), uses.end(), [&](const auto& other) {
        return before[other.node - 1][n] || !(other.writes || use.writes);
      });
      if (ordered && *rc::gen::arbitrary<bool>()) {
        uses.push_back(use);
      }
    }
    if (uses.empty()) {
      uses.push_back({1, t, false});
    }
    made.uses.uses.insert(made.uses.uses.end(), uses.begin(), uses.end());
  }
  return made;
}

RC_GTEST_PROP(TraceMemory, the_loop_and_the_footprint_of_its_times_agree, ()) {
  const Generated made = any_program();
  const auto run = run_on_loop(made.program, made.uses);
  RC_ASSERT(run.has_value());
  RC_ASSERT(run->timeline.spans.size() == made.program.nodes.size());
  const chakra::Footprint footprint =
      chakra::footprint(made.program, made.uses, node_times_of(*run)).value();
  RC_ASSERT(run->peaks.size() == 1U);
  RC_ASSERT(run->peaks[0].fullest.bytes.total() == footprint.peak);
  RC_ASSERT(run->peaks[0].fullest.at == footprint.peak_at);
  for (const MemorySample& sample : MemoryOverTime(run->workload, run->timeline).of(0)) {
    if (sample.at == run->timeline.step_time) {
      continue;  // results stay
    }
    Bytes live{0};
    for (std::size_t t = 0; t < made.uses.tensors.size(); ++t) {
      const chakra::TensorLifetime& life = footprint.lifetimes[t];
      live +=
          life.from <= sample.at && sample.at < life.until ? made.uses.tensors[t].size : Bytes(0);
    }
    RC_ASSERT(sample.bytes.total() == live);
  }
}

}  // namespace
}  // namespace orrery::study
