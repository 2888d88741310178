// SPDX-License-Identifier: Apache-2.0
#include "study/traffic.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collective/algorithm.h"
#include "collective/chunked.h"
#include "collective/group_extents.h"
#include "machine/device_groups.h"
#include "machine/topology/link_map.h"

namespace orrery::study {
namespace {

/// Bytes that one member sends, in units of Node::bytes.
double sent_share(graph::CollectiveKind kind, double members) {
  switch (kind) {
    case graph::CollectiveKind::all_reduce:
      return 2 * (members - 1) / members;
    case graph::CollectiveKind::all_gather:
    case graph::CollectiveKind::reduce_scatter:
    case graph::CollectiveKind::all_to_all:
    case graph::CollectiveKind::broadcast:
      return (members - 1) / members;
    case graph::CollectiveKind::send_recv:
      return 1;
  }
  return 0;
}

/// Says how many ranks of a role have a communicator that lies so in the network.
struct Place {
  std::vector<collective::Extent> extents;
  double ranks = 0;
};

class TrafficSum {
 public:
  TrafficSum(const graph::Workload& workload, const machine::Machine& machine,
             const collective::AlgorithmChoice& algorithms)
      : workload_(workload), machine_(machine), algorithms_(algorithms), links_(machine.network) {
    traffic_.tiers.resize(machine.device.memory.size());
    traffic_.links.resize(machine.network.size());
    traffic_.kernels.resize(machine::device_group_count(machine));
    ranks_.resize(workload.roles.size());
    for (std::int64_t rank = 0; rank < workload.ranks; ++rank) {
      ranks_[static_cast<std::size_t>(workload.role_of(rank))].push_back(rank);
    }
  }

  Traffic run() {
    for (role_ = 0; role_ < static_cast<int>(ranks_.size()); ++role_) {
      const auto steps = static_cast<double>(workload_.source->list()->steps());
      group_ = own_ranks().empty() ? 0 : machine::device_group_of(machine_, own_ranks().front());
      places_.clear();
      crossings_.clear();
      const std::vector<graph::Template>& templates = workload_.program_of(role_).templates;
      const std::vector<std::int64_t> issued = issues(templates.size());
      for (std::size_t i = 0; i < templates.size(); ++i) {
        times_ = static_cast<double>(issued[i]) / steps;
        for (const graph::Node& node : templates[i].nodes) {
          add(node);
        }
      }
    }
    return std::move(traffic_);
  }

 private:
  /// Returns how often the role issues each template.
  std::vector<std::int64_t> issues(std::size_t templates) const {
    std::vector<std::int64_t> counts(templates);
    const graph::Excerpt excerpt(*workload_.source->list(), workload_.roles.size(), 1);
    excerpt.for_each(role_, [&](const graph::Instance& instance, std::int64_t times) {
      counts[static_cast<std::size_t>(instance.template_index)] += times;
    });
    return counts;
  }

  void add(const graph::Node& node) {
    for (const graph::Operator& op : node.operators) {
      add_memory(op.bytes, 0);
      add_load(op);
    }
    if (node.kind == graph::Node::Kind::copy) {
      add_memory(node.bytes, node.tier);
    } else if (node.kind == graph::Node::Kind::collective) {
      add_collective(node);
    } else if (node.kind == graph::Node::Kind::send) {
      add_send(node);
    }
  }

  /// The devices of a role's ranks are those of its first.
  void add_load(const graph::Operator& op) {
    const compute::Device& device =
        machine_.parts.empty() ? machine_.device : machine_.parts[group_].device;
    const auto [found, fresh] = loads_.try_emplace({&op, group_});
    if (fresh) {
      found->second = compute::load_of(op, device);
    }
    traffic_.kernels[group_] += found->second * (times_ * static_cast<double>(own_ranks().size()));
  }

  void add_memory(Bytes bytes, int tier) {
    const double moved =
        times_ * static_cast<double>(own_ranks().size()) * static_cast<double>(bytes.value());
    traffic_.tiers.front() += moved;
    if (tier > 0) {
      traffic_.tiers[static_cast<std::size_t>(tier)] += moved;
    }
  }

  const std::vector<std::int64_t>& own_ranks() const {
    return ranks_[static_cast<std::size_t>(role_)];
  }

  void add_collective(const graph::Node& node) {
    const auto [found, fresh] = places_.try_emplace(*node.group);
    if (fresh) {
      found->second = places(workload_.group(node.group).members);
    }
    for (const Place& place : found->second) {
      add_collective(node, place);
    }
  }

  /// All ranks have the same place in a family by digits; else each communicator has one of its
  /// own.
  std::vector<Place> places(const graph::Members& members) const {
    const auto all = static_cast<double>(own_ranks().size());
    if (members.by_digits() && members.only.empty()) {
      return own_ranks().empty()
                 ? std::vector<Place>()
                 : std::vector<Place>{
                       {collective::group_extents(members, own_ranks().front(), machine_), all}};
    }
    std::vector<Place> found;
    for (const auto& [lowest, rank_and_count] : by_communicator(members)) {
      std::vector<collective::Extent> extents =
          collective::group_extents(members, rank_and_count.first, machine_);
      const auto same = std::find_if(found.begin(), found.end(),
                                     [&](const Place& place) { return place.extents == extents; });
      const auto count = static_cast<double>(rank_and_count.second);
      if (same == found.end()) {
        found.push_back({std::move(extents), count});
      } else {
        same->ranks += count;
      }
    }
    return found;
  }

