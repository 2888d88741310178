// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces.h"

namespace orrery::chakra {
namespace {

using testing::HasSubstr;

/// The trace of which the texts below are the JSON.
std::string same_as_et() {
  ProtoNode first = proto_node(0, ChakraProtoMsg::COMP_NODE);
  first.set_duration_micros(5);
  attribute(first, "is_cpu_op")->set_bool_val(false);
  attribute(first, "num_ops")->set_int64_val(1 << 20);
  ProtoNode second = all_reduce(3, std::int64_t{1} << 40);
  second.add_ctrl_deps(0);
  auto* involved = attribute(second, "involved_dim")->mutable_bool_list();
  involved->add_values(true);
  involved->add_values(false);
  return et({first, second});
}

void expect_same(const std::string& json) {
  const Folder folder;
  const auto want = load_bytes(folder, same_as_et());
  const auto got = load_bytes(folder, json, "one.json");
  ASSERT_TRUE(want.has_value());
  ASSERT_TRUE(got.has_value()) << got.error().to_string();
  EXPECT_EQ(*got, *want);
}

/// The messages as MessageToJson prints them: nothing that has its default, 64-bit numbers quoted,
/// one object right behind the other.
const std::string kMetadata = R"({
  "version": "0.0.4"
})";
const std::string kFirst = R"({
  "name": "n0",
  "type": "COMP_NODE",
  "durationMicros": "5",
  "attr": [
    {"name": "is_cpu_op", "boolVal": false},
    {"name": "num_ops", "int64Val": "1048576"}
  ]
})";
const std::string kSecond = R"({
  "id": "3",
  "name": "n3",
  "type": "COMM_COLL_NODE",
  "ctrlDeps": ["0"],
  "attr": [
    {"name": "comm_type", "int64Val": "0"},
    {"name": "comm_size", "int64Val": "1099511627776"},
    {"name": "involved_dim", "boolList": {"values": [true, false]}}
  ]
})";

TEST(Json, objects_one_after_the_other_are_the_trace) {
  expect_same(kMetadata + kFirst + kSecond);
  expect_same(kMetadata + "\n\n" + kFirst + "\n" + kSecond + "\n");
}

TEST(Json, a_list_of_objects_is_the_trace) {
  expect_same("[" + kMetadata + "," + kFirst + "," + kSecond + "]");
  expect_same("[{}, " + kFirst + "," + kSecond + "]");  // version ''
}

TEST(Json, names_of_the_schema_bare_numbers_and_numbered_enumerations_are_the_trace) {
  expect_same(R"({"version": "0.0.4"}
    {"id": 0, "name": "n0", "type": 4, "duration_micros": 5, "start_time_micros": 9,
     "attr": [{"name": "num_ops", "uint64_val": 1048576, "doc_string": "b}{"},
              {"name": "tensor_loc", "string_val": "hbm"}]}
    {"id": 3, "name": "n3", "type": 7, "data_deps": [0], "ctrl_deps": [],
     "attr": [{"name": "comm_type", "int32_val": 0}, {"name": "comm_size", "fixed64_val": 1099511627776},
              {"name": "involved_dim", "bool_list": {"values": [true, false]}}]})");
}

TEST(Json, the_feeders_workload_graph_is_the_trace) {
  expect_same(R"({"workload_graph": [
    {"Id": 0, "Name": "n0", "NodeType": 4, "runtime": 5, "is_cpu_op": false, "num_ops": 1048576,
     "data_deps": []},
    {"Id": 3, "Name": "n3", "NodeType": 7, "is_cpu_op": false, "data_deps": [0], "comm_type": 0,
     "comm_size": 1099511627776, "involved_dim": [true, false]}]})");
}

TEST(Json, control_dependencies_may_be_in_lower_camel_case) {
  for (const std::string name : {"ctrlDeps", "ctrl_deps", "dataDeps", "data_deps"}) {
    expect_same(R"({"workload_graph": [
      {"Id": 0, "Name": "n0", "NodeType": 4, "runtime": 5, "is_cpu_op": false,
       "num_ops": 1048576},
      {"Id": 3, "Name": "n3", "NodeType": 7, "is_cpu_op": false, ")" +
                name + R"(": [0], "comm_type": 0,
       "comm_size": 1099511627776, "involved_dim": [true, false]}]})");
  }
}

TEST(Json, mistakes_name_the_line) {
  const Folder folder;
  const auto text = [&](const std::string& json) {
    return mistakes_of(load_bytes(folder, json, "one.json"));
  };
  EXPECT_THAT(text(kMetadata + "\n" + R"({"id": "x"})"), HasSubstr("line 4: id: found 'x'"));
  EXPECT_THAT(text("{}\n{}\n{\"idd\": 1}"), HasSubstr("line 3: idd"));
  EXPECT_THAT(text("{}\n{\"type\": \"COMP_NODES\"}"), HasSubstr("did you mean"));
  EXPECT_THAT(text("{}\n{\"id\": 1,}"), HasSubstr("line 2"));
  EXPECT_THAT(text("{}\n{\"attr\": [{\"name\": \"num_ops\", \"int64Val\": \"a\"}]}"),
              HasSubstr("line 2: attr 'num_ops': int64Val: found 'a'"));
  EXPECT_THAT(text("{\"version\": \"2\"}"), HasSubstr("version: found '2'"));
  EXPECT_THAT(text("{}\n{\"type\": 4, \"dataDeps\": [7]}"),
              HasSubstr("node 0: dependencies: found '7'"));
  EXPECT_THAT(text("{}{\"type\": 4, \"attr\": [{\"name\": \"num_ops\", \"doubleVal\": 1.5}]}"),
              HasSubstr("num_ops: found '1.5', expected a whole number"));
  EXPECT_THAT(text(""), HasSubstr("an empty file"));
  EXPECT_THAT(text("nonsense"), HasSubstr("line 1"));
  EXPECT_THAT(text("{\"a"), HasSubstr("line 1"));
  EXPECT_THAT(text("]"), HasSubstr("line 1"));
}

}  // namespace
}  // namespace orrery::chakra
