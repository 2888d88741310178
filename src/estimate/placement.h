// SPDX-License-Identifier: Apache-2.0
/// Where a plan lies on the machine: messages between stages, and the end of the step.
#pragma once

#include <array>
#include <vector>

#include "estimate/rank_time.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery {

/// Messages from one stage to the next (the last one's next is the first) and back again.
struct Boundary {
  Time latency{0};
  double seconds_per_byte = 0;

  Time time(Bytes message) const {
    return latency + from_seconds(static_cast<double>(message.value()) * seconds_per_byte);
  }
};

/// The end of the step of one stage, cut where stages wait for each other.
struct StageFinish {
  Time reduce{0};     ///< until the tied embedding's gradient: reductions that nothing hides
  Time embedding{0};  ///< all-reduce with the other end of the pipeline
  Time norm{0};       ///< until the sum over stages
  Time sum{0};        ///< of the gradient norm over stages
  Time update{0};     ///< after it: clip, Adam, gather of parameters

  Time forward{0};   ///< added to every forward: gathers of parameters that nothing hides (ZeRO 3)
  Time backward{0};  ///< to every backward: these, and reductions of gradients (ZeRO 2 and 3)

  Time hidden{0};       ///< reductions that run beside the last backward passes
  Time last_bucket{0};  ///< the one of them that begins after the last backward
  Time gather{0};       ///< of one layer's parameters beside the first forwards
  Time end_gather{0};   ///< of the embedding's or the head's
};

struct Placement {
  std::vector<Boundary> boundaries;  ///< by stage
  std::vector<std::int64_t> layers;  ///< by stage, all its chunks
  std::vector<StageFinish> finish;   ///< by stage
};

/// The nodes of the end of the step of stages of one layer and of two, lowered once and scaled to
/// any number of layers: every size in them is affine in the parameters of the stage.
struct FinishTemplates {
  struct Stage {
    Template one;
    std::vector<Bytes> operators;    ///< that a further layer adds to each operator
    std::vector<Bytes> collectives;  ///< and to each collective, by node
    std::vector<bool> sharded;       ///< by operator: on 1/dp of the parameters
  };
  std::array<Stage, 3> stages;          ///< first, middle, last; pp = 1: first alone
  Bytes layer_gradient{0};              ///< as it is reduced, of one rank
  Bytes layer_parameters{0};            ///< as they are gathered
  std::array<Bytes, 3> end_gradient{};  ///< embedding, nothing, head
  std::array<Bytes, 3> end_parameters{};
};

/// Keeps the fields that change the nodes at the end of the step; pp is 1 or 3,
/// dp is 1 or 2.
Plan finish_key(const Plan& plan);
Result<FinishTemplates> finish_templates(const Model& model, const Plan& key);

/// Keeps the fields that change a Placement.
Plan placement_key(const Plan& plan);
Result<Placement> place(const Model& model, const Plan& key, const FinishTemplates& finish,
                        const Machine& machine);

}  // namespace orrery
