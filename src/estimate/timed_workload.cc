// SPDX-License-Identifier: Apache-2.0
// The one place of this folder that knows axes, streams and channels.
#include "estimate/timed_workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "collective/group_extents.h"
#include "estimate/shared_links.h"
#include "machine/copy_time.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

/// Meeting number of a communicator among stages; -1 when its ranks are all of one stage.
int meeting_of(graph::GroupIndex group) {
  return group == graph::GroupIndex(plan::Axis::pp)          ? 0
         : group == graph::GroupIndex(plan::Axis::embedding) ? 1
                                                             : -1;
}

/// Phases that want as much of every link, whatever their size.
bool same_uses(const collective::CollectivePhase& a, const collective::CollectivePhase& b) {
  constexpr double kRounding = 1e-6;
  const auto same_part = [&](Time one, Time other) {
    return a.serialisation > Time(0) && b.serialisation > Time(0) &&
           std::abs(one / a.serialisation - other / b.serialisation) < kRounding;
  };
  return a.kind == b.kind && a.algorithm == b.algorithm &&
         std::equal(a.ports.begin(), a.ports.end(), b.ports.begin(), b.ports.end(),
                    [&](const collective::PortUse& one, const collective::PortUse& other) {
                      return one.extent == other.extent &&
                             same_part(one.serialisation, other.serialisation) &&
                             same_part(one.port, other.port) &&
                             same_part(one.through, other.through) &&
                             same_part(one.node, other.node);
                    });
}

/// A family of communicators.
struct Communicator {
  graph::Members members;
  std::vector<collective::Extent> extents;
  bool crossing = false;  ///< shares links with others
  GroupMembers first;
  SharedLinks::Crowd crowd;
  std::vector<std::pair<collective::CollectivePhase, std::vector<PortLoad>>>
      known;  ///< of the crowd
};

/// Where the communicators and messages of one layout lie.
class Placement {
 public:
  Placement(const plan::RankLayout& layout, const machine::Machine& machine)
      : layout_(layout), machine_(machine), links_(machine) {
    all_ranks_.resize(index_of(layout.ranks()));
    std::iota(all_ranks_.begin(), all_ranks_.end(), 0);
    for (const std::int64_t rank : all_ranks_) {
      if (layout.coordinate(rank, plan::Axis::pp) == 0) {
        first_stage_.push_back(rank);
      }
    }
  }

  /// `meanwhile`: for how much of the time groups of other stages move as well.
  Communicator& communicator(graph::GroupIndex group, double meanwhile) {
    auto& known = communicators_[*group];
    if (known == nullptr) {
      known = std::make_unique<Communicator>();
      known->members = layout_.members(static_cast<plan::Axis>(*group));
      known->extents = collective::group_extents(known->members, 0, machine_);
      known->first = known->members.group(0);
      known->crossing = links_.crossing(known->extents);
      if (known->crossing) {
        known->crowd = {.stage = groups(known->members, first_stage_),
                        .all = groups(known->members, all_ranks_),
                        .meanwhile = meanwhile};
      }
    }
    return *known;
  }

  std::vector<PortLoad> alone(const Communicator& communicator,
                              const collective::CollectivePhase& phase) {
    return links_.loads(phase, communicator.first);
  }
  std::vector<PortLoad> in_crowd(Communicator& communicator,
                                 const collective::CollectivePhase& phase) {
    const auto same = std::find_if(communicator.known.begin(), communicator.known.end(),
                                   [&](const auto& one) { return same_uses(one.first, phase); });
    if (same != communicator.known.end()) {
      return same->second;
    }
    communicator.known.emplace_back(phase, links_.loads(phase, communicator.crowd));
    return communicator.known.back().second;
  }

  std::uint32_t port(const machine::CopyPort& port, graph::CopyWay way) const {
    return links_.port(port.dimension, way == graph::CopyWay::out);
  }

  /// Of all ranks of a stage at once; between mirrored stages, which exchange at the end of the
  /// step, of all stages.
  MessageWay way(plan::Channel channel, std::int64_t stage, std::int64_t stages) {
    std::vector<Pair> messages;
    const auto add = [&](std::int64_t from) {
      const std::int64_t to = plan::target_stage(channel, from, stages);
      for (const std::int64_t rank : first_stage_) {
        messages.push_back(
            {layout_.with(rank, plan::Axis::pp, from), layout_.with(rank, plan::Axis::pp, to)});
      }
    };
    if (channel != plan::Channel::mirror || !links_.crossing()) {
      add(stage);
    } else {
      for (std::int64_t from = 0; from < stages; ++from) {
        add(from);
      }
    }
    return links_.slowest(std::move(messages));
  }

