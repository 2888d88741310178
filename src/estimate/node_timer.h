// SPDX-License-Identifier: Apache-2.0
/// A node with its time: kernels from the device, collectives and messages from where the plan's
/// order puts them on the network. The one place of this folder that knows axes and channels.
#pragma once

#include <array>

#include "estimate/template_tables.h"
#include "estimate/timed_workload.h"

namespace orrery::estimate {

/// Numbers of stages that meet in collectives between them.
std::array<int, kMeetings> meeting_members(std::int64_t stages);

class NodeTimer {
 public:
  NodeTimer(const Timing& timing, Time host_dispatch, TemplateTables& tables)
      : timing_(timing), host_dispatch_(host_dispatch), tables_(tables) {}

  /// Of a rank of the stage, which only messages depend on, and kernels where devices differ.
  TimedNode time(const graph::Node& node, std::int64_t stage);

  /// Whether transfers of one stage have crossed links of another's.
  bool crosses() const { return crosses_; }
  bool messages_alike() const { return messages_alike_; }

 private:
  void time_kernels(const graph::Node& node, std::int64_t stage, TimedNode& timed) const;
  const machine::Machine& machine_of(std::int64_t stage) const;
  Prices& prices_of(std::int64_t stage) const;
  void time_collective(const graph::Node& node, TimedNode& timed);
  void time_message(const graph::Node& node, std::int64_t stage, TimedNode& timed);
  void time_port(const graph::Node& node, std::int64_t stage, TimedNode& timed);
  int transfer_of(const CollectiveTime& time, Communicator& where, double meanwhile);

  Timing timing_;
  Time host_dispatch_;
  TemplateTables& tables_;
  bool crosses_ = false;
  bool messages_alike_ = true;
};

}  // namespace orrery::estimate
