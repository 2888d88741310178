// SPDX-License-Identifier: Apache-2.0
/// Small workloads of stages that send to one another.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/workload.h"

namespace orrery::testing {

// Rows of the tables of pipeline().
inline constexpr graph::StreamIndex kLink{std::size_t{1}};
inline constexpr graph::GroupIndex kAlone{std::size_t{0}};
inline constexpr graph::GroupIndex kStages{std::size_t{1}};
inline constexpr graph::GroupIndex kEnds{std::size_t{2}};

inline constexpr std::uint32_t kForward = 0;
inline constexpr std::uint32_t kBackward = 1;

/// Every role issues its templates once each, in order.
inline std::shared_ptr<const graph::Source> in_order(std::size_t roles, int length) {
  std::vector<graph::Instance> list;
  for (int i = 0; i < length; ++i) {
    list.push_back({.template_index = i});
  }
  return std::make_shared<graph::InstanceLists>(
      std::vector<std::vector<graph::Instance>>(roles, list));
}

inline graph::Node compute_node(double flops, std::vector<int> after = {}) {
  graph::Node node;
  node.name = "work";
  node.operators.push_back({.name = "op", .gemm = {}, .flops = Flops(flops), .bytes = 8_B});
  node.after = std::move(after);
  return node;
}

inline graph::Node message(graph::Node::Kind kind, std::uint32_t channel, std::int64_t peer,
                           Bytes bytes = 64_B) {
  graph::Node node;
  node.kind = kind;
  node.stream = kLink;
  node.group = kStages;
  node.name = "message";
  node.channel = channel;
  node.peer = peer;
  node.bytes = bytes;
  return node;
}
inline graph::Node send(std::uint32_t channel, std::int64_t peer, Bytes bytes = 64_B) {
  return message(graph::Node::Kind::send, channel, peer, bytes);
}
inline graph::Node receive(std::uint32_t channel, std::int64_t peer, Bytes bytes = 64_B) {
  return message(graph::Node::Kind::receive, channel, peer, bytes);
}

inline graph::Node reduce(graph::GroupIndex group, Bytes bytes = 64_B) {
  graph::Node node;
  node.kind = graph::Node::Kind::collective;
  node.stream = kLink;
  node.group = group;
  node.name = "reduce";
  node.bytes = bytes;
  return node;
}

inline graph::Members by_digits(std::vector<graph::Digit> digits,
                                std::vector<std::int64_t> only = {}) {
  return {.digits = std::move(digits), .only = std::move(only), .lists = {}, .list_of = {}};
}

/// One rank and one template per stage.
inline graph::Workload pipeline(std::vector<std::vector<graph::Node>> stages) {
  const std::int64_t count = std::ssize(stages);
  const bool several = count > 1;
  const auto digits = several ? std::vector<graph::Digit>{{count, 1}} : std::vector<graph::Digit>{};
  const auto ends = several ? std::vector<std::int64_t>{0, count - 1} : std::vector<std::int64_t>{};
  const graph::CategoryIndex exposed(std::size_t{0});
  graph::Workload workload;
  workload.ranks = count;
  workload.role_map.digits = digits;
  workload.phases = {{"work", "all work"}};
  workload.categories = {{"exposed", "all communication"}};
  workload.streams = {{"compute", "kernels"}, {"link", "all communication"}};
  workload.groups = {{"alone", "nobody else", by_digits({}), exposed},
                     {"stages", "all stages", by_digits(digits), exposed},
                     {"ends", "the first and the last", by_digits(digits, ends), exposed}};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    workload.roles.push_back({"stage " + std::to_string(s), s});
    workload.programs.push_back({{{"only", std::move(stages[s])}}});
  }
  workload.source = in_order(workload.roles.size(), 1);
  return workload;
}

inline std::string mistakes_of(const graph::Workload& workload) {
  const Result<void> verified = graph::verify(workload);
  return verified ? "" : verified.error().to_string();
}

}  // namespace orrery::testing
