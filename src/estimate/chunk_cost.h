// SPDX-License-Identifier: Apache-2.0
/// Forward and backward of model chunks on one rank, as affine functions of their layers.
#pragma once

#include "estimate/rank_time.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery {

/// One pass of a chunk as a map on the moments when device and host become free:
///
///   device' = max(device + work, host + latency),   host' = host + issue
///
/// Two passes after one another: work = w1 + w2, latency = max(l1 + w2, i1 + l2), issue = i1 + i2.
/// A sum keeps the flags of the first pass.
struct PassCost {
  bool begins_synchronised = false;  ///< the host waits for the device before most kernels
  bool ends_synchronised = false;    ///< and after most
  Time work{0};     ///< with an idle host: kernels and exposed tensor-parallel collectives
  Time latency{0};  ///< with device and host free at the same moment
  Time issue{0};    ///< of the host
  Time kernels{0};  ///< alone, without communication

  /// n more passes `each`, after this one or before it; n < 0 takes them away again. n-fold:
  ///   work = n w, issue = n i, latency = l + (n-1) max(w, i)
  /// Where the host waits for the device, what it delays in this pass is delayed all the same.
  PassCost with(const PassCost& each, std::int64_t n, bool before = false) const;
  /// This one and n passes `each` that all begin with device and host free at the same moment.
  PassCost and_apart(const PassCost& each, std::int64_t n) const;
};

struct ChunkCost {
  PassCost forward;
  PassCost backward;

  /// With n more layers; the chunk's other block, if any, is the embedding or the head.
  ChunkCost with_layers(const ChunkCost& each, std::int64_t n, bool embedding) const {
    return {forward.with(each.forward, n, !embedding), backward.with(each.backward, n, embedding)};
  }
};

/// Chunks of one layer, and what a further layer adds.
struct ChunkCosts {
  ChunkCost first;                ///< with the embedding; pp = 1: with embedding and head
  ChunkCost middle;               ///< a layer alone
  ChunkCost last;                 ///< with the head
  ChunkCost layer;                ///< added by every further layer; its latency: of a layer alone
  double contention = 1;          ///< slowdown of backward kernels beside collectives
  double message_contention = 1;  ///< and beside point-to-point messages
};

/// Fields of the plan that change no chunk are set to one value, so that plans with equal chunks
/// have equal keys: dp, ZeRO, batch, schedule, placement; pp is 1 or 4.
Plan chunk_key(const Plan& plan);

/// Lowers a model of few layers with the key and schedules its templates on one rank.
/// Requires a checked plan; `machine` holds the tp groups as the plan's machine does.
Result<ChunkCosts> measure_chunks(const Model& model, const Plan& key, const Machine& machine);

/// Steps in which data-parallel collectives run beside the passes of a single stage: every
/// template of the step, one after the other on one rank, for few layers and up to four
/// microbatches; beyond that the time grows by the same amount for every layer and microbatch.
struct WholeStep {
  Time few{0};       ///< 4 layers, min(m, 3) microbatches
  Time few_more{0};  ///< every further microbatch
  Time many{0};      ///< 8 layers///< kManyLayers
  Time many_more{0};
};
/// Whether the plan is such a step; without overlap the collectives simply add up.
bool needs_whole_step(const Plan& plan);
Plan whole_step_key(const Plan& plan);
Result<WholeStep> measure_whole_step(const Model& model, const Plan& key, const Machine& machine);
Time step_time(const WholeStep& step, std::int64_t layers, std::int64_t microbatches);

/// The plan's algorithms by axis; automatic where it has no say.
AlgorithmChoice algorithms_of(const Plan& plan);

}  // namespace orrery
