// SPDX-License-Identifier: Apache-2.0
/// Workloads that only communicate: everything begins at once, each rank has a role of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/workload.h"

namespace orrery::testing {

struct Transmission {
  std::int64_t from = 0;
  std::int64_t to = 1;
  Bytes bytes{0};
};

/// Disjoint lists of ranks, each of which runs the collective.
struct Gathering {
  std::vector<std::vector<std::int64_t>> groups;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes bytes{0};
  int times = 1;  ///< one after the other
};

class Traffic {
 public:
  explicit Traffic(std::int64_t ranks) : nodes_(static_cast<std::size_t>(ranks)) {
    workload_.ranks = ranks;
    workload_.phases = {{"none", "nothing computes"}};
    workload_.categories = {{"exposed", "communication"}};
    workload_.streams = {{"compute", "nothing", graph::Order::issue},
                         {"messages", "sends and receives", graph::Order::none}};
    workload_.groups.push_back(row("messages", {}));
  }

  Traffic& add(const Transmission& message) {
    graph::Node node;
    node.stream = graph::StreamIndex(1);
    node.group = graph::GroupIndex(std::size_t{0});
    node.bytes = message.bytes;
    node.channel = channel_++;
    node.kind = graph::Node::Kind::send;
    node.name = "send";
    node.peer = message.to - message.from;
    of(message.from).push_back(node);
    node.kind = graph::Node::Kind::receive;
    node.name = "receive";
    node.peer = -node.peer;
    of(message.to).push_back(node);
    return *this;
  }

  Traffic& add(const Gathering& gathering) {
    graph::Node node;
    node.kind = graph::Node::Kind::collective;
    node.name = "collective";
    node.collective = gathering.kind;
    node.bytes = gathering.bytes;
    node.group = graph::GroupIndex(workload_.groups.size());
    node.stream = graph::StreamIndex(workload_.streams.size());
    const std::string name = "group " + std::to_string(*node.group);
    workload_.groups.push_back(
        row(name, graph::Members::listed(gathering.groups, workload_.ranks)));
    workload_.streams.push_back({name, "", graph::Order::issue});
    for (const auto& group : gathering.groups) {
      for (const std::int64_t rank : group) {
        of(rank).insert(of(rank).end(), static_cast<std::size_t>(gathering.times), node);
      }
    }
    return *this;
  }

  graph::Workload workload() const {
    graph::Workload workload = workload_;
    std::vector<std::vector<graph::Instance>> lists(nodes_.size(), {graph::Instance{}});
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
      workload.role_map.list.push_back(static_cast<std::int32_t>(rank));
      workload.roles.push_back({"rank " + std::to_string(rank), rank});
      workload.programs.push_back({{{"all", nodes_[rank]}}});
    }
    workload.source = std::make_shared<graph::InstanceLists>(std::move(lists));
    return workload;
  }

 private:
  static graph::Group row(std::string name, graph::Members members) {
    return {std::move(name), "", std::move(members), graph::CategoryIndex(std::size_t{0})};
  }
  std::vector<graph::Node>& of(std::int64_t rank) { return nodes_[static_cast<std::size_t>(rank)]; }

  graph::Workload workload_;
  std::vector<std::vector<graph::Node>> nodes_;  ///< by rank
  std::uint32_t channel_ = 0;
};

}  // namespace orrery::testing
