// SPDX-License-Identifier: Apache-2.0
/// Steps in issue order -> the nodes of a template, what they read and write, and what they wait
/// for (step_list.h). A step reads what its lane last wrote to its value.
///
///   written by             bytes                         how ranks hold it
///   an operator's kernel   Step::made (lower/made.h)     as said there
///   all-gather             the gathered buffer           whole over the group
///   reduce-scatter         its share of the buffer       rows over the group
///   all-reduce             the buffer                    whole over the group
///   all-to-all             its share of the buffer       rows over the group
///   message, copy          what is moved                 as read
///   anything else          as read; of nothing read: half of what the kernel moves
///
/// A reduction reads a sum of parts, a gather reads a part.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "graph/workload.h"
#include "workload/parallel/step_list.h"

namespace orrery::parallel {

class TemplateBuilder {
 public:
  /// Adds all steps.
  TemplateBuilder(const StepList& list, const plan::RankLayout& layout);

  /// Allocations of a lane.
  void allocate(const footprint::ChunkWork& work, std::size_t lane);
  /// Allocates bytes from node `first` to node `last`; does nothing without bytes.
  void allocate(std::string_view name, plan::MemoryCategory category, Bytes bytes,
                std::size_t first, std::size_t last);
  /// Allocates bytes while blocks of any lane run.
  void allocate_messages(Bytes bytes);

  const std::vector<graph::Node>& nodes() const { return template_.nodes; }
  graph::Template finish() { return std::move(template_); }

 private:
  static constexpr int kNone = -1;
  struct NodeRange {
    int first = kNone;
    int last = kNone;
  };
  struct Lane {
    std::vector<std::vector<int>> gathered;  ///< by block: tensors that all-gathers made
    std::vector<int> layers;                 ///< Block::layer
    std::vector<NodeRange> moments;  ///< nodes of each block, in the order in which they run
    std::array<int, kValueCount> tensors{};  ///< by Value: the last that was written
    bool backward = false;
  };

  void add(const PlacedStep& placed);
  void read(graph::Node& node, int tensor);
  int write(graph::Node& node, const Step& step, std::optional<int> read);
  void hold(const graph::Allocation& allocation, int first, int last);

  const plan::RankLayout& layout_;
  StepDependencies dependencies_;
  graph::Template template_;
  std::vector<Lane> lanes_;
};

/// Returns a template with what its chunks allocate.
graph::Template built(const StepList& list, const Draft& draft, const RoleDraft& role);

}  // namespace orrery::parallel
