// SPDX-License-Identifier: Apache-2.0
/// Launch lines of inference engines as engine files, and back.
#pragma once

#include <string>
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

/// The words of `vllm serve MODEL ...`, `python -m sglang.launch_server ...` or `trtllm-serve
/// ...` (leading words and the model are skipped). Flags as --flag VALUE, --flag=VALUE, --flag and
/// --no-flag. Mistakes: values that do not parse or are out of range, a flag without its value, two
/// flags that contradict. Names of flags: vLLM 0.19, SGLang 0.5 and TensorRT-LLM 1.0 (recalled).
Result<ImportedEngine> import_engine(const std::string& framework,
                                     const std::vector<std::string>& words);

struct LaunchLine {
  std::string text;
  std::vector<std::string> lost;  ///< fields that the framework's flags do not state: "host.step"
};
/// Flags for what differs from the framework's defaults; read back, all but what is lost is equal.
Result<LaunchLine> export_engine(const std::string& framework, const Engine& engine,
                                 const std::string& model);

}  // namespace orrery::serving
