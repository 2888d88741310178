// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/from_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "workload/chakra/name_table.h"
#include "workload/chakra/program_store.h"
#include "workload/chakra/workload_groups.h"

namespace orrery::chakra {
namespace {

/// A training step's messages are on up to as many channels, so that its tags do not depend on
/// which of them its schedule uses.
constexpr std::size_t kFewestChannels = 5;

using Ids = std::vector<std::uint32_t>;  // positions of nodes; those that end something

/// Calls visit(template) for every instance of the role, in issue order.
template <class Visit>
void for_each_instance(const graph::Workload& workload, int role, Visit visit) {
  const graph::IssueList& list = *workload.source->list();
  for (std::int64_t i = 0; i < list.length(role); ++i) {
    visit(workload.shape(role, list.at(role, i)));
  }
}

/// The channels that a workload uses, numbered in ascending order; then its groups, for the
/// messages of ring shifts.
class Tags {
 public:
  explicit Tags(const graph::Workload& workload) : groups_(workload.groups.size()) {
    for (const graph::Program& program : workload.programs) {
      for (const graph::Template& part : program.templates) {
        add_channels(part);
      }
    }
    std::sort(channels_.begin(), channels_.end());
    channels_.erase(std::unique(channels_.begin(), channels_.end()), channels_.end());
  }
  /// Returns the tag of message `number` of a channel between two ranks.
  std::uint32_t of_message(std::size_t number, std::uint32_t channel) const {
    const auto found = std::lower_bound(channels_.begin(), channels_.end(), channel);
    return tag(number, static_cast<std::size_t>(found - channels_.begin()));
  }
  /// Returns the tag of shift `number` in a group.
  std::uint32_t of_shift(std::size_t number, graph::GroupIndex group) const {
    return tag(number, channel_count() + *group);
  }

 private:
  void add_channels(const graph::Template& part) {
    for (const graph::Node& node : part.nodes) {
      if (node.kind == graph::Node::Kind::send) {
        channels_.push_back(node.channel);
      }
    }
  }
  std::size_t channel_count() const { return std::max(channels_.size(), kFewestChannels); }
  std::uint32_t tag(std::size_t number, std::size_t kind) const {
    return static_cast<std::uint32_t>(number * (channel_count() + groups_) + kind);
  }

  std::vector<std::uint32_t> channels_;
  std::size_t groups_;
};

CollectiveType type_of(graph::CollectiveKind kind) {
  switch (kind) {
    case graph::CollectiveKind::all_reduce:
      return CollectiveType::all_reduce;
    case graph::CollectiveKind::all_gather:
      return CollectiveType::all_gather;
    case graph::CollectiveKind::reduce_scatter:
      return CollectiveType::reduce_scatter;
    case graph::CollectiveKind::all_to_all:
      return CollectiveType::all_to_all;
    case graph::CollectiveKind::broadcast:
    case graph::CollectiveKind::send_recv:  // is two messages
      return CollectiveType::broadcast;
  }
  return CollectiveType::broadcast;
}

/// The program of the ranks of one role that differ in nothing (WorkloadGroups::differences).
class RoleWriter {
 public:
  RoleWriter(const graph::Workload& workload, const WorkloadGroups& groups, const Tags& tags,
             const FromWorkloadOptions& options, std::int64_t rank)
      : workload_(workload),
        groups_(groups),
        tags_(tags),
        options_(options),
        rank_(rank),
        last_of_stream_(workload.streams.size()),
        shifts_(workload.groups.size()) {}

  Program run() {
    for_each_instance(workload_, workload_.role_of(rank_),
                      [&](const graph::Template& part) { write_instance(part); });
    program_.names = names_.text();
    return std::move(program_);
  }
  /// Families of slots 1, 2, ...
  const std::vector<graph::GroupIndex>& families() const { return families_; }

