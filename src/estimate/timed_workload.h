// SPDX-License-Identifier: Apache-2.0
/// A lowered plan with times: what is left of a workload when one rank stands for every stage.
///
///   lane       an in-order stream of a stage (StreamIndex); 0 is compute
///   flow       a channel of messages between stages, received in the order sent
///   meeting    a collective among ranks of several stages: it starts when the last has come
///
/// Ranks of one stage are taken to be alike, so a collective among them only takes time. That time
/// is the closed form on idle links, times what all groups of its communicator in the stage want of
/// the links that they share (shared_links.h); a message likewise.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "estimate/placement.h"
#include "estimate/prices.h"
#include "graph/workload.h"
#include "workload/parallel/outline.h"
#include "workload/plan/axes.h"

namespace orrery::estimate {

/// Row numbers are ints.
constexpr std::size_t index_of(auto value) {
  return static_cast<std::size_t>(value);
}

struct TimedNode {
  enum class Kind : std::uint8_t {
    kernels,
    collective,  ///< or copy: takes `work`
    message,     ///< leaves when it starts, is there after `work`
    receive,
    meeting,  ///< as collective, from the moment when every stage has come
    wait,
  };
  Kind kind = Kind::kernels;
  std::uint8_t lane = 0;
  std::int8_t flow = -1;  ///< of message, receive; of meeting: which
  bool host_sync = false;
  bool slows_kernels = false;  ///< of what runs beside them; copies do not
  int transfer = -1;           ///< of collective, message: TimedWorkload::transfers; -1: on no port
  std::uint32_t first_before = 0;
  std::uint32_t befores = 0;
  Time work{0};               ///< of kernels: back to back, alone
  Time least{0};              ///< the same on idle links
  Time host_cost{0};          ///< of the host to issue it
  Time host_span{0};          ///< from the host's free moment to the last kernel's end
  double beside_message = 1;  ///< slowdown of these kernels
  double beside_collective = 1;

  friend bool operator==(const TimedNode&, const TimedNode&) = default;
};

inline bool slows(const TimedNode& node) {
  return node.slows_kernels && node.work > Time(0);
}

/// Nodes that stand several times in a row, each period as the one before (repeats.h).
struct Repeat {
  std::uint32_t first = 0;
  std::uint32_t length = 0;  ///< nodes of a period
  std::uint32_t times = 0;
  std::uint32_t reach = 0;  ///< how many nodes back a period waits for, a whole period at the least
  std::uint32_t lanes = 0;  ///< bits of those that it uses
  bool host_sync = false;

  std::size_t end() const { return std::size_t{first} + std::size_t{length} * times; }
  bool uses(int lane) const { return (lanes >> static_cast<unsigned>(lane) & 1U) != 0; }

  friend bool operator==(const Repeat&, const Repeat&) = default;
};

struct TimedTemplate {
  std::vector<TimedNode> nodes;       ///< in issue order
  std::vector<std::uint32_t> before;  ///< nodes that must have ended, by TimedNode::first_before
  std::vector<Repeat> repeats{};      ///< in order; none are looked for in lowered templates

  friend bool operator==(const TimedTemplate&, const TimedTemplate&) = default;
};

inline constexpr int kMeetings = 2;  ///< of all stages; of first and last
inline constexpr int kMostLanes = static_cast<int>(plan::StepStream::from_host) + 1;

/// Distinct ones.
using Transfers = std::vector<std::vector<PortPhase>>;

struct MappedTemplate;  // pass_map.h

struct TimedWorkload {
  std::vector<std::shared_ptr<MappedTemplate>> templates;  ///< distinct ones
  std::vector<std::vector<int>> roles;  ///< [stage][template of the program] -> templates
  std::shared_ptr<const Transfers> transfers = std::make_shared<Transfers>();
  bool crosses = false;        ///< transfers of one stage cross links of another's
  bool own_ports = true;       ///< no device uses the links of another
  bool messages_alike = true;  ///< all ranks of a stage send theirs over the same ports
  int message_lane = -1;       ///< the lane of messages; -1: none are sent
  std::vector<std::array<int, plan::kChannelCount>> targets;  ///< [stage][flow] -> stage
  std::array<int, kMeetings> members{};                       ///< stages that meet
};

/// By lane: how much of the time of its transfers other stages make the same ones, 0 to 1.
using Meanwhile = std::array<double, kMostLanes>;

class TemplateTables;  // template_tables.h

/// What the times of a workload depend on beside it.
/// Where stages run on devices of several sorts.
struct StageDevices {
  const std::vector<machine::Machine>& machines;  ///< with the devices of one part each
  std::vector<Prices>& prices;                    ///< of kernels on them
  std::vector<std::size_t> part_of;               ///< by stage
};

struct Timing {
  Placement& placement;
  const collective::AlgorithmChoice& algorithms;
  Prices& prices;
  Meanwhile meanwhile{};
  /// Nobody shares links with a group: for bounds, since groups of one stage need not move
  /// together.
  bool alone = false;
  const StageDevices* devices = nullptr;  ///< none: the machine's own, everywhere
};

/// Times every node of a training step. Requires a verified workload, whose own placing does not
/// count, of exactly the machine's ranks.
TimedWorkload time_workload(const graph::Workload& workload, const Timing& timing);

/// The same from steps that are no nodes yet. Templates that the tables know are not made again.
TimedWorkload time_outline(const parallel::Outline& outline, const Timing& timing,
                           TemplateTables& tables);

}  // namespace orrery::estimate
