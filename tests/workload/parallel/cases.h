// SPDX-License-Identifier: Apache-2.0
/// Small models and plans, and ways to count what a lowered workload does.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <string>
#include <vector>

#include "workload/parallel/lower.h"
#include "workload/parallel/shard.h"

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
inline Model small_gpt(std::int64_t layers) {
  Model model;
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
inline Model small_llama(std::int64_t layers) {
  Model model = small_gpt(layers);
  model.name = "small-llama";
  model.model_type = "llama";
  model.kv_heads = 4;
  model.ffn = 96;
  model.mlp = MlpKind::swiglu;
  model.norm = NormKind::rms_norm;
  model.position = PositionKind::rotary;
  model.tied_embedding = false;
  model.attention_bias = model.attention_output_bias = model.mlp_bias = false;
  model.dropout = model.attention_dropout = model.embedding_dropout = 0;
  return model;
}

inline Workload lowered(const Model& model, const Plan& plan, const LowerOptions& options = {}) {
  Result<Workload> workload = lower(model, plan, options);
  if (!workload) {
    ADD_FAILURE() << workload.error().to_string();
    return {};
  }
  return std::move(*workload);
}

/// Calls `visit` for every node execution of one rank of `role`, in issue order.
inline void each_node(const Workload& workload, int role,
                      const std::function<void(const Node&)>& visit) {
  for (std::int64_t i = 0; i < workload.source->length(role); ++i) {
    const Instance instance = *workload.source->issue(role, i);
    const Program& program = workload.programs[static_cast<std::size_t>(role)];
    for (const Node& node :
         program.templates[static_cast<std::size_t>(instance.template_index)].nodes) {
      visit(node);
    }
  }
}

inline const Node* find_node(const Workload& workload, const std::string& part) {
  for (const Template& t : workload.programs[0].templates) {
    for (const Node& node : t.nodes) {
      if (node.name.find(part) != std::string::npos) {
        return &node;
      }
    }
  }
  return nullptr;
}

struct Tally {
  std::int64_t count = 0;
  Bytes bytes{0};
  friend bool operator==(const Tally&, const Tally&) = default;
};
inline void PrintTo(const Tally& tally, std::ostream* out) {
  *out << tally.count << " of " << tally.bytes.value() << " bytes in all";
}

/// Collectives of one rank of `role` over the whole step, counted apart by phase.
inline Tally collectives(const Workload& workload, int role, Axis axis, CollectiveKind kind,
                         Phase phase) {
  Tally tally;
  each_node(workload, role, [&](const Node& node) {
    if (node.kind == Node::Kind::collective && node.axis == axis && node.collective == kind &&
        node.phase == phase) {
      ++tally.count;
      tally.bytes += node.bytes;
    }
  });
  return tally;
}

inline Tally sends(const Workload& workload, int role, Channel channel) {
  Tally tally;
  each_node(workload, role, [&](const Node& node) {
    if (node.kind == Node::Kind::send && node.channel == channel) {
      ++tally.count;
      tally.bytes += node.bytes;
    }
  });
  return tally;
}

/// FLOPs of GEMMs and fused attention over all roles, one rank each.
inline double matrix_flops(const Workload& workload, Phase phase) {
  double sum = 0;
  for (int role = 0; role < static_cast<int>(workload.programs.size()); ++role) {
    each_node(workload, role, [&](const Node& node) {
      for (const Operator& op : node.operators) {
        const bool matrix = op.kind == OperatorKind::gemm || op.kind == OperatorKind::attention;
        sum += matrix && node.phase == phase ? op.flops.value() : 0;
      }
    });
  }
  return sum;
}

/// The same of the whole model for one microbatch, forward.
inline double model_matrix_flops(const Model& model, const Plan& plan) {
  double sum = 0;
  const auto operators = block_operators(model, plan);
  for (std::size_t kind = 0; kind < operators.size(); ++kind) {
    const double times = kind == kFirstLayerBlock ? static_cast<double>(model.layers) : 1.0;
    for (const ModelOperator& op : operators[kind]) {
      const bool matrix = op.kind == OperatorKind::gemm || op.kind == OperatorKind::attention;
      sum += matrix ? times * op.forward_flops.value() : 0;
    }
  }
  return sum;
}

struct Case {
  Model model;
  Plan plan;
};

/// Valid plans of small models; every plan field that changes the graph takes part.
inline rc::Gen<Case> any_case() {
  return rc::gen::exec([] {
    const auto flip = [] { return *rc::gen::arbitrary<bool>(); };
    Case c;
    Plan& plan = c.plan;
    plan.tp = *rc::gen::element<std::int64_t>(1, 2, 4);
    plan.pp = *rc::gen::element<std::int64_t>(1, 2, 3);
    plan.dp = *rc::gen::element<std::int64_t>(1, 2, 5);
    plan.schedule = *rc::gen::element(Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved,
                                      Schedule::zb_h1, Schedule::zb_v, Schedule::dualpipe);
    plan.schedule = plan.pp == 1 ? Schedule::one_f_one_b : plan.schedule;
    const bool dualpipe = plan.schedule == Schedule::dualpipe;
    plan.pp += dualpipe ? plan.pp % 2 : 0;
    plan.chunks = plan.schedule == Schedule::interleaved || plan.schedule == Schedule::zb_v ? 2 : 1;
    plan.sequence_parallel = plan.tp > 1 && flip();
    plan.microbatch = *rc::gen::element<std::int64_t>(1, 2);
    plan.global_batch = plan.dp * plan.microbatch * plan.pp * *rc::gen::inRange<std::int64_t>(1, 4);
    plan.zero = plan.pp == 1 ? *rc::gen::inRange<std::int64_t>(0, 4)
                             : *rc::gen::inRange<std::int64_t>(0, 2);
    plan.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
    plan.quantization = *rc::gen::element(Quantization::none, Quantization::fp8_delayed,
                                          Quantization::fp8_block, Quantization::nvfp4);
    plan.tp_chunks = plan.tp > 1 ? *rc::gen::inRange<std::int64_t>(1, 4) : 1;
    plan.offload_activations = *rc::gen::element(0.0, 0.5);
    plan.offload_optimizer = *rc::gen::element(Offload::none, Offload::cpu, Offload::nvme);
    plan.order = *rc::gen::element(std::string("tp-dp-pp"), std::string("tp-pp-dp"));
    plan.pipeline_send = *rc::gen::element(PipelineSend::whole, PipelineSend::scatter_gather);
    plan.overlap_p2p = flip();
    plan.p2p_host_sync = flip();
    plan.overlap_grad_reduce = flip();
    plan.overlap_param_gather = plan.zero >= 1 && flip();
    plan.bucket = *rc::gen::element(0_B, 100_KiB);
    plan.attention = *rc::gen::element(AttentionKernel::unfused, AttentionKernel::flash);
    plan.fused_grad_accumulation = flip();
    plan.fused_kernels = flip();
    const std::int64_t layers = plan.pp * plan.chunks * *rc::gen::inRange<std::int64_t>(1, 3);
    c.model = flip() ? small_gpt(layers) : small_llama(layers);
    return c;
  });
}

}  // namespace orrery::cases
