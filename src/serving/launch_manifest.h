// SPDX-License-Identifier: Apache-2.0
/// Servers' launch lines within YAML: manifests of Kubernetes, files of Docker Compose, and files
/// of flags. Internal to this folder.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "serving/launch_line.h"

namespace orrery::serving {

/// Says whether the text is YAML and no script: by its name, or by how such files begin.
bool is_manifest(std::string_view text, const std::string& file);

/// Returns the words of the first container whose image, command or arguments name the framework's
/// server: `command` (or `entrypoint`) and `args`, lists of words or lines of a shell, with $(NAME)
/// from its `env`, which a shell's $NAME has too, or `given`. Further containers that start such a
/// server are a remark. A file without containers is one of flags, as --config of vLLM reads it:
/// `max-model-len: 4096`. Documents are separated by `---`. Mistakes: what is no YAML; a file that
/// starts no such server; of such a file those of shell::read_script.
Result<EngineWords> manifest_words(const std::string& framework, std::string_view text,
                                   const std::string& file, const std::vector<std::string>& given);

/// Returns the settings of a YAML text, a word each: --kv-cache-config.dtype=fp8. The reader of the
/// words leaves out a switch that is false.
Result<EngineWords> setting_words(std::string_view text, const std::string& file);

}  // namespace orrery::serving
