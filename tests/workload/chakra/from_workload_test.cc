// SPDX-License-Identifier: Apache-2.0
/// Steps as traces: the same work, bytes and messages that the simulator runs, in the same order.
#include "workload/chakra/from_workload.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <tuple>

#include "machine/machine.h"
#include "simulate/simulate.h"
#include "traces.h"
#include "workload/chakra/write.h"
#include "workload/parallel/lower.h"
#include "workload/zoo/model.h"

namespace orrery::chakra {
namespace {

zoo::Model small_model() {
  zoo::Model model = zoo::load_model("gpt2").value();
  model.layers = 8;
  return model;
}

simulate::SimulateOptions every_rank() {
  simulate::SimulateOptions options;
  options.fold = false;
  options.record_spans = true;
  return options;
}

/// Plans of up to 16 ranks with every kind of communication between them.
rc::Gen<plan::Plan> any_plan() {
  return rc::gen::exec([] {
    plan::Plan plan;
    plan.tp = *rc::gen::element<std::int64_t>(1, 2);
    plan.cp = *rc::gen::element<std::int64_t>(1, 2);
    plan.pp = *rc::gen::element<std::int64_t>(1, 2, 4);
    plan.dp = *rc::gen::element<std::int64_t>(1, 2);
    plan.zero = *rc::gen::inRange<std::int64_t>(0, 4);
    plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
    plan.offload_activations = *rc::gen::element(0.0, 0.5);
    plan.sequence_parallel = *rc::gen::arbitrary<bool>();
    plan.recompute = *rc::gen::element(plan::Recompute::none, plan::Recompute::full);
    plan.global_batch = plan.dp * 4;
    return plan;
  });
}

/// Totals are what a rank does in a step, added up.
struct Totals {
  double operations = 0;
  std::map<std::pair<int, std::int64_t>, std::int64_t> bytes;  ///< by collective and members
  std::int64_t collectives = 0;
  std::int64_t sends = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t receives = 0;
  friend bool operator==(const Totals&, const Totals&) = default;
};

Totals totals_of_trace(const TraceSet& set, std::int64_t rank) {
  Totals sum;
  for (const Node& node : set.program(rank).nodes) {
    sum.operations += node.type == NodeType::comp ? node.operations.value() : 0;
    if (node.type == NodeType::comm_coll) {
      const Group& group = set.groups[set.group(rank, node.group)];
      const auto members = static_cast<std::int64_t>(group.ranks.size());
      const bool gathers = node.collective == CollectiveType::all_gather;
      sum.bytes[{static_cast<int>(node.collective), members}] +=
          node.size.value() * (gathers ? members : 1);
      ++sum.collectives;
    } else if (node.type == NodeType::comm_send) {
      ++sum.sends;
      sum.sent_bytes += node.size.value();
    } else if (node.type == NodeType::comm_recv) {
      ++sum.receives;
    }
  }
  return sum;
}

/// Returns the totals from the spans of a simulation of every rank.
Totals totals_of_spans(const graph::Workload& workload, const simulate::Timeline& timeline,
                       std::int64_t rank) {
  const std::map<graph::CollectiveKind, CollectiveType> types{
      {graph::CollectiveKind::all_reduce, CollectiveType::all_reduce},
      {graph::CollectiveKind::all_gather, CollectiveType::all_gather},
      {graph::CollectiveKind::reduce_scatter, CollectiveType::reduce_scatter},
      {graph::CollectiveKind::all_to_all, CollectiveType::all_to_all},
      {graph::CollectiveKind::broadcast, CollectiveType::broadcast}};
  Totals sum;
  for (const simulate::Span& span : timeline.spans) {
    if (span.rank != rank) {
      continue;
    }
    if (span.kind == graph::Node::Kind::receive) {
      ++sum.receives;
      continue;
    }
    const graph::Node& node = workload.program_of(workload.role_of(rank))
                                  .templates[static_cast<std::size_t>(span.template_index)]
                                  .nodes[static_cast<std::size_t>(span.node)];
    for (const graph::Operator& op : node.operators) {
      sum.operations += op.flops.value();
    }
    if (node.kind == graph::Node::Kind::send ||
        node.collective == graph::CollectiveKind::send_recv) {
      ++sum.sends;
      sum.sent_bytes += node.bytes.value();
      sum.receives += node.kind == graph::Node::Kind::send ? 0 : 1;
    } else if (node.kind == graph::Node::Kind::collective) {
      ++sum.collectives;
      sum.bytes[{static_cast<int>(types.at(node.collective)),
                 workload.group(node.group).members.size()}] += node.bytes.value();
    }
  }
  return sum;
}

RC_GTEST_PROP(FromWorkloadProperty, traces_hold_the_work_that_the_simulator_runs, ()) {
  const plan::Plan plan = *any_plan();
  const auto workload = parallel::lower(small_model(), plan);
  RC_PRE(workload.has_value());
  const auto machine =
      machine::with_devices(machine::load_machine("dgx-a100-80g").value(), plan.devices());
  RC_ASSERT(machine.has_value());
  const auto set = from_workload(*workload, {});
  RC_ASSERT(set.has_value());
  const auto timeline = simulate::simulate(*workload, *machine, every_rank());
  RC_ASSERT(timeline.has_value());
  for (std::int64_t rank = 0; rank < plan.devices(); ++rank) {
    const Totals trace = totals_of_trace(*set, rank);
    const Totals spans = totals_of_spans(*workload, *timeline, rank);
    RC_ASSERT(std::abs(trace.operations - spans.operations) <= 1e-9 * spans.operations);
    RC_ASSERT(trace.bytes == spans.bytes);
    RC_ASSERT(trace.collectives == spans.collectives);
    RC_ASSERT(trace.sends == spans.sends);
    RC_ASSERT(trace.sent_bytes == spans.sent_bytes);
    RC_ASSERT(trace.receives == spans.receives);
  }
}

RC_GTEST_PROP(FromWorkloadProperty, written_traces_read_back_equal, ()) {
  const plan::Plan plan = *any_plan();
  const auto workload = parallel::lower(small_model(), plan);
  RC_PRE(workload.has_value());
  const auto set = from_workload(*workload, {});
  RC_ASSERT(set.has_value());
  const Folder folder;
  RC_ASSERT(
      write_traces(*set, {.prefix = folder / "t", .most_files = 16, .progress = {}}).has_value());
  LoadOptions options{
      .prefix = folder / "t", .ranks = plan.devices(), .groups = {}, .progress = {}};
  if (set->groups.size() > 1) {
    options.groups = folder / "t.groups.json";
  }
  const auto read = load(options);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->programs == set->programs);
  RC_ASSERT(read->groups == set->groups);
  RC_ASSERT(*read == *set);
}

RC_GTEST_PROP(FromWorkloadProperty, every_message_has_a_counterpart, ()) {
  const plan::Plan plan = *any_plan();
  const auto workload = parallel::lower(small_model(), plan);
  RC_PRE(workload.has_value());
  const auto set = from_workload(*workload, {});
  RC_ASSERT(set.has_value());
  // (from, to, tag, bytes) of sends and of receives.
  std::multiset<std::tuple<std::int64_t, std::int64_t, std::uint32_t, std::int64_t>> sends;
  auto receives = sends;
  for (std::int64_t rank = 0; rank < set->ranks(); ++rank) {
    for (const Node& node : set->program(rank).nodes) {
      if (node.type == NodeType::comm_send) {
        sends.emplace(rank, rank + node.peer, node.tag, node.size.value());
      } else if (node.type == NodeType::comm_recv) {
        receives.emplace(rank + node.peer, rank, node.tag, node.size.value());
      }
    }
  }
  RC_ASSERT(sends == receives);
}

/// Spans of compute, collectives and sends by where their node stands.
using Place = std::tuple<std::int64_t, int, int, int, std::int64_t>;

RC_GTEST_PROP(FromWorkloadProperty, the_simulator_keeps_every_dependency, ()) {
  const plan::Plan plan = *any_plan();
  const auto workload = parallel::lower(small_model(), plan);
  RC_PRE(workload.has_value());
  const auto machine =
      machine::with_devices(machine::load_machine("dgx-a100-80g").value(), plan.devices());
  const auto set = from_workload(*workload, {});
  const auto timeline = simulate::simulate(*workload, *machine, every_rank());
  RC_ASSERT(set.has_value() && timeline.has_value());
  std::map<Place, const simulate::Span*> spans;
  for (const simulate::Span& span : timeline->spans) {
    if (span.kind != graph::Node::Kind::receive) {
      spans[{span.rank, span.template_index, span.chunk, span.node, span.microbatch}] = &span;
    }
  }
  for (std::int64_t rank = 0; rank < plan.devices(); ++rank) {
    const int role = workload->role_of(rank);
    const Program& program = set->program(rank);
    std::vector<const simulate::Span*> of_node;
    const graph::IssueList& list = *workload->source->list();
    for (std::int64_t i = 0; i < list.length(role); ++i) {
      const graph::Instance instance = list.at(role, i);
      const auto& nodes = workload->shape(role, instance).nodes;
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        if (nodes[n].kind == graph::Node::Kind::wait) {
          continue;
        }
        const auto found = spans.find({rank, instance.template_index, instance.chunk,
                                       static_cast<int>(n), instance.microbatch});
        of_node.push_back(found == spans.end() ? nullptr : found->second);
        if (nodes[n].kind == graph::Node::Kind::collective &&
            nodes[n].collective == graph::CollectiveKind::send_recv) {
          of_node.push_back(of_node.back());
        }
      }
    }
    RC_ASSERT(of_node.size() == program.nodes.size());
    std::size_t checked = 0;
    for (std::size_t i = 0; i < of_node.size(); ++i) {
      const Node& node = program.nodes[i];
      for (std::uint32_t d = 0; d < node.dependencies; ++d) {
        const simulate::Span* before = of_node[program.dependencies[node.first_dependency + d]];
        if (before != nullptr && of_node[i] != nullptr) {
          RC_ASSERT(before->end <= of_node[i]->begin);
          ++checked;
        }
      }
    }
    RC_ASSERT(checked > 0U);
  }
}

