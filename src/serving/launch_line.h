// SPDX-License-Identifier: Apache-2.0
/// Launch lines of inference engines as engine files, and back.
#pragma once

#include <string>
#include <vector>

#include "serving/engine.h"

namespace orrery::serving {

struct ImportedEngine {
  Engine engine;
  std::vector<std::string> ignored;  ///< arguments that change nothing here, or are not known
};

/// Frameworks that import_engine() reads: vllm, sglang, trtllm.
const std::vector<std::string>& imported_frameworks();

/// The words of `vllm serve MODEL ...`, `python -m sglang.launch_server ...` or `trtllm-serve
/// ...` (leading words and the model are skipped). Flags as --flag VALUE, --flag=VALUE, --flag and
/// --no-flag. Mistakes: values that do not parse, a flag without its value, two flags that
/// contradict. Names of flags: vLLM 0.19, SGLang 0.5 and TensorRT-LLM 1.0 (recalled).
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
