// SPDX-License-Identifier: Apache-2.0
/// A bound on the step time of very many plans of one model on one machine, from the least times of
/// its blocks: lowered and mapped once for every set of fields that shapes them, not per plan.
///
///   f, b     of a layer in a run of equal ones, forward and backward with what it recomputes: from
///            compute free to compute free, kernels slowed by the run's own collectives and the
///            collectives they wait for, as if no other group shared their links: times
///            of the runs (block_timer.h), of three layers less of two
///   F, B     sums over a chunk;  w = sum over the chunks of a stage of F + B
///   fill     F of the first chunks of the stages before;  drain: their B
///   finish   the optimizer's kernels
///   g        1, of interleaved schedules the stages: microbatches that end together
///   lane     what gradients and parameters take on the busiest communicator
///   lost     what kernels lose beside what of the lane exceeds the time without kernels
///
///   bound = max over stages of  fill + m w + drain + finish + lost
///                               fill + m w - g B + reductions once a step + finish
///                               fill + F of the warm-up + all reductions + finish
///                               the lane;  every lane of the blocks' collectives;  the host
///                               every port of a rank: the bytes of all its transfers at its rate
///
/// Exchanges of tokens beside another microbatch hide what a block waits for: then kernels alone
/// count, but for passes that have no other beside them (lone_passes.h), and what kernels lose
/// beside the exchanges; or what a layer's forward and another's backward wait for in turn, as
/// their steps are listed. Schedules that split the backward have no drain; dualpipe fills from
/// both ends. With offload F and B are no shorter than the copies of all but two of a chunk's
/// layers, a step than all copies of one way, and between a forward and the backward right after it
/// the last layer goes out and comes back; behind the last backward come gradients to the host and
/// its update (offload.h).
///
/// Ignores what a schedule adds to that: messages, reductions beside the last backward, gathers
/// ahead. Each term is a path of dependencies of the run but for two that are only tested: runs are
/// taken to grow by the same time a layer, and slowed by their own collectives at the least. Tests
/// hold it to the simulated time of random plans over every field (quick_bound_test.cc).
#pragma once

#include <memory>

#include "base/result.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// Bounds the step time of plans from below. It is not thread-safe: it keeps what it has computed.
class QuickBound {
 public:
  QuickBound(const zoo::Model& model, const machine::Machine& machine);
  ~QuickBound();
  QuickBound(QuickBound&&) noexcept;
  QuickBound& operator=(QuickBound&&) noexcept;

  /// Returns the bound of a plan that check() and check_machine() accept. Mistakes: devices that
  /// the machine cannot have.
  Result<Time> least_time(const plan::Plan& plan);

  /// Returns the step as if every stage did the mean of all (CostTables::mean_step): never above
  /// the simulated time of any plan that differs in stage_layers or in what is kept of activations.
  Result<Time> mean_step(const plan::Plan& plan);

  /// Returns the same by kernels, lanes and ports, as if no kernel waited for a collective: of any
  /// plan that also differs in schedule, chunks and what hides exchanges.
  Result<Time> least_kernels(const plan::Plan& plan);

  /// Returns the bytes of parameters, gradients and optimizer states, mean over the stages, which
  /// schedule, chunks and the split of the layers do not change: what the fullest device holds at
  /// the least.
  Result<Bytes> least_states(const plan::Plan& plan);

  /// Returns the time that a device's kernels take at the least in a step, mean over the stages;
  /// without the optimizer's. Mistakes are those of least_time().
  Result<Time> least_busy(const plan::Plan& plan);

  /// Returns the energy above idle power that a device's kernels draw at the least in a step, mean
  /// over the stages, where the device has a power model. Mistakes are those of least_time().
  Result<Energy> least_energy(const plan::Plan& plan);

  /// Returns MemoryTables::least(), of the same plans.
  Result<Bytes> least_memory(const plan::Plan& plan);

 private:
  class Memo;
  std::unique_ptr<Memo> memo_;
};

}  // namespace orrery::estimate
