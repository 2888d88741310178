// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "traces.h"

namespace orrery::chakra {
namespace {

using testing::HasSubstr;

/// Node 5 "ab" COMP of 3 us after node 1, num_ops = 300:
///   08 05                       id
///   12 02 61 62                 name
///   18 04                       type
///   2a 01 01                    data_deps, packed
///   38 03                       duration_micros
///   52 0c                       attr of 12 bytes:
///     0a 07 "num_ops"             name
///     48 ac 02                    int64_val = 0x2c + 2 * 128 = 300
const std::string kNode =
    "\x08\x05\x12\x02"
    "ab\x18\x04\x2a\x01\x01\x38\x03\x52\x0c\x0a\x07num_ops\x48\xac\x02";
const std::string kBefore = "\x08\x01\x18\x04";  // node 1, COMP

const std::string kStart(
    "\x07\x0a\x05"
    "0.0.4");

TEST(Wire, golden_bytes_by_hand) {
  const Folder folder;
  const auto set = load_bytes(folder, kStart + "\x04" + kBefore + "\x1b" + kNode);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  const Program& program = set->program(0);
  ASSERT_EQ(program.nodes.size(), 2U);
  const Node& node = program.nodes[1];
  EXPECT_EQ(node.id, 5U);
  EXPECT_EQ(program.name_of(node), "ab");
  EXPECT_EQ(node.type, NodeType::comp);
  EXPECT_EQ(node.duration, 3_us);
  EXPECT_EQ(node.operations.value(), 300);
  EXPECT_TRUE(node.has_operations);
  EXPECT_FALSE(node.has_size);
  EXPECT_EQ(node.dependencies, 1U);
  EXPECT_EQ(program.dependencies, std::vector<std::uint32_t>{0});
}

TEST(Wire, an_unpacked_dependency_is_one_too_and_none_counts_twice) {
  // 28 01 = data_deps 1 unpacked; 22 01 01 = ctrl_deps [1] packed.
  const Folder folder;
  const auto set = load_bytes(
      folder, kStart + "\x04" + kBefore + "\x09" + "\x08\x05\x18\x04\x28\x01\x22\x01\x01");
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->program(0).nodes[1].dependencies, 1U);
}

TEST(Wire, every_integer_type_means_the_same) {
  // num_ops = 77 as each of them.
  const std::vector<std::function<void(ProtoAttribute&)>> types{
      [](ProtoAttribute& a) { a.set_int32_val(77); },
      [](ProtoAttribute& a) { a.set_int64_val(77); },
      [](ProtoAttribute& a) { a.set_uint32_val(77); },
      [](ProtoAttribute& a) { a.set_uint64_val(77); },
      [](ProtoAttribute& a) { a.set_sint32_val(77); },
      [](ProtoAttribute& a) { a.set_sint64_val(77); },
      [](ProtoAttribute& a) { a.set_fixed32_val(77); },
      [](ProtoAttribute& a) { a.set_fixed64_val(77); },
      [](ProtoAttribute& a) { a.set_sfixed32_val(77); },
      [](ProtoAttribute& a) { a.set_sfixed64_val(77); },
  };
  for (std::size_t i = 0; i < types.size(); ++i) {
    ProtoNode node = proto_node(0, ChakraProtoMsg::COMP_NODE);
    types[i](*attribute(node, "num_ops"));
    const Folder folder;
    const auto set = load_bytes(folder, et({node}));
    ASSERT_TRUE(set.has_value()) << i << ": " << set.error().to_string();
    EXPECT_EQ(set->program(0).nodes[0].operations.value(), 77) << i;
  }
}

TEST(Wire, negative_numbers_of_every_signed_type_are_below_zero) {
  const std::vector<std::function<void(ProtoAttribute&)>> types{
      [](ProtoAttribute& a) { a.set_int32_val(-2); },
      [](ProtoAttribute& a) { a.set_int64_val(-2); },
      [](ProtoAttribute& a) { a.set_sint32_val(-2); },
      [](ProtoAttribute& a) { a.set_sint64_val(-2); },
      [](ProtoAttribute& a) { a.set_sfixed32_val(-2); },
      [](ProtoAttribute& a) { a.set_sfixed64_val(-2); },
  };
  for (const auto& type : types) {
    ProtoNode node = all_reduce(0, 8);
    type(*attribute(node, "comm_priority"));
    const Folder folder;
    const auto set = load_bytes(folder, et({node}));
    ASSERT_TRUE(set.has_value()) << set.error().to_string();
    EXPECT_EQ(set->program(0).nodes[0].priority, -2);

    ProtoNode size = proto_node(0, ChakraProtoMsg::COMP_NODE);
    type(*attribute(size, "tensor_size"));
    EXPECT_THAT(mistakes_of(load_bytes(folder, et({size}))),
                HasSubstr("node 0 'n0': tensor_size: found '-2', expected a whole number"));
  }
}

TEST(Wire, floating_point_is_no_whole_number) {
  const Folder folder;
  ProtoNode node = proto_node(3, ChakraProtoMsg::COMP_NODE);
  attribute(node, "num_ops")->set_double_val(1.5);
  attribute(node, "tensor_size")->set_float_val(2);
  const std::string text = mistakes_of(load_bytes(folder, et({node})));
  EXPECT_THAT(text, HasSubstr("node 3 'n3': num_ops: found '1.5', expected a whole number"));
  EXPECT_THAT(text, HasSubstr("node 3 'n3': tensor_size: found '2', expected a whole number"));
}

TEST(Wire, slowdowns_are_numbers_from_1_on) {
  const Folder folder;
  const auto slowed = [&](double factor) {
    ProtoNode node = proto_node(3, ChakraProtoMsg::COMP_NODE);
    attribute(node, "slowdown_beside_collective")->set_double_val(factor);
    attribute(node, "slowdown_beside_message")->set_int64_val(2);
    return load_bytes(folder, et({node}));
  };
  const auto set = slowed(1.25);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->program(0).nodes[0].beside_collective, 0.25F);
  EXPECT_EQ(set->program(0).nodes[0].beside_message, 1.0F);
  for (const double wrong : {0.5, -1.0, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(mistakes_of(slowed(wrong)),
                HasSubstr("node 3 'n3': slowdown_beside_collective: found"));
  }
}

TEST(Wire, sizes_from_2_to_the_63_on_are_refused) {
  const Folder folder;
  for (const std::uint64_t size : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    ProtoNode node = proto_node(0, ChakraProtoMsg::COMP_NODE);
    attribute(node, "tensor_size")->set_uint64_val(size);
    EXPECT_THAT(mistakes_of(load_bytes(folder, et({node}))), HasSubstr(std::to_string(size)));
  }
  ProtoNode node = proto_node(0, ChakraProtoMsg::COMP_NODE);
  node.set_duration_micros(std::uint64_t{1} << 60);
  EXPECT_THAT(mistakes_of(load_bytes(folder, et({node}))), HasSubstr("duration_micros"));
}

TEST(Wire, versions_other_than_none_and_0_0_4_are_refused) {
  const Folder folder;
  EXPECT_TRUE(load_bytes(folder, metadata("")).has_value());
  EXPECT_TRUE(load_bytes(folder, metadata("0.0.4")).has_value());
  EXPECT_TRUE(load_bytes(folder, metadata("1.0.0")).has_value());
  EXPECT_TRUE(load_bytes(folder, metadata("1.0.1")).has_value());
  EXPECT_THAT(mistakes_of(load_bytes(folder, metadata("1.0"))),
              HasSubstr("version: found '1.0', expected '', '0.0.4', '1.0.0' or '1.0.1'"));
}

TEST(Wire, unknown_fields_are_skipped_and_unknown_attributes_ignored) {
  const Folder folder;
  ProtoNode node = compute(0);
  attribute(node, "tensor_loc")->set_int64_val(1);
  attribute(node, "whatever")->mutable_string_list()->add_values("x");
  // Field 100 as a varint (a0 06 01), as bytes (a2 06 01 78), as a group around field 1
  // (a3 06 08 07 a4 06), as fixed64 and fixed32.
  const std::string unknown(
      "\xa0\x06\x01\xa2\x06\x01x\xa3\x06\x08\x07\xa4\x06"
      "\xa1\x06"
      "12345678\xa5\x06"
      "1234");
  const auto set = load_bytes(folder, metadata() + framed(node.SerializeAsString() + unknown));
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->program(0).nodes[0].operations.value(), 1000);
}

