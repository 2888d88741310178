// SPDX-License-Identifier: Apache-2.0
/// An engine as a launch line.
#include <algorithm>

#include "base/printable.h"
#include "serving/launch_flags.h"
#include "serving/launch_line.h"

namespace orrery::serving {
namespace {

/// Returns the flags that more than one field follows from.
std::string special_flags(const std::string& framework, const Engine& engine,
                          const Engine& defaults) {
  const auto fp8 = graph::DataType::fp8;
  std::string text;
  if (engine.kv == fp8) {
    text += " --kv-cache-dtype fp8";
  }
  if (engine.weights == fp8 && engine.activations == fp8) {
    text += " --quantization fp8";
  }
  if (engine.state == graph::DataType::fp32 && framework != "trtllm") {
    text += framework == "vllm" ? " --mamba-ssm-cache-dtype float32" : " --mamba-ssm-dtype float32";
  }
  if (engine.ep > 1 && framework == "vllm") {
    text += " --enable-expert-parallel";
  }
  if (engine.largest_graph == 0 && defaults.largest_graph > 0 && framework != "trtllm") {
    text += framework == "vllm" ? " --enforce-eager" : " --disable-cuda-graph";
  }
  return text;
}

}  // namespace

Result<LaunchLine> export_engine(const std::string& framework, const Engine& engine,
                                 const std::string& model) {
  auto defaults = load_engine(framework);
  if (!defaults) {
    return fail(std::move(defaults.error()));
  }
  LaunchLine line;
  std::string flags = special_flags(framework, engine, *defaults);
  Engine stated = engine;
  if (framework == "sglang" && engine.dp > 1) {
    flags += " --enable-dp-attention";  // with which --tp-size counts all ranks
    stated.tp = engine.tp * engine.dp;
  }
  std::vector<std::string> done;
  for (const Flag& flag : engine_flags()) {
    const std::string field = std::string(flag.section) + "." + std::string(flag.field);
    const std::string value = field_text(stated, field);
    const bool eager = field == "graphs.largest" && engine.largest_graph == 0;  // above
    const bool by_device = value == "0";  // which no flag says
    if (flag.framework != framework || eager || by_device ||
        value == field_text(*defaults, field) ||
        std::find(done.begin(), done.end(), field) != done.end()) {
      continue;  // of a field's flags the first
    }
    done.push_back(field);
    if (!flag.is_switch()) {
      flags += " --" + std::string(flag.name) + " " + value;
    } else {
      const bool on = (value == "true") != (flag.kind == FlagKind::no);
      flags += (on ? " --" : " --no-") + std::string(flag.name);
    }
  }
  line.text = (framework == "vllm" ? "vllm serve " + shell_quoted(model)
               : framework == "sglang"
                   ? "python -m sglang.launch_server --model-path " + shell_quoted(model)
                   : "trtllm-serve " + shell_quoted(model)) +
              flags;
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < flags.size();) {
    const std::size_t end = std::min(flags.find(' ', begin), flags.size());
    if (end > begin) {
      words.push_back(flags.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return import_engine(framework, words).map([&](const ImportedEngine& again) {
    Engine::fields(
        [&](std::string_view section, std::string_view field, auto member, std::string_view) {
          if (again.engine.*member != engine.*member) {
            line.lost.push_back(std::string(section) + "." + std::string(field));
          }
        });
    return std::move(line);
  });
}

}  // namespace orrery::serving
