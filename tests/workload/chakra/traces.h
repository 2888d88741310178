// SPDX-License-Identifier: Apache-2.0
/// Small traces for the tests, made with protobuf's own classes: a writer that is not ours.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "chakra.pb.h"
#include "workload/chakra/load.h"

namespace orrery::chakra {

using ProtoNode = ChakraProtoMsg::Node;
using ProtoAttribute = ChakraProtoMsg::AttributeProto;

/// A length as a varint, then the message.
inline std::string framed(const std::string& message) {
  std::string bytes;
  std::size_t length = message.size();
  for (; length >= 0x80; length >>= 7) {
    bytes += static_cast<char>((length & 0x7F) | 0x80);
  }
  bytes += static_cast<char>(length);
  return bytes + message;
}

inline std::string metadata(const std::string& version = "0.0.4") {
  ChakraProtoMsg::GlobalMetadata message;
  message.set_version(version);
  return framed(message.SerializeAsString());
}

inline std::string et(const std::vector<ProtoNode>& nodes) {
  std::string bytes = metadata();
  for (const ProtoNode& node : nodes) {
    bytes += framed(node.SerializeAsString());
  }
  return bytes;
}

inline ProtoAttribute* attribute(ProtoNode& node, const std::string& name) {
  ProtoAttribute* attribute = node.add_attr();
  attribute->set_name(name);
  return attribute;
}

inline ProtoNode proto_node(std::uint64_t id, ChakraProtoMsg::NodeType type,
                            std::initializer_list<std::uint64_t> after = {}) {
  ProtoNode node;
  node.set_id(id);
  node.set_name("n" + std::to_string(id));
  node.set_type(type);
  for (const std::uint64_t before : after) {
    node.add_data_deps(before);
  }
  return node;
}

inline ProtoNode compute(std::uint64_t id, std::initializer_list<std::uint64_t> after = {}) {
  ProtoNode node = proto_node(id, ChakraProtoMsg::COMP_NODE, after);
  attribute(node, "num_ops")->set_int64_val(1000);
  attribute(node, "tensor_size")->set_uint64_val(64);
  return node;
}

inline ProtoNode all_reduce(std::uint64_t id, std::int64_t bytes, const std::string& group = "") {
  ProtoNode node = proto_node(id, ChakraProtoMsg::COMM_COLL_NODE);
  attribute(node, "comm_type")->set_int64_val(ChakraProtoMsg::ALL_REDUCE);
  attribute(node, "comm_size")->set_int64_val(bytes);
  if (!group.empty()) {
    attribute(node, "pg_name")->set_string_val(group);
  }
  return node;
}

inline ProtoNode message(std::uint64_t id, bool sends, std::int64_t other, std::int64_t bytes = 8) {
  ProtoNode node =
      proto_node(id, sends ? ChakraProtoMsg::COMM_SEND_NODE : ChakraProtoMsg::COMM_RECV_NODE);
  attribute(node, sends ? "comm_dst" : "comm_src")->set_int32_val(static_cast<int>(other));
  attribute(node, "comm_size")->set_int64_val(bytes);
  attribute(node, "comm_tag")->set_int32_val(7);
  return node;
}

/// An empty folder of the running test, gone with it.
class Folder {
 public:
  Folder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("orrery_chakra_" + std::string(test->name()) + "_" + std::to_string(getpid()) + "_" +
             std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

/// The mistakes as they would be printed; fails the test when there are none.
inline std::string mistakes_of(const Result<TraceSet>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? "" : result.error().to_string();
}

/// The one rank whose file has these bytes.
inline Result<TraceSet> load_bytes(const Folder& folder, const std::string& bytes,
                                   const std::string& name = "one.et") {
  return load({.prefix = folder.write(name, bytes), .ranks = 1, .groups = {}, .progress = {}});
}

}  // namespace orrery::chakra