TEST(Wire, unknown_enumeration_values_are_mistakes) {
  const Folder folder;
  ProtoNode type = compute(0);
  type.set_type(static_cast<ChakraProtoMsg::NodeType>(8));
  ProtoNode negative = compute(1);
  negative.set_type(static_cast<ChakraProtoMsg::NodeType>(-1));
  ProtoNode collective = proto_node(2, ChakraProtoMsg::COMM_COLL_NODE);
  attribute(collective, "comm_type")->set_int64_val(10);
  attribute(collective, "comm_size")->set_int64_val(8);
  const std::string text = mistakes_of(load_bytes(folder, et({type, negative, collective})));
  EXPECT_THAT(text, HasSubstr("node 0 'n0': type: found '8', expected a node type from 0 to 7"));
  EXPECT_THAT(text, HasSubstr("node 1 'n1': type: found '-1'"));
  EXPECT_THAT(text, HasSubstr("node 2 'n2': comm_type: found '10'"));
}

TEST(Wire, every_prefix_of_a_file_is_whole_records_or_a_mistake) {
  const Folder folder;
  const std::string bytes = et({compute(0), compute(1, {0}), all_reduce(2, 1 << 20)});
  std::size_t whole = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto set = load_bytes(folder, bytes.substr(0, length));
    whole += set.has_value() ? 1 : 0;
    EXPECT_TRUE(set.has_value() || !set.error().empty());
  }
  EXPECT_EQ(whole, 3U);  // after the metadata, node 0, node 1
}

