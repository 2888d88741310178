// SPDX-License-Identifier: Apache-2.0
/// Names of models on the Hugging Face hub. Internal to this folder.
#pragma once

#include <string>
#include <string_view>

namespace orrery::zoo {

/// Returns the shipped name of what a hub calls "meta-llama/Llama-3.1-70B-Instruct": the part after
/// the slash in lower case without what says how it was trained on (-instruct, -chat, -hf ...), or
/// by a table the model whose shape it has. It need not be shipped.
std::string shipped_name(std::string_view hub_name);

/// Says whether a name can be one of the hub: OWNER/MODEL, no file.
bool is_hub_name(std::string_view name);

}  // namespace orrery::zoo
