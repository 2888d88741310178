// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/fuse_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collective/cost.h"
#include "collective/group_extents.h"
#include "collective/layout/sum_way.h"
#include "machine/topology/link_map.h"

namespace orrery::layout {
namespace {

using graph::Node;

/// A sum and the message that carries it.
struct Candidate {
  std::size_t program = 0;
  std::size_t shape = 0;  ///< template
  int sum = -1;           ///< nodes
  int send = -1;
  std::vector<int> between;
  bool slices = false;  ///< the message is a shard already
  Fusion fusion;
};

class Fuser {
 public:
  Fuser(graph::Workload workload, const machine::Machine* machine)
      : workload_(std::move(workload)) {
    if (machine != nullptr) {
      machine_ = machine::expand_shapes(*machine);
      links_.emplace(machine_->network);
    }
  }

  Fused run() {
    for (graph::Program& program : workload_.programs) {
      for (graph::Template& t : program.templates) {
        read_by_waiting(t);
      }
    }
    find();
    settle_channels();
    Fused result;
    for (const Candidate& one : candidates_) {
      if (one.fusion.reason.empty()) {
        fuse(one);
      }
      result.fusions.push_back(one.fusion);
    }
    gather_received();
    result.workload = std::move(workload_);
    return result;
  }

 private:
  Node& node(const Candidate& one, int number) {
    return workload_.programs[one.program]
        .templates[one.shape]
        .nodes[static_cast<std::size_t>(number)];
  }

  /// Completes a template without values, as traces have them: who waits for a sum reads it, and
  /// work that does makes something of it.
  static void read_by_waiting(graph::Template& t) {
    if (std::any_of(t.tensors.begin(), t.tensors.end(),
                    [](const graph::Tensor& tensor) { return tensor.memory.none(); })) {
      return;
    }
    constexpr int kNone = -1;
    std::vector<int> made(t.nodes.size(), kNone);  // values, by node
    std::vector<bool> sums(t.nodes.size());
    for (std::size_t n = 0; n < t.nodes.size(); ++n) {
      Node& node = t.nodes[n];
      bool of_a_sum = false;
      for (const int before : node.after) {
        const auto at = static_cast<std::size_t>(before);
        if (made[at] != kNone) {
          node.reads.push_back({made[at], 0});
        }
        of_a_sum = of_a_sum || sums[at];
      }
      sums[n] = node.kind == Node::Kind::collective &&
                node.collective == graph::CollectiveKind::all_reduce;
      if (sums[n] || (of_a_sum && node.kind == Node::Kind::compute)) {
        made[n] = static_cast<int>(t.tensors.size());
        graph::Tensor tensor;
        tensor.bytes = node.bytes;
        t.tensors.push_back(std::move(tensor));
        node.writes.push_back({made[n], 0});
      }
    }
  }

  std::string role_of(std::size_t program) const {
    for (const graph::Role& role : workload_.roles) {
      if (role.program == program) {
        return role.name;
      }
    }
    return {};
  }
  std::int64_t rank_of(std::size_t program) const {
    for (std::int64_t rank = 0; rank < workload_.ranks; ++rank) {
      if (workload_.role(workload_.role_of(rank)).program == program) {
        return rank;
      }
    }
    return 0;
  }

  void find() {
    for (std::size_t p = 0; p < workload_.programs.size(); ++p) {
      const graph::Program& program = workload_.programs[p];
      for (std::size_t t = 0; t < program.templates.size(); ++t) {
        for (std::size_t n = 0; n < program.templates[t].nodes.size(); ++n) {
          consider(p, t, static_cast<int>(n));
        }
      }
    }
  }

  static bool is_sum(const graph::Template& t, const Node& node) {
    return node.kind == Node::Kind::collective &&
           node.collective == graph::CollectiveKind::all_reduce && value_of(t, node) >= 0;
  }

