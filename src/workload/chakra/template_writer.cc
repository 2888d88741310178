// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/template_writer.h"

#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "base/grouped.h"
#include "base/names.h"

namespace orrery::chakra {
namespace {

/// A barrier moves nothing; but who moves nothing need not wait for others (collective/cost.h).
constexpr Bytes kBarrierBytes{1};

std::optional<graph::CollectiveKind> kind_of(CollectiveType type) {
  switch (type) {
    case CollectiveType::all_reduce:
    case CollectiveType::barrier:
      return graph::CollectiveKind::all_reduce;
    case CollectiveType::all_gather:
      return graph::CollectiveKind::all_gather;
    case CollectiveType::reduce_scatter:
    case CollectiveType::reduce_scatter_block:
      return graph::CollectiveKind::reduce_scatter;
    case CollectiveType::all_to_all:
      return graph::CollectiveKind::all_to_all;
    case CollectiveType::broadcast:
    case CollectiveType::reduce:
      return graph::CollectiveKind::broadcast;
    case CollectiveType::gather:
    case CollectiveType::scatter:
      break;
  }
  return std::nullopt;
}

graph::Operator measured(Time duration) {
  graph::Operator op;
  op.name = "measured";
  op.kind = graph::OperatorKind::opaque;
  op.duration = duration;
  return op;
}

}  // namespace

std::uint32_t dimensions_of(const Node& collective, std::size_t dimensions) {
  const auto lowest = [](std::size_t bits) {
    return bits >= 32 ? GroupUse::kAllDimensions : (std::uint32_t{1} << bits) - 1;
  };
  const std::uint32_t given = lowest(collective.involved_entries);
  const std::uint32_t wanted = dimensions > 0 ? given & lowest(dimensions) : given;
  const bool some = collective.group == kWorldSlot && collective.has_involved &&
                    (collective.involved & wanted) != wanted;
  return some ? collective.involved & wanted : GroupUse::kAllDimensions;
}

std::vector<std::uint32_t> execution_order(const Program& program) {
  const std::size_t count = program.nodes.size();
  const Grouped dependents(count, [&](const auto& add) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const Node& node = program.nodes[i];
      for (std::uint32_t d = 0; d < node.dependencies; ++d) {
        add(program.dependencies[node.first_dependency + d], i);
      }
    }
  });
  std::vector<std::uint32_t> pending(count);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < count; ++i) {
    pending[i] = program.nodes[i].dependencies;
    if (pending[i] == 0) {
      ready.push(i);
    }
  }
  std::vector<std::uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::uint32_t dependent : dependents[order.back()]) {
      if (--pending[dependent] == 0) {
        ready.push(dependent);
      }
    }
  }
  return order;
}

TemplateWriter::TemplateWriter(const TraceSet& traces, std::int64_t rank, const Families& families,
                               const MessageEnds& messages, const TraceRows& rows,
                               const ToWorkloadOptions& options, Mistakes& mistakes)
    : program_(traces.program(rank)),
      rank_(rank),
      families_(families),
      messages_(messages),
      rows_(rows),
      options_(options),
      mistakes_(mistakes) {}

void TemplateWriter::wrong(const Node& source, std::string found, std::string expected) {
  mistakes_.name("rank " + std::to_string(rank_));
  mistakes_.add(node_label(source.id, program_.name_of(source)), std::move(found),
                std::move(expected));
}

graph::Template TemplateWriter::write() {
  graph::Template made{"trace", {}};
  const std::vector<std::uint32_t> order = execution_order(program_);
  if (order.size() < program_.nodes.size()) {
    mistakes_.name("rank " + std::to_string(rank_));
    mistakes_.add("dependencies", "a circle", "none");
    return made;
  }
  std::vector<int> place(order.size());
  made.nodes.reserve(order.size());
  for (const std::uint32_t position : order) {
    const Node& source = program_.nodes[position];
    place[position] = static_cast<int>(made.nodes.size());
    graph::Node& node = made.nodes.emplace_back(node_of(source));
    if (is_ring_shift(source)) {
      join_shift(source, place[position], node);
    }
    node.after.reserve(source.dependencies);
    for (std::uint32_t d = 0; d < source.dependencies; ++d) {
      node.after.push_back(place[program_.dependencies[source.first_dependency + d]]);
    }
  }
  return made;
}

