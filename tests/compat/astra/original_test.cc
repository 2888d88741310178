// SPDX-License-Identifier: Apache-2.0
/// ASTRA-sim 518bd51 (analytical back-ends, March 2026) printed these times, every rank to the
/// nanosecond: causes.txt has a small run for each of its peculiarities (named M1 to M11),
/// random.txt 120 random runs of 1 to 64 NPUs. A run is lines of key and value:
///
///   case      its name, back-end and options
///   system, network, memory, groups   the files
///   cycles, exposed                   by rank; VxN is N times V
///   ranks     which have a trace, and its nodes, separated by ';': the id, its kind (c compute,
///             l load, s store, > send, < receive, * collective) and d dependencies, u
///             duration_micros, o num_ops, b tensor_size, h is_cpu_op, t comm_type, z comm_size,
///             p pg_name, r comm_priority, S comm_src, D comm_dst, T comm_tag, v involved_dim
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../../workload/chakra/traces.h"
#include "compat/astra/load.h"
#include "compat/astra/run.h"

namespace orrery::astra {
namespace {

struct OriginalCase {
  std::string name;
  std::vector<std::pair<std::string, std::string>> lines;  ///< key, value
};

std::vector<OriginalCase> original_cases_of(const std::string& file) {
  std::ifstream in(std::string(ORRERY_SOURCE_DIR) + "/tests/compat/astra/" + file);
  std::vector<OriginalCase> cases;
  for (std::string line; std::getline(in, line);) {
    const std::size_t end = line.find(' ');
    const std::string key = line.substr(0, end);
    std::string value = line.substr(end + 1);
    if (key == "case") {
      cases.push_back({value.substr(0, value.find(' ')), {}});
    }
    cases.back().lines.emplace_back(key, std::move(value));
  }
  return cases;
}

std::vector<std::string> split_line(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

std::vector<std::int64_t> numbers(const std::string& text) {
  std::vector<std::int64_t> all;
  for (const std::string& part : split_line(text, ' ')) {
    const std::size_t times = part.find('x');
    all.insert(all.end(), times == std::string::npos ? 1 : std::stoul(part.substr(times + 1)),
               std::stoll(part));
  }
  return all;
}

std::vector<std::int64_t> ranges(const std::string& text) {
  std::vector<std::int64_t> all;
  for (const std::string& part : split_line(text, ',')) {
    const std::size_t to = part.find('-');
    const std::int64_t last = std::stoll(to == std::string::npos ? part : part.substr(to + 1));
    for (std::int64_t rank = std::stoll(part); rank <= last; ++rank) {
      all.push_back(rank);
    }
  }
  return all;
}

constexpr std::string_view kAttributes = "obtzrSDT";
constexpr std::array<const char*, 8> kNames{"num_ops",   "tensor_size",   "comm_type",
                                            "comm_size", "comm_priority", "comm_src",
                                            "comm_dst",  "comm_tag"};

void add_field(chakra::ProtoNode& node, const std::string& field) {
  const std::string value = field.substr(2);
  if (const std::size_t place = kAttributes.find(field[0]); place != std::string_view::npos) {
    chakra::attribute(node, kNames[place])->set_int64_val(std::stoll(value));
    return;
  }
  switch (field[0]) {
    case 'd':
      for (const std::int64_t before : ranges(value)) {
        node.add_data_deps(static_cast<std::uint64_t>(before));
      }
      break;
    case 'u':
      node.set_duration_micros(std::stoull(value));
      break;
    case 'h':
      chakra::attribute(node, "is_cpu_op")->set_bool_val(true);
      break;
    case 'p':
      chakra::attribute(node, "pg_name")->set_string_val(value);
      break;
    case 'v':
      for (auto* list = chakra::attribute(node, "involved_dim")->mutable_bool_list();
           const char involved : value) {
        list->add_values(involved == '1');
      }
      break;
    default:
      ADD_FAILURE() << field;
  }
}

chakra::ProtoNode node_of(const std::string& text) {
  using namespace ChakraProtoMsg;  // NOLINT(google-build-using-namespace): the schema's names
  const std::vector<std::string> fields = split_line(text, ' ');
  const auto type = [&] {
    switch (fields[0].back()) {
      case 'l':
        return MEM_LOAD_NODE;
      case 's':
        return MEM_STORE_NODE;
      case '>':
        return COMM_SEND_NODE;
      case '<':
        return COMM_RECV_NODE;
      case '*':
        return COMM_COLL_NODE;
      default:
        return COMP_NODE;
    }
  };
  chakra::ProtoNode node = chakra::proto_node(std::stoull(fields[0]), type());
  for (std::size_t i = 1; i < fields.size(); ++i) {
    add_field(node, fields[i]);
  }
  return node;
}

struct Expected {
  RunOptions options;
  std::vector<std::int64_t> cycles;
  std::vector<std::int64_t> exposed;
};

RunOptions options_of(const std::string& line) {
  const std::vector<std::string> words = split_line(line, ' ');
  RunOptions options;
  options.backend = words[1] == "aware" ? Backend::aware : Backend::unaware;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string value = words[i].substr(words[i].find('=') + 1);
    if (words[i].starts_with("--num-queues")) {
      options.queues_per_dimension = std::stoll(value);
    } else if (words[i].starts_with("--injection")) {
      options.injection_scale = std::stod(value);
    } else {
      options.rendezvous = value == "true";
    }
  }
  return options;
}

void write_traces(const chakra::Folder& folder, const std::string& line) {
  const std::size_t end = line.find(' ');
  std::vector<chakra::ProtoNode> nodes;
  for (const std::string& text : split_line(line.substr(end + 1), ';')) {
    nodes.push_back(node_of(text));
  }
  for (const std::int64_t rank : ranges(line.substr(0, end))) {
    folder.write("trace." + std::to_string(rank) + ".et", chakra::et(nodes));
  }
}

class Original : public ::testing::TestWithParam<OriginalCase> {};

TEST_P(Original, printed_these_cycles_folded_or_not) {
  const chakra::Folder folder;
  Files files{folder / "trace", folder / "system", folder / "network", folder / "memory", {}};
  Expected expected;
  for (const auto& [key, value] : GetParam().lines) {
    if (key == "case") {
      expected.options = options_of(value);
    } else if (key == "cycles") {
      expected.cycles = numbers(value);
    } else if (key == "exposed") {
      expected.exposed = numbers(value);
    } else if (key == "ranks") {
      write_traces(folder, value);
    } else {
      const std::string path = folder.write(key, value);
      files.groups = key == "groups" ? path : files.groups;
    }
  }
  const auto loaded = load_files(files, expected.options.quirks);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  for (const bool fold : {true, false}) {
    expected.options.fold = fold;
    const auto result = run(loaded->input, expected.options);
    ASSERT_TRUE(result) << result.error().to_string();
    std::vector<std::int64_t> cycles;
    std::vector<std::int64_t> exposed;
    for (const std::uint32_t index : result->class_of) {
      cycles.push_back(result->classes[index].finish.value() / 1000);
      exposed.push_back(result->classes[index].exposed.value() / 1000);
    }
    EXPECT_EQ(cycles, expected.cycles) << (fold ? "folded" : "every rank");
    EXPECT_EQ(exposed, expected.exposed) << (fold ? "folded" : "every rank");
  }
}

std::string name_of_case(const ::testing::TestParamInfo<OriginalCase>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Causes, Original, ::testing::ValuesIn(original_cases_of("causes.txt")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Random, Original, ::testing::ValuesIn(original_cases_of("random.txt")),
                         name_of_case);

}  // namespace
}  // namespace orrery::astra
