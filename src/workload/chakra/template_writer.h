// SPDX-License-Identifier: Apache-2.0
/// One program of traces as a template. For to_workload.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/workload.h"
#include "workload/chakra/families.h"
#include "workload/chakra/message_ends.h"
#include "workload/chakra/mistakes.h"
#include "workload/chakra/to_workload.h"

namespace orrery::chakra {

/// Rows of the tables of a workload that was made from traces.
struct TraceRows {
  std::size_t families = 0;  ///< the first groups, each with a stream
  bool durations = false;    ///< compute nodes take their durations, also if 0

  static constexpr graph::StreamIndex kCpuStream{std::size_t{1}};
  static constexpr graph::StreamIndex kSendStream{std::size_t{2}};
  static constexpr graph::StreamIndex kReceiveStream{std::size_t{3}};
  static constexpr graph::StreamIndex kStoreStream{std::size_t{4}};
  static constexpr graph::StreamIndex kLoadStream{std::size_t{5}};
  static constexpr std::size_t kFixedStreams = 6;

  graph::StreamIndex stream(std::size_t family) const {
    return graph::StreamIndex(kFixedStreams + family);
  }
  graph::GroupIndex messages() const { return graph::GroupIndex(families); }
  graph::GroupIndex to_host() const { return graph::GroupIndex(families + 1); }
  graph::GroupIndex from_host() const { return graph::GroupIndex(families + 2); }
  graph::GroupIndex cpu() const { return graph::GroupIndex(families + 3); }
};

/// Dimensions that a collective of the world names, of so many; all where it names none or leaves
/// none out. What it says of further ones is ignored.
std::uint32_t dimensions_of(const Node& collective, std::size_t dimensions);

/// Positions of a program's nodes: ascending, but each after those that it depends on. Shorter
/// than the program when there is a circle.
std::vector<std::uint32_t> execution_order(const Program& program);

class TemplateWriter {
 public:
  /// Everything must outlive the writer. Mistakes are those of rank `rank`, which has the program.
  TemplateWriter(const TraceSet& traces, std::int64_t rank, const Families& families,
                 const MessageEnds& messages, const TraceRows& rows,
                 const ToWorkloadOptions& options, Mistakes& mistakes);

  graph::Template write();

 private:
  graph::Node node_of(const Node& source);
  void write_compute(const Node& source, graph::Node& node) const;
  void write_memory(const Node& source, graph::Node& node) const;
  void write_message(const Node& source, graph::Node& node) const;
  void join_shift(const Node& source, int index, graph::Node& node);
  void write_collective(const Node& source, graph::Node& node);
  void write_on_cpu(const Node& source, graph::Node& node) const;
  void wrong(const Node& source, std::string found, std::string expected);

  const Program& program_;
  std::int64_t rank_;
  const Families& families_;
  const MessageEnds& messages_;
  const TraceRows& rows_;
  const ToWorkloadOptions& options_;
  Mistakes& mistakes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> shifts_;  // by group and tag: their sends
};

}  // namespace orrery::chakra
