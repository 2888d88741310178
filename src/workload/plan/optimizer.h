// SPDX-License-Identifier: Apache-2.0
/// Optimizers beside Adam: what they keep for each trained parameter, and what their kernels move.
///
///   N parameters of one kind of owner (dense, experts), of which F are in matrices (weights of
///   products) of rows and columns f in sum; O of them in layers; u bytes of moment_type; M of
///   master_type; g of a gradient
///
///   optimizer    states beside the master     moved by the update
///   adam         2 u N                        (g + 2 M) N + twice the states
///   adam_foreach 2 u N                        (2 g + 4 M) N + 7 times the states
///   adamw_8bit   2 (1 + 4/256) N              as adam
///   lion, sgd    u N                          the same
///   adafactor    4 f + 4 (N - F)              (3 g + 2 M) N + twice the states
///   muon         u O + 2 u (N - O)            (g + 2 M) N + twice the states + 4 O, and products
///                                             of 5 (4 m^2 n + 2 m^3) FLOPs for each matrix of
///                                             n columns and m <= n rows
///
/// adamw_8bit and adafactor have types of their own, whatever moment_type says: the former 8 bits
/// and an fp32 scale for each block of 256; the latter fp32, no first moment, its second as sums of
/// rows and columns, and it reads gradients once for these, once for the size of the update and
/// once for the update. adam_foreach is AdamW of PyTorch that is not fused, a kernel over all
/// parameters for each operator: decay (2 M), both moments (2 u + g, and 2 u apart for its second),
/// root, correction and epsilon (2 u each), step (2 M + 2 u); the root is another copy of a moment
/// while it runs. muon takes five Newton-Schulz steps in bf16, and Adam for what is no matrix
/// of a layer. States are shared by shard_optimizer as Adam's are. Muon's matrices are a rank's
/// tensor-parallel parts, orthogonalised apart (Megatron's blockwise mode) by the rank that has
/// most of one: 1/s of the FLOPs on s ranks, and at least one matrix.
///
/// Ignores:  that bitsandbytes keeps tensors below 4,096 elements in fp32; the sums of an embedding
///           table's rows and columns; the exchange of matrices that the bounds of shards cut.
/// Source:   Dettmers et al. 2022 (arXiv:2110.02861); Chen et al. 2023 (arXiv:2302.06675); Shazeer
///           and Stern 2018 (arXiv:1804.04235); Jordan et al. 2024 (Muon); Liu et al. 2025
///           (arXiv:2502.16982, section 2.3: its states over ranks); PyTorch's _multi_tensor_adamw
///           (torch/optim/adamw.py).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

/// Matrices are the trained weights that an optimizer may treat as such.
struct Matrices {
  std::int64_t elements = 0;   ///< F
  std::int64_t factors = 0;    ///< f
  std::int64_t in_layers = 0;  ///< O
  std::int64_t flops = 0;      ///< of orthogonalising those
  std::int64_t one_flops = 0;  ///< of the costliest of them

  Matrices& operator+=(const Matrices& other) {
    elements += other.elements;
    factors += other.factors;
    in_layers += other.in_layers;
    flops += other.flops;
    one_flops = std::max(one_flops, other.one_flops);
    return *this;
  }
  friend Matrices operator*(const Matrices& one, std::int64_t times) {
    return {one.elements * times, one.factors * times, one.in_layers * times, one.flops * times,
            times > 0 ? one.one_flops : 0};
  }
  /// Returns the share of one of `shards` ranks.
  friend Matrices operator/(const Matrices& all, std::int64_t shards) {
    return {all.elements / shards, all.factors / shards, all.in_layers / shards,
            std::max(all.flops / shards, all.one_flops), all.one_flops};
  }
};

/// Returns what a rank's share of an operator of a block adds.
Matrices matrices_of(const zoo::ModelOperator& op, BlockKind kind);

/// Returns the bytes of the states beside the master, of `parameters` with `matrices` among them.
Bytes moment_bytes(const Plan& plan, std::int64_t parameters, const Matrices& matrices);

/// Says whether the optimizer has Adam's states.
inline bool is_adam(const Plan& plan) {
  return plan.optimizer == Optimizer::adam || plan.optimizer == Optimizer::adam_foreach;
}

/// Returns the bytes that the update's kernels read and write, for gradients of `gradient` bytes.
Bytes update_bytes(const Plan& plan, Bytes gradient, std::int64_t parameters,
                   const Matrices& matrices);

}  // namespace orrery::plan