TEST(FromWorkload, durations_add_up_to_a_microsecond) {
  // Every compute node takes 1.4 us: rounded each for itself the sum would be 1.0 us a node.
  plan::Plan plan;
  plan.global_batch = 16;
  const auto workload = parallel::lower(small_model(), plan);
  ASSERT_TRUE(workload.has_value());
  const auto set = from_workload(*workload, {.times = [](const auto&) {
    return ComputeTimes{1400_ns, 2100_ns, 1400_ns};
  }});
  ASSERT_TRUE(set.has_value());
  Time sum{0};
  std::int64_t nodes = 0;
  for (const Node& node : set->program(0).nodes) {
    sum += node.duration;
    EXPECT_EQ(node.duration.value() % (1_us).value(), 0);
    nodes += node.type == NodeType::comp ? 1 : 0;
  }
  ASSERT_GT(nodes, 10);
  EXPECT_LE(std::abs((sum - 1400_ns * nodes).value()), (1_us).value());
}

TEST(FromWorkload, an_absurd_number_of_nodes_is_refused) {
  const auto workload = parallel::lower(small_model(), plan::Plan{});
  ASSERT_TRUE(workload.has_value());
  EXPECT_FALSE(from_workload(*workload, {.times = {}, .most_nodes = 3}).has_value());
}

}  // namespace
}  // namespace orrery::chakra
