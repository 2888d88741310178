// SPDX-License-Identifier: Apache-2.0
/// This part completes what an engine does where its file says nothing, on a machine.
#include <algorithm>
#include <utility>

#include "serving/engine.h"

namespace orrery::serving {
namespace {

/// Chooses formats as vLLM does with `dtype: auto`: 16-bit formats that nobody has stated are fp16
/// where the device does not compute in bf16, fp32 where it computes in neither.
void take_half_where_needed(Engine& engine, const compute::Device& device) {
  const auto computes = [&](graph::DataType type) {
    return device.peak[static_cast<std::size_t>(type)] > FlopRate(0);
  };
  const graph::DataType other =
      computes(graph::DataType::fp16) ? graph::DataType::fp16 : graph::DataType::fp32;
  if (computes(graph::DataType::bf16) || !computes(other)) {
    return;
  }
  for (const auto& [name, format] : {std::pair{"precision.weights", &Engine::weights},
                                     {"precision.activations", &Engine::activations},
                                     {"precision.kv", &Engine::kv},
                                     {"precision.state", &Engine::state}}) {
    const bool stated = std::any_of(engine.stated.begin(), engine.stated.end(),
                                    [&](const auto& field) { return field.first == name; });
    if (!stated && engine.*format == graph::DataType::bf16) {
      engine.*format = other;
    }
  }
}

/// Checkpoints of 8 and 4 bits on a device that does not compute in them are weights alone
/// (Marlin's kernels), whose products have operands of 16 bits; so are formats that --quantization
/// says, but not activations that a file states.
void take_weights_alone(Engine& engine, const compute::Device& device) {
  const auto computes = [&](graph::DataType type) {
    return device.peak[static_cast<std::size_t>(type)] > FlopRate(0);
  };
  const bool stated = std::ranges::any_of(engine.stated, [](const auto& field) {
    return field.first == "precision.activations" && field.second != "--quantization";
  });
  if (!stated && graph::bits_of(engine.activations) < 16 && !computes(engine.activations) &&
      graph::bits_of(engine.weights) <= graph::bits_of(engine.activations)) {
    engine.activations = graph::DataType::bf16;
    engine.block_scaled = false;
  }
}

}  // namespace

std::vector<std::int64_t> capture_sizes(std::int64_t largest, GraphSizes which) {
  std::vector<std::int64_t> sizes;
  const auto add = [&](std::int64_t size) {
    if (size <= largest) {
      sizes.push_back(size);
    }
  };
  if (which == GraphSizes::powers) {
    for (std::int64_t size = 1; size <= largest; size *= 2) {
      add(size);
      if (size == 256) {
        add(384);
      }
    }
    return sizes;
  }
  for (const std::int64_t size : {1, 2, 4}) {
    add(size);
  }
  for (std::int64_t size = 8; size <= 256; size += 8) {
    add(size);
  }
  for (std::int64_t size = 272; size <= largest; size += 16) {
    add(size);
  }
  return sizes;
}

Engine completed(Engine engine, const machine::Machine& machine, std::int64_t model_positions) {
  constexpr Bytes kLarge = 70_GiB;
  const bool large = machine.device.memory.front().capacity >= kLarge &&
                     machine.device.name.find("A100") == std::string::npos;
  take_weights_alone(engine, machine.device);
  take_half_where_needed(engine, machine.device);
  if (engine.max_model_len == 0) {
    engine.max_model_len = model_positions;
  }
  if (engine.max_num_batched_tokens == 0) {
    engine.max_num_batched_tokens = large ? 8192 : 2048;
    if (!engine.chunked_prefill) {  // any prompt has to pass whole
      engine.max_num_batched_tokens = std::max(engine.max_num_batched_tokens, engine.max_model_len);
    }
  }
  if (engine.max_num_seqs == 0) {
    engine.max_num_seqs = large ? 1024 : 256;
  }
  // A step has at most so many decodes; vLLM caps its graphs at twice that. A static batch's
  // prompts may be in graphs of their own.
  if (engine.policy != scheduler::Policy::static_batch) {
    engine.largest_graph = std::min(engine.largest_graph, 2 * engine.max_num_seqs);
  }
  return engine;
}

Engine Engine::for_prompts() const {
  Engine one = *this;
  for (const auto& [degree, own] : {std::pair{&Engine::tp, prefill_tp},
                                    {&Engine::pp, prefill_pp},
                                    {&Engine::dp, prefill_dp},
                                    {&Engine::cp, prefill_cp}}) {
    one.*degree = own > 0 ? own : one.*degree;
  }
  const bool shares = ep > 1 || one.dp > 1;
  one.two_batch = two_batch && one.dp > 1;  // without copies nothing is exchanged
  one.redundant_experts = 0;
  one.ffn = 0;
  one.ep = prefill_ep > 0 ? prefill_ep : shares ? one.tp * one.dp : 1;
  return one;
}

step::StepOptions step_options(const Engine& engine) {
  const auto all_reduce = value_of<collective::CollectiveAlgorithm>(engine.all_reduce);
  return {
      .degrees = {engine.tp, engine.pp, engine.dp, engine.ep, engine.cp, engine.ffn},
      .precision = {.weights = engine.weights,
                    .activations = engine.activations,
                    .kv = engine.kv,
                    .state = engine.state,
                    .block_scaled = engine.block_scaled,
                    .narrow = engine.narrow,
                    .scale_bits = engine.scale_bits,
                    .experts_fp4 = engine.experts_fp4},
      .captures = capture_sizes(engine.largest_graph, engine.graph_sizes),
      .all_reduce = all_reduce.value_or(collective::CollectiveAlgorithm::custom),
      .dispatch = engine.dispatch,
      .one_launch = engine.one_launch,
      .graph_context = engine.whole_graphs ? engine.max_model_len : 0,
      .whole_windows = engine.whole_windows,
      .fuse = engine.fuse,
      .overlap_tensor = engine.overlap_tensor,
      .two_batch = engine.two_batch,
      .micro_batches = engine.micro_batches,
      .eager_prompts = !engine.prompt_graphs,
      .streamed_experts = engine.streamed_experts,
      .fused_casts = engine.fused_casts,
      .sorted_sampling = engine.sorted_sampling,
      .profiles_top_p = engine.profiles_top_p,
      .fp4_lag = engine.fp4_lag,
      .launch = engine.launch,
      .adapter_rank = engine.adapter_slots > 0 && !engine.whole_adapters ? engine.adapter_rank : 0,
      .imbalance = engine.moe_imbalance,
      .spread = engine.moe_spread,
      .bias = engine.moe_bias,
      .redundant = engine.redundant_experts,
      .kernels = engine.kernels,
      .gateway = engine.gateway,
      .window = engine.weight_window,
      .retain = engine.weight_retain,
      .network = engine.network};
}

}  // namespace orrery::serving
