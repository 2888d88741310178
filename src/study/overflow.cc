// SPDX-License-Identifier: Apache-2.0
#include "study/overflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/beyond_time.h"
#include "collective/cost.h"
#include "collective/group_extents.h"
#include "machine/compute/compute_model.h"
#include "machine/copy_time.h"

namespace orrery::study {
namespace {

/// Bytes over the fastest link: a bound from below, whatever way they take.
Time message_time(Bytes bytes, const machine::Machine& machine) {
  Bandwidth fastest{0};
  for (const topology::NetworkDimension& dimension : machine.network) {
    fastest = std::max(fastest, dimension.bandwidth);
  }
  return bytes / fastest;
}

Time collective_time(const graph::Workload& workload, const graph::Node& node,
                     const machine::Machine& machine) {
  const auto extents = collective::group_extents(workload.group(node.group).members, 0, machine);
  return extents.empty()
             ? Time(0)
             : collective::collective_time(node.collective, node.bytes, extents,
                                           collective::CollectiveAlgorithm::automatic, machine);
}

Time time_of(const graph::Workload& workload, const graph::Node& node,
             const machine::Machine& machine) {
  Time sum{0};
  switch (node.kind) {
    case graph::Node::Kind::compute:
      for (const graph::Operator& op : node.operators) {
        sum += compute::kernel_time(op, machine.device).alone;
      }
      return sum;
    case graph::Node::Kind::host:
      for (const graph::Operator& op : node.operators) {
        sum += op.duration;
      }
      return sum;
    case graph::Node::Kind::collective:
      return collective_time(workload, node, machine);
    case graph::Node::Kind::copy:
      return machine::copy_time(workload, node.bytes, node.tier, node.sharers, machine);
    case graph::Node::Kind::send:
      return message_time(node.bytes, machine);
    case graph::Node::Kind::receive:
    case graph::Node::Kind::wait:
      return sum;
  }
  return sum;
}

/// Time of every template of a program, its nodes one after the other.
std::vector<Time> template_times(const graph::Workload& workload, const graph::Program& program,
                                 const machine::Machine& machine) {
  std::vector<Time> times;
  for (const graph::Template& part : program.templates) {
    times.emplace_back(0);
    for (const graph::Node& node : part.nodes) {
      times.back() += time_of(workload, node, machine);
    }
  }
  return times;
}

/// Time of all instances of a role, one after the other; `times` by template.
Time role_time(const graph::IssueList& list, int role, const std::vector<Time>& times) {
  const auto sum = [&](std::int64_t from, std::int64_t to) {
    Time time{0};
    for (std::int64_t i = from; i < to; ++i) {
      time += times[static_cast<std::size_t>(list.at(role, i).template_index)];
    }
    return time;
  };
  const graph::Period steady = list.period(role).value_or(graph::Period{});
  const std::int64_t cycles = (steady.end - steady.first) / steady.length;
  const std::int64_t after = steady.first + cycles * steady.length;
  return sum(0, steady.first) +
         sum(steady.first, steady.first + (cycles > 0 ? steady.length : 0)) * cycles +
         sum(after, list.length(role));
}

Error long_nodes(const graph::Workload& workload, const machine::Machine& machine) {
  Error error;
  std::set<std::pair<std::string, std::string>> named;  // layers and stages do the same
  const auto check = [&](const graph::Template& part, const graph::Node& node) {
    if (time_of(workload, node, machine).is_overflow() &&
        named.emplace(part.name, node.name).second) {
      error.add(Mistake{part.name, node.name, {}, kBeyondTime});
    }
  };
  for (const graph::Program& program : workload.programs) {
    for (const graph::Template& part : program.templates) {
      for (const graph::Node& node : part.nodes) {
        check(part, node);
      }
    }
  }
  return error;
}

}  // namespace

Error overflowing_time(const graph::Workload& workload, const machine::Machine& machine) {
  Error error = long_nodes(workload, machine);
  const graph::IssueList* list = workload.source->list();
  if (!error.empty() || list == nullptr) {
    return error;
  }
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    const std::vector<Time> times = template_times(workload, workload.program_of(role), machine);
    if (role_time(*list, role, times).is_overflow()) {
      error.add(Mistake{workload.role(role).name, {}, {}, kBeyondTime});
    }
  }
  return error;
}

Result<simulate::Timeline> simulate_in_range(const graph::Workload& workload,
                                             const machine::Machine& machine,
                                             const simulate::SimulateOptions& options) {
  auto timeline = simulate::simulate(workload, machine, options);
  if (timeline) {
    return timeline;
  }
  Error overflow = overflowing_time(workload, machine);
  return overflow.empty() ? std::move(timeline) : fail(std::move(overflow));
}

}  // namespace orrery::study
