// SPDX-License-Identifier: Apache-2.0
/// Small models and valid plans of them.
#pragma once

#include <rapidcheck.h>

#include <string>

#include "workload/plan/plan.h"

namespace orrery::cases {

// The small models' shapes: S tokens, H hidden, V words after padding.
constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kWords = 1024;
constexpr Bytes kBoundary{kTokens * kHidden * 2};
// small_gpt: layer 12 H^2 + 13 H = 49984; embedding both tables = 73728; final norm 128.
constexpr std::int64_t kLayer = 12 * kHidden * kHidden + 13 * kHidden;
constexpr std::int64_t kTable = kWords * kHidden;
constexpr std::int64_t kEmbedding = kTable + kTokens * kHidden;
constexpr std::int64_t kNorm = 2 * kHidden;

/// GPT-2 shaped: L layers, H 64, 8 heads of 8, MLP 256, V 1000, S 128; dropout everywhere.
inline zoo::Model small_gpt(std::int64_t layers) {
  zoo::Model model;
  model.name = "small-gpt";
  model.model_type = "gpt2";
  model.layers = layers;
  model.hidden = 64;
  model.heads = model.kv_heads = 8;
  model.head_dim = 8;
  model.ffn = 256;
  model.vocab = 1000;
  model.max_positions = 128;
  model.dropout = model.attention_dropout = model.embedding_dropout = 0.1;
  return model;
}

/// Llama shaped: grouped queries (8 over 4), SwiGLU 96, untied head, no biases, no dropout.
inline zoo::Model small_llama(std::int64_t layers) {
  zoo::Model model = small_gpt(layers);
  model.name = "small-llama";
  model.model_type = "llama";
  model.kv_heads = 4;
  model.ffn = 96;
  model.mlp = zoo::MlpKind::swiglu;
  model.norm = zoo::NormKind::rms_norm;
  model.position = zoo::PositionKind::rotary;
  model.tied_embedding = false;
  model.attention_bias = model.attention_output_bias = model.mlp_bias = false;
  model.dropout = model.attention_dropout = model.embedding_dropout = 0;
  return model;
}

struct Case {
  zoo::Model model;
  plan::Plan plan;
};

/// Valid plans of small models; every plan field that changes the graph takes part.
inline rc::Gen<Case> any_case() {
  return rc::gen::exec([] {
    const auto flip = [] { return *rc::gen::arbitrary<bool>(); };
    Case c;
    plan::Plan& plan = c.plan;
    plan.tp = *rc::gen::element<std::int64_t>(1, 2, 4);
    plan.pp = *rc::gen::element<std::int64_t>(1, 2, 3);
    plan.dp = *rc::gen::element<std::int64_t>(1, 2, 5);
    plan.schedule = *rc::gen::element(plan::Schedule::gpipe, plan::Schedule::one_f_one_b,
                                      plan::Schedule::interleaved, plan::Schedule::zb_h1,
                                      plan::Schedule::zb_v, plan::Schedule::dualpipe);
    plan.schedule = plan.pp == 1 ? plan::Schedule::one_f_one_b : plan.schedule;
    const bool dualpipe = plan.schedule == plan::Schedule::dualpipe;
    plan.pp += dualpipe ? plan.pp % 2 : 0;
    plan.chunks =
        plan.schedule == plan::Schedule::interleaved || plan.schedule == plan::Schedule::zb_v ? 2
                                                                                              : 1;
    plan.sequence_parallel = plan.tp > 1 && flip();
    plan.microbatch = *rc::gen::element<std::int64_t>(1, 2);
    plan.global_batch = plan.dp * plan.microbatch * plan.pp * *rc::gen::inRange<std::int64_t>(1, 4);
    plan.zero = plan.pp == 1 ? *rc::gen::inRange<std::int64_t>(0, 4)
                             : *rc::gen::inRange<std::int64_t>(0, 2);
    plan.recompute =
        *rc::gen::element(plan::Recompute::none, plan::Recompute::selective, plan::Recompute::full);
    plan.quantization = *rc::gen::element(plan::Quantization::none, plan::Quantization::fp8_delayed,
                                          plan::Quantization::fp8_block, plan::Quantization::nvfp4);
    plan.tp_chunks = plan.tp > 1 ? *rc::gen::inRange<std::int64_t>(1, 4) : 1;
    plan.offload_activations = *rc::gen::element(0.0, 0.5);
    plan.offload_optimizer =
        *rc::gen::element(plan::Offload::none, plan::Offload::cpu, plan::Offload::nvme);
    plan.order = *rc::gen::element(std::string("tp-dp-pp"), std::string("tp-pp-dp"));
    plan.pipeline_send =
        *rc::gen::element(plan::PipelineSend::whole, plan::PipelineSend::scatter_gather);
    plan.overlap_p2p = flip();
    plan.p2p_host_sync = flip();
    plan.overlap_grad_reduce = flip();
    plan.overlap_param_gather = plan.zero >= 1 && flip();
    plan.bucket = *rc::gen::element(0_B, 100_KiB);
    plan.attention = *rc::gen::element(zoo::AttentionKernel::unfused, zoo::AttentionKernel::flash);
    plan.fused_grad_accumulation = flip();
    plan.fused_kernels = flip();
    const std::int64_t layers = plan.pp * plan.chunks * *rc::gen::inRange<std::int64_t>(1, 3);
    c.model = flip() ? small_gpt(layers) : small_llama(layers);
    return c;
  });
}

}  // namespace orrery::cases