  /// Returns, by the communicator's first member, one of the role's ranks in it, and how many there
  /// are.
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> by_communicator(
      const graph::Members& members) const {
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> found;
    for (const std::int64_t rank : own_ranks()) {
      if (members.holds(rank)) {
        auto& [one, count] = found[members.member(rank, 0)];
        one = rank;
        ++count;
      }
    }
    return found;
  }

  void add_collective(const graph::Node& node, const Place& place) {
    const std::vector<collective::Extent>& extents = place.extents;
    double members = 1;
    for (const collective::Extent& extent : extents) {
      members *= static_cast<double>(extent.count);
    }
    if (members < 2) {
      return;
    }
    const double times = times_ * place.ranks;
    if (extents.size() > 1 && algorithm_of(node) == collective::CollectiveAlgorithm::themis &&
        collective::reorders(node.collective)) {
      add_chunks(node, extents, times);
      return;
    }
    const double sent =
        times * static_cast<double>(node.bytes.value()) * share_sent(node, extents, members);
    double inside = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const double within = inside * static_cast<double>(extents[i].count);
      const double outer = i + 1 < extents.size() ? 1 / within : 0;
      const double share = node.collective == graph::CollectiveKind::all_to_all
                               ? (within - inside) / (members - 1)
                               : 1 / inside - outer;
      traffic_.links[static_cast<std::size_t>(extents[i].dimension)] += sent * share;
      inside = within;
    }
  }

  collective::CollectiveAlgorithm algorithm_of(const graph::Node& node) const {
    return algorithms_[node.group];
  }

  /// Chunks in other orders move their bytes elsewhere, though no more of them.
  void add_chunks(const graph::Node& node, const std::vector<collective::Extent>& extents,
                  double times) {
    const collective::ChunkSchedule schedule =
        collective::chunk_schedule(node.collective, node.bytes, extents, {}, machine_);
    for (const collective::ChunkPath& path : schedule.chunks) {
      for (const collective::ChunkPhase& phase : path) {
        const collective::Extent& extent = extents[static_cast<std::size_t>(phase.dimension)];
        traffic_.links[static_cast<std::size_t>(extent.dimension)] +=
            times * static_cast<double>(phase.size.value()) *
            sent_share(phase.kind, static_cast<double>(extent.count));
      }
    }
  }

  /// Returns the share of the buffer that a member sends.
  double share_sent(const graph::Node& node, const std::vector<collective::Extent>& extents,
                    double members) {
    auto& [of, share] = shares_[&node];
    if (of != extents) {
      of = extents;
      share = new_share(node, extents, members);
    }
    return share;
  }

  double new_share(const graph::Node& node, const std::vector<collective::Extent>& extents,
                   double members) const {
    const auto phases = collective::plan_collective(node.collective, node.bytes, extents,
                                                    algorithm_of(node), machine_);
    if (phases.empty()) {
      return sent_share(node.collective, members);
    }
    const auto sent = collective::row_of(phases.front().algorithm).sent;
    return sent ? sent(members) : sent_share(node.collective, members);
  }

  void add_send(const graph::Node& node) {
    const auto [found, fresh] = crossings_.try_emplace(node.peer, traffic_.links.size(), 0);
    if (fresh) {
      for (const std::int64_t rank : own_ranks()) {
        const int dimension = links_.outermost(rank, rank + node.peer);
        if (dimension >= 0) {
          ++found->second[static_cast<std::size_t>(dimension)];
        }
      }
    }
    for (std::size_t d = 0; d < traffic_.links.size(); ++d) {
      traffic_.links[d] +=
          times_ * static_cast<double>(found->second[d]) * static_cast<double>(node.bytes.value());
    }
  }

  const graph::Workload& workload_;
  const machine::Machine& machine_;
  const collective::AlgorithmChoice& algorithms_;
  const topology::LinkMap links_;
  Traffic traffic_;
  std::vector<std::vector<std::int64_t>> ranks_;  ///< by role
  int role_ = 0;
  std::size_t group_ = 0;                             ///< of the devices of the role's ranks
  std::map<std::size_t, std::vector<Place>> places_;  ///< of the role's ranks, by group
  /// Crossings of its messages, by peer: how many ranks' cross each dimension outermost.
  std::map<std::int64_t, std::vector<std::int64_t>> crossings_;
  /// Roles may run one program: loads are kept by operator and group of devices, shares by
  /// collective with the last extents.
  std::map<std::pair<const graph::Operator*, std::size_t>, compute::Load> loads_;
  std::map<const graph::Node*, std::pair<std::vector<collective::Extent>, double>> shares_;
  double times_ = 0;  ///< how often a rank of the role runs the node that is added, a step
};

}  // namespace

Traffic traffic_of(const graph::Workload& workload, const machine::Machine& machine,
                   const collective::AlgorithmChoice& algorithms) {
  return TrafficSum(workload, machine, algorithms).run();
}

}  // namespace orrery::study
