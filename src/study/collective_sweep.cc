// SPDX-License-Identifier: Apache-2.0
#include "study/collective_sweep.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "collective/left_out.h"
#include "collective/phase_messages.h"
#include "simulate/simulate.h"

namespace orrery::study {
namespace {

constexpr graph::StreamIndex kCommunication(1);
constexpr graph::GroupIndex kMembers(std::size_t{0});

graph::Node collective_node(graph::CollectiveKind kind, Bytes bytes) {
  graph::Node node;
  node.kind = graph::Node::Kind::collective;
  node.stream = kCommunication;
  node.name = std::string(name_of(kind));
  node.group = kMembers;
  node.collective = kind;
  node.bytes = bytes;
  return node;
}

Mistake whole_only(const collective::SweepOptions& options, simulate::NetworkModel network) {
  return {"--chunks",
          {},
          std::to_string(options.chunks),
          fmt::format("--network ports; {} sends every message of a whole collective",
                      name_of(network))};
}

std::string without_messages(simulate::NetworkModel network,
                             const collective::CollectivePhase& wanted,
                             const collective::CollectivePhase& taken) {
  return fmt::format("network {} runs {} in place of auto's {}, which has no messages there",
                     name_of(network), name_of(taken.algorithm), name_of(wanted.algorithm));
}

}  // namespace

graph::Workload lone_collective(const collective::SweepOptions& options, Bytes bytes) {
  graph::Workload workload;
  workload.ranks = options.devices * options.stride;
  workload.programs = {{{{"collective", {collective_node(options.kind, bytes)}}}}};
  workload.roles = {{"member", 0}};
  std::vector<std::vector<graph::Instance>> lists{{graph::Instance{}}};
  if (options.stride > 1) {  // ranks of one remainder form a group; only that of rank 0 acts
    const auto others = static_cast<std::size_t>(options.stride);
    workload.role_map.digits = {{.size = options.stride, .stride = 1}};
    workload.roles.resize(others, {"other", 0});
    lists.resize(others);
  }
  workload.source = std::make_shared<graph::InstanceLists>(std::move(lists));
  workload.phases = {{"compute", "nothing"}};
  workload.categories = {{"exposed", "the collective"}};
  workload.streams = {{"compute", "nothing", graph::Order::issue},
                      {"communication", "the collective", graph::Order::issue}};
  workload.groups = {{.name = "members",
                      .meaning = "of the collective",
                      .members = {.digits = {{options.devices, options.stride}},
                                  .only = {},
                                  .lists = {},
                                  .list_of = {}},
                      .category = graph::CategoryIndex(std::size_t{0})}};
  return workload;
}

Result<SweepTable> sweep_on(simulate::NetworkModel network, const machine::Machine& machine,
                            const collective::SweepOptions& options) {
  const auto on = collective::sweep_case(machine, options);
  if (!on) {
    return fail(on.error());
  }
  SweepTable table{.rows = {}, .notes = collective::left_out(*on, options)};
  if (network == simulate::NetworkModel::ports && !machine.wires.graph) {
    return collective::sweep_collective(machine, options)
        .map([&](std::vector<collective::SweepRow> rows) {
          table.rows = std::move(rows);
          return std::move(table);
        });
  }
  if (options.chunks > 0) {
    return fail(Error(whole_only(options, network)));
  }
  simulate::SimulateOptions how;
  how.network = network;
  how.algorithms.set(kMembers, options.algorithm);
  std::set<std::string> replaced;
  for (const Bytes bytes : on->sizes) {
    const auto timeline = simulate::simulate(lone_collective(options, bytes), on->machine, how);
    if (!timeline) {
      return fail(timeline.error());
    }
    const auto phases =
        collective::plan_messages(options.kind, bytes, on->extents, options.algorithm, on->machine);
    table.rows.push_back(collective::sweep_row(*on, options, bytes, phases, timeline->step_time));
    const auto wanted = collective::plan_collective(options.kind, bytes, on->extents,
                                                    options.algorithm, on->machine);
    if (wanted.front().algorithm != phases.front().algorithm) {
      replaced.insert(without_messages(network, wanted.front(), phases.front()));
    }
  }
  table.notes.insert(table.notes.end(), replaced.begin(), replaced.end());
  return table;
}

}  // namespace orrery::study
