// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery {

/// Returns the whole file ("-": standard input, once). Mistakes: missing, a folder, unreadable, too
/// large.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);

/// Writes the whole file or nothing: to a temporary file beside it, then rename. Follows links,
/// keeps the mode of a file that is there; writes straight to what is no regular file (a device, a
/// pipe).
Result<void> write_file(const std::string& path, std::string_view content);

/// Folders in which shipped configurations are looked for, in order: $ORRERY_CONFIGS, the nearest
/// share/orrery/configs in a folder above the running binary, that of the install prefix.
std::vector<std::string> config_folders();
/// Reports a mistake when $ORRERY_CONFIGS names no folder.
Result<void> check_config_folders();

/// Path of configuration `name` of `kind` ("machines", "models", "plans", "spmd", "validation"):
/// `name` itself when it is a path ("-", contains '/' or ends in .yaml, .yml or .json), else the
/// shipped file kind/name.yaml or kind/name.json, else `name` where there is such a file or folder.
/// An unknown name lists what there is, with "did you mean".
Result<std::string> find_config(const std::string& kind, const std::string& name);

/// Returns the names (without extension) of the shipped configurations of `kind`, sorted.
std::vector<std::string> list_configs(const std::string& kind);

}  // namespace orrery
