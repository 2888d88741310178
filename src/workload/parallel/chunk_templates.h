// SPDX-License-Identifier: Apache-2.0
/// The templates of one chunk of the model on a stage: its forward, its backward whole or cut into
/// input and weight gradients, and a forward beside the backward of another chunk.
///
///   whole backward   for each block: before_backward, recompute, backward, after_backward
///   input gradients  the same without steps of weight gradients and without after_backward
///   weight gradients for each block: the steps of weight gradients (weight-gradient GEMMs,
///                    accumulation, and the saved input that only they read, gathered again), then
///                    after_backward: reductions wait for the last W of their blocks
#pragma once

#include <string>

#include "workload/parallel/step_list.h"

namespace orrery::parallel {

enum class BackwardPart : std::uint8_t { whole, input_gradients, weight_gradients };

StepList forward_steps(const Draft& draft, const ChunkDraft& chunk, std::string name,
                       const Moment& when);
StepList backward_steps(const Draft& draft, const ChunkDraft& chunk, BackwardPart part,
                        std::string name, const Moment& when);

/// Returns, for step number `step`, the forward of one chunk and the whole backward of another as
/// one piece of work, of microbatches that are neither first nor last: it begins when both their
/// messages are there and sends when both are done. With draft.interleaves_pairs compute changes
/// from one to the other wherever it would wait for communication, the backward first, and the
/// forward begins no block before the backward has done as many (the order of DeepSeek-V3, figure
/// 4); otherwise the backward follows the forward.
StepList pair_steps(const Draft& draft, const ChunkDraft& forward, const ChunkDraft& backward,
                    std::string name, std::int64_t step);

/// Returns whether some step takes part only in the first or last microbatch.
bool has_variant(const Draft& draft, const ChunkDraft& chunk, When when);

}  // namespace orrery::parallel
