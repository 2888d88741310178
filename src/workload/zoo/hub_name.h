// SPDX-License-Identifier: Apache-2.0
/// Names of models on the Hugging Face hub.
#pragma once

#include <string>
#include <string_view>

namespace orrery::zoo {

/// Returns the shipped name of what a hub calls "meta-llama/Llama-3.1-70B-Instruct": the part after
/// the slash in lower case without what says how it was trained on (-instruct, -chat, -hf ...), or
/// by a table the model whose shape it has. It need not be shipped.
std::string shipped_name(std::string_view hub_name);

/// Returns the type of weights at the end of a checkpoint's name in any case ("GLM-5-FP8": fp8,
/// "qwen3-32b-awq": awq); "" where it says none.
std::string_view format_of(std::string_view name);
/// Returns the name without it.
std::string_view without_format(std::string_view name);

/// Says whether a name can be one of the hub: OWNER/MODEL or MODEL alone, no file.
bool is_hub_name(std::string_view name);

}  // namespace orrery::zoo
