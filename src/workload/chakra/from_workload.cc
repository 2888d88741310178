// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/from_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "workload/chakra/name_table.h"
#include "workload/chakra/program_store.h"
#include "workload/chakra/workload_groups.h"

namespace orrery::chakra {
namespace {

/// Messages of one role in the order in which a channel carries them.
using Messages = std::array<std::vector<Bytes>, kChannelCount>;

std::size_t index_of(auto value) {
  return static_cast<std::size_t>(value);
}

/// Calls visit(template) for every instance of the role's step, in issue order.
template <class Visit>
void for_each_instance(const Workload& workload, int role, Visit visit) {
  const orrery::Program& program = workload.programs[index_of(role)];
  for (std::int64_t i = 0;; ++i) {
    const std::optional<Instance> instance = workload.source->issue(role, i);
    if (!instance) {
      return;
    }
    visit(program.templates[index_of(instance->template_index)]);
  }
}

void collect_sends(const Template& part, Messages& sent) {
  for (const orrery::Node& node : part.nodes) {
    if (node.kind == orrery::Node::Kind::send) {
      sent[index_of(node.channel)].push_back(node.bytes);
    }
  }
}

std::vector<Messages> sent_messages(const Workload& workload) {
  std::vector<Messages> sent(workload.programs.size());
  for (std::size_t role = 0; role < sent.size(); ++role) {
    for_each_instance(workload, static_cast<int>(role),
                      [&](const Template& part) { collect_sends(part, sent[role]); });
  }
  return sent;
}

/// Stage whose messages on `channel` arrive at `stage`.
std::int64_t source_stage(Channel channel, std::int64_t stage, std::int64_t stages) {
  for (std::int64_t from = 0; from < stages; ++from) {
    if (target_stage(channel, from, stages) == stage) {
      return from;
    }
  }
  return stage;
}

/// The program of the ranks of one role that have their ring neighbours at the same distances.
class RoleWriter {
 public:
  RoleWriter(const Workload& workload, const WorkloadGroups& groups,
             const std::vector<Messages>& sent, const FromWorkloadOptions& options,
             std::int64_t rank)
      : workload_(workload),
        groups_(groups),
        sent_(sent),
        options_(options),
        rank_(rank),
        stages_(static_cast<std::int64_t>(workload.programs.size())),
        stage_(workload.layout.coordinate(rank, Axis::pp)) {}

