// SPDX-License-Identifier: Apache-2.0
/// Steps in issue order -> the nodes of a template, what they read and write, and what they wait
/// for.
///
/// A step reads what was last written to its value, and waits for who wrote it; as with
/// torch.distributed, a collective or send also waits for the compute issued before it. The steps
/// of a lane see only what their own lane wrote: a forward and a backward beside it are two lanes
/// of one template.
///
///   written by             bytes                         how ranks hold it
///   GEMM, attention        batch x rows x columns        as read, or as the step says (Step::made)
///   all-gather             the gathered buffer           whole over the group
///   reduce-scatter         its share of the buffer       rows over the group
///   all-reduce             the buffer                    whole over the group
///   all-to-all             its share of the buffer       rows over the group
///   message, copy          what is moved                 as read
///   anything else          as read; of nothing read: half of what the kernel moves
///
/// What a reduction reads is a sum of parts, what a gather reads a part; parallelism of the batch
/// (dp, and the tokens of cp) is in no layout.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "graph/workload.h"
#include "workload/parallel/draft.h"

namespace orrery::parallel {

class TemplateBuilder {
 public:
  static constexpr int kNoBlock = -1;

  struct LaneShape {
    const std::vector<Block>* blocks = nullptr;  ///< null: none
    bool backward = false;                       ///< blocks run from the last one
  };
  TemplateBuilder(std::string name, const Draft& draft, const std::vector<LaneShape>& lanes);

  /// block: of the chunk, whose gathered parameters compute steps wait for.
  void add(const Step& step, int block = kNoBlock, std::size_t lane = 0);

  /// Allocations of a lane whose steps have all been added.
  void allocate(const footprint::ChunkWork& work, std::size_t lane = 0);
  /// From node `first` to node `last`; without bytes nothing.
  void allocate(std::string_view name, plan::MemoryCategory category, Bytes bytes,
                std::size_t first, std::size_t last);
  /// While blocks of any lane run.
  void allocate_messages(Bytes bytes);

  const std::vector<graph::Node>& nodes() const { return template_.nodes; }
  graph::Template finish() { return std::move(template_); }

 private:
  static constexpr int kNone = -1;
  static constexpr std::size_t kStreams =
      plan::kAxisCount + static_cast<std::size_t>(plan::StepStream::tp);
  struct NodeRange {
    int first = kNone;
    int last = kNone;
  };
  struct Lane {
    std::vector<std::vector<int>> gathered;  ///< by block: values that all-gathers made
    std::vector<int> layers;                 ///< Block::layer
    std::vector<NodeRange> moments;         ///< nodes of each block, in the order in which they run
    std::array<int, kValueCount> values{};  ///< by Value: the last that was written
    bool backward = false;
  };

  void depend(graph::Node& node, int on);
  void read(graph::Node& node, int value);
  int write(graph::Node& node, const Step& step, std::optional<int> read);
  void hold(const graph::Allocation& allocation, int first, int last);

  const plan::RankLayout& layout_;
  bool bare_;  ///< no tensors
  graph::Template template_;
  std::vector<int> writers_;  // by tensor
  std::vector<Lane> lanes_;
  int last_compute_ = kNone;
  std::array<std::array<int, kStreams>, kStreams> satisfied_{};
};

}  // namespace orrery::parallel
