// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "workload/chakra/process_groups.h"

namespace orrery::chakra {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostOperations = kMost - 1023;  // the greatest double below 2^63
constexpr std::int64_t kPicosecondsPerMicrosecond = 1'000'000;
constexpr std::uint64_t kLongestMicros = kMost / kPicosecondsPerMicrosecond - 1;
constexpr double kMostSlowdown = 1e6;
constexpr std::int64_t kLastNodeType = static_cast<std::int64_t>(NodeType::comm_coll);
constexpr std::int64_t kLastCollective = static_cast<std::int64_t>(CollectiveType::barrier);

}  // namespace

void ProgramBuilder::begin(Mistakes& mistakes) {
  mistakes_ = &mistakes;
  trace_.program.nodes.clear();
  trace_.program.dependencies.clear();
  trace_.program.names = {};
  trace_.groups.clear();
  trace_.definitions.clear();
  trace_.own_ranks.clear();
  trace_.messages.clear();
  names_.clear();
  groups_.clear();
  wanted_.clear();
  first_wanted_.clear();
  ascending_ = true;
}

void ProgramBuilder::wrong(const NodeRecord& record, std::string_view field, std::string found,
                           std::string expected) {
  mistakes_->add(fmt::format("{}: {}", node_label(record.id, record.name), field), std::move(found),
                 std::move(expected));
}

const Value* ProgramBuilder::find(const NodeRecord& record, Attribute attribute, bool required) {
  const Value* value = record.find(attribute);
  if (value == nullptr && required) {
    wrong(record, kAttributeNames[static_cast<std::size_t>(attribute)], "nothing",
          "this attribute, which nodes of its type need");
  }
  return value;
}

/// Returns a whole number from 0 to `most`; 0 when it is missing or wrong.
std::int64_t ProgramBuilder::whole(const NodeRecord& record, Attribute attribute, bool required,
                                   std::int64_t most) {
  const Value* value = find(record, attribute, required);
  if (value == nullptr) {
    return 0;
  }
  const bool number = value->kind == Value::Kind::integer || value->kind == Value::Kind::natural;
  // A negative integer has the sign bit, so as unsigned it is beyond any `most`.
  if (!number || value->bits > static_cast<std::uint64_t>(most)) {
    wrong(record, kAttributeNames[static_cast<std::size_t>(attribute)], value->shown(),
          fmt::format("a whole number from 0 to {}", most));
    return 0;
  }
  return static_cast<std::int64_t>(value->bits);
}

bool ProgramBuilder::boolean(const NodeRecord& record, Attribute attribute) {
  const Value* value = record.find(attribute);
  if (value == nullptr) {
    return false;
  }
  const bool number = value->kind == Value::Kind::integer || value->kind == Value::Kind::natural;
  if (value->kind != Value::Kind::boolean && !(number && value->bits <= 1)) {
    wrong(record, kAttributeNames[static_cast<std::size_t>(attribute)], value->shown(),
          "true or false");
    return false;
  }
  return value->bits != 0;
}

/// Returns how much longer: 0 when it is missing or wrong.
float ProgramBuilder::slowdown(const NodeRecord& record, Attribute attribute) {
  const Value* value = record.find(attribute);
  if (value == nullptr) {
    return 0;
  }
  const bool real = value->kind == Value::Kind::real;
  const bool whole = value->kind == Value::Kind::natural || value->kind == Value::Kind::integer;
  const double factor = real    ? std::bit_cast<double>(value->bits)
                        : whole ? static_cast<double>(static_cast<std::int64_t>(value->bits))
                                : 0;
  if (!(factor >= 1 && factor <= kMostSlowdown)) {
    wrong(record, kAttributeNames[static_cast<std::size_t>(attribute)], value->shown(),
          "a number from 1 to 1e6");
    return 0;
  }
  return static_cast<float>(factor - 1);
}

void ProgramBuilder::add(const NodeRecord& record) {
  // Others of equal ids are found once they are sorted; these may be as many as the file has bytes.
  if (!trace_.program.nodes.empty() && trace_.program.nodes.back().id == record.id) {
    wrong(record, "id", std::to_string(record.id), "an id of its own; the node before has it too");
    return;
  }
  Node node;
  node.id = record.id;
  if (record.type < 0 || record.type > kLastNodeType) {
    wrong(record, "type", std::to_string(record.type),
          fmt::format("a node type from 0 to {}", kLastNodeType));
  } else {
    node.type = static_cast<NodeType>(record.type);
  }
  if (record.duration_micros > kLongestMicros) {
    wrong(record, "duration_micros", std::to_string(record.duration_micros),
          fmt::format("at most {}", kLongestMicros));
  } else {
    node.duration =
        Time(static_cast<std::int64_t>(record.duration_micros) * kPicosecondsPerMicrosecond);
  }
  node.on_cpu = boolean(record, Attribute::is_cpu_op);
  node.name = names_.offset(names_.intern(record.name));
  switch (node.type) {
    case NodeType::invalid:
      break;
    case NodeType::metadata:
      read_metadata(record);
      break;
    case NodeType::mem_load:
    case NodeType::mem_store:
      read_memory(record, node);
      break;
    case NodeType::comp:
      read_compute(record, node);
      break;
    case NodeType::comm_send:
    case NodeType::comm_recv:
      read_message(record, node);
      break;
    case NodeType::comm_coll:
      read_collective(record, node);
      break;
  }
  std::vector<Node>& nodes = trace_.program.nodes;
  ascending_ = ascending_ && (nodes.empty() || nodes.back().id < node.id);
  nodes.push_back(node);
  first_wanted_.push_back(wanted_.size());
  wanted_.insert(wanted_.end(), record.dependencies.begin(), record.dependencies.end());
}