graph::Node TemplateWriter::node_of(const Node& source) {
  graph::Node node;
  node.name = program_.name_of(source);
  if (node.name.empty()) {
    node.name = "node " + std::to_string(source.id);
  }
  node.kind = graph::Node::Kind::wait;
  node.stream = TraceRows::kReceiveStream;
  if (source.type == NodeType::invalid || source.type == NodeType::metadata) {
    return node;
  }
  if (source.on_cpu) {
    write_on_cpu(source, node);
  } else if (source.type == NodeType::comp) {
    write_compute(source, node);
  } else if (is_message(source)) {
    write_message(source, node);
  } else if (source.type == NodeType::comm_coll || source.type == NodeType::comm_send) {
    write_collective(source, node);
  } else if (source.type == NodeType::comm_recv) {
    return node;  // of a ring shift: waits for its send
  } else {
    write_memory(source, node);
  }
  return node;
}

void TemplateWriter::write_on_cpu(const Node& source, graph::Node& node) const {
  if (source.duration > Time(0)) {
    node.kind = graph::Node::Kind::host;
    node.stream = TraceRows::kCpuStream;
    node.group = rows_.cpu();
    node.operators.push_back(measured(source.duration));
  }
}

void TemplateWriter::write_compute(const Node& source, graph::Node& node) const {
  node.kind = graph::Node::Kind::compute;
  node.stream = graph::kComputeStream;
  const bool work = source.operations > Flops(0) || source.size > Bytes(0);
  if (rows_.durations ? source.duration == Time(0) : !work) {
    return;  // takes no time
  }
  graph::Operator op = measured(rows_.durations ? source.duration : Time(0));
  op.name = node.name;
  op.type = options_.type;
  op.flops = source.operations;
  op.bytes = source.size;
  op.beside_collective = 1 + static_cast<double>(source.beside_collective);
  op.beside_message = 1 + static_cast<double>(source.beside_message);
  node.operators.push_back(std::move(op));
}

void TemplateWriter::write_memory(const Node& source, graph::Node& node) const {
  const bool stores = source.type == NodeType::mem_store;
  if (!options_.memory_tier) {
    node.kind = graph::Node::Kind::compute;
    node.stream = graph::kComputeStream;
    graph::Operator op = measured(Time(0));
    op.name = stores ? "store" : "load";
    op.bytes = source.size;
    node.operators.push_back(std::move(op));
    return;
  }
  node.kind = graph::Node::Kind::copy;
  node.stream = stores ? TraceRows::kStoreStream : TraceRows::kLoadStream;
  node.group = stores ? rows_.to_host() : rows_.from_host();
  node.tier = *options_.memory_tier;
  node.direction = stores ? graph::CopyDirection::out : graph::CopyDirection::in;
  node.bytes = source.size;
}

void TemplateWriter::write_message(const Node& source, graph::Node& node) const {
  const bool sends = source.type == NodeType::comm_send;
  node.kind = sends ? graph::Node::Kind::send : graph::Node::Kind::receive;
  node.stream = sends ? TraceRows::kSendStream : TraceRows::kReceiveStream;
  node.group = rows_.messages();
  node.bytes = source.size;
  node.peer = source.peer;
  node.channel = messages_.channel(source);
}

/// Joins a shift's receive to it: what receives has ended when the shift has.
void TemplateWriter::join_shift(const Node& source, int index, graph::Node& node) {
  if (source.type == NodeType::comm_send) {
    shifts_[{source.group, source.tag}] = index;
  } else if (const auto sent = shifts_.find({source.group, source.tag}); sent != shifts_.end()) {
    node.after.push_back(sent->second);
  } else {
    wrong(source, "a receive of a ring shift", "its send, of the same group and tag, before it");
  }
}

void TemplateWriter::write_collective(const Node& source, graph::Node& node) {
  const auto kind = source.ring_shift ? std::optional(graph::CollectiveKind::send_recv)
                                      : kind_of(source.collective);
  if (!kind) {
    const bool gathers = source.collective == CollectiveType::gather;
    wrong(source, gathers ? "gather" : "scatter",
          "a collective without a root that the trace would have to name");
    return;
  }
  const Families::Place place =
      families_.place(rank_, {source.group, dimensions_of(source, options_.dimensions.size())});
  node.kind = graph::Node::Kind::collective;
  node.collective = *kind;
  node.group = graph::GroupIndex(place.family);
  node.stream = rows_.stream(place.family);
  node.bytes = source.ring_shift                                 ? source.size
               : source.collective == CollectiveType::barrier    ? kBarrierBytes
               : source.collective == CollectiveType::all_gather ? source.size * place.members
                                                                 : source.size;
  if (node.bytes.is_overflow()) {
    wrong(source, std::to_string(source.size.value()) + " bytes",
          "fewer: " + std::to_string(place.members) + " times as many are gathered");
  }
}

}  // namespace orrery::chakra
