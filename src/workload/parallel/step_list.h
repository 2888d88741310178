// SPDX-License-Identifier: Apache-2.0
/// A StepList is what a template runs before it becomes nodes: steps in issue order, and what each
/// waits for.
///
/// A step waits for who last wrote what it reads; as with torch.distributed, a collective or send
/// also waits for the compute issued before it; a block's compute waits for its gathers. The steps
/// of a lane see only what their own lane wrote: a forward and a backward beside it are two lanes
/// of one template. Streams are in order, so a dependency is implied by one of the own stream, and
/// by an earlier node of the own stream that waited for the same or a later node of the other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "workload/parallel/draft.h"

namespace orrery::parallel {

inline constexpr int kNoBlock = -1;

struct PlacedStep {
  const Step* step = nullptr;
  int block = kNoBlock;    ///< of the lane's chunk
  std::uint32_t lane = 0;  ///< of a list
};

struct StepLane {
  const ChunkDraft* chunk = nullptr;  ///< null: the end of the step
  footprint::ChunkPass pass = footprint::ChunkPass::forward;

  std::size_t blocks() const { return chunk == nullptr ? 0 : chunk->blocks.size(); }
};

struct StepList {
  std::string name;
  std::vector<StepLane> lanes;
  std::vector<PlacedStep> steps;
};

/// StepDependencies tell what the steps of a list wait for, one after the other.
class StepDependencies {
 public:
  explicit StepDependencies(const std::vector<StepLane>& lanes);

  /// Appends the dependencies of the next step to `after`: numbers of earlier steps.
  void next(const PlacedStep& placed, std::vector<int>& after);

 private:
  static constexpr int kNone = -1;
  static constexpr std::size_t kStreams =
      plan::kAxisCount + static_cast<std::size_t>(plan::StepStream::tp);
  struct Lane {
    std::vector<std::vector<int>> gathers;   ///< by block
    std::array<int, kValueCount> writers{};  ///< by Value: the last
  };

  void depend(graph::StreamIndex stream, int on, std::vector<int>& after);

  std::vector<Lane> lanes_;
  std::vector<graph::StreamIndex> streams_;  ///< by step
  int last_compute_ = kNone;
  std::array<std::array<int, kStreams>, kStreams> satisfied_{};
};

}  // namespace orrery::parallel
