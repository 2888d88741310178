// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/megatron_model_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "workload/interop/layer_pattern.h"
#include "workload/interop/megatron.h"

namespace orrery::interop {
namespace {

std::int64_t required(Arguments& arguments, std::string_view name) {
  const auto value = arguments.number(name, 1);
  arguments.require(value.has_value(), name, "required to describe the model, but missing");
  return value.value_or(1);
}

void read_width(Arguments& arguments, ModelArguments& m) {
  m.hidden = required(arguments, "--hidden-size");
  m.heads = required(arguments, "--num-attention-heads");
  m.mamba_heads = arguments.number_or("--mamba-num-heads",
                                      std::max<std::int64_t>(1, 2 * m.hidden / m.mamba_head_dim));
  m.head_dim = arguments.number_or("--kv-channels", m.hidden / m.heads);
  // Megatron-DeepSpeed has no switch beside the number.
  const auto groups = arguments.number("--num-query-groups", 1);
  const bool grouped =
      arguments.flag("--group-query-attention") || (groups && arguments.has("--deepspeed"));
  m.kv_heads = grouped ? groups.value_or(1) : m.heads;
  const bool swiglu = arguments.flag("--swiglu");
  const std::string gate = arguments.word("--glu-activation").value_or(swiglu ? "swiglu" : "");
  const bool geglu = arguments.has("--quick-geglu") || gate == "geglu";
  arguments.require(geglu || gate.empty() || gate == "swiglu", "--glu-activation",
                    "swiglu or geglu");
  m.gated = geglu || !gate.empty();
  m.function = arguments.flag("--squared-relu") ? "relu2" : m.gated && !geglu ? "silu" : "gelu";
  arguments.require(!m.gated || m.function != "relu2", "--squared-relu", "no --swiglu beside it");
  // Megatron-LM: with a gate two thirds of 4H, in multiples of 64.
  const std::int64_t standard = swiglu ? 4 * m.hidden * 2 / 3 / 64 * 64 : 4 * m.hidden;
  m.ffn = arguments.number_or("--ffn-hidden-size", standard);
}

/// Returns the letters of a hybrid model whose shares of attention and of MLPs are given. Source:
/// megatron/core/ssm/mamba_hybrid_layer_allocation.py of core 0.14.
std::string hybrid_letters(std::int64_t layers, double attention, double mlp) {
  std::string letters(static_cast<std::size_t>(layers), 'M');
  const auto spread = [&](char letter, double step) {
    double x = step;
    for (char& c : letters) {
      if (c == 'M') {
        const bool here = x < 0.5;
        c = here ? letter : 'M';
        x += here ? step : -1;
      }
    }
  };
  const auto total = static_cast<double>(layers);
  const double attentions = std::nearbyint(total * attention);
  const double mlps = std::nearbyint(total * mlp);
  if (attentions > 0) {
    spread('*', (total - attentions) / (attentions + 1));
  }
  if (mlps > 0) {
    spread('-', (total - attentions - mlps) / mlps);
  }
  return letters;
}

/// Layers of a hybrid model: "M*-E|M*-E/*E" has stages apart by | and, behind /, what predicts
/// further tokens.
void read_pattern(Arguments& arguments, ModelArguments& m) {
  constexpr std::int64_t kMostLayers = std::int64_t{1} << 16;
  constexpr std::string_view kPattern = "--hybrid-layer-pattern";
  const auto stated = arguments.word(kPattern);
  const double attention = arguments.real("--hybrid-attention-ratio").value_or(0);
  const double mlp = arguments.real("--hybrid-mlp-ratio").value_or(0);
  const auto layers = arguments.number("--num-layers", 1);
  const auto specification = arguments.words("--spec");
  const bool recurrent = std::ranges::any_of(specification, [](const std::string& word) {
    return word.find("mamba_stack") != std::string::npos;
  });
  if (stated) {
    std::string text = *stated;
    std::erase(text, '|');
    const std::size_t slash = std::min(text.find('/'), text.size());
    m.pattern = text.substr(0, slash);
    m.predictions = std::count(text.begin(), text.end(), '/');
    m.prediction_pattern = text.substr(std::min(slash + 1, text.size()));
    m.prediction_pattern.resize(
        std::min(m.prediction_pattern.find('/'), m.prediction_pattern.size()));
    arguments.require(!m.pattern.empty() && m.pattern.find_first_not_of("M*-E") == text.npos &&
                          m.prediction_pattern.find_first_not_of("M*-E") == text.npos,
                      kPattern, "letters M (Mamba), * (attention), - (MLP), E (experts)");
  } else if (recurrent || attention + mlp > 0) {
    arguments.require(attention >= 0 && mlp >= 0 && attention + mlp <= 1,
                      "--hybrid-attention-ratio", "shares of all layers");
    m.pattern = hybrid_letters(std::min(layers.value_or(1), kMostLayers), attention, mlp);
  }
  m.layers = layers || !stated ? required(arguments, "--num-layers") : std::ssize(m.pattern);
  m.mamba_head_dim = arguments.number_or("--mamba-head-dim", 64);
  m.mamba_groups = arguments.number_or("--mamba-num-groups", 8);
  m.mamba_state = arguments.number_or("--mamba-state-dim", 128);
}

struct TokenizerFamily {
  std::string_view name;
  std::int64_t vocabulary;
};
/// Names within tokenizers' types and files, the special ones first; vocabularies of the
/// config.json files of the models.
constexpr auto kTokenizers = std::to_array<TokenizerFamily>({
    {"gpt2", 50257},
    {"llama3", 128256},
    {"llama-3", 128256},
    {"llama2", 32000},
    {"llama-2", 32000},
    {"mixtral", 32000},
    {"mistral", 32000},
    {"qwen", 151936},
    {"deepseekv3", 129280},
    {"deepseek-v3", 129280},
    {"deepseekv2", 102400},
    {"deepseek-v2", 102400},
    {"deepseek", 129280},
    {"bloom", 250880},
    {"bertwordpiece", 30522},
    {"gpt-oss", 201088},
    {"llama", 32000},
});

/// Returns the vocabulary of a tokenizer that the line names, with a note; 0 when it is none of
/// these.
std::int64_t tokenizer_vocabulary(Arguments& arguments) {
  std::string names;
  for (const std::string_view flag :
       {"--tokenizer-type", "--patch-tokenizer-type", "--tokenizer-model",
        "--tokenizer-name-or-path", "--vocab-file", "--merge-file", "--load"}) {
    for (const std::string& word : arguments.words(flag)) {
      names += word + " ";
    }
  }
  if (arguments.has("--merge-file") && !arguments.has("--tokenizer-type")) {
    names += "gpt2";  // GPT2BPETokenizer alone has merges; it was the only one
  }
  std::ranges::transform(names, names.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  for (const TokenizerFamily& family : kTokenizers) {
    if (names.find(family.name) != std::string::npos) {
      arguments.note("--vocab-size", "not given; " + std::to_string(family.vocabulary) +
                                         ", as the tokenizer's name says (" +
                                         std::string(family.name) + ")");
      return family.vocabulary;
    }
  }
  return 0;
}

void read_shape(Arguments& arguments, ModelArguments& m, std::int64_t sequence) {
  read_pattern(arguments, m);
  read_width(arguments, m);
  m.positions =
      arguments.number_or("--max-position-embeddings", std::max<std::int64_t>(sequence, 1));
  const auto vocab = arguments.number("--vocab-size", 1);
  auto padded = arguments.number("--padded-vocab-size", 1);
  padded = padded ? padded : arguments.number("--pad-vocab-size-to", 1);
  const std::int64_t known = vocab || padded ? 0 : tokenizer_vocabulary(arguments);
  arguments.require(vocab || padded || known > 0, "--vocab-size",
                    "required to describe the model, but missing (the tokenizer's file states it); "
                    "add it: FILE -- --vocab-size 32000");
  m.vocab = vocab ? *vocab : padded.value_or(std::max<std::int64_t>(known, 1));
}

zoo::PositionKind position_of(Arguments& arguments) {
  struct Name {
    std::string_view name;
    zoo::PositionKind kind;
  };
  constexpr auto kNames = std::to_array<Name>({{"learned_absolute", zoo::PositionKind::learned},
                                               {"absolute", zoo::PositionKind::learned},
                                               {"rope", zoo::PositionKind::rotary},
                                               {"rotary", zoo::PositionKind::rotary},
                                               {"alibi", zoo::PositionKind::relative},
                                               {"none", zoo::PositionKind::none}});
  constexpr std::string_view kFlag = "--position-embedding-type";
  const bool rotary = arguments.flag("--use-rotary-position-embeddings");
  const std::string stated = arguments.word(kFlag).value_or("learned_absolute");
  const auto found = std::ranges::find(kNames, stated, &Name::name);
  arguments.require(found != kNames.end(), kFlag, "learned_absolute, rope, alibi or none");
  arguments.flag("--no-position-embedding");  // the table is left out with rotary positions
  return rotary                  ? zoo::PositionKind::rotary
         : found != kNames.end() ? found->kind
                                 : zoo::PositionKind::learned;
}

void read_kinds(Arguments& arguments, ModelArguments& m) {
  const std::string norm = arguments.word("--normalization").value_or("LayerNorm");
  m.rms_norm = norm == "RMSNorm" || norm == "rmsnorm" || arguments.flag("--use-rms-norm");
  arguments.require(m.rms_norm || norm == "LayerNorm" || norm == "layernorm", "--normalization",
                    "LayerNorm or RMSNorm");
  m.position = position_of(arguments);
  m.embedding_norm = arguments.has("--embed-layernorm");
  m.rotary_share = arguments.real("--rotary-percent").value_or(1);
  m.windows = arguments.has("--window-size") && arguments.has("--softmax-type");
  m.untied = arguments.flag("--untie-embeddings-and-output-weights");
  m.biases = !arguments.flag("--disable-bias-linear");
  m.qkv_bias = arguments.flag("--add-qkv-bias") || m.biases;
  m.query_key_norm = arguments.flag("--qk-layernorm");
  m.attention_gate = arguments.flag("--attention-output-gate");
  m.attention_dropout = arguments.real("--attention-dropout").value_or(0.1);
  m.hidden_dropout = arguments.real("--hidden-dropout").value_or(0.1);
  for (const std::string_view name : {"--window-size",
                                      "--window-attn-skip-freq",
                                      "--softmax-type",
                                      "--glu-linear-offset",
                                      "--activation-func-clamp-value",
                                      "--qk-l2-norm",
                                      "--apply-residual-connection-post-layernorm",
                                      "--no-rope-freq",
                                      "--relative-attention-num-buckets",
                                      "--relative-attention-max-distance",
                                      "--mrope-section",
                                      "--use-fused-weighted-squared-relu",
                                      "--moe-apply-probs-on-input",
                                      "--mlp-type",
                                      "--parallel-attn",
                                      "--csa-compress-ratio-for-c",
                                      "--csa-compress-ratio-for-h",
                                      "--csa-compress-rotary-base",
                                      "--csa-window-size",
                                      "--dsa-indexer-head-dim",
                                      "--dsa-indexer-n-heads",
                                      "--dsa-indexer-topk",
                                      "--o-groups",
                                      "--o-lora-rank"}) {
    const bool of_windows =
        m.windows && (name.starts_with("--window") || name == "--softmax-type" ||
                      name == "--glu-linear-offset" || name == "--activation-func-clamp-value");
    arguments.require(!arguments.has(name) || of_windows, name,
                      "an architecture of the model types that orrery help show lists; give the "
                      "model's own config.json to orrery simulate instead");
  }
}

void read_experts(Arguments& arguments, ModelArguments& m) {
  m.experts = arguments.number("--num-experts").value_or(0);
  m.experts = m.experts == 1 ? 0 : m.experts;  // Megatron-DeepSpeed: a dense model
  // DeepSpeed's: one expert a token, on every second layer.
  const bool deepspeed = arguments.has("--deepspeed");
  m.top_k = arguments.number_or("--moe-router-topk", deepspeed ? 1 : 2);
  m.expert_groups = arguments.number_or("--moe-router-num-groups", 1);
  m.chosen_groups = arguments.number_or("--moe-router-group-topk", m.expert_groups);
  m.expert_ffn = arguments.number_or("--moe-ffn-hidden-size", m.ffn);
  m.shared_ffn =
      arguments.number_or("--moe-shared-expert-intermediate-size",
                          arguments.number("--num-shared-experts").value_or(0) * m.expert_ffn);
  m.shared_gate = arguments.flag("--moe-shared-expert-gate");
  m.expert_width = arguments.number("--moe-latent-size").value_or(0);
  const auto interval = arguments.number("--expert-interval", 1);
  const std::string pattern = arguments.word("--moe-layer-freq").value_or("1");
  constexpr std::int64_t kMostLayers = std::int64_t{1} << 16;
  auto layers = parse_layer_pattern(pattern, std::min(m.layers, kMostLayers));
  if (!layers) {
    arguments.reject("--moe-layer-freq", layers.error().mistakes.front().expected);
  } else {
    m.expert_layers = std::move(*layers);
    const auto dense = arguments.number("--first-k-dense-replace").value_or(0);
    std::fill_n(m.expert_layers.begin(), std::min(dense, std::ssize(m.expert_layers)), false);
  }
  const std::int64_t step = interval.value_or(deepspeed ? 2 : 1);
  for (std::int64_t i = 0; step > 1 && i < std::ssize(m.expert_layers); ++i) {
    m.expert_layers[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
  }
  m.predictions = std::max(m.predictions, arguments.number("--mtp-num-layers").value_or(0));
  const auto idle = read_noop_layers(arguments, m.layers);
  for (auto layer = idle.rbegin(); layer != idle.rend(); ++layer) {
    if (*layer < std::ssize(m.expert_layers)) {
      m.expert_layers.erase(m.expert_layers.begin() + *layer);
    }
  }
  m.layers -= std::ssize(idle);
}

void read_latent(Arguments& arguments, ModelArguments& m) {
  m.latent = arguments.flag("--multi-latent-attention");
  m.query_rank = arguments.number("--q-lora-rank").value_or(0);
  m.key_value_rank = arguments.number_or("--kv-lora-rank", 32);
  m.plain_dim = arguments.number_or("--qk-head-dim", 128);
  m.rotary_dim = arguments.number_or("--qk-pos-emb-head-dim", 64);
  m.value_dim = arguments.number_or("--v-head-dim", 128);
}

}  // namespace

ModelArguments read_model_arguments(Arguments& arguments, std::int64_t sequence) {
  ModelArguments m;
  read_shape(arguments, m, sequence);
  read_kinds(arguments, m);
  read_experts(arguments, m);
  read_latent(arguments, m);
  return m;
}

}  // namespace orrery::interop
