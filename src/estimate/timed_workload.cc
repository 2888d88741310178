// SPDX-License-Identifier: Apache-2.0
// The one place of this folder that knows axes, streams and channels.
#include "estimate/timed_workload.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "collective/group_extents.h"
#include "estimate/shared_links.h"
#include "machine/memory/pipeline.h"

namespace orrery::estimation {
namespace {

constexpr std::size_t index_of(auto value) {
  return static_cast<std::size_t>(value);
}

/// Meeting number of a communicator among stages; -1 when its ranks are all of one stage.
int meeting_of(Axis axis) {
  return axis == Axis::pp ? 0 : axis == Axis::embedding ? 1 : -1;
}

struct Communicator {
  std::vector<Extent> extents;
  std::vector<double> sharing;  ///< by extent
  bool crosses = false;         ///< groups of other stages
};

/// Where the communicators and messages of one layout lie.
class Placement {
 public:
  Placement(const RankLayout& layout, const Machine& machine)
      : layout_(layout), machine_(machine), links_(machine) {
    for (std::int64_t rank = 0; rank < layout.ranks(); ++rank) {
      if (layout.coordinate(rank, Axis::pp) == 0) {
        first_stage_.push_back(rank);
      }
    }
  }

  /// `meanwhile`: for how much of the time groups of other stages move as well.
  const Communicator& communicator(Axis axis, double meanwhile) {
    auto& known = communicators_[index_of(axis)];
    if (!known) {
      known.emplace();
      known->extents = group_extents(layout_, axis, machine_);
      for (const Extent& extent : known->extents) {
        double sharing = 1;
        if (links_.crossing(extent)) {
          sharing = links_.groups_on_a_link(groups(axis, first_stage_), extent);
          const double all = links_.groups_on_a_link(groups(axis, all_ranks()), extent);
          known->crosses = known->crosses || all > sharing;
          sharing += (all - sharing) * meanwhile;
        }
        known->sharing.push_back(sharing);
      }
    }
    return *known;
  }

  /// Of all ranks of a stage at once; between mirrored stages, which exchange at the end of the
  /// step, of all stages.
  MessageWay way(Channel channel, std::int64_t stage, std::int64_t stages) {
    std::vector<Pair> messages;
    const auto add = [&](std::int64_t from) {
      const std::int64_t to = target_stage(channel, from, stages);
      for (const std::int64_t rank : first_stage_) {
        messages.push_back({layout_.with(rank, Axis::pp, from), layout_.with(rank, Axis::pp, to)});
      }
    };
    if (channel != Channel::mirror || !links_.crossing()) {
      add(stage);
    } else {
      for (std::int64_t from = 0; from < stages; ++from) {
        add(from);
      }
    }
    return links_.slowest(messages);
  }

  std::int64_t size(Axis axis) const { return layout_.size(axis); }

 private:
  /// Groups whose first member is among these ranks.
  std::vector<GroupMembers> groups(Axis axis, const std::vector<std::int64_t>& ranks) const {
    std::vector<GroupMembers> groups;
    for (const std::int64_t rank : ranks) {
      GroupMembers members = layout_.group(rank, axis);
      if (!members.empty() && members.front() == rank) {
        groups.push_back(std::move(members));
      }
    }
    return groups;
  }

