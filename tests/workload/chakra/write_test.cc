// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/file.h"
#include "traces.h"

namespace orrery::chakra {
namespace {

using testing::HasSubstr;

/// Any node that a file can say, of a rank among `ranks`; what its type does not use stays 0.
rc::Gen<Node> any_written_node(std::int64_t ranks) {
  return rc::gen::exec([=] {
    Node node;
    node.type = static_cast<NodeType>(*rc::gen::inRange(0, 8));
    node.duration = 1_us * *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40);
    const bool compute = node.type == NodeType::comp;
    const bool collective = node.type == NodeType::comm_coll;
    const bool message = node.type == NodeType::comm_send || node.type == NodeType::comm_recv;
    if (compute && *rc::gen::arbitrary<bool>()) {
      node.has_operations = true;
      node.operations =
          Flops(static_cast<double>(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62)));
    }
    if (compute && *rc::gen::arbitrary<bool>()) {
      node.beside_collective = static_cast<float>(*rc::gen::inRange(0, 1000)) / 999;
      node.beside_message = static_cast<float>(*rc::gen::inRange(0, 1000)) / 999;
    }
    if (message) {
      node.peer = *rc::gen::inRange<std::int64_t>(1, ranks);
      node.tag = *rc::gen::arbitrary<std::uint32_t>();
    }
    if (collective) {
      node.collective = static_cast<CollectiveType>(*rc::gen::inRange(0, 10));
      node.priority = *rc::gen::arbitrary<std::int32_t>();
      node.has_involved = *rc::gen::arbitrary<bool>();
      if (node.has_involved) {
        node.involved_entries = *rc::gen::inRange<std::uint8_t>(0, 32);
        node.involved = *rc::gen::arbitrary<std::uint32_t>() & ((1U << node.involved_entries) - 1);
      }
    }
    const bool sized = node.type != NodeType::invalid && node.type != NodeType::metadata;
    if (sized && (!compute || *rc::gen::arbitrary<bool>())) {
      node.has_size = true;
      node.size = Bytes(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62));
    }
    node.on_cpu = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
    return node;
  });
}

/// Rank 0 of a set of `ranks`; the others do nothing.
TraceSet any_set(std::int64_t ranks) {
  Program program;
  const auto nodes = *rc::gen::container<std::vector<Node>>(any_written_node(ranks));
  const auto names = *rc::gen::container<std::vector<std::string>>(
      nodes.size(), rc::gen::element<std::string>("", "a", "gemm 3", "größer"));
  std::map<std::string, std::uint32_t> offsets;
  std::string text;
  std::uint64_t id = 0;
  bool groups = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node node = nodes[i];
    node.id = id += 1 + *rc::gen::inRange<std::uint64_t>(0, 3);
    const auto [name, fresh] =
        offsets.try_emplace(names[i], static_cast<std::uint32_t>(text.size()));
    text += fresh ? names[i] + '\0' : "";
    node.name = name->second;
    node.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    for (std::uint32_t before = 0; before < i; ++before) {
      if (*rc::gen::weightedElement<bool>({{3, false}, {1, true}})) {
        program.dependencies.push_back(before);
        ++node.dependencies;
      }
    }
    if (node.type == NodeType::comm_coll && *rc::gen::arbitrary<bool>()) {
      node.group = 1;
      groups = true;
    }
    program.nodes.push_back(node);
  }
  program.names = text;
  TraceSet set;
  set.programs = {program};
  set.program_of.assign(static_cast<std::size_t>(ranks), 0);
  if (!program.nodes.empty()) {
    set.programs.emplace_back();
    std::fill(set.program_of.begin() + 1, set.program_of.end(), 1U);
  }
  set.groups.resize(1);
  if (groups) {
    set.groups.push_back({"1", {2, 0}});
    set.group_slots = {1};
    set.first_slot.assign(static_cast<std::size_t>(ranks), 1);
    set.first_slot[0] = 0;
  }
  return set;
}

