// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/megatron_model_arguments.h"

#include <algorithm>
#include <array>
#include <optional>

#include "workload/interop/layer_pattern.h"

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
  m.head_dim = arguments.number_or("--kv-channels", m.hidden / m.heads);
  const std::int64_t groups = arguments.number_or("--num-query-groups", 1);
  m.kv_heads = arguments.flag("--group-query-attention") ? groups : m.heads;
  m.swiglu = arguments.flag("--swiglu");
  // Megatron-LM: with a gate two thirds of 4H, in multiples of 64.
  const std::int64_t standard = m.swiglu ? 4 * m.hidden * 2 / 3 / 64 * 64 : 4 * m.hidden;
  m.ffn = arguments.number_or("--ffn-hidden-size", standard);
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

/// The vocabulary of a tokenizer that the line names, with a note; 0 when it is none of these.
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
  m.layers = required(arguments, "--num-layers");
  read_width(arguments, m);
  m.positions =
      arguments.number_or("--max-position-embeddings", std::max<std::int64_t>(sequence, 1));
  const auto vocab = arguments.number("--vocab-size", 1);
  const auto padded = arguments.number("--padded-vocab-size", 1);
  const std::int64_t known = vocab || padded ? 0 : tokenizer_vocabulary(arguments);
  arguments.require(vocab || padded || known > 0, "--vocab-size",
                    "required to describe the model, but missing (the tokenizer's file states it); "
                    "add it: FILE -- --vocab-size 32000");
  m.vocab = vocab ? *vocab : padded.value_or(std::max<std::int64_t>(known, 1));
}

void read_kinds(Arguments& arguments, ModelArguments& m) {
  const std::string norm = arguments.word("--normalization").value_or("LayerNorm");
  m.rms_norm = norm == "RMSNorm";
  arguments.require(m.rms_norm || norm == "LayerNorm", "--normalization", "LayerNorm or RMSNorm");
  const std::string position =
      arguments.word("--position-embedding-type").value_or("learned_absolute");
  m.rotary = arguments.flag("--use-rotary-position-embeddings") || position == "rope";
  m.alibi = position == "alibi";
  m.embedding_norm = arguments.has("--embed-layernorm");
  arguments.require(m.rotary || m.alibi || position == "learned_absolute",
                    "--position-embedding-type", "learned_absolute, rope or alibi");
  m.rotary_share = arguments.real("--rotary-percent").value_or(1);
  m.squared_relu = arguments.flag("--squared-relu");
  m.windows = arguments.has("--window-size") && arguments.has("--softmax-type");
  arguments.flag("--no-position-embedding");  // the table is left out with rotary positions
  m.untied = arguments.flag("--untie-embeddings-and-output-weights");
  m.biases = !arguments.flag("--disable-bias-linear");
  m.qkv_bias = arguments.flag("--add-qkv-bias") || m.biases;
  m.query_key_norm = arguments.flag("--qk-layernorm");
  m.attention_dropout = arguments.real("--attention-dropout").value_or(0.1);
  m.hidden_dropout = arguments.real("--hidden-dropout").value_or(0.1);
  for (const std::string_view name :
       {"--quick-geglu", "--window-size", "--window-attn-skip-freq", "--softmax-type",
        "--glu-linear-offset", "--activation-func-clamp-value", "--qk-l2-norm",
        "--apply-residual-connection-post-layernorm", "--no-rope-freq",
        "--relative-attention-num-buckets", "--relative-attention-max-distance", "--mrope-section",
        "--use-fused-weighted-squared-relu", "--moe-apply-probs-on-input", "--mlp-type",
        "--hybrid-layer-pattern", "--glu-activation", "--moe-latent-size"}) {
    const bool of_windows =
        m.windows &&
        (name.starts_with("--window") || name == "--softmax-type" || name == "--quick-geglu" ||
         name == "--glu-linear-offset" || name == "--activation-func-clamp-value");
    arguments.require(!arguments.has(name) || of_windows, name,
                      "an architecture of gpt2, llama, qwen, mixtral, gpt_oss or deepseek_v3; give "
                      "the model's own config.json to orrery simulate instead");
  }
}

void read_experts(Arguments& arguments, ModelArguments& m) {
  m.experts = arguments.number("--num-experts").value_or(0);
  m.experts = m.experts == 1 ? 0 : m.experts;  // Megatron-DeepSpeed: a dense model
  m.top_k = arguments.number_or("--moe-router-topk", 2);
  m.expert_groups = arguments.number_or("--moe-router-num-groups", 1);
  m.chosen_groups = arguments.number_or("--moe-router-group-topk", m.expert_groups);
  m.expert_ffn = arguments.number_or("--moe-ffn-hidden-size", m.ffn);
  m.shared_ffn =
      arguments.number_or("--moe-shared-expert-intermediate-size",
                          arguments.number("--num-shared-experts").value_or(0) * m.expert_ffn);
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
  m.predictions = arguments.number("--mtp-num-layers").value_or(0);
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
