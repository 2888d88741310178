// SPDX-License-Identifier: Apache-2.0
#include "simulate/lone_collective.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orrery::simulate {
namespace {

constexpr graph::StreamIndex kCommunication(1);

graph::Node node_of(const LoneCollective& what) {
  graph::Node node;
  node.kind = graph::Node::Kind::collective;
  node.stream = kCommunication;
  node.name = std::string(name_of(what.kind));
  node.group = kLoneGroup;
  node.collective = what.kind;
  node.bytes = what.bytes;
  node.route = what.route;
  return node;
}

}  // namespace

graph::Workload lone_collective(const LoneCollective& what) {
  graph::Workload workload;
  workload.ranks = what.ranks;
  workload.programs = {{{{"collective", {node_of(what)}}}}};
  workload.roles = {{"member", 0}};
  std::vector<std::vector<graph::Instance>> lists{{graph::Instance{}}};
  if (what.stride > 1 && !what.everywhere) {  // ranks of one remainder form a group
    const auto others = static_cast<std::size_t>(what.stride);
    workload.role_map.digits = {{.size = what.stride, .stride = 1}};
    workload.roles.resize(others, {"other", 0});
    lists.resize(others);
  }
  workload.source = std::make_shared<graph::InstanceLists>(std::move(lists));
  workload.phases = {{"compute", "nothing"}};
  workload.categories = {{"exposed", "the collective"}};
  workload.streams = {{"compute", "nothing", graph::Order::issue},
                      {"communication", "the collective", graph::Order::issue}};
  workload.groups = {
      {.name = "members",
       .meaning = "of the collective",
       .members = {.digits = {{what.devices, what.stride}}, .only = {}, .lists = {}, .list_of = {}},
       .category = graph::CategoryIndex(std::size_t{0})}};
  return workload;
}

}  // namespace orrery::simulate
