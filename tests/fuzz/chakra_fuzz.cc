// SPDX-License-Identifier: Apache-2.0
/// Any bytes as a trace, `.et` and JSON: a program that a file of our own says again, or a reason.
/// Where protobuf's classes read the same records, they read the same.
#include <algorithm>
#include <string>

#include "chakra.pb.h"
#include "tests/fuzz/fuzz.h"
#include "workload/chakra/field_reader.h"
#include "workload/chakra/json_trace.h"
#include "workload/chakra/process_groups.h"
#include "workload/chakra/to_workload.h"
#include "workload/chakra/wire.h"
#include "workload/chakra/write.h"

namespace orrery::chakra {
namespace {

using fuzz::hold;

struct Reading {
  ByteWindow window;
  Mistakes mistakes;
  ProgramBuilder builder;
  FileShape shape;

  bool et(std::string_view bytes) {
    mistakes.begin("input");
    builder.begin(mistakes);
    window.open(bytes);
    read_et(window, builder, shape, mistakes);
    return done();
  }
  bool json(std::string_view text) {
    mistakes.begin("input");
    builder.begin(mistakes);
    read_json_trace(text, builder, mistakes);
    return done();
  }
  bool done() {
    if (mistakes.empty()) {
      return true;
    }
    fuzz::hold_error(mistakes.take());
    return false;
  }
};

void hold_program(const FileTrace& trace) {
  const Program& program = trace.program;
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    hold(i == 0 || program.nodes[i - 1].id < node.id, "ids ascend");
    hold(node.name < program.names.size(), "a name is in the names");
    hold(!communicates(node.type) || node.group <= trace.groups.size(), "a slot has a group");
    hold(node.size >= Bytes(0) && !node.size.is_overflow(), "sizes are sizes");
    hold(node.duration >= Time(0) && !node.duration.is_overflow(), "times are times");
    for (std::uint32_t d = 0; d < node.dependencies; ++d) {
      const std::uint32_t before = program.dependencies[node.first_dependency + d];
      hold(before < program.nodes.size() && before != i, "a dependency is another node");
    }
  }
}

/// Rank 0 of all that are named; what its messages say is relative to it already.
TraceSet set_of(const FileTrace& trace) {
  TraceSet set;
  set.programs = {trace.program};
  set.program_of = {0};
  set.groups.resize(1);
  set.first_slot = {0};
  for (const std::string& name : trace.groups) {
    set.group_slots.push_back(static_cast<std::uint32_t>(set.groups.size()));
    set.groups.push_back({name, {0}});
  }
  return set;
}

/// Definitions of groups have ranks that exist, or are refused.
void hold_groups(const FileTrace& trace) {
  constexpr std::int64_t kRanks = 4;
  GroupTable table(kRanks);
  Mistakes mistakes;
  table.define(trace.definitions, mistakes);
  for (const Group& group : table.take()) {
    const bool exist = std::all_of(group.ranks.begin(), group.ranks.end(),
                                   [](std::int64_t rank) { return rank >= 0 && rank < kRanks; });
    hold(exist, "ranks of groups exist");
  }
}

/// Peers that are the rank itself are refused by load(), which knows the rank.
bool can_be_written(const FileTrace& trace) {
  return std::all_of(trace.messages.begin(), trace.messages.end(), [&](std::uint32_t position) {
    return trace.program.nodes[position].peer != 0;
  });
}

void hold_writing(const FileTrace& trace) {
  if (!can_be_written(trace)) {
    return;
  }
  const TraceSet set = set_of(trace);
  const std::string again = et_bytes(set, 0);
  Reading second;
  hold(second.et(again), "what is written can be read");
  hold(second.builder.trace().program == set.programs[0], "and is the same");
}

/// Checks that the trace, as the only rank's, becomes a workload that verify() accepts, or a
/// reason.
void hold_workload(const FileTrace& trace) {
  const auto workload = to_workload(set_of(trace));
  if (!workload) {
    fuzz::hold_error(workload.error());
  }
}

/// Checks that nothing differs when a file is matched with itself.
void hold_shape(Reading& reading, std::string_view bytes) {
  if (!reading.builder.in_file_order()) {
    return;
  }
  const FileTrace& trace = reading.builder.trace();
  reading.shape.finish(bytes, trace, 0, 7);
  std::vector<std::string> groups;
  constexpr std::int64_t kRanks = std::int64_t{1} << 31;
  if (reading.shape.matches(bytes, 0, kRanks, groups)) {
    hold(groups == trace.groups, "a file has the groups that it has");
  }
}

void hold_reference(std::string_view bytes, const Program& program) {
  std::size_t count = 0;
  std::uint64_t ids = 0;  // their sum, around 2^64
  std::uint64_t length = 0;
  for (bool metadata = true; !bytes.empty(); metadata = false) {
    const std::size_t digits = read_length(bytes, length);
    ChakraProtoMsg::Node node;
    const bool parsed =
        metadata || node.ParseFromArray(bytes.data() + digits, static_cast<int>(length));
    hold(parsed, "protobuf reads what we read");
    count += metadata ? 0 : 1;
    ids += metadata ? 0 : node.id();
    bytes.remove_prefix(digits + length);
  }
  hold(count == program.nodes.size(), "as many nodes as protobuf finds");
  for (const Node& node : program.nodes) {
    ids -= node.id;
  }
  hold(ids == 0, "the ids that protobuf finds");
}

}  // namespace
}  // namespace orrery::chakra

ORRERY_FUZZ(chakra) {
  using namespace orrery::chakra;  // NOLINT(google-build-using-namespace)
  static Reading reading;          // used for file after file, as by load()
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (reading.et(text)) {
    hold_program(reading.builder.trace());
    hold_reference(text, reading.builder.trace().program);
    hold_shape(reading, text);
    hold_groups(reading.builder.trace());
    hold_writing(reading.builder.trace());
    hold_workload(reading.builder.trace());
  }
  if (reading.json(text)) {
    hold_program(reading.builder.trace());
    hold_groups(reading.builder.trace());
  }
  return 0;
}
