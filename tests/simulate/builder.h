// SPDX-License-Identifier: Apache-2.0
/// Small machines and workloads for tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::testing {

/// Kernel time is bytes / (1 GB/s), nothing else: 1 MB takes 1 ms.
inline Device plain_device() {
  Device device;
  device.peak.fill(1_TFLOPs);
  device.memory = {{"memory", 1_GiB, 1_GBps, Time(0)}};
  device.kernels.elementwise_share = 1;
  device.kernels.stream_launch = Time(0);
  return device;
}

inline NetworkDimension dimension(DimensionKind kind, std::int64_t size) {
  NetworkDimension result;
  result.name = std::string(name_of(kind));
  result.kind = kind;
  result.size = size;
  result.bandwidth = 1_GBps;
  result.latency = 1_us;
  return result;
}

inline Machine machine_of(std::vector<NetworkDimension> network) {
  Machine machine;
  machine.name = "test";
  machine.device = plain_device();
  machine.network = std::move(network);
  return machine;
}

/// A kernel of `time` on plain_device(): 1 ns per byte.
inline Operator kernel(Time time) {
  Operator op;
  op.name = "kernel";
  op.bytes = Bytes(time.value() / 1000);
  return op;
}

inline Node compute(std::string name, Time time, std::vector<int> after = {},
                    Phase phase = Phase::forward) {
  Node node;
  node.name = std::move(name);
  node.phase = phase;
  node.operators = {kernel(time)};
  node.after = std::move(after);
  return node;
}

inline Node collective(std::string name, Axis axis, Bytes bytes, std::vector<int> after = {}) {
  Node node;
  node.kind = Node::Kind::collective;
  node.name = std::move(name);
  node.axis = axis;
  node.stream = stream_of(axis);
  node.bytes = bytes;
  node.after = std::move(after);
  return node;
}

inline Node send(std::string name, Channel channel, Bytes bytes, std::vector<int> after = {}) {
  Node node;
  node.kind = Node::Kind::send;
  node.name = std::move(name);
  node.stream = Stream::pp;
  node.axis = Axis::pp;
  node.channel = channel;
  node.bytes = bytes;
  node.after = std::move(after);
  return node;
}

inline Node receive(std::string name, Channel channel) {
  Node node;
  node.kind = Node::Kind::receive;
  node.name = std::move(name);
  node.stream = Stream::receive;
  node.channel = channel;
  return node;
}

/// Every role issues the same list of instances.
class ListSource : public Source {
 public:
  explicit ListSource(std::vector<std::vector<Instance>> lists) : lists_(std::move(lists)) {}
  std::optional<Instance> issue(int role, std::int64_t index) const override {
    const auto& list = lists_[static_cast<std::size_t>(role)];
    return index < static_cast<std::int64_t>(list.size())
               ? std::optional(list[static_cast<std::size_t>(index)])
               : std::nullopt;
  }
  std::int64_t length(int role) const override {
    return static_cast<std::int64_t>(lists_[static_cast<std::size_t>(role)].size());
  }

 private:
  std::vector<std::vector<Instance>> lists_;
};

/// One program per stage, one template each, issued `times` times.
inline Workload workload_of(RankLayout layout, std::vector<std::vector<Node>> stages,
                            int times = 1) {
  Workload workload;
  workload.layout = std::move(layout);
  std::vector<std::vector<Instance>> lists;
  for (std::vector<Node>& nodes : stages) {
    Program program;
    program.name = "stage";
    program.templates.push_back({"pass", std::move(nodes)});
    workload.programs.push_back(std::move(program));
    std::vector<Instance>& list = lists.emplace_back();
    for (int i = 0; i < times; ++i) {
      list.push_back({.template_index = 0, .chunk = 0, .microbatch = i});
    }
  }
  workload.source = std::make_shared<ListSource>(std::move(lists));
  return workload;
}

}  // namespace orrery::testing
