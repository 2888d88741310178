// SPDX-License-Identifier: Apache-2.0
/// One tensor-parallel rank's share of a model's operators.
#pragma once

#include <array>
#include <vector>

#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

/// Shapes of the plan's microbatch, with the vocabulary padded for tensor parallelism.
zoo::ShapeOptions shape_options(const zoo::Model& model, const Plan& plan);

/// Returns whether Megatron-LM's fused softmax takes a rank's attention scores: elements of two
/// bytes, more than 16 and at most 16,384 keys, keys and heads x microbatch multiples of 4
/// (megatron/core/fusions/fused_softmax.py, is_kernel_available; at most 2,048 keys in 2021).
bool fuses_softmax(const zoo::Model& model, const Plan& plan);

/// Returns the number of tokens of one sequence: the plan's, or those that the model was
/// pre-trained with.
std::int64_t sequence_of(const zoo::Model& model, const Plan& plan);

/// Returns the bytes of B S H elements of the compute type: what branches read and write.
Bytes hidden_bytes(const zoo::Model& model, const Plan& plan);
/// Returns the same of every residual stream: what crosses layer and stage boundaries.
Bytes boundary_bytes(const zoo::Model& model, const Plan& plan);
/// Returns the bytes that a rank sends of that to the next stage: 1/t with sequence parallelism or
/// scatter_gather.
Bytes message_bytes(const zoo::Model& model, const Plan& plan);

/// Returns the whole model's blocks by BlockKind.
std::vector<zoo::ModelGraph> block_graphs(const zoo::Model& model, const Plan& plan);

/// Rank's share at tensor-parallel degree t:
///   column: n/t; row: k/t; heads: batch/t; their FLOPs and parameters /t
///   Split::tensor: bytes and saved /t; Split::sequence: /t with sequence parallelism
/// Requires that t divides the extents. Bytes and parameters round up.
zoo::ModelOperator shard(zoo::ModelOperator op, std::int64_t t, bool sequence_parallel);

/// Returns the same of one rank of the plan. A routed expert (tokens are split over tp: sequence
/// parallel) at degrees ep and etp, with load = expert_load():
///   batch  E/ep experts;  m  load m ep etp / tp rows of each;  column n/etp;  row k/etp
///   bytes, saved, routed   load / tp; of the first GEMM, whose rows every etp rank has, etp / tp
///   parameters             / (ep etp)
zoo::ModelOperator shard(zoo::ModelOperator op, const Plan& plan);

/// Rows of the busiest expert rank over the mean: moe_capacity, or moe_imbalance, or with
/// moe_spread, the standard deviation of the loads of E experts over their mean, busiest_rank().
double expert_load(const Plan& plan, std::int64_t experts);

/// Returns the number of parameters in the weight matrix of a GEMM (0 without a weight).
std::int64_t weight_elements(const zoo::ModelOperator& op);

}  // namespace orrery::plan