TEST(Wire, a_length_that_lies_is_refused_before_memory_is_taken) {
  const Folder folder;
  const std::string text =
      mistakes_of(load_bytes(folder, metadata() + "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"));
  EXPECT_THAT(text, HasSubstr("record 1 at byte 8"));
  EXPECT_THAT(text, HasSubstr("expected at most the 0 that are left"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, metadata() + std::string(11, '\xff'))),
              HasSubstr("the length of a record as a varint"));
  // attr of 100 bytes in a record of 6.
  EXPECT_THAT(mistakes_of(load_bytes(folder, metadata() + "\x06\x08\x01\x52\x64xx")),
              HasSubstr("attr: expected a field that ends within its message"));
}

TEST(Wire, a_field_of_the_wrong_wire_type_and_text_that_is_not_utf8_are_named) {
  const Folder folder;
  EXPECT_THAT(mistakes_of(load_bytes(folder, metadata() + "\x03\x0a\x01x")),
              HasSubstr("id: expected the wire type of the schema"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, metadata() + "\x04\x12\x02\xc3\x28")),
              HasSubstr("name: expected UTF-8 text"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, "")), HasSubstr("a GlobalMetadata record"));
}

TEST(Wire, what_nothing_reads_is_refused_where_protobuf_refuses_it) {
  // A list's message of one byte: the tag of a field that does not come. f2 01: string_list (30),
  // 32: float_list (6), a 4-byte entry of 3 bytes, packed: 0a 03; 4a 03: outputs { 12 01 ff }.
  const Folder folder;
  const auto attr = [](const std::string& value) {
    return metadata() + framed("\x08\x01\x18\x04" +
                               ("\x52" + std::string(1, static_cast<char>(value.size() + 3))) +
                               "\x0a\x01x" + value);
  };
  EXPECT_TRUE(load_bytes(folder, attr("\xf2\x01\x03\x0a\x01y")).has_value());
  EXPECT_THAT(mistakes_of(load_bytes(folder, attr("\xf2\x01\x01\x32"))),
              HasSubstr("a field that ends within its message"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, attr("\xf2\x01\x03\x0a\x01\xff"))),
              HasSubstr("values: expected UTF-8 text"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, attr("\x32\x05\x0a\x03zzz"))),
              HasSubstr("values: expected a field that ends within its message"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, attr("\x12\x01\xff"))),
              HasSubstr("attr.doc_string: expected UTF-8 text"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, attr("\x0a\x01\xff\x0a\x01z"))),
              HasSubstr("attr.name: expected UTF-8 text"));
  EXPECT_THAT(
      mistakes_of(load_bytes(folder, metadata() + framed("\x08\x01\x18\x04\x4a\x03\x12\x01\xff"))),
      HasSubstr("shapes: expected UTF-8 text"));
}

TEST(Wire, an_attribute_twice_is_a_mistake) {
  const Folder folder;
  ProtoNode node = all_reduce(0, 8);
  attribute(node, "comm_size")->set_int64_val(9);
  EXPECT_THAT(mistakes_of(load_bytes(folder, et({node}))), HasSubstr("each attribute once"));
}

TEST(Wire, missing_attributes_are_named_and_nodes_on_the_cpu_need_none) {
  const Folder folder;
  ProtoNode collective = proto_node(0, ChakraProtoMsg::COMM_COLL_NODE);
  ProtoNode sends = proto_node(1, ChakraProtoMsg::COMM_SEND_NODE);
  ProtoNode store = proto_node(2, ChakraProtoMsg::MEM_STORE_NODE);
  const std::string text = mistakes_of(load_bytes(folder, et({collective, sends, store})));
  for (const char* field : {"n0': comm_type", "n0': comm_size", "n1': comm_size", "n1': comm_dst",
                            "n2': tensor_size"}) {
    EXPECT_THAT(text, HasSubstr(std::string(field) + ": found 'nothing'"));
  }
  for (ProtoNode* node : {&collective, &sends, &store}) {
    attribute(*node, "is_cpu_op")->set_bool_val(true);
  }
  EXPECT_TRUE(load_bytes(folder, et({collective, sends, store})).has_value());
  ProtoNode barrier = proto_node(0, ChakraProtoMsg::COMM_COLL_NODE);
  attribute(barrier, "comm_type")->set_int64_val(ChakraProtoMsg::BARRIER);
  EXPECT_TRUE(load_bytes(folder, et({barrier})).has_value());
}

