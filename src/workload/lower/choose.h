// SPDX-License-Identifier: Apache-2.0
/// Degrees of a plan -> layouts of the tensors of a block.
///
///   axis       operator                    reads            makes            held between
///   tp         product cut by columns,     (R, P)           columns          (R, R), with sequence
///              first that takes them                                         parallelism (S, S) of
///              product cut by rows         columns          (P, R)           tokens
///   ep         experts                     (S, S) experts   (S, S) experts   (S, S) of tokens
///              allgather                   (R, P)           (P, R)           (S, S) of tokens
///   etp        experts                     (R, P)           (P, R)           (S, S) of tokens
///   cp         attention, all_gather       keys (R, P)      as held          (S, S) of tokens
///              a2a                         (S, S) heads     (S, S) heads     (S, S) of tokens
///              p2p                         a ring over what is left of cp (attention_ring.h)
///
/// A pair is a value and its gradient. Tensors with a dimension that tp divides lie in shards of it
/// all through. Several partial sums that one residual sum adds up are added before they are
/// summed over ranks, with the last of them (Wang & Komatsuzaki 2021, GPT-J); those that an
/// adapter's second matrix reads stay partial (workload/plan/lora.h). The loss over a split
/// vocabulary sums three fp32 values a token over tp: maximum, predicted logit, exponentials.
///
/// Tokens on their way to experts:
///
///   alltoall       all-to-all over ep of the rank's T top_k rows, then all-gather of what arrived
///                  over etp
///   allgather      all-gather of the T rows over ep and etp; a rank keeps its own experts'
///   hierarchical   as alltoall, but a row for several experts of one node crosses between nodes
///                  once, and of one rank is sent once (Node::copies)
///
/// Every rank is the busiest one, with plan::expert_load() times the mean rows. Ignores: the
/// router's auxiliary loss.
///
/// Source: Shoeybi et al. 2019 (Megatron-LM); Korthikanti et al. 2022, section 4.2.2; Lepikhin et
/// al. 2020 (GShard); Megatron-Core's MoEAlltoAllTokenDispatcher and MoEAllGatherTokenDispatcher;
/// DeepSeek-AI 2024 (DeepEP's deduplication); Jacobs et al. 2023 (DeepSpeed-Ulysses); Fang & Zhao
/// 2024 (USP); Llama Team 2024 (all-gather of keys).
#pragma once

#include <cstdint>
#include <vector>

#include "workload/lower/layouts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::lower {

/// Says which degrees of a plan cut its blocks.
struct Cuts {
  bool tensor = false;
  bool experts = false;
  bool context = false;
};

/// Returns the choice of a block; `own`: one rank's shares of its operators. Axes that `cuts`
/// leaves out have one rank. `chunks`: of products and the collectives over tp beside them.
Choice choose(const std::vector<zoo::ModelOperator>& own,
              const std::vector<graph::ModelTensor>& tensors, const zoo::Model& model,
              const plan::Plan& plan, const Cuts& cuts, std::int64_t chunks);

}  // namespace orrery::lower
