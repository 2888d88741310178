// SPDX-License-Identifier: Apache-2.0
/// Megatron-LM's arguments of a model.
#include "base/config_node.h"
#include "workload/interop/layer_pattern.h"
#include "workload/interop/megatron.h"
#include "workload/interop/text.h"

namespace orrery::interop {
namespace {

class ModelWords {
 public:
  explicit ModelWords(const zoo::Model& model) : m_(model) {}

  std::vector<std::string> run() {
    shape();
    kinds();
    if (m_.experts > 0) {
      experts();
    }
    if (m_.latent.key_value_rank > 0) {
      latent();
    }
    if (m_.mtp > 0) {
      add("--mtp-num-layers", m_.mtp);
    }
    return std::move(words_);
  }

 private:
  void flag(std::string_view name) { words_.emplace_back(name); }
  void add(std::string_view name, const std::string& value) {
    words_.emplace_back(name);
    words_.push_back(value);
  }
  template <class Number>
    requires std::is_arithmetic_v<Number>
  void add(std::string_view name, Number value) {
    add(name, exact_text(value));
  }

  void shape() {
    add("--num-layers", m_.layers);
    add("--hidden-size", m_.hidden);
    add("--ffn-hidden-size", m_.ffn);
    add("--num-attention-heads", m_.heads);
    const bool latent = m_.latent.key_value_rank > 0;
    if (m_.kv_heads != m_.heads) {
      flag("--group-query-attention");
      add("--num-query-groups", m_.kv_heads);
    }
    if (m_.head_dim * m_.heads != m_.hidden && !latent) {
      add("--kv-channels", m_.head_dim);
    }
    add("--max-position-embeddings", m_.max_positions);
    add("--vocab-size", m_.vocab);
  }

  void kinds() {
    const bool rotary = m_.position == zoo::PositionKind::rotary;
    add("--position-embedding-type", std::string(rotary ? "rope" : "learned_absolute"));
    if (m_.norm == zoo::NormKind::rms_norm) {
      add("--normalization", std::string("RMSNorm"));
    }
    if (rotary && m_.rotary_share < 1) {
      add("--rotary-percent", m_.rotary_share);
    }
    if (m_.mlp == zoo::MlpKind::swiglu) {
      flag("--swiglu");
    }
    if (m_.mlp == zoo::MlpKind::squared_relu) {
      flag("--squared-relu");
    }
    if (m_.attention_gate) {
      flag("--attention-output-gate");
    }
    if (!m_.tied_embedding) {
      flag("--untie-embeddings-and-output-weights");
    }
    if (!m_.mlp_bias) {
      flag("--disable-bias-linear");
      if (m_.attention_bias) {
        flag("--add-qkv-bias");
      }
    }
    if (zoo::scales_heads(m_.query_key_norm)) {
      flag("--qk-layernorm");
    }
    add("--attention-dropout", m_.attention_dropout);
    add("--hidden-dropout", m_.dropout);
  }

  void experts() {
    add("--num-experts", m_.experts);
    add("--moe-router-topk", m_.top_k);
    if (m_.chosen_groups < m_.expert_groups) {
      add("--moe-router-num-groups", m_.expert_groups);
      add("--moe-router-group-topk", m_.chosen_groups);
    }
    add("--moe-ffn-hidden-size", m_.expert.ffn);
    if (m_.expert.shared_ffn > 0) {
      add("--moe-shared-expert-intermediate-size", m_.expert.shared_ffn);
    }
    if (m_.expert.shared_gate) {
      flag("--moe-shared-expert-gate");
    }
    std::vector<bool> pattern;
    bool everywhere = true;
    for (std::int64_t i = 0; i < m_.layers; ++i) {
      const auto kind = static_cast<std::size_t>(zoo::layer_kind(m_, i));
      pattern.push_back(kind < m_.kinds.size() &&
                        m_.kinds[kind].feed_forward == zoo::FeedForwardKind::experts);
      everywhere = everywhere && pattern.back();
    }
    if (!everywhere) {
      add("--moe-layer-freq", layer_pattern_text(pattern));
    }
  }

  void latent() {
    flag("--multi-latent-attention");
    if (m_.latent.query_rank > 0) {
      add("--q-lora-rank", m_.latent.query_rank);
    }
    add("--kv-lora-rank", m_.latent.key_value_rank);
    add("--qk-head-dim", m_.head_dim - m_.latent.rotary);
    add("--qk-pos-emb-head-dim", m_.latent.rotary);
    add("--v-head-dim", m_.value_dim);
  }

  const zoo::Model& m_;
  std::vector<std::string> words_;
};

/// Returns whether what the numbers of parameters do not tell is the same.
bool same_kinds(const zoo::Model& a, const zoo::Model& b) {
  return a.parallel_residual == b.parallel_residual && a.mlp == b.mlp && a.norm == b.norm &&
         a.norm_place == b.norm_place && a.position == b.position &&
         a.query_key_norm == b.query_key_norm && a.attention_gate == b.attention_gate &&
         a.top_k == b.top_k;
}

}  // namespace

std::vector<std::string> megatron_model_words(const zoo::Model& model,
                                              std::vector<Remark>& remarks) {
  std::vector<std::string> words = ModelWords(model).run();
  Arguments arguments(words);
  const auto config = read_megatron_model(arguments, model.max_positions);
  bool alike = false;
  if (config) {
    const auto node = parse_config(*config, "arguments", ConfigSyntax::json);
    const auto again = node ? zoo::parse_model(*node, model.name) : fail(node.error());
    alike = again && same_kinds(*again, model) &&
            zoo::count_parameters(*again).total == zoo::count_parameters(model).total &&
            zoo::layer_kinds(*again).size() == zoo::layer_kinds(model).size();
  }
  if (!alike) {
    remarks.push_back({"model", "its architecture is more than the arguments state; check them"});
  }
  return words;
}

}  // namespace orrery::interop
