// SPDX-License-Identifier: Apache-2.0
/// A training step of a network costs time, memory and energy on a machine: simulated.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "machine/machine.h"
#include "neural/network.h"

namespace orrery::rank {

/// A data-parallel step in bf16: each of `devices` has batch / devices samples.
struct Step {
  std::int64_t batch = 256;
  std::int64_t devices = 1;
};

struct Price {
  Time step_time{0};
  Bytes memory{0};                 ///< of a device
  std::optional<Energy> energy{};  ///< of all devices; none where the machine states no power
};

/// Simulates the step (simulate/simulate.h, fold and ports): the kernels of every layer forward,
/// twice as many products backward, an all-reduce of the gradients in bf16 where there are several
/// devices, and Adam's update.
///
///   convolution   a product of m = samples x positions, n = channels, k = channels x kernel^2
///   linear        m = samples x tokens, n = features, k = features
///   attention     its four products, and scores and mixed values as one fused kernel
///   batch_norm, layer_norm, relu, tanh, gelu, pools, add: streams of inputs and output
///   skip, flatten, zero: nothing
///   memory        16 bytes per parameter (weights and gradients of 2 bytes; master weights, mean
///                 and variance of 4), and 2 bytes for each value that a layer which is not skip,
///                 flatten or zero hands on, times the samples of a device
///
/// Ignores: the loss, the reading of samples, workspaces of libraries.
/// Mistakes: a batch that the devices do not divide, or that the machine cannot hold; those of
/// run_workload().
Result<Price> price_of(const neural::Network& network, const machine::Machine& machine,
                       const Step& step);

}  // namespace orrery::rank
