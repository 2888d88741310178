// SPDX-License-Identifier: Apache-2.0
/// Words of a server's launch line: flags, and the program that they are for. Internal to this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace orrery::serving {

struct SpokenFlag {
  std::string name;  ///< without dashes before it, with dashes in it
  std::optional<std::string> value;
};
std::optional<SpokenFlag> spoken_flag(const std::string& word);

/// "-1" is a value.
bool is_flag(const std::string& word);

/// Says whether a word names the framework's server: vllm, sglang.launch_server, trtllm-serve, an
/// image of a container.
bool names_server(const std::string& framework, const std::string& word);

/// A container's line begins at its image, after what is the container's own; 0 for other lines.
std::size_t after_image(const std::string& framework, const std::vector<std::string>& words);

}  // namespace orrery::serving
