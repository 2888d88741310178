// SPDX-License-Identifier: Apache-2.0
/// Optimizer states and activations in lower memory tiers. A copy of x bytes to or from tier t
/// takes its latency + x / its bandwidth (one direction); each direction is an in-order stream.
///
/// offload_optimizer. Master parameters and moments live in the host's memory (cpu) or on local
/// storage (nvme); the device keeps parameters and gradients. After the gradients' norm, in K = 8
/// pieces of the E local parameters, piece i+1's copies beside piece i's:
///
///   gradients to the host    g E            (grad_type)
///   [nvme: states read       (M + 2 m) E    from tier 2, one piece ahead]
///   update on the host       (g + 2 M + 4 m) E + the parameters written, through host memory
///   [nvme: states written    (M + 2 m) E    to tier 2]
///   parameters back          e E            (compute type, or quantised)
///
///   cpu: the link's outward stream does gradients and update, so the time is at least
///   (2 g + 2 M + 4 m + e) E / bandwidth of tier 1
///
/// The host's memory is taken to serve each device at the rate of its link, as machine files do not
/// state its own rate (eight devices at 64 GB/s need 512 GB/s; two sockets have about 600).
///
/// offload_activations. That share of what each layer keeps for its backward goes to the host
/// beside the next layer's forward; the layer after next waits for it, so two layers' activations
/// are on the device. Each layer's come back during the backward of the layer after it; those of a
/// chunk's last layer as soon as all earlier copies to the host are done.
///
/// Ignores:  the host's arithmetic (Adam is bound by memory); copies of a device slowing those of
///           its neighbours; host memory needed for pinning.
/// Source:   Ren et al. 2021 (ZeRO-Offload); Rajbhandari et al. 2021 (ZeRO-Infinity); Megatron-LM's
///           --optimizer-cpu-offload; Transformer Engine's CPU offloading of activations.
#pragma once

#include <vector>

#include "workload/parallel/block_workload.h"
#include "workload/parallel/draft.h"

namespace orrery::parallel {

/// Appends the update on the host to the end of the step. Requires offload_optimizer.
void append_host_update(std::vector<Step>& steps, const plan::Plan& plan,
                        const OptimizerShare& share);

}  // namespace orrery::parallel
