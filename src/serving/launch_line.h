// SPDX-License-Identifier: Apache-2.0
/// Launch lines of inference engines as engine files, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serving/engine.h"

namespace orrery::serving {

/// An argument that no field of an engine says, and what may have been meant.
struct IgnoredArgument {
  std::string words;
  std::string sentence;
};

struct ImportedEngine {
  Engine engine;
  std::vector<IgnoredArgument> ignored;
};

/// Frameworks that import_engine() reads: vllm, sglang, trtllm.
const std::vector<std::string>& imported_frameworks();

/// The words of `vllm serve MODEL ...`, `python -m sglang.launch_server ...` or `trtllm-serve ...`
/// (leading words, a container's own and the model are skipped). Flags as --flag VALUE,
/// --flag=VALUE, --flag and --no-flag. Mistakes: values that do not parse or are out of range, a
/// flag without its value, two flags that contradict. Names of flags: vLLM 0.19, SGLang 0.5 and
/// TensorRT-LLM 1.0 (recalled). Remarks: what changes the result first, unknown flags with a guess,
/// one for the rest. `places`: "serve.sh:3" of each word, for mistakes; empty = unknown.
Result<ImportedEngine> import_engine(const std::string& framework,
                                     const std::vector<std::string>& words,
                                     const std::vector<std::string>& places = {});

/// EngineWords are the words of a server's command, and where each stands.
struct EngineWords {
  std::vector<std::string> words;
  std::vector<std::string> places;
  std::vector<IgnoredArgument> remarks{};

  /// Adds a remark where these are the words of the first of several servers.
  void say_first_of(std::size_t servers, const std::string& file) {
    if (servers > 1) {
      remarks.push_back(
          {file, "starts " + std::to_string(servers) + " servers; this is the first"});
    }
  }
};
/// Returns the first command of a script that starts the framework's server, also in a container.
/// `given`: NAME=value and arguments of the script. Mistakes: those of shell::read_script.
Result<EngineWords> launch_of(const std::string& framework, std::string_view text,
                              const std::string& file, const std::vector<std::string>& given);

struct LaunchLine {
  std::string text;
  std::vector<std::string> lost;  ///< fields that the framework's flags do not state: "host.step"
};
/// Flags for what differs from the framework's defaults; read back, all but what is lost is equal.
Result<LaunchLine> export_engine(const std::string& framework, const Engine& engine,
                                 const std::string& model);

}  // namespace orrery::serving
