// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/write.h"

#include <chakra.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/file.h"
#include "workload/chakra/process_groups.h"
#include "workload/chakra/record.h"

namespace orrery::chakra {
namespace {

namespace proto = ChakraProtoMsg;

void frame(const google::protobuf::MessageLite& message, std::string& bytes) {
  std::size_t length = message.ByteSizeLong();
  for (; length >= 0x80; length >>= 7) {
    bytes += static_cast<char>((length & 0x7FU) | 0x80U);
  }
  bytes += static_cast<char>(length);
  message.AppendToString(&bytes);
}

/// Node after node into one message object, which keeps its memory.
class NodeWriter {
 public:
  NodeWriter(const TraceSet& traces, std::int64_t rank)
      : traces_(traces), program_(traces.program(rank)), rank_(rank) {}

  void write(const Node& node, std::string& bytes) {
    message_.Clear();
    message_.set_id(node.id);
    message_.set_name(std::string(program_.name_of(node)));
    message_.set_type(static_cast<proto::NodeType>(node.type));
    message_.set_duration_micros(static_cast<std::uint64_t>(std::llround(
        static_cast<double>(node.duration.value()) / static_cast<double>((1_us).value()))));
    for (std::uint32_t i = 0; i < node.dependencies; ++i) {
      message_.add_data_deps(program_.nodes[program_.dependencies[node.first_dependency + i]].id);
    }
    attribute("is_cpu_op").set_bool_val(node.on_cpu);
    write_kind(node);
    frame(message_, bytes);
  }

 private:
  proto::AttributeProto& attribute(const char* name) {
    proto::AttributeProto& attribute = *message_.add_attr();
    attribute.set_name(name);
    return attribute;
  }

  void write_kind(const Node& node) {
    switch (node.type) {
      case NodeType::comp:
        if (node.has_operations) {
          attribute("num_ops").set_int64_val(std::llround(node.operations.value()));
        }
        write_slowdown(Attribute::slowdown_beside_collective, node.beside_collective);
        write_slowdown(Attribute::slowdown_beside_message, node.beside_message);
        [[fallthrough]];
      case NodeType::mem_load:
      case NodeType::mem_store:
        if (node.has_size) {
          attribute("tensor_size").set_uint64_val(static_cast<std::uint64_t>(node.size.value()));
        }
        return;
      case NodeType::comm_send:
      case NodeType::comm_recv:
        write_message(node);
        return;
      case NodeType::comm_coll:
        write_collective(node);
        return;
      case NodeType::invalid:
      case NodeType::metadata:
        return;
    }
  }

  void write_slowdown(Attribute which, float longer) {
    if (longer > 0) {
      attribute(kAttributeNames[static_cast<std::size_t>(which)].data())
          .set_double_val(1 + static_cast<double>(longer));
    }
  }

  void write_message(const Node& node) {
    if (node.has_size) {
      attribute("comm_size").set_int64_val(node.size.value());
    }
    if (node.peer == 0) {
      return;  // on the CPU, where it names nobody
    }
    const auto own = static_cast<std::int32_t>(rank_);
    const auto other = static_cast<std::int32_t>(rank_ + node.peer);
    const bool sends = node.type == NodeType::comm_send;
    attribute("comm_src").set_int32_val(sends ? own : other);
    attribute("comm_dst").set_int32_val(sends ? other : own);
    attribute("comm_tag").set_uint32_val(node.tag);
    if (node.ring_shift) {
      attribute("ring_shift").set_bool_val(true);
      write_group(node);
    }
  }

  void write_group(const Node& node) {
    if (node.group != kWorldSlot) {
      attribute("pg_name").set_string_val(traces_.groups[traces_.group(rank_, node.group)].name);
    }
  }

  void write_collective(const Node& node) {
    attribute("comm_type").set_int64_val(static_cast<std::int64_t>(node.collective));
    if (node.has_size) {
      attribute("comm_size").set_int64_val(node.size.value());
    }
    if (node.priority != 0) {
      attribute("comm_priority").set_int32_val(node.priority);
    }
    write_group(node);
    if (node.has_involved) {
      auto& list = *attribute("involved_dim").mutable_bool_list();
      for (int entry = 0; entry < node.involved_entries; ++entry) {
        list.add_values((node.involved >> entry & 1U) != 0);
      }
    }
  }

  const TraceSet& traces_;
  const Program& program_;
  std::int64_t rank_;
  proto::Node message_;
};

/// A groups file says one thing per name.
Error unspeakable_groups(const TraceSet& traces) {
  Error mistakes;
  std::set<std::string_view> names;
  for (std::size_t i = 1; i < traces.groups.size(); ++i) {
    const std::string& name = traces.groups[i].name;
    const bool number = !name.empty() && name.front() != '0' &&
                        name.find_first_not_of("0123456789") == std::string::npos;
    if (!number || !names.insert(name).second) {
      mistakes.add(Mistake{{},
                           "process group",
                           name,
                           number ? "a name that no other group has" : "a whole number above 0"});
    }
  }
  return mistakes;
}

}  // namespace

std::string et_bytes(const TraceSet& traces, std::int64_t rank) {
  proto::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  std::string bytes;
  frame(metadata, bytes);
  NodeWriter writer(traces, rank);
  for (const Node& node : traces.program(rank).nodes) {
    writer.write(node, bytes);
  }
  return bytes;
}

std::string groups_json(const TraceSet& traces) {
  std::string text = "{";
  for (std::size_t i = 1; i < traces.groups.size(); ++i) {
    const Group& group = traces.groups[i];
    text += fmt::format("{}\n  \"{}\": [{}]", i > 1 ? "," : "", group.name,
                        fmt::join(group.ranks, ", "));
  }
  return text + "\n}\n";
}

Result<void> write_traces(const TraceSet& traces, const WriteOptions& options) {
  Error mistakes = unspeakable_groups(traces);
  if (traces.ranks() > options.most_files) {
    mistakes.add(Mistake{{},
                         "files",
                         std::to_string(traces.ranks()),
                         fmt::format("at most {}, unless more are asked for", options.most_files)});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  if (traces.groups.size() > 1) {
    if (auto done = write_file(options.prefix + ".groups.json", groups_json(traces)); !done) {
      return done;
    }
  }
  for (std::int64_t rank = 0; rank < traces.ranks(); ++rank) {
    const std::string path = fmt::format("{}.{}.et", options.prefix, rank);
    if (auto done = write_file(path, et_bytes(traces, rank)); !done) {
      return done;
    }
    if (options.progress) {
      options.progress(static_cast<double>(rank + 1) / static_cast<double>(traces.ranks()));
    }
  }
  return {};
}

}  // namespace orrery::chakra