  /// Sums that no message carries are none of ours.
  void consider(std::size_t program, std::size_t shape, int number) {
    const graph::Template& t = workload_.programs[program].templates[shape];
    if (!is_sum(t, t.nodes[static_cast<std::size_t>(number)])) {
      return;
    }
    const SumWay way(t, number);
    if (way.send() < 0) {
      return;
    }
    const Node& sum = t.nodes[static_cast<std::size_t>(number)];
    const Node& send = t.nodes[static_cast<std::size_t>(way.send())];
    Candidate one{.program = program,
                  .shape = shape,
                  .sum = number,
                  .send = way.send(),
                  .between = way.between(),
                  .slices = false,
                  .fusion = {}};
    Fusion& fusion = one.fusion;
    fusion.role = role_of(program);
    fusion.place = fmt::format("{}: {} -> {}", t.name, sum.name, send.name);
    fusion.reason = way.reason();
    const std::int64_t rank = rank_of(program);
    const graph::Members& members = workload_.group(sum.group).members;
    fusion.ranks = members.holds(rank) ? static_cast<std::int64_t>(members.group(rank).size()) : 1;
    one.slices = send.bytes == sum.bytes / fusion.ranks && fusion.ranks > 1;
    if (fusion.reason.empty()) {
      fusion.reason = misfit(members, sum, send, one.slices, fusion.ranks);
    }
    price(rank, sum, send, one);
    if (fusion.reason.empty() && links_ && fusion.time_after >= fusion.time_before) {
      fusion.reason = "not faster";
    }
    candidates_.push_back(std::move(one));
  }

  /// Condition 4, and sizes that say what the message carries.
  static std::string misfit(const graph::Members& members, const Node& sum, const Node& send,
                            bool slices, std::int64_t ranks) {
    if (ranks < 2) {
      return "the rank is alone in its group";
    }
    if (!members.by_digits() &&
        std::any_of(members.lists.begin(), members.lists.end(), [&](const auto& list) {
          return static_cast<std::int64_t>(list.size()) != ranks;
        })) {
      return "groups of different sizes";
    }
    if (sum.bytes.value() % ranks != 0) {
      return fmt::format("{} bytes do not divide among {} ranks", sum.bytes.value(), ranks);
    }
    if (!slices && send.bytes != sum.bytes) {
      return fmt::format("the message has {} bytes, the sum {}", send.bytes.value(),
                         sum.bytes.value());
    }
    return {};
  }

  void price(std::int64_t rank, const Node& sum, const Node& send, Candidate& one) const {
    Fusion& fusion = one.fusion;
    const std::int64_t p = fusion.ranks;
    const Bytes half = sum.bytes - sum.bytes / p;  // M (p-1) / p
    const Bytes gather = one.slices ? half : Bytes(0);
    fusion.before = half * 2 + send.bytes + gather;
    fusion.after = half + sum.bytes / p + half;
    if (!links_) {
      return;
    }
    const auto extents = group_extents_of(sum.group, rank);
    const auto collective = [&](graph::CollectiveKind kind) {
      return collective::collective_time(kind, sum.bytes, extents,
                                         collective::CollectiveAlgorithm::automatic, *machine_);
    };
    const topology::Route route = links_->message(rank, rank + send.peer);
    const auto message = [&](Bytes bytes) {
      return route.latency + route.overhead +
             from_seconds(static_cast<double>(bytes.value()) * route.seconds_per_byte);
    };
    const Time gathered = collective(graph::CollectiveKind::all_gather);
    fusion.time_before = collective(graph::CollectiveKind::all_reduce) + message(send.bytes) +
                         (one.slices ? gathered : Time(0));
    fusion.time_after =
        collective(graph::CollectiveKind::reduce_scatter) + message(sum.bytes / p) + gathered;
  }

  std::vector<collective::Extent> group_extents_of(graph::GroupIndex group,
                                                   std::int64_t rank) const {
    return collective::group_extents(workload_.group(group).members, rank, *machine_);
  }

  /// Settles that all whole sums of a channel become shards, or none.
  void settle_channels() {
    struct Channel {
      std::size_t sends = 0;
      std::size_t fused = 0;
      std::string reason;
      graph::GroupIndex group;
      graph::StreamIndex stream;
      std::int64_t ranks = 0;
      bool alike = true;
    };
    std::map<std::uint32_t, Channel> channels;
    for (const graph::Program& program : workload_.programs) {
      for (const graph::Template& t : program.templates) {
        for (const Node& one : t.nodes) {
          channels[one.channel].sends += one.kind == Node::Kind::send ? 1 : 0;
        }
      }
    }
    for (const Candidate& one : candidates_) {
      Channel& channel = channels[node(one, one.send).channel];
      if (one.slices) {
        continue;
      }
      if (!one.fusion.reason.empty()) {
        channel.reason = one.fusion.reason;
        continue;
      }
      const Node& sum = node(one, one.sum);
      channel.alike =
          channel.alike &&
          (channel.fused == 0 || (channel.group == sum.group && channel.ranks == one.fusion.ranks));
      channel.group = sum.group;
      channel.stream = sum.stream;
      channel.ranks = one.fusion.ranks;
      ++channel.fused;
    }
    for (Candidate& one : candidates_) {
      const std::uint32_t number = node(one, one.send).channel;
      const Channel& channel = channels[number];
      if (one.slices || !one.fusion.reason.empty()) {
        continue;
      }
      if (channel.fused != channel.sends || !channel.alike) {
        one.fusion.reason = "other messages of its channel cannot be: " +
                            (channel.reason.empty() ? "they carry no sum" : channel.reason);
      } else {
        gathers_[number] = {channel.group, channel.stream, channel.ranks};
      }
    }
  }