 private:
  void write_instance(const graph::Template& part) {
    std::vector<Ids> ends(part.nodes.size());
    std::vector<bool> begun(workload_.streams.size());
    for (std::size_t i = 0; i < part.nodes.size(); ++i) {
      const graph::Node& node = part.nodes[i];
      const bool in_order = workload_.streams[*node.stream].order == graph::Order::issue;
      Ids after = in_order ? last_of_stream_[*node.stream] : Ids{};
      for (const int before : node.after) {
        const Ids& end = ends[static_cast<std::size_t>(before)];
        after.insert(after.end(), end.begin(), end.end());
      }
      const bool first = in_order ? !begun[*node.stream] : node.after.empty();
      begun[*node.stream] = true;
      if (first && node.stream != graph::kComputeStream) {
        after.insert(after.end(), issued_after_.begin(), issued_after_.end());
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      ends[i] = write_node(part, node, after);
      Ids& last = last_of_stream_[*node.stream];
      if (in_order) {
        last = ends[i];
      } else {
        last.insert(last.end(), ends[i].begin(), ends[i].end());
      }
    }
    issued_after_ = std::exchange(computed_, last_of_stream_[*graph::kComputeStream]);
  }

  /// Writes the node; returns what has to end for the node to have ended.
  Ids write_node(const graph::Template& part, const graph::Node& node, const Ids& after) {
    switch (node.kind) {
      case graph::Node::Kind::wait:
        return after;
      case graph::Node::Kind::compute:
        return {add(part, node, after, compute(node))};
      case graph::Node::Kind::host:
        return {add(part, node, after, on_cpu(node))};
      case graph::Node::Kind::copy: {
        const bool out = workload_.group(node.group).name == kToHost;
        return {add(part, node, after,
                    sized(out ? NodeType::mem_store : NodeType::mem_load, node.bytes))};
      }
      case graph::Node::Kind::send:
      case graph::Node::Kind::receive:
        return {add(part, node, after, message(node))};
      case graph::Node::Kind::collective:
        break;
    }
    if (node.collective != graph::CollectiveKind::send_recv) {
      return {add(part, node, after, collective(node))};
    }
    if (groups_.size(rank_, node.group) == 1) {
      return after;  // a shift to itself
    }
    const auto [to, from] = ring(node);
    const std::uint32_t sent = add(part, node, after, to);
    return {sent, add(part, node, after, from)};
  }

  std::uint32_t add(const graph::Template& part, const graph::Node& source, const Ids& after,
                    chakra::Node node) {
    const auto position = static_cast<std::uint32_t>(program_.nodes.size());
    node.id = position;
    node.name = names_.offset(names_.intern(part.name + "/" + source.name));
    node.first_dependency = static_cast<std::uint32_t>(program_.dependencies.size());
    node.dependencies = static_cast<std::uint32_t>(after.size());
    program_.dependencies.insert(program_.dependencies.end(), after.begin(), after.end());
    program_.nodes.push_back(node);
    return position;
  }

  static chakra::Node sized(NodeType type, Bytes bytes) {
    chakra::Node node;
    node.type = type;
    node.size = bytes;
    node.has_size = true;
    return node;
  }

  chakra::Node compute(const graph::Node& source) {
    Bytes bytes{0};
    Flops flops{0};
    for (const graph::Operator& op : source.operators) {
      bytes += op.bytes;
      flops += op.flops;
    }
    chakra::Node node = sized(NodeType::comp, bytes);
    node.operations = Flops(std::round(flops.value()));
    node.has_operations = true;
    const ComputeTimes times = options_.times ? options_.times(source) : measured_times(source);
    node.duration = whole_microseconds(times.alone);
    if (times.alone > Time(0)) {
      node.beside_collective = static_cast<float>(times.beside_collective / times.alone - 1);
      node.beside_message = static_cast<float>(times.beside_message / times.alone - 1);
    }
    return node;
  }

  chakra::Node on_cpu(const graph::Node& source) {
    chakra::Node node;
    node.type = NodeType::comp;
    node.on_cpu = true;
    node.duration = whole_microseconds(measured(source));
    return node;
  }

  static Time measured(const graph::Node& source) { return measured_times(source).alone; }

  static ComputeTimes measured_times(const graph::Node& source) {
    ComputeTimes sum;
    for (const graph::Operator& op : source.operators) {
      sum.alone += op.duration;
      sum.beside_collective += op.duration * op.beside_collective;
      sum.beside_message += op.duration * op.beside_message;
    }
    return sum;
  }

  Time whole_microseconds(Time exact) {
    const Time due = rounding_ + exact;
    const Time whole = 1_us * std::max<std::int64_t>(0, (due + 500_ns).value() / (1_us).value());
    rounding_ = due - whole;
    return whole;
  }

  chakra::Node message(const graph::Node& source) {
    const bool sends = source.kind == graph::Node::Kind::send;
    chakra::Node node = sized(sends ? NodeType::comm_send : NodeType::comm_recv, source.bytes);
    node.peer = source.peer;
    node.tag = tags_.of_message((sends ? sends_ : receives_)[{source.peer, source.channel}]++,
                                source.channel);
    return node;
  }

  chakra::Node collective(const graph::Node& source) {
    const bool gathers = source.collective == graph::CollectiveKind::all_gather;
    chakra::Node node =
        sized(NodeType::comm_coll,
              gathers ? source.bytes / groups_.size(rank_, source.group) : source.bytes);
    node.group = slot(source.group);
    node.collective = type_of(source.collective);
    return node;
  }

  std::pair<chakra::Node, chakra::Node> ring(const graph::Node& source) {
    chakra::Node to = sized(NodeType::comm_send, source.bytes);
    chakra::Node from = sized(NodeType::comm_recv, source.bytes);
    to.peer = groups_.neighbour(rank_, source.group, 1) - rank_;
    from.peer = groups_.neighbour(rank_, source.group, -1) - rank_;
    to.tag = from.tag = tags_.of_shift(shifts_[*source.group]++, source.group);
    to.group = from.group = slot(source.group);
    to.ring_shift = from.ring_shift = true;
    return {to, from};
  }

  std::uint32_t slot(graph::GroupIndex family) {
    const auto known = std::find(families_.begin(), families_.end(), family);
    if (known == families_.end()) {
      families_.push_back(family);
      return static_cast<std::uint32_t>(families_.size());
    }
    return static_cast<std::uint32_t>(known - families_.begin()) + 1;
  }

  /// Counts messages, by peer and channel.
  using Counts = std::map<std::pair<std::int64_t, std::uint32_t>, std::size_t>;

  const graph::Workload& workload_;
  const WorkloadGroups& groups_;
  const Tags& tags_;
  const FromWorkloadOptions& options_;
  std::int64_t rank_;
  Program program_;
  NameTable names_;
  std::vector<graph::GroupIndex> families_;
  std::vector<Ids> last_of_stream_;
  Ids computed_;      ///< ends of compute up to the previous instance
  Ids issued_after_;  ///< up to the one before
  Counts sends_;
  Counts receives_;
  std::vector<std::size_t> shifts_;  ///< by group
  Time rounding_{0};
};

std::int64_t count_nodes(const graph::Workload& workload) {
  std::size_t count = 0;
  for (std::size_t role = 0; role < workload.roles.size(); ++role) {
    for_each_instance(workload, static_cast<int>(role),
                      [&](const graph::Template& part) { count += part.nodes.size(); });
  }
  return static_cast<std::int64_t>(count);
}

Result<void> check(const graph::Workload& workload, const FromWorkloadOptions& options) {
  if (workload.source->list() == nullptr) {
    return fail("what the workload does depends on the run: expected a list of its work");
  }
  if (const std::int64_t nodes = count_nodes(workload); nodes > options.most_nodes) {
    return fail(Error(Mistake{
        {}, "nodes", std::to_string(nodes), fmt::format("at most {}", options.most_nodes)}));
  }
  return {};
}

/// A Variant is what the ranks of one variant (role, differences) share.
struct Variant {
  std::uint32_t program = 0;
  std::vector<graph::GroupIndex> families;  ///< of slots 1, 2, ...
};

}  // namespace

Result<TraceSet> from_workload(const graph::Workload& workload,
                               const FromWorkloadOptions& options) {
  if (auto ok = check(workload, options); !ok) {
    return fail(std::move(ok.error()));
  }
  TraceSet set;
  ProgramStore programs;
  WorkloadGroups groups(workload);
  const Tags tags(workload);
  std::map<std::pair<int, std::vector<std::int64_t>>, Variant> variants;
  for (std::int64_t rank = 0; rank < workload.ranks; ++rank) {
    const int role = workload.role_of(rank);
    const auto [known, fresh] = variants.try_emplace({role, groups.differences(rank, role)});
    Variant& variant = known->second;
    if (fresh) {
      RoleWriter writer(workload, groups, tags, options, rank);
      variant.program = programs.store(writer.run());  // stages may do the same
      variant.families = writer.families();
    }
    set.program_of.push_back(variant.program);
    set.first_slot.push_back(static_cast<std::uint32_t>(set.group_slots.size()));
    for (const graph::GroupIndex family : variant.families) {
      set.group_slots.push_back(groups.index(rank, family));
    }
  }
  set.programs = programs.take();
  if (set.group_slots.empty()) {
    set.first_slot.clear();
  }
  set.groups = groups.take();
  return set;
}

}  // namespace orrery::chakra
