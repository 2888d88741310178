// SPDX-License-Identifier: Apache-2.0
/// Fields of a parsed document by dotted names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"

namespace orrery::sweep {

/// Returns the words between the dots.
std::vector<std::string> split_path(std::string_view path);

/// Puts `value` at dotted `path` below `root`, in place of what stands there. An item of a list is
/// named by its number from 0 or by its `name`: "network.1.bandwidth", "network.nvlink.bandwidth".
/// A field that its map lacks is added, whether or not its reader knows it. The value keeps its
/// place and gets the full path, so that messages name what the study says. Mistakes: an item that
/// is not there, a way through a value that is neither map nor list.
Result<void> set_field(ConfigNode& root, std::string_view path, const ConfigNode& value);

/// Returns `path` with the number of each item that it names: of two paths to one place the same.
/// The rest of a path stays as it is behind a place that is not there.
std::string resolved_path(const ConfigNode& root, std::string_view path);

/// Returns what stands at `path`, named as in set_field(); null: nothing.
const ConfigNode* find_field(const ConfigNode& root, std::string_view path);

/// Returns the document as one text that says neither where it stands nor how it was laid out: two
/// documents that read alike have the same. Order of fields counts.
std::string canonical_text(const ConfigNode& node);

/// Returns a scalar's node, as `like` has its place.
ConfigNode scalar_node(std::string text, const ConfigNode& like);

}  // namespace orrery::sweep