RC_GTEST_PROP(WriteProperty, what_is_written_is_what_is_read, ()) {
  const TraceSet set = any_set(5);
  const Folder folder;
  RC_ASSERT(
      write_traces(set, {.prefix = folder / "t", .most_files = 5, .progress = {}}).has_value());
  LoadOptions options{.prefix = folder / "t", .ranks = 5, .groups = {}, .progress = {}};
  if (set.groups.size() > 1) {
    options.groups = folder / "t.groups.json";
  }
  const auto read = load(options);
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == set);
}

/// protobuf's own decoder on our bytes, field by field.
RC_GTEST_PROP(WriteProperty, the_generated_classes_read_the_same, ()) {
  const TraceSet set = any_set(5);
  const std::string bytes = et_bytes(set, 0);
  std::size_t at = metadata().size();
  RC_ASSERT(bytes.substr(0, at) == metadata());
  for (const Node& node : set.program(0).nodes) {
    std::size_t length = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      length |= static_cast<std::size_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        break;
      }
    }
    ProtoNode message;
    RC_ASSERT(message.ParseFromString(bytes.substr(at, length)));
    at += length;
    RC_ASSERT(message.id() == node.id);
    RC_ASSERT(message.name() == set.program(0).name_of(node));
    RC_ASSERT(static_cast<int>(message.type()) == static_cast<int>(node.type));
    RC_ASSERT(message.data_deps_size() == static_cast<int>(node.dependencies));
    for (const auto& attribute : message.attr()) {
      if (attribute.name() == "comm_size") {
        RC_ASSERT(attribute.int64_val() == node.size.value());
      } else if (attribute.name() == "comm_dst") {
        RC_ASSERT(attribute.int32_val() == (node.type == NodeType::comm_send ? node.peer : 0));
      } else if (attribute.name() == "involved_dim") {
        RC_ASSERT(attribute.bool_list().values_size() == node.involved_entries);
      }
    }
  }
  RC_ASSERT(at == bytes.size());
}

TEST(Write, golden_bytes_by_hand) {
  // 08 is left out for id 0; 12 01 61 name "a"; 18 04 COMP; attr is_cpu_op: 52 0e 0a 09 .. d8 01
  // 00; attr num_ops: 52 0b 0a 07 .. 48 07. In all 3 + 2 + 16 + 13 = 34 = 0x22 bytes.
  TraceSet set;
  Program program;
  program.names = std::string("a\0", 2);
  Node& node = program.nodes.emplace_back();
  node.type = NodeType::comp;
  node.operations = Flops(7);
  node.has_operations = true;
  set.programs = {program};
  set.program_of = {0};
  set.groups.resize(1);
  const std::string zero(1, '\0');
  EXPECT_EQ(et_bytes(set, 0),
            "\x07\x0a\x05"
            "0.0.4\x22\x12\x01"
            "a\x18\x04\x52\x0e\x0a\x09is_cpu_op\xd8\x01" +
                zero + "\x52\x0b\x0a\x07num_ops\x48\x07");
}

TEST(Write, more_files_than_asked_for_and_names_that_a_groups_file_cannot_say_are_refused) {
  const Folder folder;
  TraceSet set;
  set.programs.resize(1);
  set.program_of.assign(10, 0);
  set.groups = {{}, {"dp", {0, 1}}, {"2", {0, 1}}, {"2", {2, 3}}};
  const auto written = write_traces(set, {.prefix = folder / "t", .most_files = 9, .progress = {}});
  ASSERT_FALSE(written.has_value());
  const std::string text = written.error().to_string();
  EXPECT_THAT(text, HasSubstr("files: found '10', expected at most 9"));
  EXPECT_THAT(text, HasSubstr("process group: found 'dp', expected a whole number above 0"));
  EXPECT_THAT(text, HasSubstr("found '2', expected a name that no other group has"));
  EXPECT_FALSE(std::filesystem::exists(folder / "t.0.et"));
}

}  // namespace
}  // namespace orrery::chakra
