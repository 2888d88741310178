// SPDX-License-Identifier: Apache-2.0
#include "simulate/bind.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "collective/group_extents.h"
#include "machine/compute/compute_model.h"

namespace orrery {
namespace {

class Binder {
 public:
  Binder(const Workload& workload, const Machine& machine, const AlgorithmChoice& algorithms)
      : workload_(workload), machine_(machine), algorithms_(algorithms) {}

  BoundWorkload run() {
    bound_.algorithms = algorithms_;
    for (const Program& program : workload_.programs) {
      std::vector<BoundTemplate>& role = bound_.roles.emplace_back();
      for (const Template& source : program.templates) {
        role.push_back(bind_template(source));
      }
    }
    return std::move(bound_);
  }

 private:
  BoundTemplate bind_template(const Template& source) {
    BoundTemplate bound;
    std::vector<std::vector<std::uint32_t>> dependents(source.nodes.size());
    for (std::uint32_t i = 0; i < source.nodes.size(); ++i) {
      const Node& node = source.nodes[i];
      for (const int before : node.after) {
        dependents[static_cast<std::size_t>(before)].push_back(i);
      }
      bound.nodes.push_back(bind_node(node));
      bound.pending.push_back(static_cast<std::uint16_t>(node.after.size()));
      auto& list = bound.by_stream[static_cast<std::size_t>(node.stream)];
      if (list.empty()) {
        bound.streams.push_back(node.stream);
      }
      list.push_back(i);
    }
    for (std::size_t i = 0; i < source.nodes.size(); ++i) {
      bound.nodes[i].first_dependent = static_cast<std::uint32_t>(bound.dependents.size());
      bound.nodes[i].dependent_count = static_cast<std::uint32_t>(dependents[i].size());
      bound.dependents.insert(bound.dependents.end(), dependents[i].begin(), dependents[i].end());
    }
    return bound;
  }

  BoundNode bind_node(const Node& node) {
    BoundNode bound;
    bound.kind = node.kind;
    bound.stream = node.stream;
    bound.phase = node.phase;
    bound.axis = node.axis;
    bound.channel = node.channel;
    bound.host_sync = node.host_sync;
    bound.bytes = node.bytes;
    if (node.kind == Node::Kind::compute) {
      bind_compute(node, bound);
    } else if (node.kind == Node::Kind::collective) {
      bound.collective = collective_index(node);
      bound.host_cost = workload_.host_dispatch;
    } else if (node.kind == Node::Kind::copy) {
      bound.kind = Node::Kind::collective;  // of the rank alone, over its own link
      bound.axis = axis_of(node.stream);
      bound.collective = copy_index(node);
      bound.host_cost = workload_.host_dispatch;
    }
    return bound;
  }

  /// host_span by Horner's scheme from the last kernel: span_i = dispatch + max(rest_i, span_i+1),
  /// where rest_i is the work from kernel i on.
  void bind_compute(const Node& node, BoundNode& bound) const {
    Time beside_collective{0};
    Time beside_message{0};
    for (auto op = node.operators.rbegin(); op != node.operators.rend(); ++op) {
      const KernelTime time = kernel_time(*op, machine_.device);
      bound.work += time.alone;
      beside_collective += time.beside_collective;
      beside_message += time.beside_message;
      const Time dispatch = workload_.host_dispatch * op->kernels;
      bound.host_cost += dispatch;
      bound.host_span = dispatch + std::max(bound.work, bound.host_span);
    }
    if (bound.work > Time(0)) {
      bound.contention = {.message = beside_message / bound.work,
                          .collective = beside_collective / bound.work};
    }
  }

