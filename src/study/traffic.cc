// SPDX-License-Identifier: Apache-2.0
#include "study/traffic.h"

#include "collective/chunked.h"
#include "collective/group_extents.h"
#include "machine/topology/link_map.h"

namespace orrery {
namespace {

/// Bytes that one member sends, in units of Node::bytes.
double sent_share(CollectiveKind kind, double members) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (members - 1) / members;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast:
      return (members - 1) / members;
    case CollectiveKind::send_recv:
      return 1;
  }
  return 0;
}

class TrafficSum {
 public:
  TrafficSum(const Workload& workload, const Machine& machine, const AlgorithmChoice& algorithms)
      : workload_(workload), machine_(machine), algorithms_(algorithms), links_(machine.network) {
    traffic_.tiers.resize(machine.device.memory.size());
    traffic_.links.resize(machine.network.size());
  }

  Traffic run() {
    const auto roles = static_cast<std::int64_t>(workload_.roles.size());
    const auto ranks = static_cast<double>(roles > 0 ? workload_.ranks / roles : 0);
    for (role_ = 0; role_ < static_cast<int>(roles); ++role_) {
      const std::vector<Template>& templates = workload_.program_of(role_).templates;
      const std::vector<std::int64_t> issued = issues(templates.size());
      for (std::size_t i = 0; i < templates.size(); ++i) {
        times_ = ranks * static_cast<double>(issued[i]);
        for (const Node& node : templates[i].nodes) {
          add(node);
        }
      }
    }
    return std::move(traffic_);
  }

 private:
  /// How often the role issues each template.
  std::vector<std::int64_t> issues(std::size_t templates) const {
    std::vector<std::int64_t> counts(templates);
    const Excerpt excerpt(*workload_.source->list(), workload_.roles.size(), 1);
    excerpt.for_each(role_, [&](const Instance& instance, std::int64_t times) {
      counts[static_cast<std::size_t>(instance.template_index)] += times;
    });
    return counts;
  }

  void add(const Node& node) {
    for (const Operator& op : node.operators) {
      add_memory(op.bytes, 0);
    }
    if (node.kind == Node::Kind::copy) {
      add_memory(node.bytes, node.tier);
    } else if (node.kind == Node::Kind::collective) {
      add_collective(node);
    } else if (node.kind == Node::Kind::send) {
      add_send(node);
    }
  }

  void add_memory(Bytes bytes, int tier) {
    const double moved = times_ * static_cast<double>(bytes.value());
    traffic_.tiers.front() += moved;
    if (tier > 0) {
      traffic_.tiers[static_cast<std::size_t>(tier)] += moved;
    }
  }

  void add_collective(const Node& node) {
    const std::vector<Extent> extents =
        group_extents(workload_.group(node.group).members, rank_of(role_), machine_);
    double members = 1;
    for (const Extent& extent : extents) {
      members *= static_cast<double>(extent.count);
    }
    if (members < 2) {
      return;
    }
    if (extents.size() > 1 && algorithm_of(node) == CollectiveAlgorithm::themis &&
        reorders(node.collective)) {
      add_chunks(node, extents);
      return;
    }
    const double sent =
        times_ * static_cast<double>(node.bytes.value()) *
        (in_switch(node, extents) ? 1 + 1 / members : sent_share(node.collective, members));
    double inside = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const double within = inside * static_cast<double>(extents[i].count);
      const double outer = i + 1 < extents.size() ? 1 / within : 0;
      const double share = node.collective == CollectiveKind::all_to_all
                               ? (within - inside) / (members - 1)
                               : 1 / inside - outer;
      traffic_.links[static_cast<std::size_t>(extents[i].dimension)] += sent * share;
      inside = within;
    }
  }

  CollectiveAlgorithm algorithm_of(const Node& node) const { return algorithms_[node.group]; }

  /// The lowest rank of the role.
  std::int64_t rank_of(int role) const {
    std::int64_t rank = 0;
    while (workload_.role_of(rank) != role) {
      ++rank;
    }
    return rank;
  }

  /// Chunks in other orders move their bytes elsewhere, though no more of them.
  void add_chunks(const Node& node, const std::vector<Extent>& extents) {
    const ChunkSchedule schedule =
        chunk_schedule(node.collective, node.bytes, extents, {}, machine_);
    for (const ChunkPath& path : schedule.chunks) {
      for (const ChunkPhase& phase : path) {
        const Extent& extent = extents[static_cast<std::size_t>(phase.dimension)];
        traffic_.links[static_cast<std::size_t>(extent.dimension)] +=
            times_ * static_cast<double>(phase.size.value()) *
            sent_share(phase.kind, static_cast<double>(extent.count));
      }
    }
  }

  bool in_switch(const Node& node, const std::vector<Extent>& extents) const {
    const auto phases =
        plan_collective(node.collective, node.bytes, extents, algorithm_of(node), machine_);
    return !phases.empty() && phases.front().algorithm == CollectiveAlgorithm::in_switch;
  }

  void add_send(const Node& node) {
    const std::int64_t source = rank_of(role_);
    const int dimension = links_.outermost(source, source + node.peer);
    if (dimension >= 0) {
      traffic_.links[static_cast<std::size_t>(dimension)] +=
          times_ * static_cast<double>(node.bytes.value());
    }
  }

  const Workload& workload_;
  const Machine& machine_;
  const AlgorithmChoice& algorithms_;
  const LinkMap links_;
  Traffic traffic_;
  int role_ = 0;
  double times_ = 0;  ///< executions of the node that is added, over all ranks
};

}  // namespace

Traffic traffic_of(const Workload& workload, const Machine& machine,
                   const AlgorithmChoice& algorithms) {
  return TrafficSum(workload, machine, algorithms).run();
}

}  // namespace orrery