 private:
  /// Groups whose first member is among these ranks.
  static std::vector<GroupMembers> groups(const graph::Members& members,
                                          const std::vector<std::int64_t>& ranks) {
    std::vector<GroupMembers> groups;
    for (const std::int64_t rank : ranks) {
      if (members.holds(rank) && members.coordinate(rank) == 0) {
        groups.push_back(members.group(rank));
      }
    }
    return groups;
  }

  const plan::RankLayout& layout_;
  const machine::Machine& machine_;
  SharedLinks links_;
  std::vector<std::int64_t> all_ranks_;
  std::vector<std::int64_t> first_stage_;
  std::array<std::unique_ptr<Communicator>, plan::kAxisCount> communicators_;
};

class Timer {
 public:
  Timer(const graph::Workload& workload, const machine::Machine& machine, const Placing& placing,
        Prices& prices, const Meanwhile& meanwhile)
      : workload_(workload),
        machine_(machine),
        placing_(placing),
        prices_(prices),
        meanwhile_(meanwhile),
        placement_(placing.layout, machine),
        stages_(std::ssize(workload.roles)) {
    lanes_.fill(-1);
    lanes_[*graph::kComputeStream] = 0;
    ways_.resize(workload.roles.size());
  }

  TimedWorkload run() {
    timed_.members = {static_cast<int>(stages_), 2};
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      stage_ = stage;
      std::vector<int>& role = timed_.roles.emplace_back();
      for (const graph::Template& source :
           workload_.program_of(static_cast<int>(stage)).templates) {
        role.push_back(add(time(source), role.size()));
      }
      auto& targets = timed_.targets.emplace_back();
      for (const auto& channel : kNames<plan::Channel>) {
        targets[index_of(channel.value)] =
            static_cast<int>(plan::target_stage(channel.value, stage, stages_));
      }
    }
    timed_.message_lane = lanes_[*graph::StreamIndex(plan::StepStream::pp)];
    return std::move(timed_);
  }

 private:
  /// Number of an equal template, of the stage before if that has one in this place.
  int add(TimedTemplate timed, std::size_t place) {
    if (stage_ > 0 && place < timed_.roles[index_of(stage_ - 1)].size()) {
      const int before = timed_.roles[index_of(stage_ - 1)][place];
      if (timed_.templates[index_of(before)] == timed) {
        return before;
      }
    }
    const auto same = std::find(timed_.templates.begin(), timed_.templates.end(), timed);
    if (same != timed_.templates.end()) {
      return static_cast<int>(same - timed_.templates.begin());
    }
    timed_.templates.push_back(std::move(timed));
    return static_cast<int>(timed_.templates.size()) - 1;
  }

  TimedTemplate time(const graph::Template& source) {
    TimedTemplate timed;
    timed.nodes.reserve(source.nodes.size());
    for (const graph::Node& node : source.nodes) {
      TimedNode result = time(node);
      result.first_before = static_cast<std::uint32_t>(timed.before.size());
      result.befores = static_cast<std::uint32_t>(node.after.size());
      for (const int before : node.after) {
        timed.before.push_back(static_cast<std::uint32_t>(before));
      }
      timed.nodes.push_back(result);
    }
    return timed;
  }

  TimedNode time(const graph::Node& node) {
    TimedNode timed;
    timed.lane = lane_of(node.stream);
    timed.host_sync = node.host_sync;
    switch (node.kind) {
      case graph::Node::Kind::compute:
        time_kernels(node, timed);
        break;
      case graph::Node::Kind::collective:
        time_collective(node, timed);
        break;
      case graph::Node::Kind::copy:
        timed.kind = TimedNode::Kind::collective;
        timed.work = timed.least =
            machine::copy_time(workload_, node.bytes, node.tier, node.sharers, machine_);
        time_port(node, timed);
        timed.host_cost = workload_.host_dispatch;
        break;
      case graph::Node::Kind::host:
        timed.kind = TimedNode::Kind::collective;
        for (const graph::Operator& op : node.operators) {
          timed.work += op.duration;
        }
        timed.least = timed.work;
        break;
      case graph::Node::Kind::send:
        time_message(node, timed);
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

  std::uint8_t lane_of(graph::StreamIndex stream) {
    int& lane = lanes_[*stream];
    if (lane < 0) {
      lane = timed_.lanes++;
    }
    return static_cast<std::uint8_t>(lane);
  }

  /// From the last kernel backwards: the host issues kernel i, then either the kernels from i on
  /// run back to back, or the next one waits for the host again.
  void time_kernels(const graph::Node& node, TimedNode& timed) {
    Time beside_collective{0};
    Time beside_message{0};
    for (auto op = node.operators.rbegin(); op != node.operators.rend(); ++op) {
      const compute::KernelTime& kernel = prices_.kernel(*op, machine_.device);
      const Time dispatch = workload_.host_dispatch * op->kernels;
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

  void time_collective(const graph::Node& node, TimedNode& timed) {
    timed.kind = TimedNode::Kind::wait;  // of a rank alone, or of nothing
    Communicator& where = placement_.communicator(node.group, meanwhile_[timed.lane]);
    if (where.extents.empty() || node.bytes == Bytes(0)) {
      return;
    }
    LoadsOf alone;
    if (!where.crossing) {
      alone = [&](const collective::CollectivePhase& phase) {
        return placement_.alone(where, phase);
      };
    }
    const CollectiveTime& time = prices_.collective({.kind = node.collective,
                                                     .algorithm = placing_.algorithms[node.group],
                                                     .bytes = node.bytes,
                                                     .copies = node.copies,
                                                     .extents = where.extents,
                                                     .devices = workload_.ranks},
                                                    machine_, alone);
    const int meeting = meeting_of(node.group);
    timed.kind = meeting < 0 ? TimedNode::Kind::collective : TimedNode::Kind::meeting;
    timed.flow = static_cast<std::int8_t>(meeting);
    timed.slows_kernels = true;
    timed.transfer = transfer_of(time, node.group, where);
    for (const PortPhase& phase : timed_.transfers[index_of(timed.transfer)]) {
      timed.work += phase.time();
    }
    timed.least = time.alone;
    timed.host_cost = workload_.host_dispatch;
  }

  int transfer_of(const CollectiveTime& time, graph::GroupIndex group, Communicator& where) {
    const auto [entry, is_new] =
        transfers_[*group].emplace(&time, static_cast<int>(timed_.transfers.size()));
    if (!is_new) {
      return entry->second;
    }
    std::vector<PortPhase>& phases = timed_.transfers.emplace_back(time.on_ports);
    if (where.crossing) {
      for (const collective::CollectivePhase& phase : time.phases) {
        phases.push_back({.serialisation = phase.serialisation,
                          .latency = phase.latency,
                          .ports = placement_.in_crowd(where, phase)});
      }
      timed_.crosses = timed_.crosses || where.crowd.crosses;
    }
    return entry->second;
  }

  /// Of a copy that goes through a port of the network.
  void time_port(const graph::Node& node, TimedNode& timed) {
    const auto port = machine::copy_port(node.tier, machine_);
    if (!port || node.way == graph::CopyWay::none) {
      return;
    }
    const Time latency = machine_.device.memory[index_of(node.tier)].latency;
    timed.transfer = transfer_of(
        {.serialisation = timed.work - latency,
         .latency = latency,
         .ports = {{placement_.port(*port, node.way), topology::counted(port->share)}}});
  }

  void time_message(const graph::Node& node, TimedNode& timed) {
    auto& way = ways_[index_of(stage_)][node.channel];
    if (!way) {
      way = placement_.way(static_cast<plan::Channel>(node.channel), stage_, stages_);
    }
    const PortPhase phase = way->phase(node.bytes);
    timed.kind = TimedNode::Kind::message;
    timed.flow = static_cast<std::int8_t>(node.channel);
    timed.slows_kernels = true;
    timed.work = phase.time();
    timed.least = phase.serialisation + phase.latency;
    timed.transfer = transfer_of(phase);
  }

  int transfer_of(const PortPhase& phase) {
    const auto same = std::find_if(timed_.transfers.begin(), timed_.transfers.end(),
                                   [&](const std::vector<PortPhase>& other) {
                                     return other.size() == 1 && other.front() == phase;
                                   });
    if (same == timed_.transfers.end()) {
      timed_.transfers.push_back({phase});
      return static_cast<int>(timed_.transfers.size()) - 1;
    }
    return static_cast<int>(same - timed_.transfers.begin());
  }

  const graph::Workload& workload_;
  const machine::Machine& machine_;
  const Placing& placing_;
  Prices& prices_;
  const Meanwhile& meanwhile_;
  Placement placement_;
  std::int64_t stages_;
  std::int64_t stage_ = 0;
  std::array<int, kMostLanes> lanes_{};
  std::vector<std::array<std::optional<MessageWay>, plan::kChannelCount>> ways_;
  /// By group; prices are kept, so their address names them. Only looked up.
  std::array<std::unordered_map<const CollectiveTime*, int>, plan::kAxisCount> transfers_;
  TimedWorkload timed_;
};

}  // namespace

TimedWorkload time_workload(const graph::Workload& workload, const machine::Machine& machine,
                            const Placing& placing, Prices& prices, const Meanwhile& meanwhile) {
  return Timer(workload, machine, placing, prices, meanwhile).run();
}

}  // namespace orrery::estimate