  int collective_index(const Node& node) {
    auto& all = bound_.collectives;
    const auto same = std::find_if(all.begin(), all.end(), [&](const BoundCollective& other) {
      return other.axis == node.axis && other.kind == node.collective &&
             other.bytes == node.bytes && other.copies == node.copies;
    });
    if (same != all.end()) {
      return static_cast<int>(same - all.begin());
    }
    const std::vector<Extent> extents = group_extents(workload_.layout, node.axis, machine_);
    if (node.copies > 0 && extents.size() > 1) {
      all.push_back({.axis = node.axis,
                     .kind = node.collective,
                     .bytes = node.bytes,
                     .copies = node.copies,
                     .phases = token_exchange(node, extents)});
      return static_cast<int>(all.size() - 1);
    }
    all.push_back(
        {.axis = node.axis,
         .kind = node.collective,
         .bytes = node.bytes,
         .copies = node.copies,
         .phases = plan_collective(node.collective, node.bytes, extents,
                                   algorithms_[static_cast<std::size_t>(node.axis)], machine_)});
    return static_cast<int>(all.size() - 1);
  }

  /// Tokens to k experts at random over n nodes: n (1 - (1 - 1/n)^k) of them have one of them on
  /// average, and as many copies cross between nodes; inside the nodes every copy moves.
  std::vector<CollectivePhase> token_exchange(const Node& node,
                                              const std::vector<Extent>& extents) const {
    const std::vector<Extent> inner{extents.front()};
    const std::vector<Extent> outer(extents.begin() + 1, extents.end());
    double nodes = 1;
    for (const Extent& extent : outer) {
      nodes *= static_cast<double>(extent.count);
    }
    const auto copies = static_cast<double>(node.copies);
    const double reached = nodes * (1 - std::pow(1 - 1 / nodes, copies));
    const CollectiveAlgorithm algorithm = algorithms_[static_cast<std::size_t>(node.axis)];
    std::vector<CollectivePhase> phases = plan_collective(
        node.collective, node.bytes * (reached / copies), outer, algorithm, machine_);
    for (CollectivePhase& phase :
         plan_collective(node.collective, node.bytes, inner, algorithm, machine_)) {
      phases.push_back(std::move(phase));
    }
    return phases;
  }

  int copy_index(const Node& node) {
    auto& all = bound_.collectives;
    const Axis axis = axis_of(node.stream);
    const std::int64_t sharers = node.axis == axis ? 1 : workload_.layout.size(node.axis);
    const auto same = std::find_if(all.begin(), all.end(), [&](const BoundCollective& other) {
      return other.axis == axis && other.tier == node.tier && other.bytes == node.bytes &&
             other.sharers == sharers;
    });
    if (same != all.end()) {
      return static_cast<int>(same - all.begin());
    }
    CollectivePhase phase;
    phase.latency = node.tier == kRemoteTier ? remote_time(node, sharers) : local_time(node);
    all.push_back({.axis = axis,
                   .kind = node.collective,
                   .bytes = node.bytes,
                   .tier = node.tier,
                   .sharers = sharers,
                   .phases = {phase}});
    return static_cast<int>(all.size() - 1);
  }

  Time local_time(const Node& node) const {
    const auto tier = static_cast<std::size_t>(node.tier);
    assert(tier < machine_.device.memory.size() && "check_fits() asks for the tier");
    const MemoryTier& memory = machine_.device.memory[tier];
    return local_access(node.bytes, memory.bandwidth, memory.latency);
  }

  /// Of one of `sharers`. How many of them share a node is taken from rank 0's communicator.
  Time remote_time(const Node& node, std::int64_t sharers) const {
    const RemoteMemory& memory = machine_.remote_memory;
    RemoteAccess access{
        .bytes = node.bytes, .devices = workload_.layout.ranks(), .sharers = sharers};
    if (sharers > 1) {
      const std::vector<std::int64_t> ranks = workload_.layout.group(0, node.axis);
      access.in_node = std::count_if(ranks.begin(), ranks.end(),
                                     [&](std::int64_t rank) { return rank < memory.node_devices; });
    }
    return access_time(memory, access);
  }

  const Workload& workload_;
  const Machine& machine_;
  const AlgorithmChoice& algorithms_;
  BoundWorkload bound_;
};

}  // namespace

BoundWorkload bind(const Workload& workload, const Machine& machine,
                   const AlgorithmChoice& algorithms) {
  return Binder(workload, machine, algorithms).run();
}

}  // namespace orrery
