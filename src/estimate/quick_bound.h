// SPDX-License-Identifier: Apache-2.0
/// A bound on the step time of very many plans of one model on one machine, from the least times of
/// its blocks: lowered and mapped once for every set of fields that shapes them, not per plan.
///
///   f, b     of a layer in a run of equal ones, forward and backward with what it recomputes: from
///            compute free to compute free, kernels alone and the collectives they wait for on idle
///            links: entry (compute, compute) of the runs' maps (pass_map.h), of three less of two
///   F, B     sums over a chunk;  w = sum over the chunks of a stage of F + B
///   fill     F of the first chunks of the stages before;  drain: their B
///   finish   the optimizer's kernels
///   g        1, of interleaved schedules the stages: microbatches that end together
///
///   bound = max over stages of  fill + m w + drain + finish
///                               fill + m w - g B + reduction of the gradients + finish
///           and of every lane:  what its collectives take over the step
///
/// Exchanges of tokens beside another microbatch hide what a block waits for: then kernels alone
/// count. Schedules that split the backward have no drain; dualpipe fills from both ends.
/// With offload F and B are no shorter than the copies of all but two of a chunk's layers, and
/// behind the last backward come gradients to the host and its update (offload.h).
///
/// Ignores what a schedule adds to that: messages, reductions beside the last backward, gathers
/// ahead. It is never above the simulated time, and above lower_bound() where
/// that has shorter paths.
#pragma once

#include <memory>

#include "base/result.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// Not thread-safe: it keeps what it has measured.
class QuickBound {
 public:
  QuickBound(const zoo::Model& model, const machine::Machine& machine);
  ~QuickBound();
  QuickBound(QuickBound&&) noexcept;
  QuickBound& operator=(QuickBound&&) noexcept;

  /// Of a plan that check() and check_machine() accept. Mistakes: devices that the machine cannot
  /// have.
  Result<Time> least_time(const plan::Plan& plan);

  /// m times the kernels of a microbatch over the stages: never above least_time() of any plan that
  /// differs in schedule, chunks, placement or in what decides memory.
  Result<Time> least_kernels(const plan::Plan& plan);

  /// Bytes that the fullest stage has at the least (memory/least_memory.h), of the same plans.
  Result<Bytes> least_memory(const plan::Plan& plan);

 private:
  class Memo;
  std::unique_ptr<Memo> memo_;
};

}  // namespace orrery::estimate
