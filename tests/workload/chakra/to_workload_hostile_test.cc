// SPDX-License-Identifier: Apache-2.0
/// Traces that make no sense: a message or a time, never a crash, never without end.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "machine/machine.h"
#include "simulate/simulate.h"
#include "traces.h"
#include "workload/chakra/to_workload.h"

namespace orrery::chakra {
namespace {

constexpr std::int64_t kRanks = 4;

std::int64_t below(std::int64_t limit) {
  return *rc::gen::inRange<std::int64_t>(0, limit);
}

Node any_node(std::uint32_t position, std::uint32_t slots) {
  Node node;
  node.id = position;
  node.type = *rc::gen::element(NodeType::metadata, NodeType::mem_load, NodeType::comp,
                                NodeType::comm_send, NodeType::comm_recv, NodeType::comm_coll);
  node.collective = *rc::gen::element(CollectiveType::all_reduce, CollectiveType::all_gather,
                                      CollectiveType::barrier, CollectiveType::reduce);
  node.duration = Time(below(3) * 1'000'000);
  node.size = Bytes(below(3) * 1000);
  if (communicates(node.type)) {
    node.group = static_cast<std::uint32_t>(below(slots + 1));
  }
  if (node.type == NodeType::comp) {
    node.operations = Flops(static_cast<double>(below(3)) * 1e6);
  } else if (node.type == NodeType::comm_coll) {
    node.involved = static_cast<std::uint32_t>(below(4));
  } else {
    node.peer = below(2 * kRanks) - kRanks;
    node.tag = static_cast<std::uint32_t>(below(2));
  }
  node.on_cpu = below(8) == 0;
  node.has_involved = below(8) == 0;
  node.involved_entries = static_cast<std::uint8_t>(below(3));
  return node;
}

Program any_program(std::uint32_t slots) {
  Program program;
  program.names = std::string("x\0", 2);
  const auto count = static_cast<std::uint32_t>(1 + below(6));
  for (std::uint32_t i = 0; i < count; ++i) {
    Node node = any_node(i, slots);
    node.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    if (count > 1 && below(2) == 0) {  // now and then a circle
      node.dependencies = 1;
      const std::int64_t other = below(10) == 0 ? below(count) : below(std::max(1U, i));
      program.dependencies.push_back(static_cast<std::uint32_t>(other));
    }
    program.nodes.push_back(node);
  }
  return program;
}

/// Every rank's slot is a group that holds it.
TraceSet any_traces() {
  constexpr std::uint32_t kSlots = 2;
  TraceSet set;
  set.groups = {{"", {}},      {"1", {0, 1}}, {"2", {3, 2}},
                {"3", {0, 2}}, {"4", {1, 3}}, {"5", {1, 2, 3}}};
  const std::vector<std::vector<std::uint32_t>> holds{{1, 3}, {1, 4, 5}, {2, 3, 5}, {2, 4, 5}};
  const auto programs = 1 + below(3);
  for (std::int64_t i = 0; i < programs; ++i) {
    set.programs.push_back(any_program(kSlots));
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    set.program_of.push_back(static_cast<std::uint32_t>(below(programs)));
    set.first_slot.push_back(static_cast<std::uint32_t>(set.group_slots.size()));
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      const auto which = static_cast<std::size_t>(below(std::ssize(holds[rank])));
      set.group_slots.push_back(holds[rank][which]);
    }
  }
  return set;
}

RC_GTEST_PROP(ToWorkloadHostile, any_traces_run_or_say_why_not, ()) {
  const TraceSet traces = any_traces();
  ToWorkloadOptions options;
  options.dimensions = {2, 2};
  options.memory_tier = below(2) == 0 ? std::optional<int>(1) : std::nullopt;
  const auto workload = to_workload(traces, options);
  if (!workload) {
    RC_TAG("refused");
    RC_ASSERT(!workload.error().to_string().empty());
    return;
  }
  const machine::Machine machine =
      machine::with_devices(machine::load_machine("dgx-a100-80g").value(), kRanks).value();
  const auto timeline = simulate::simulate(*workload, machine, {});
  if (!timeline) {
    RC_TAG("deadlock");
    RC_ASSERT(timeline.error().to_string().find("deadlock") != std::string::npos);
    return;
  }
  RC_TAG("ran");
  simulate::SimulateOptions every_rank;
  every_rank.fold = false;
  RC_ASSERT(simulate::simulate(*workload, machine, every_rank)->step_time == timeline->step_time);
}

}  // namespace
}  // namespace orrery::chakra
