// SPDX-License-Identifier: Apache-2.0
/// Leaves, overrides and references of a configuration. Internal to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace orrery::interop {

struct Leaf {
  std::string path;  ///< "fsdp_config.fsdp_offload_params"; items of a list share their list's
  const ConfigNode* node;
};
/// Returns every value without fields or items, in order; an empty map or list is one.
std::vector<Leaf> leaves_of(const ConfigNode& node);

/// Returns whether a node is null, false, 0, "", "none" or an empty list, which asks for nothing.
bool is_empty(const ConfigNode& node);

/// Returns the node at a dotted path, or nullptr.
const ConfigNode* at_path(const ConfigNode& node, std::string_view path);

/// Returns the node with overrides. `words`: a.b.c=value (also +a.b=, ++a.b=) sets a leaf, ~a.b
/// removes one. Then `${...}` is replaced: of another key by its value, of NAME:default by the
/// default. Mistakes: words of another form; a reference to what is not there.
Result<ConfigNode> with_overrides(ConfigNode node, const std::vector<std::string>& words);

}  // namespace orrery::interop
