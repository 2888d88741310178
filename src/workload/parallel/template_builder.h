// SPDX-License-Identifier: Apache-2.0
/// Steps in issue order -> the nodes of a template and their dependencies.
///
/// A step waits for the last writer of what it reads, and, as with torch.distributed, a collective
/// or send also for the compute issued before it. The steps of a lane see only what their own lane
/// wrote: a forward and a backward beside it are two lanes of one template.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "graph/workload.h"
#include "workload/parallel/draft.h"

namespace orrery {

class TemplateBuilder {
 public:
  static constexpr int kNoBlock = -1;

  /// blocks: how many the chunk of a lane has, for each lane.
  TemplateBuilder(std::string name, const std::vector<std::size_t>& blocks);

  /// block: of the chunk, whose gathered parameters compute steps wait for.
  void add(const Step& step, int block = kNoBlock, std::size_t lane = 0);

  Template finish() { return std::move(template_); }

 private:
  static constexpr int kNoNode = -1;
  static constexpr std::size_t kStreams = kAxisCount + static_cast<std::size_t>(StepStream::tp);
  struct Lane {
    std::vector<std::vector<int>> gathered;  ///< by block: all-gathers of its parameters
    std::array<int, kValueCount> writers{};  ///< by Value
  };

  void depend(Node& node, int on);

  Template template_;
  std::vector<Lane> lanes_;
  int last_compute_ = kNoNode;
  std::array<std::array<int, kStreams>, kStreams> satisfied_{};
};

}  // namespace orrery
