// SPDX-License-Identifier: Apache-2.0
#include "estimate/node_timer.h"

#include <algorithm>
#include <optional>

#include "machine/copy_time.h"

namespace orrery::estimate {
namespace {

/// Meeting number of a communicator among stages; -1 when its ranks are all of one stage.
int meeting_of(graph::GroupIndex group) {
  return group == graph::GroupIndex(plan::Axis::pp)          ? 0
         : group == graph::GroupIndex(plan::Axis::embedding) ? 1
                                                             : -1;
}

}  // namespace

std::array<int, kMeetings> meeting_members(std::int64_t stages) {
  return {static_cast<int>(stages), 2};
}

TimedNode NodeTimer::time(const graph::Node& node, std::int64_t stage) {
  TimedNode timed;
  timed.lane = static_cast<std::uint8_t>(*node.stream);
  timed.host_sync = node.host_sync;
  switch (node.kind) {
    case graph::Node::Kind::compute:
      time_kernels(node, stage, timed);
      break;
    case graph::Node::Kind::collective:
      time_collective(node, timed);
      break;
    case graph::Node::Kind::copy:
      timed.kind = TimedNode::Kind::collective;
      timed.work = timed.least = machine::copy_time(timing_.placement.tables(), node.bytes,
                                                    node.tier, node.sharers, machine_of(stage));
      time_port(node, stage, timed);
      timed.host_cost = host_dispatch_;
      break;
    case graph::Node::Kind::host:
      timed.kind = TimedNode::Kind::collective;
      for (const graph::Operator& op : node.operators) {
        timed.work += op.duration;
      }
      timed.least = timed.work;
      break;
    case graph::Node::Kind::send:
      time_message(node, stage, timed);
      break;
    case graph::Node::Kind::receive:
      timed.kind = TimedNode::Kind::receive;
      timed.flow = static_cast<std::int8_t>(node.channel);
      break;
    case graph::Node::Kind::wait:
      timed.kind = TimedNode::Kind::wait;
      break;
  }
  return timed;
}

const machine::Machine& NodeTimer::machine_of(std::int64_t stage) const {
  const StageDevices* devices = timing_.devices;
  return devices == nullptr ? timing_.placement.machine()
                            : devices->machines[devices->part_of[index_of(stage)]];
}

Prices& NodeTimer::prices_of(std::int64_t stage) const {
  const StageDevices* devices = timing_.devices;
  return devices == nullptr ? timing_.prices : devices->prices[devices->part_of[index_of(stage)]];
}

/// From the last kernel backwards: the host issues kernel i, then either the kernels from i on
/// run back to back, or the next one waits for the host again.
void NodeTimer::time_kernels(const graph::Node& node, std::int64_t stage, TimedNode& timed) const {
  const machine::Machine& machine = machine_of(stage);
  Prices& prices = prices_of(stage);
  Time beside_collective{0};
  Time beside_message{0};
  for (auto op = node.operators.rbegin(); op != node.operators.rend(); ++op) {
    const compute::KernelTime& kernel = prices.kernel(*op, machine);
    const Time dispatch = graph::issue_time(*op, host_dispatch_);
    timed.work += kernel.alone;
    beside_collective += kernel.beside_collective;
    beside_message += kernel.beside_message;
    timed.host_cost += dispatch;
    timed.host_span = dispatch + std::max(timed.work, timed.host_span);
  }
  timed.least = timed.work;
  if (timed.work > Time(0)) {
    timed.beside_collective = beside_collective / timed.work;
    timed.beside_message = beside_message / timed.work;
  }
}

void NodeTimer::time_collective(const graph::Node& node, TimedNode& timed) {
  timed.kind = TimedNode::Kind::wait;  // of a rank alone, or of nothing
  Placement& placement = timing_.placement;
  Communicator& where = placement.communicator(node.group);
  if (where.extents.empty() || node.bytes == Bytes(0)) {
    return;
  }
  LoadsOf alone;
  if (!where.crossing) {
    alone = [&](const collective::CollectivePhase& phase) {
      return placement.loads(where, phase, std::nullopt).ports;
    };
  }
  const CollectiveTime& time =
      timing_.prices.collective({.kind = node.collective,
                                 .algorithm = timing_.algorithms[node.group],
                                 .bytes = node.bytes,
                                 .route = node.route,
                                 .extents = where.extents,
                                 .devices = placement.tables().ranks},
                                placement.machine(), alone);
  const int meeting = meeting_of(node.group);
  timed.kind = meeting < 0 ? TimedNode::Kind::collective : TimedNode::Kind::meeting;
  timed.flow = static_cast<std::int8_t>(meeting);
  timed.slows_kernels = true;
  timed.transfer = transfer_of(time, where, timing_.meanwhile[timed.lane]);
  for (const PortPhase& phase : tables_.transfer(timed.transfer)) {
    timed.work += phase.time();
  }
  timed.least = time.alone;
  timed.host_cost = host_dispatch_;
}

int NodeTimer::transfer_of(const CollectiveTime& time, Communicator& where, double meanwhile) {
  if (!where.crossing) {
    return tables_.add_transfer(time.on_ports);
  }
  std::vector<PortPhase> phases;
  for (const collective::CollectivePhase& phase : time.phases) {
    const Communicator::Known& known = timing_.placement.loads(
        where, phase, timing_.alone ? std::nullopt : std::optional(meanwhile));
    crosses_ = crosses_ || known.crosses;
    phases.push_back(
        {.serialisation = phase.serialisation, .latency = phase.latency, .ports = known.ports});
  }
  return tables_.add_transfer(phases);
}

/// Of a copy that goes through a port of the network.
void NodeTimer::time_port(const graph::Node& node, std::int64_t stage, TimedNode& timed) {
  const machine::Machine& machine = machine_of(stage);
  const auto port = machine::copy_port(node.tier, machine);
  if (!port || node.direction == graph::CopyDirection::none) {
    return;
  }
  const Time latency = machine.device.memory[index_of(node.tier)].latency;
  timed.transfer = tables_.add_transfer({{.serialisation = timed.work - latency,
                                          .latency = latency,
                                          .ports = {{timing_.placement.port(*port, node.direction),
                                                     topology::counted(port->share)}}}});
}

void NodeTimer::time_message(const graph::Node& node, std::int64_t stage, TimedNode& timed) {
  const auto channel = static_cast<plan::Channel>(node.channel);
  const MessageWay& way = timing_.placement.way(timing_.placement.way(channel, stage));
  const PortPhase phase = way.phase(node.bytes);
  messages_alike_ = messages_alike_ && way.alike;
  timed.kind = TimedNode::Kind::message;
  timed.flow = static_cast<std::int8_t>(node.channel);
  timed.slows_kernels = true;
  timed.work = phase.time();
  timed.least = way.least(node.bytes);
  timed.transfer = tables_.add_transfer({phase});
}

}  // namespace orrery::estimate