TEST(Wire, involved_dim_is_a_list_of_bools_packed_or_not) {
  const Folder folder;
  ProtoNode node = all_reduce(0, 8);
  auto* list = attribute(node, "involved_dim")->mutable_bool_list();
  for (const bool entry : {true, false, true}) {
    list->add_values(entry);
  }
  const auto set = load_bytes(folder, et({node}));
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->program(0).nodes[0].involved, 0b101U);
  // 52 19 { 0a 0c "involved_dim" e2 01 06 { 08 01 08 00 08 01 } }: unpacked.
  const std::string unpacked = std::string("\x52\x17\x0a\x0cinvolved_dim\xe2\x01\x06\x08\x01\x08") +
                               std::string(1, '\0') + "\x08\x01";
  const auto again =
      load_bytes(folder, metadata() + framed(all_reduce(0, 8).SerializeAsString() + unpacked));
  ASSERT_TRUE(again.has_value()) << again.error().to_string();
  EXPECT_EQ(again->program(0).nodes[0].involved, 0b101U);

  ProtoNode number = all_reduce(0, 8);
  attribute(number, "involved_dim")->set_int64_val(1);
  EXPECT_THAT(mistakes_of(load_bytes(folder, et({number}))),
              HasSubstr("involved_dim: found '1', expected a list of at most 32 bools"));
  ProtoNode integers = all_reduce(0, 8);
  attribute(integers, "involved_dim")->mutable_int64_list()->add_values(1);
  EXPECT_THAT(mistakes_of(load_bytes(folder, et({integers}))), HasSubstr("Int64List"));
  for (int i = 0; i < 40; ++i) {
    list->add_values(true);
  }
  EXPECT_THAT(mistakes_of(load_bytes(folder, et({node}))), HasSubstr("more than 32 bools"));
}

TEST(Wire, nodes_in_any_order_are_sorted_by_id) {
  const Folder folder;
  const auto sorted = load_bytes(folder, et({compute(1), compute(4, {1}), compute(9, {4, 1})}));
  const auto shuffled = load_bytes(folder, et({compute(9, {4, 1}), compute(1), compute(4, {1})}));
  ASSERT_TRUE(sorted.has_value() && shuffled.has_value());
  EXPECT_EQ(sorted->program(0), shuffled->program(0));
  EXPECT_EQ(sorted->program(0).nodes[2].id, 9U);
}

TEST(Wire, circles_self_dependencies_missing_nodes_and_equal_ids_are_named) {
  const Folder folder;
  EXPECT_THAT(
      mistakes_of(load_bytes(folder, et({compute(1, {3}), compute(2, {1}), compute(3, {2})}))),
      HasSubstr("node 1 'n1': dependencies: found 'the circle 1 -> 3 -> 2 -> 1'"));
  const std::string text =
      mistakes_of(load_bytes(folder, et({compute(1, {1}), compute(2, {7}), compute(2)})));
  EXPECT_THAT(text, HasSubstr("node 1 'n1': dependencies: found '1', expected another node"));
  EXPECT_THAT(text, HasSubstr("node 2 'n2': dependencies: found '7', expected the id of a node"));
  EXPECT_THAT(text, HasSubstr("node 2 'n2': id: found '2', expected an id of its own"));
}

TEST(Wire, a_file_of_zeros_is_refused_before_all_of_it_is_read) {
  // Every byte is an empty record: a node without an id, as the one before.
  const Folder folder;
  // NOLINTNEXTLINE(bugprone-string-constructor): as large as it is meant
  const auto set = load_bytes(folder, std::string(50'000'000, '\0'));
  ASSERT_FALSE(set.has_value());
  EXPECT_THAT(mistakes_of(set), HasSubstr("node 0: id: found '0', expected an id of its own"));
  EXPECT_THAT(mistakes_of(set), HasSubstr("1000 further mistakes"));
}

TEST(Wire, ten_mistakes_are_listed_and_the_others_counted) {
  const Folder folder;
  std::vector<ProtoNode> nodes;
  for (std::uint64_t id = 0; id < 25; ++id) {
    nodes.push_back(proto_node(id, ChakraProtoMsg::MEM_LOAD_NODE));
  }
  const auto set = load_bytes(folder, et(nodes));
  ASSERT_FALSE(set.has_value());
  EXPECT_EQ(set.error().mistakes.size(), 11U);
  EXPECT_THAT(set.error().to_string(), HasSubstr("15 further mistakes"));
}

}  // namespace
}  // namespace orrery::chakra
