// SPDX-License-Identifier: Apache-2.0
#include "simulate/bind.h"

#include <algorithm>
#include <utility>

#include "base/grouped.h"
#include "collective/group_extents.h"
#include "collective/phase_messages.h"
#include "collective/token_exchange.h"
#include "machine/compute/compute_model.h"
#include "machine/copy_time.h"
#include "machine/device_groups.h"

namespace orrery::simulate {
namespace {

/// Returns the node's time on the host, at least a picosecond, which tells it from a copy.
Time time_on_host(const graph::Node& node) {
  Time sum{0};
  for (const graph::Operator& op : node.operators) {
    sum += op.duration;
  }
  return std::max(sum, Time(1));
}

}  // namespace

Binding::Binding(const graph::Workload& workload, const machine::Machine& machine,
                 const collective::AlgorithmChoice& algorithms, PhaseChoice choice)
    : workload_(workload),
      machine_(machine),
      machines_(machine.parts.empty() ? std::vector<machine::Machine>()
                                      : machine::by_device_group(machine)),
      algorithms_(algorithms),
      choice_(choice),
      shapes_(workload.programs.size()),
      flows_(workload.programs.size()),
      index_of_flow_(workload.programs.size()) {}

const BoundTemplate& Binding::shape(std::size_t program, int template_index) {
  const auto number = static_cast<std::size_t>(template_index);
  auto& shapes = shapes_[program];
  if (number >= shapes.size()) {
    shapes.resize(workload_.programs[program].templates.size());
  }
  if (shapes[number] == nullptr) {
    shapes[number] = std::make_unique<BoundTemplate>(
        bind(program, workload_.programs[program].templates[number]));
  }
  return *shapes[number];
}

void Binding::bind_all() {
  for (std::size_t program = 0; program < shapes_.size(); ++program) {
    const std::size_t count = workload_.programs[program].templates.size();
    for (std::size_t i = 0; i < count; ++i) {
      shape(program, static_cast<int>(i));
    }
  }
}

BoundTemplate Binding::bind(std::size_t program, const graph::Template& source) {
  BoundTemplate bound;
  bound.by_stream.resize(workload_.streams.size());
  Grouped dependents(source.nodes.size(), [&](const auto& add) {
    for (std::uint32_t i = 0; i < source.nodes.size(); ++i) {
      for (const int before : source.nodes[i].after) {
        add(static_cast<std::size_t>(before), i);
      }
    }
  });
  bound.nodes.reserve(source.nodes.size());
  bound.pending.reserve(source.nodes.size());
  for (std::uint32_t i = 0; i < source.nodes.size(); ++i) {
    const graph::Node& node = source.nodes[i];
    bound.nodes.push_back(bind_node(program, node, bound.kernels));
    bound.pending.push_back(static_cast<std::uint32_t>(node.after.size()));
    if (workload_.streams[*node.stream].order != graph::Order::issue) {
      if (node.after.empty()) {
        bound.free_nodes.push_back(i);
      }
      continue;
    }
    auto& list = bound.by_stream[*node.stream];
    if (list.empty()) {
      bound.streams.push_back(node.stream);
    }
    list.push_back(i);
  }
  for (std::size_t i = 0; i < source.nodes.size(); ++i) {
    bound.nodes[i].first_dependent = dependents.begin_of(i);
    bound.nodes[i].dependent_count = static_cast<std::uint32_t>(dependents[i].size());
  }
  bound.dependents = std::move(dependents).take_values();
  return bound;
}

BoundNode Binding::bind_node(std::size_t program, const graph::Node& node,
                             std::vector<BoundKernel>& kernels) {
  BoundNode bound;
  bound.kind = node.kind;
  bound.stream = node.stream;
  bound.phase = node.phase;
  bound.group = node.group;
  bound.host_sync = node.host_sync;
  bound.bytes = node.bytes;
  switch (node.kind) {
    case graph::Node::Kind::compute:
      bind_compute(program, node, bound, kernels);
      break;
    case graph::Node::Kind::collective:
      bound.collective = collective_index({.group = node.group,
                                           .kind = node.collective,
                                           .bytes = node.bytes,
                                           .route = node.route,
                                           .background = node.background});
      bound.takes = node.by_engine ? Concurrent::messages : Concurrent::collectives;
      bound.host_cost = node.by_engine ? Time(0) : workload_.host_dispatch;
      break;
    case graph::Node::Kind::copy:
      bound.collective = collective_index({.is_copy = true,
                                           .group = node.group,
                                           .bytes = node.bytes,
                                           .tier = node.tier,
                                           .sharers = node.sharers,
                                           .direction = node.direction,
                                           .continues = node.continues,
                                           .part = workload_.programs[program].part});
      bound.host_cost = node.continues ? Time(0) : workload_.host_dispatch;
      break;
    case graph::Node::Kind::host:
      bound.collective =
          collective_index({.is_copy = true, .group = node.group, .host = time_on_host(node)});
      break;
    case graph::Node::Kind::send:
    case graph::Node::Kind::receive:
      bound.takes =
          node.kind == graph::Node::Kind::send ? Concurrent::messages : Concurrent::nothing;
      bound.flow =
          flow_index(program, {node.kind == graph::Node::Kind::send, node.peer, node.channel});
      break;
    case graph::Node::Kind::wait:
      break;
  }
  return bound;
}

/// host_span by Horner's scheme from the last kernel: span_i = dispatch + max(rest_i, span_i+1),
/// where rest_i is the work from kernel i on.
void Binding::bind_compute(std::size_t program, const graph::Node& node, BoundNode& bound,
                           std::vector<BoundKernel>& kernels) const {
  const compute::Device& device = machine_of(workload_.programs[program].part).device;
  bound.first_kernel = static_cast<std::uint32_t>(kernels.size());
  bound.kernel_count = static_cast<std::uint32_t>(node.operators.size());
  std::array<Time, kConcurrentCount> after{};
  for (auto op = node.operators.rbegin(); op != node.operators.rend(); ++op) {
    const compute::KernelTime time = compute::kernel_time(*op, device);
    BoundKernel kernel{.work = time.alone, .after = after};
    if (time.alone > Time(0)) {
      kernel.slowdown = {1, time.beside_message / time.alone, time.beside_collective / time.alone};
    }
    for (std::size_t concurrent = 0; concurrent < kConcurrentCount; ++concurrent) {
      after[concurrent] += kernel.time(static_cast<Concurrent>(concurrent));
    }
    kernels.push_back(kernel);
    bound.work += time.alone;
    const Time dispatch = graph::issue_time(*op, workload_.host_dispatch);
    bound.host_cost += dispatch;
    bound.host_span = dispatch + std::max(bound.work, bound.host_span);
  }
  std::reverse(kernels.begin() + bound.first_kernel, kernels.end());
}

int Binding::flow_index(std::size_t program, const Flow& flow) {
  std::vector<Flow>& all = flows_[program];
  const auto [found, fresh] =
      index_of_flow_[program].try_emplace(flow, static_cast<int>(all.size()));
  if (fresh) {
    all.push_back(flow);
  }
  return found->second;
}

int Binding::collective_index(const BoundCollective& collective) {
  const auto [found, fresh] =
      index_of_.try_emplace(collective, static_cast<int>(collectives_.size()));
  if (fresh) {
    collectives_.push_back(collective);
  }
  return found->second;
}

const std::vector<collective::CollectivePhase>& Binding::phases(int index, std::int64_t rank) {
  const graph::Members& members = workload_.group(collective(index).group).members;
  const bool alike = members.by_digits() && members.only.empty();
  const std::int64_t first = alike ? 0 : members.holds(rank) ? members.member(rank, 0) : -1;
  const auto [found, fresh] = phases_.try_emplace({index, first});
  if (fresh) {
    found->second = plan(collective(index), rank);
  }
  return found->second;
}

std::vector<collective::CollectivePhase> Binding::plan(const BoundCollective& collective,
                                                       std::int64_t rank) const {
  if (collective.is_copy) {
    collective::CollectivePhase phase;
    phase.latency = collective.host;
    const machine::Machine& own = machine_of(collective.part);
    if (collective.host == Time(0)) {
      const Time alone =
          machine::copy_time(workload_, collective.bytes, collective.tier, collective.sharers, own);
      const Time latency = machine::copy_latency(collective.tier, own);
      const bool passes_port = collective.direction != graph::CopyDirection::none &&
                               machine::copy_port(collective.tier, own).has_value();
      phase.serialisation = passes_port ? alone - latency : Time(0);
      phase.latency = alone - phase.serialisation - (collective.continues ? latency : Time(0));
    }
    return {phase};
  }
  const std::vector<collective::Extent> extents =
      collective::group_extents(workload_.group(collective.group).members, rank, machine_);
  const collective::CollectiveAlgorithm algorithm = algorithms_[collective.group];
  const auto plan =
      choice_ == PhaseChoice::all ? collective::plan_collective : collective::plan_messages;
  return collective.route.copies > 0 && !extents.empty()
             ? collective::plan_token_exchange(*plan, collective.bytes, collective.route, extents,
                                               algorithm, machine_)
             : plan(collective.kind, collective.bytes, extents, algorithm,
                    collective.background ? machine::beside_steps(machine_) : machine_);
}

}  // namespace orrery::simulate