void ProgramBuilder::read_size(const NodeRecord& record, Attribute attribute, bool required,
                               Node& node) {
  // kMost itself stands for overflow in Bytes.
  node.size = Bytes(whole(record, attribute, required, kMost - 1));
  node.has_size = record.find(attribute) != nullptr;
}

void ProgramBuilder::read_compute(const NodeRecord& record, Node& node) {
  node.operations =
      Flops(static_cast<double>(whole(record, Attribute::num_ops, false, kMostOperations)));
  node.has_operations = record.find(Attribute::num_ops) != nullptr;
  read_size(record, Attribute::tensor_size, false, node);
  node.beside_collective = slowdown(record, Attribute::slowdown_beside_collective);
  node.beside_message = slowdown(record, Attribute::slowdown_beside_message);
}

void ProgramBuilder::read_memory(const NodeRecord& record, Node& node) {
  read_size(record, Attribute::tensor_size, !node.on_cpu, node);
}

void ProgramBuilder::read_message(const NodeRecord& record, Node& node) {
  const bool sends = node.type == NodeType::comm_send;
  const Attribute other = sends ? Attribute::comm_dst : Attribute::comm_src;
  const Attribute own = sends ? Attribute::comm_src : Attribute::comm_dst;
  if (node.on_cpu && record.find(other) == nullptr) {
    return;  // takes its duration, sends nothing
  }
  read_size(record, Attribute::comm_size, !node.on_cpu, node);
  node.peer = whole(record, other, true, std::numeric_limits<std::int32_t>::max());
  node.tag = static_cast<std::uint32_t>(
      whole(record, Attribute::comm_tag, false, std::numeric_limits<std::uint32_t>::max()));
  if (record.find(own) != nullptr) {
    trace_.own_ranks.push_back(
        {static_cast<std::uint32_t>(trace_.program.nodes.size()),
         whole(record, own, false, std::numeric_limits<std::int32_t>::max())});
  }
  trace_.messages.push_back(static_cast<std::uint32_t>(trace_.program.nodes.size()));
  node.ring_shift = boolean(record, Attribute::ring_shift);
  if (node.ring_shift) {
    read_group(record, node);
  }
}

void ProgramBuilder::read_group(const NodeRecord& record, Node& node) {
  if (const Value* group = record.find(Attribute::pg_name)) {
    if (group->kind != Value::Kind::text) {
      wrong(record, "pg_name", group->shown(), "text: the name of a process group");
    } else {
      node.group = slot_of(group->text);
    }
  }
}

void ProgramBuilder::read_collective(const NodeRecord& record, Node& node) {
  const std::int64_t type = whole(record, Attribute::comm_type, !node.on_cpu, kLastCollective);
  node.collective = static_cast<CollectiveType>(type);
  const bool needs_size = !node.on_cpu && node.collective != CollectiveType::barrier;
  read_size(record, Attribute::comm_size, needs_size, node);
  if (const Value* priority = record.find(Attribute::comm_priority)) {
    const auto value = static_cast<std::int64_t>(priority->bits);
    const bool number = priority->kind == Value::Kind::integer ||
                        (priority->kind == Value::Kind::natural && value >= 0);
    if (!number || !std::in_range<std::int32_t>(value)) {
      wrong(record, "comm_priority", priority->shown(), "a whole number of 32 bits");
    } else {
      node.priority = static_cast<std::int32_t>(value);
    }
  }
  read_group(record, node);
  if (const Value* involved = record.find(Attribute::involved_dim)) {
    if (involved->kind != Value::Kind::bool_list || involved->count == Value::kTooMany) {
      wrong(record, "involved_dim", involved->shown(),
            "a list of at most 32 bools, one per dimension");
    } else {
      node.involved = static_cast<std::uint32_t>(involved->bits);
      node.has_involved = true;
      node.involved_entries = involved->count;
    }
  }
}

std::uint32_t ProgramBuilder::slot_of(std::string_view group) {
  const std::string_view name = canonical_group_name(group);
  return name.empty() ? kWorldSlot : groups_.intern(name) + 1;
}

void ProgramBuilder::read_metadata(const NodeRecord& record) {
  auto definitions = parse_process_groups(record.input_values);
  if (!definitions) {
    for (const Mistake& mistake : definitions.error().mistakes) {
      wrong(record, "inputs.values" + (mistake.field.empty() ? "" : ": " + mistake.field),
            mistake.found, mistake.expected);
    }
    return;
  }
  std::move(definitions->begin(), definitions->end(), std::back_inserter(trace_.definitions));
}

void ProgramBuilder::finish() {
  constexpr std::size_t kMany = std::numeric_limits<std::uint32_t>::max();
  if (trace_.program.nodes.size() >= kMany || wanted_.size() >= kMany ||
      names_.text().size() >= kMany) {
    mistakes_->add({}, {}, "fewer than 2^32 nodes, dependencies and bytes of names");
    return;
  }
  if (!ascending_) {
    sort();
  }
  resolve();
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    trace_.groups.emplace_back(groups_[i]);
  }
}

}  // namespace orrery::chakra