  std::vector<std::int64_t> all_ranks() const {
    std::vector<std::int64_t> ranks(index_of(layout_.ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  const RankLayout& layout_;
  const Machine& machine_;
  SharedLinks links_;
  std::vector<std::int64_t> first_stage_;
  std::array<std::optional<Communicator>, kAxisCount> communicators_;
};

class Timer {
 public:
  Timer(const Workload& workload, const Machine& machine, const Plan& plan, Prices& prices,
        const Meanwhile& meanwhile)
      : workload_(workload),
        machine_(machine),
        plan_(plan),
        prices_(prices),
        meanwhile_(meanwhile),
        placement_(workload.layout, machine),
        stages_(static_cast<std::int64_t>(workload.programs.size())),
        nics_(nics_of(machine)) {
    lanes_.fill(-1);
    lanes_[index_of(Stream::compute)] = 0;
    ways_.resize(workload.programs.size());
  }

  TimedWorkload run() {
    timed_.members = {static_cast<int>(stages_), 2};
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      stage_ = stage;
      std::vector<int>& role = timed_.roles.emplace_back();
      for (const Template& source : workload_.programs[index_of(stage)].templates) {
        role.push_back(add(time(source), role.size()));
      }
      auto& targets = timed_.targets.emplace_back();
      for (const auto& channel : kNames<Channel>) {
        targets[index_of(channel.value)] =
            static_cast<int>(target_stage(channel.value, stage, stages_));
      }
    }
    timed_.message_lane = lanes_[index_of(Stream::pp)];
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

  TimedTemplate time(const Template& source) {
    TimedTemplate timed;
    timed.nodes.reserve(source.nodes.size());
    for (const Node& node : source.nodes) {
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

  TimedNode time(const Node& node) {
    TimedNode timed;
    timed.lane = lane_of(node.stream);
    timed.host_sync = node.host_sync;
    switch (node.kind) {
      case Node::Kind::compute:
        time_kernels(node, timed);
        break;
      case Node::Kind::collective:
        time_collective(node, timed);
        break;
      case Node::Kind::copy:
        timed.kind = TimedNode::Kind::collective;
        timed.work = timed.least = copy_time(node);
        timed.host_cost = workload_.host_dispatch;
        break;
      case Node::Kind::send:
        time_message(node, timed);
        break;
      case Node::Kind::receive:
        timed.kind = TimedNode::Kind::receive;
        timed.flow = static_cast<std::int8_t>(node.channel);
        break;
      case Node::Kind::wait:
        timed.kind = TimedNode::Kind::wait;
        break;
    }
    return timed;
  }

  std::uint8_t lane_of(Stream stream) {
    int& lane = lanes_[index_of(stream)];
    if (lane < 0) {
      lane = timed_.lanes++;
    }
    return static_cast<std::uint8_t>(lane);
  }

  /// From the last kernel backwards: the host issues kernel i, then either the kernels from i on
  /// run back to back, or the next one waits for the host again.
  void time_kernels(const Node& node, TimedNode& timed) {
    Time beside_collective{0};
    Time beside_message{0};
    for (auto op = node.operators.rbegin(); op != node.operators.rend(); ++op) {
      const KernelTime& kernel = prices_.kernel(*op, machine_.device);
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

  void time_collective(const Node& node, TimedNode& timed) {
    timed.kind = TimedNode::Kind::wait;  // of a rank alone, or of nothing
    if (placement_.size(node.axis) <= 1 || node.bytes == Bytes(0)) {
      return;
    }
    const auto& where = placement_.communicator(node.axis, meanwhile_[timed.lane]);
    timed_.crosses = timed_.crosses || where.crosses;
    const CollectiveTime& time = prices_.collective({.kind = node.collective,
                                                     .algorithm = algorithm_of(node.axis),
                                                     .bytes = node.bytes,
                                                     .copies = node.copies,
                                                     .extents = where.extents,
                                                     .sharing = where.sharing,
                                                     .devices = workload_.layout.ranks()},
                                                    machine_);
    const int meeting = meeting_of(node.axis);
    timed.kind = meeting < 0 ? TimedNode::Kind::collective : TimedNode::Kind::meeting;
    timed.flow = static_cast<std::int8_t>(meeting);
    timed.slows_kernels = true;
    timed.work = time.shared;
    timed.least = time.alone;
    timed.transfer = transfer_of(time);
    timed.host_cost = workload_.host_dispatch;
  }

  /// Number of the transfer; prices are kept, so their address names them.
  int transfer_of(const CollectiveTime& time) {
    const auto [entry, is_new] =
        transfers_.emplace(&time, static_cast<int>(timed_.transfers.size()));
    if (is_new) {
      timed_.transfers.push_back(time.phases);
    }
    return entry->second;
  }

  CollectiveAlgorithm algorithm_of(Axis axis) const {
    return axis == Axis::tp   ? plan_.tp_algorithm
           : axis == Axis::dp ? plan_.dp_algorithm
                              : CollectiveAlgorithm::automatic;
  }

  void time_message(const Node& node, TimedNode& timed) {
    auto& way = ways_[index_of(stage_)][index_of(node.channel)];
    if (!way) {
      way = placement_.way(node.channel, stage_, stages_);
    }
    timed.kind = TimedNode::Kind::message;
    timed.flow = static_cast<std::int8_t>(node.channel);
    timed.slows_kernels = true;
    timed.work = way->shared(node.bytes);
    timed.least = way->alone(node.bytes);
    timed.transfer = transfer_of(*way, node.bytes);
  }

  int transfer_of(const MessageWay& way, Bytes bytes) {
    PortPhase phase{.serialisation = way.alone(bytes) - way.latency, .latency = way.latency};
    if (way.dimension >= 0) {
      const std::size_t port = port_of(nics_[index_of(way.dimension)], Way::out);
      phase.weight[port] = 1;
      phase.groups[port] = static_cast<float>(way.sharing);
    }
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

  Time copy_time(const Node& node) const {
    if (node.tier != kRemoteTier) {
      const MemoryTier& memory = machine_.device.memory[index_of(node.tier)];
      return local_access(node.bytes, memory.bandwidth, memory.latency);
    }
    const bool own = node.axis == axis_of(node.stream);
    const std::int64_t sharers = own ? 1 : workload_.layout.size(node.axis);
    RemoteAccess access{
        .bytes = node.bytes, .devices = workload_.layout.ranks(), .sharers = sharers};
    if (sharers > 1) {
      const auto ranks = workload_.layout.group(0, node.axis);
      access.in_node = std::count_if(ranks.begin(), ranks.end(), [&](std::int64_t rank) {
        return rank < machine_.remote_memory.node_devices;
      });
    }
    return access_time(machine_.remote_memory, access);
  }

  const Workload& workload_;
  const Machine& machine_;
  const Plan& plan_;
  Prices& prices_;
  const Meanwhile& meanwhile_;
  Placement placement_;
  std::int64_t stages_;
  std::int64_t stage_ = 0;
  std::vector<int> nics_;  ///< by dimension
  std::array<int, kStreamCount> lanes_{};
  std::vector<std::array<std::optional<MessageWay>, kChannelCount>> ways_;
  std::unordered_map<const CollectiveTime*, int> transfers_;  // only looked up
  TimedWorkload timed_;
};

}  // namespace

TimedWorkload time_workload(const Workload& workload, const Machine& machine, const Plan& plan,
                            Prices& prices, const Meanwhile& meanwhile) {
  return Timer(workload, machine, plan, prices, meanwhile).run();
}

}  // namespace orrery::estimation