  void fuse(const Candidate& one) {
    const std::int64_t p = one.fusion.ranks;
    graph::Template& t = workload_.programs[one.program].templates[one.shape];
    const auto slice_value = [&](const Node& of) {
      if (const int value = value_of(t, of); value >= 0) {
        graph::Tensor& tensor = t.tensors[static_cast<std::size_t>(value)];
        tensor.bytes = tensor.bytes / p;
        const graph::GroupIndex group = node(one, one.sum).group;
        std::erase_if(tensor.layout,
                      [&](const graph::Sharding& held) { return held.group == group; });
        tensor.layout.push_back({group, graph::Sharding::Kind::shard, 0});
      }
    };
    Node& sum = node(one, one.sum);
    sum.collective = graph::CollectiveKind::reduce_scatter;
    sum.name += "_fused";
    slice_value(sum);
    for (const int number : one.between) {
      Node& work = node(one, number);
      for (graph::Operator& op : work.operators) {
        op.bytes = op.bytes / p;
        op.flops = op.flops / p;
      }
      slice_value(work);
    }
    if (!one.slices) {
      Node& send = node(one, one.send);
      send.bytes = send.bytes / p;
      slice_value(send);
    }
  }

  /// An all_gather behind every receive of a fused channel.
  void gather_received() {
    for (graph::Program& program : workload_.programs) {
      for (graph::Template& t : program.templates) {
        gather_received(t);
      }
    }
  }
  void gather_received(graph::Template& t) {
    for (std::size_t n = 0; n < t.nodes.size(); ++n) {
      const Node& received = t.nodes[n];
      if (received.kind == Node::Kind::receive && gathers_.contains(received.channel)) {
        gather(t, n, gathers_.at(received.channel));
        ++n;
      }
    }
  }

  struct Gather {
    graph::GroupIndex group;
    graph::StreamIndex stream;
    std::int64_t ranks = 1;
  };

  static void gather(graph::Template& t, std::size_t at, const Gather& how) {
    Node& received = t.nodes[at];
    const auto receive = static_cast<int>(at);
    Node node;
    node.kind = Node::Kind::collective;
    node.collective = graph::CollectiveKind::all_gather;
    node.name = received.name + "_gather";
    node.stream = how.stream;
    node.phase = received.phase;
    node.group = how.group;
    node.bytes = received.bytes;
    node.after = {receive};
    received.bytes = received.bytes / how.ranks;
    const int value = value_of(t, received);
    const auto whole = static_cast<int>(t.tensors.size());
    if (value >= 0) {
      graph::Tensor copy = t.tensors[static_cast<std::size_t>(value)];
      graph::Tensor& slice = t.tensors[static_cast<std::size_t>(value)];
      slice.bytes = slice.bytes / how.ranks;
      slice.layout.push_back({how.group, graph::Sharding::Kind::shard, 0});
      t.tensors.push_back(std::move(copy));
      node.reads = {{value, 0}};
      node.writes = {{whole, 0}};
    }
    for (std::size_t n = at + 1; n < t.nodes.size(); ++n) {
      Node& later = t.nodes[n];
      for (int& before : later.after) {
        before += before >= receive ? 1 : 0;  // the receive itself: its gather
      }
      for (graph::Use& use : later.reads) {
        use.tensor = value >= 0 && use.tensor == value ? whole : use.tensor;
      }
    }
    t.nodes.insert(t.nodes.begin() + receive + 1, std::move(node));
  }

  graph::Workload workload_;
  std::optional<machine::Machine> machine_;
  std::optional<topology::LinkMap> links_;
  std::vector<Candidate> candidates_;
  std::map<std::uint32_t, Gather> gathers_;  ///< by channel
};

}  // namespace

Fused fuse_communication(graph::Workload workload, const machine::Machine* machine) {
  return Fuser(std::move(workload), machine).run();
}

}  // namespace orrery::layout
