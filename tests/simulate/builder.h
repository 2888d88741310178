// SPDX-License-Identifier: Apache-2.0
/// Small machines and workloads for tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "workload/plan/axes.h"

namespace orrery::testing {

/// Kernel time is bytes / (1 GB/s), nothing else: 1 MB takes 1 ms.
inline compute::Device plain_device() {
  compute::Device device;
  device.peak.fill(1_TFLOPs);
  device.memory = {{"memory", 1_GiB, 1_GBps, Time(0)}};
  device.kernels.elementwise_share = 1;
  device.kernels.stream_launch = Time(0);
  return device;
}

inline topology::NetworkDimension dimension(topology::DimensionKind kind, std::int64_t size) {
  topology::NetworkDimension result;
  result.name = std::string(name_of(kind));
  result.kind = kind;
  result.size = size;
  result.bandwidth = 1_GBps;
  result.latency = 1_us;
  return result;
}

inline machine::Machine machine_of(std::vector<topology::NetworkDimension> network) {
  machine::Machine machine;
  machine.name = "test";
  machine.device = plain_device();
  machine.network = std::move(network);
  return machine;
}

/// A kernel of `time` on plain_device(): 1 ns per byte.
inline graph::Operator kernel(Time time) {
  graph::Operator op;
  op.name = "kernel";
  op.bytes = Bytes(time.value() / 1000);
  return op;
}

inline graph::Node compute_node(std::string name, Time time, std::vector<int> after = {},
                                plan::StepPhase phase = plan::StepPhase::forward) {
  graph::Node node;
  node.name = std::move(name);
  node.phase = phase;
  node.operators = {kernel(time)};
  node.after = std::move(after);
  return node;
}

inline graph::Node collective_node(std::string name, plan::Axis axis, Bytes bytes,
                                   std::vector<int> after = {}) {
  graph::Node node;
  node.kind = graph::Node::Kind::collective;
  node.name = std::move(name);
  node.group = axis;
  node.stream = plan::stream_of(axis);
  node.bytes = bytes;
  node.after = std::move(after);
  return node;
}

inline graph::Node send(std::string name, plan::Channel channel, Bytes bytes,
                        std::vector<int> after = {}) {
  graph::Node node;
  node.kind = graph::Node::Kind::send;
  node.name = std::move(name);
  node.stream = plan::StepStream::pp;
  node.group = plan::Axis::pp;
  node.channel = static_cast<std::uint32_t>(channel);
  node.bytes = bytes;
  node.after = std::move(after);
  return node;
}

inline graph::Node receive(std::string name, plan::Channel channel) {
  graph::Node node;
  node.kind = graph::Node::Kind::receive;
  node.name = std::move(name);
  node.stream = plan::StepStream::receive;
  node.group = plan::Axis::pp;
  node.channel = static_cast<std::uint32_t>(channel);
  return node;
}

/// One program per stage, one template each, issued `times` times. Messages go where their channel
/// leads from the stage.
inline graph::Workload workload_of(const plan::RankLayout& layout,
                                   std::vector<std::vector<graph::Node>> stages, int times = 1) {
  graph::Workload workload = plan::step_workload(layout);
  std::vector<std::vector<graph::Instance>> lists;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (graph::Node& node : stages[stage]) {
      if (node.kind == graph::Node::Kind::send || node.kind == graph::Node::Kind::receive) {
        node.peer = layout.peer(node.kind, static_cast<plan::Channel>(node.channel),
                                static_cast<std::int64_t>(stage));
      }
    }
    workload.programs.push_back({{{"pass", std::move(stages[stage])}}});
    std::vector<graph::Instance>& list = lists.emplace_back();
    for (int i = 0; i < times; ++i) {
      list.push_back({.template_index = 0, .chunk = 0, .microbatch = i});
    }
  }
  workload.source = std::make_shared<graph::InstanceLists>(std::move(lists));
  return workload;
}

}  // namespace orrery::testing
