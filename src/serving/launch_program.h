// SPDX-License-Identifier: Apache-2.0
/// Words of a server's launch line: flags, and the program that they are for. Internal to this
/// folder.
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

/// Reads vLLM's suffixes of numbers: 32k is 32,000, 32K is 32,768. Other texts stay as they are.
std::string plain_number(const std::string& text);

/// "-1" is a value.
bool is_flag(const std::string& word);

/// Says whether a word names the framework's server: vllm, sglang.launch_server, trtllm-serve, an
/// image of a container.
bool names_server(const std::string& framework, const std::string& word);

/// Returns where the server's words begin, after those of mpirun, python or a container: at the
/// first word that names the server, of a container at its image; 0 where none does.
std::size_t after_launcher(const std::string& framework, const std::vector<std::string>& words);

/// Returns the model's name of a line where it says in which type weights are stored
/// (zoo/hub_name.h); else "".
std::string narrow_model(const std::vector<std::string>& words);

}  // namespace orrery::serving
