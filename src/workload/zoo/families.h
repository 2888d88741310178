// SPDX-License-Identifier: Apache-2.0
/// Readers of the supported model types. Internal to this folder.
#pragma once

#include <array>
#include <string_view>

#include "base/reader.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {

/// The field in which most families state their depth.
inline constexpr std::string_view kLayers = "num_hidden_layers";

Model read_gpt2(Reader& read);
Model read_gpt_neox(Reader& read);
Model read_gptj(Reader& read);
Model read_opt(Reader& read);
Model read_bloom(Reader& read);
Model read_falcon(Reader& read);
Model read_mpt(Reader& read);

Model read_llama(Reader& read);
Model read_mistral(Reader& read);
Model read_mistral3(Reader& read);
Model read_qwen2(Reader& read);
Model read_qwen3(Reader& read);
Model read_olmo2(Reader& read);
Model read_phi(Reader& read);
Model read_phi_msft(Reader& read);
Model read_phi3(Reader& read);
Model read_palm(Reader& read);
Model read_nemotron(Reader& read);
Model read_gemma(Reader& read);
Model read_gemma2(Reader& read);
Model read_gemma3_text(Reader& read);
Model read_gemma3(Reader& read);
Model read_gemma4_text(Reader& read);
Model read_gemma4(Reader& read);

Model read_mixtral(Reader& read);
Model read_phimoe(Reader& read);
Model read_qwen2_moe(Reader& read);
Model read_qwen3_moe(Reader& read);
Model read_qwen3_next(Reader& read);
Model read_qwen3_5(Reader& read);
Model read_qwen3_vl(Reader& read);
Model read_qwen2_vl(Reader& read);
Model read_qwen2_5_vl(Reader& read);
Model read_llava(Reader& read);
Model read_internvl(Reader& read);
Model read_qwen3_vl_moe(Reader& read);
Model read_minimax_m2(Reader& read);
Model read_glm4_moe(Reader& read);
Model read_deepseek_v32(Reader& read);
Model read_kimi_k25(Reader& read);
Model read_deepseek_v2(Reader& read);
Model read_deepseek_v3(Reader& read);
Model read_deepseek_v4(Reader& read);
Model read_gpt_oss(Reader& read);
Model read_llama4_text(Reader& read);
Model read_llama4(Reader& read);
Model read_nemotron_h(Reader& read);
Model read_granite_hybrid(Reader& read);
Model read_any_decoder(Reader& read);

Model read_bert(Reader& read);
Model read_t5(Reader& read);
Model read_vit(Reader& read);
Model read_dlrm(Reader& read);

