// SPDX-License-Identifier: Apache-2.0
/// The arguments of Megatron-LM that describe a model. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/interop/arguments.h"
#include "workload/zoo/architecture.h"

namespace orrery::interop {

/// The arguments of one model, with Megatron-LM's defaults.
struct ModelArguments {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t positions = 0;
  std::int64_t vocab = 0;
  bool gated = false;             ///< the MLP multiplies with a second projection
  std::string function = "gelu";  ///< of the MLP, by config.json's names
  bool rms_norm = false;
  zoo::PositionKind position = zoo::PositionKind::learned;
  bool embedding_norm = false;
  bool windows = false;  ///< gpt-oss: a window on every second layer, sinks
  double rotary_share = 1;
  bool untied = false;
  bool biases = true;
  bool qkv_bias = true;
  bool query_key_norm = false;
  bool attention_gate = false;
  double attention_dropout = 0.1;
  double hidden_dropout = 0.1;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t expert_groups = 1;
  std::int64_t chosen_groups = 1;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_ffn = 0;
  bool shared_gate = false;
  std::int64_t expert_width = 0;  ///< in which experts work; 0: the hidden width
  std::vector<bool> expert_layers{};
  std::int64_t predictions = 0;
  std::string pattern{};             ///< a letter for every layer: M*-E; empty: all alike
  std::string prediction_pattern{};  ///< of a layer that predicts further tokens
  std::int64_t mamba_heads = 0;
  std::int64_t mamba_head_dim = 0;
  std::int64_t mamba_groups = 0;
  std::int64_t mamba_state = 0;
  bool latent = false;
  std::int64_t query_rank = 0;
  std::int64_t key_value_rank = 0;
  std::int64_t plain_dim = 0;
  std::int64_t rotary_dim = 0;
  std::int64_t value_dim = 0;
};

/// Asks for every flag of the model; mistakes and notes go to `arguments`.
/// `sequence`: the number of positions where none is given.
ModelArguments read_model_arguments(Arguments& arguments, std::int64_t sequence);

}  // namespace orrery::interop
