// SPDX-License-Identifier: Apache-2.0
/// Readers of the supported model types. Internal to this folder.
#pragma once

#include <array>
#include <string_view>

#include "base/reader.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {

Model read_gpt2(Reader& read);

Model read_llama(Reader& read);
Model read_mistral(Reader& read);
Model read_qwen2(Reader& read);
Model read_qwen3(Reader& read);

Model read_mixtral(Reader& read);
Model read_qwen2_moe(Reader& read);
Model read_qwen3_moe(Reader& read);
Model read_deepseek_v2(Reader& read);
Model read_deepseek_v3(Reader& read);
Model read_gpt_oss(Reader& read);

struct Family {
  std::string_view model_type;
  std::string_view meaning;
  Model (*read)(Reader&);
};
inline constexpr auto kFamilies = std::to_array<Family>({
    {"gpt2", "learned positions, LayerNorm, GeLU MLP, biases; GPT-2 and GPT-3", read_gpt2},
    {"llama", "rotary positions, RMSNorm, SwiGLU MLP, grouped queries", read_llama},
    {"mistral", "as llama, with a sliding window", read_mistral},
    {"mixtral", "as mistral, every MLP is a mixture of experts", read_mixtral},
    {"qwen2", "as llama, biases on Q, K, V", read_qwen2},
    {"qwen2_moe", "as qwen2, experts and a gated shared expert", read_qwen2_moe},
    {"qwen3", "as llama, normalised queries and keys", read_qwen3},
    {"qwen3_moe", "as qwen3, every MLP is a mixture of experts", read_qwen3_moe},
    {"deepseek_v2", "latent attention, dense layers, then routed and shared experts",
     read_deepseek_v2},
    {"deepseek_v3", "as deepseek_v2, with multi-token prediction; also Kimi K2", read_deepseek_v3},
    {"gpt_oss", "windows on every second layer, sinks, experts with biases", read_gpt_oss},
});

}  // namespace orrery::zoo