struct Family {
  std::string_view model_type;
  std::string_view meaning;
  Model (*read)(Reader&);
};
inline constexpr auto kFamilies = std::to_array<Family>({
    {"gpt2", "learned positions, LayerNorm, GeLU MLP, biases; GPT-2 and GPT-3", read_gpt2},
    {"gpt_neox", "as gpt2, rotary positions, parallel attention and MLP", read_gpt_neox},
    {"gptj", "as gpt_neox, one norm per layer", read_gptj},
    {"opt", "as gpt2 with ReLU", read_opt},
    {"bloom", "as gpt2 with ALiBi and a norm on the embedding", read_bloom},
    {"falcon", "parallel attention and MLP, one or few key-value heads", read_falcon},
    {"RefinedWeb", "falcon under its first name, with grouped keys", read_falcon},
    {"RefinedWebModel", "falcon under its first name", read_falcon},
    {"mpt", "as gpt2 with ALiBi, without biases", read_mpt},
    {"llama", "rotary positions, RMSNorm, SwiGLU MLP, grouped queries", read_llama},
    {"llama4", "llama4_text behind an encoder of images", read_llama4},
    {"llama4_text", "experts, chunked attention, layers without positions", read_llama4_text},
    {"mistral", "as llama, with a sliding window", read_mistral},
    {"ministral3", "as mistral; Ministral 3, Devstral 2", read_mistral},
    {"mistral3", "mistral behind Pixtral's encoder; Mistral Small 3.1 and later", read_mistral3},
    {"mixtral", "as mistral, every MLP is a mixture of experts", read_mixtral},
    {"qwen2", "as llama, biases on Q, K, V", read_qwen2},
    {"qwen2_moe", "as qwen2, experts and a gated shared expert", read_qwen2_moe},
    {"qwen3", "as llama, normalised queries and keys", read_qwen3},
    {"qwen3_moe", "as qwen3, every MLP is a mixture of experts", read_qwen3_moe},
    {"qwen2_vl", "qwen2 behind an encoder of images", read_qwen2_vl},
    {"qwen2_5_vl", "as qwen2_vl, windows in the encoder", read_qwen2_5_vl},
    {"qwen3_vl_moe", "qwen3_moe behind an encoder of images", read_qwen3_vl_moe},
    {"qwen3_vl", "qwen3 behind an encoder of images", read_qwen3_vl},
    {"llava", "any text behind CLIP (LLaVA 1.5) or Pixtral's encoder", read_llava},
    {"internvl", "any text behind InternViT", read_internvl},
    {"internvl_chat", "as internvl, as first published", read_internvl},
    {"qwen3_next", "three of four layers gated delta nets, else gated attention; experts",
     read_qwen3_next},
    {"qwen3_5", "qwen3_5_text behind an encoder of images", read_qwen3_5},
    {"qwen3_5_text", "as qwen3_next, an MLP instead of experts", read_qwen3_next},
    {"qwen3_5_moe", "qwen3_5_moe_text behind an encoder of images; Qwen3.5", read_qwen3_5},
    {"qwen3_5_moe_text", "as qwen3_next", read_qwen3_next},
    {"minimax_m2", "as qwen3_moe, all heads of queries and of keys normalised together",
     read_minimax_m2},
    {"glm4_moe", "as qwen3_moe with biases, dense layers first and a shared expert; GLM-4.5",
     read_glm4_moe},
    {"glm4_moe_lite", "as deepseek_v3; GLM-4.7-Flash", read_deepseek_v3},
    {"glm_moe_dsa", "as deepseek_v32; GLM-5", read_deepseek_v32},
    {"gemma", "as llama, GeLU-gated MLP, tied embedding", read_gemma},
    {"gemma2", "as gemma, norms around, windows on every second layer", read_gemma2},
    {"gemma3", "gemma3_text behind an encoder of images", read_gemma3},
    {"gemma3_text", "as gemma2, normalised queries and keys, five of six layers windows",
     read_gemma3_text},
    {"gemma4", "gemma4_text behind an encoder of images", read_gemma4},
    {"gemma4_unified", "as gemma4, without an encoder of images", read_gemma4},
    {"gemma4_text", "as gemma3_text, wider heads in full layers, some with experts",
     read_gemma4_text},
    {"nemotron", "as llama, LayerNorm, squared ReLU", read_nemotron},
    {"nemotron_h", "layers of Mamba-2, attention, MLP or experts", read_nemotron_h},
    {"granitemoehybrid", "layers of Mamba-2 or attention, each with experts; Granite 4.0",
     read_granite_hybrid},
    {"decoder", "any positions, norm, MLP, biases, experts and layers (fields of our own)",
     read_any_decoder},
    {"palm", "parallel attention and SwiGLU MLP after one norm (fields as llama)", read_palm},
    {"olmo2", "as llama, norms after, all heads of queries and of keys normalised together",
     read_olmo2},
    {"olmo3", "as olmo2, windows on three of four layers", read_olmo2},
    {"phi", "parallel attention and MLP after one norm, biases", read_phi},
    {"phi-msft", "phi under the first names of its fields", read_phi_msft},
    {"phi3", "as llama; Phi-3 and Phi-4", read_phi3},
    {"phimoe", "as mixtral, LayerNorm and biases around attention", read_phimoe},
    {"deepseek_v2", "latent attention, dense layers, then routed and shared experts",
     read_deepseek_v2},
    {"deepseek_v3", "as deepseek_v2, with multi-token prediction; also Kimi K2", read_deepseek_v3},
    {"deepseek_v32", "as deepseek_v3, an indexer chooses the keys that queries see",
     read_deepseek_v32},
    {"kimi_k25", "text part of Kimi K2.5", read_kimi_k25},
    {"deepseek_v4", "windows and compressed keys, hyper-connections, experts", read_deepseek_v4},
    {"gpt_oss", "windows on every second layer, sinks, experts with biases", read_gpt_oss},
    {"bert", "encoder, norms after, masked-token and next-sentence heads", read_bert},
    {"t5", "encoder and decoder with cross attention", read_t5},
    {"vit", "encoder of image patches, class head", read_vit},
    {"dlrm", "embedding tables, interaction and MLPs (fields of our own)", read_dlrm},
});

}  // namespace orrery::zoo