  Result<Program> run() {
    for_each_instance(workload_, static_cast<int>(stage_),
                      [&](const Template& part) { write_instance(part); });
    for (std::size_t channel = 0; channel < kChannelCount; ++channel) {
      const std::int64_t from = source_stage(static_cast<Channel>(channel), stage_, stages_);
      const std::size_t sent = sent_[index_of(from)][channel].size();
      if (mistakes_.empty() && sent != receives_[channel]) {
        mistakes_.add(Error(fmt::format(
            "stage {}: {} receives on channel {}, expected {}, as many "
            "as stage {} sends",
            stage_, receives_[channel], name_of(static_cast<Channel>(channel)), sent, from)));
      }
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    program_.names = names_.text();
    return std::move(program_);
  }
  /// Axes of slots 1, 2, ...
  const std::vector<Axis>& axes() const { return axes_; }

 private:
  using Ids = std::vector<std::uint32_t>;  // positions of nodes; those that end something

  void write_instance(const Template& part) {
    std::vector<Ids> ends(part.nodes.size());
    std::array<bool, kStreamCount> begun{};
    for (std::size_t i = 0; i < part.nodes.size(); ++i) {
      const orrery::Node& node = part.nodes[i];
      Ids& last = last_of_stream_[index_of(node.stream)];
      Ids after = last;
      for (const int before : node.after) {
        const Ids& end = ends[index_of(before)];
        after.insert(after.end(), end.begin(), end.end());
      }
      if (!std::exchange(begun[index_of(node.stream)], true) && node.stream != Stream::compute) {
        after.insert(after.end(), issued_after_.begin(), issued_after_.end());
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      last = ends[i] = write_node(part, node, after);
    }
    issued_after_ = std::exchange(computed_, last_of_stream_[index_of(Stream::compute)]);
  }

  /// What has to end for the node to have ended.
  Ids write_node(const Template& part, const orrery::Node& node, const Ids& after) {
    switch (node.kind) {
      case orrery::Node::Kind::wait:
        return after;
      case orrery::Node::Kind::compute:
        return {add(part, node, after, compute(node))};
      case orrery::Node::Kind::copy: {
        const bool out = node.stream == Stream::to_host;
        return {add(part, node, after,
                    sized(out ? NodeType::mem_store : NodeType::mem_load, node.bytes))};
      }
      case orrery::Node::Kind::send:
      case orrery::Node::Kind::receive:
        return {add(part, node, after, message(node))};
      case orrery::Node::Kind::collective:
        break;
    }
    if (node.collective != CollectiveKind::send_recv) {
      return {add(part, node, after, collective(node))};
    }
    if (workload_.layout.size(node.axis) == 1) {
      return after;  // a shift to itself
    }
    const auto [to, from] = ring(node);
    const std::uint32_t sent = add(part, node, after, to);
    return {sent, add(part, node, after, from)};
  }

  std::uint32_t add(const Template& part, const orrery::Node& source, const Ids& after,
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

  chakra::Node compute(const orrery::Node& source) {
    Bytes bytes{0};
    Flops flops{0};
    for (const Operator& op : source.operators) {
      bytes += op.bytes;
      flops += op.flops;
    }
    chakra::Node node = sized(NodeType::comp, bytes);
    node.operations = Flops(std::round(flops.value()));
    node.has_operations = true;
    if (options_.duration) {
      const Time due = rounding_ + options_.duration(source);
      node.duration = 1_us * std::max<std::int64_t>(0, (due + 500_ns).value() / (1_us).value());
      rounding_ = due - node.duration;
    }
    return node;
  }

  chakra::Node message(const orrery::Node& source) {
    const bool sends = source.kind == orrery::Node::Kind::send;
    const std::size_t channel = index_of(source.channel);
    const std::int64_t other = sends ? target_stage(source.channel, stage_, stages_)
                                     : source_stage(source.channel, stage_, stages_);
    const std::size_t number = (sends ? sends_ : receives_)[channel]++;
    const std::vector<Bytes>& list = sent_[index_of(sends ? stage_ : other)][channel];
    if (number >= list.size()) {
      mistakes_.add(Error(fmt::format("stage {}: receive {} on channel {} has no send", stage_,
                                      number, name_of(source.channel))));
      return sized(NodeType::comm_recv, Bytes(0));
    }
    chakra::Node node = sized(sends ? NodeType::comm_send : NodeType::comm_recv, list[number]);
    node.peer = workload_.layout.with(rank_, Axis::pp, other) - rank_;
    node.tag = tag(number, channel);
    return node;
  }

  /// Tags of channels and ring shifts are apart.
  static std::uint32_t tag(std::size_t number, std::size_t kind) {
    return static_cast<std::uint32_t>(number * (kChannelCount + kAxisCount) + kind);
  }

  chakra::Node collective(const orrery::Node& source) {
    const std::int64_t members = workload_.layout.size(source.axis);
    const bool gathers = source.collective == CollectiveKind::all_gather;
    chakra::Node node = sized(NodeType::comm_coll, gathers ? source.bytes / members : source.bytes);
    node.group = slot(source.axis);
    switch (source.collective) {
      case CollectiveKind::all_reduce:
        node.collective = CollectiveType::all_reduce;
        break;
      case CollectiveKind::all_gather:
        node.collective = CollectiveType::all_gather;
        break;
      case CollectiveKind::reduce_scatter:
        node.collective = CollectiveType::reduce_scatter;
        break;
      case CollectiveKind::all_to_all:
        node.collective = CollectiveType::all_to_all;
        break;
      case CollectiveKind::broadcast:
      case CollectiveKind::send_recv:  // is two messages
        node.collective = CollectiveType::broadcast;
        break;
    }
    return node;
  }

  std::pair<chakra::Node, chakra::Node> ring(const orrery::Node& source) {
    const std::size_t number = shifts_[index_of(source.axis)]++;
    chakra::Node to = sized(NodeType::comm_send, source.bytes);
    chakra::Node from = sized(NodeType::comm_recv, source.bytes);
    to.peer = groups_.neighbour(rank_, source.axis, 1) - rank_;
    from.peer = groups_.neighbour(rank_, source.axis, -1) - rank_;
    to.tag = from.tag = tag(number, kChannelCount + index_of(source.axis));
    return {to, from};
  }

  std::uint32_t slot(Axis axis) {
    const auto known = std::find(axes_.begin(), axes_.end(), axis);
    if (known == axes_.end()) {
      axes_.push_back(axis);
      return static_cast<std::uint32_t>(axes_.size());
    }
    return static_cast<std::uint32_t>(known - axes_.begin()) + 1;
  }

  const Workload& workload_;
  const WorkloadGroups& groups_;
  const std::vector<Messages>& sent_;
  const FromWorkloadOptions& options_;
  std::int64_t rank_;
  std::int64_t stages_;
  std::int64_t stage_;
  Program program_;
  NameTable names_;
  std::vector<Axis> axes_;
  std::array<Ids, kStreamCount> last_of_stream_;
  Ids computed_;      ///< ends of compute up to the previous instance
  Ids issued_after_;  ///< up to the one before
  std::array<std::size_t, kChannelCount> sends_{};
  std::array<std::size_t, kChannelCount> receives_{};
  std::array<std::size_t, kAxisCount> shifts_{};
  Time rounding_{0};
  Error mistakes_;
};

std::int64_t count_nodes(const Workload& workload) {
  std::size_t count = 0;
  for (std::size_t role = 0; role < workload.programs.size(); ++role) {
    for_each_instance(workload, static_cast<int>(role),
                      [&](const Template& part) { count += part.nodes.size(); });
  }
  return static_cast<std::int64_t>(count);
}

/// Which ranks share a program: role, and distances to the neighbours on axes with ring shifts.
using Variant = std::vector<std::int64_t>;

Variant variant_of(const Workload& workload, const WorkloadGroups& groups, std::int64_t rank) {
  const std::int64_t role = workload.layout.coordinate(rank, Axis::pp);
  Variant variant{role};
  for (const Axis axis : groups.shifted_axes(role)) {
    variant.push_back(groups.neighbour(rank, axis, 1) - rank);
    variant.push_back(groups.neighbour(rank, axis, -1) - rank);
  }
  return variant;
}

}  // namespace

Result<TraceSet> from_workload(const Workload& workload, const FromWorkloadOptions& options) {
  if (count_nodes(workload) > options.most_nodes) {
    return fail(Error(Mistake{{},
                              "nodes",
                              std::to_string(count_nodes(workload)),
                              fmt::format("at most {}", options.most_nodes)}));
  }
  TraceSet set;
  ProgramStore programs;
  WorkloadGroups groups(workload);
  const std::vector<Messages> sent = sent_messages(workload);
  std::map<Variant, std::pair<std::uint32_t, std::vector<Axis>>> variants;
  for (std::int64_t rank = 0; rank < workload.layout.ranks(); ++rank) {
    const auto [known, fresh] = variants.try_emplace(variant_of(workload, groups, rank));
    auto& [program, axes] = known->second;
    if (fresh) {
      RoleWriter writer(workload, groups, sent, options, rank);
      auto written = writer.run();
      if (!written) {
        return fail(std::move(written.error()));
      }
      program = programs.store(*written);  // stages may do the same
      axes = writer.axes();
    }
    set.program_of.push_back(program);
    set.first_slot.push_back(static_cast<std::uint32_t>(set.group_slots.size()));
    for (const Axis axis : axes) {
      set.group_slots.push_back(groups.index(rank, axis));
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
