// SPDX-License-Identifier: Apache-2.0
/// Parameters, gradients and optimizer states in the machine's remote memory (offload_params,
/// offload_optimizer: remote), which is ZeRO-Infinity where each device has a remote memory of its
/// own. How long a copy takes: machine/memory/remote_memory.h.
///
/// offload_params, of a block with P parameters that n ranks would share, e and g bytes of one as
/// stored and as accumulated, r bytes of a gradient on the network:
///
///                before every forward and backward      after every backward
///   n = 1        load e P                               store g P
///   n > 1        load e P / n, all-gather e P           reduce-scatter r P, store g P / n
///   n > 1 with   load e P, by all n ranks through       store r P, by all n ranks through switches
///     pool_collectives  switches that multiply it         that add it up
///
/// With overlap_param_gather a block's parameters come while the block before runs, and shards to
/// be gathered while the one before that does; without it compute waits. With overlap_grad_reduce
/// nobody waits for gradients but the optimizer.
///
/// offload_optimizer: after the gradients' norm, taken as they leave, in K pieces of the E
/// local parameters: load (M + 2 m) E, with offload_params also the gradients g E; clip, Adam and
/// cast on the device; store the states and, with offload_params, the parameters e E if they are
/// not the master itself. A piece is loaded while the one before is updated, and its memory is free
/// when that one is done.
///
/// Assumes:  remote memory adds the gradients of later microbatches to those that it holds.
/// Ignores:  ranks that wait for one another in the pool's switches; buffers of transfers.
/// Source:   Rajbhandari et al. 2021 (ZeRO-Infinity), sections 5 and 6: parameters, gradients and
///           states on NVMe, loads overlapped with gathers and compute; Won et al. 2023 (ASTRA-sim
///           2.0) for gathers and sums inside a memory pool's switches.
#pragma once

#include <vector>

#include "workload/parallel/draft.h"
#include "workload/parallel/offload.h"

namespace orrery::parallel {

/// Begins an update of which nothing is loaded before all gradients are stored.
void begin_streamed_update(std::vector<Step>& steps);
/// Appends what stands before the update of piece i: the load of the next piece, which runs beside
/// this one's update, its own if it is the first, and the wait for its own.
void append_update_loads(std::vector<Step>& steps, const plan::Plan& plan,
                         const OptimizerShare& piece, std::int64_t i);
/// Appends what stands after the update of the piece.
void append_update_store(std::vector<Step>& steps, const plan::Plan& plan, bool has_master,
                         const OptimizerShare& piece);

}  // namespace orrery::parallel
