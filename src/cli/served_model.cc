// SPDX-License-Identifier: Apache-2.0
#include "cli/served_model.h"

#include <algorithm>

#include "base/split.h"
#include "cli/command.h"

namespace orrery::cli {

ServedModel load_served(const std::optional<std::string>& model,
                        const std::optional<std::string>& engine, Error& mistakes) {
  ServedModel served;
  const std::string engine_name = engine.value_or("vllm@0.19");
  Error of_engine;
  served.engine = load_named("--engine", engine_name, serving::load_engine, of_engine);
  Error of_model;
  if (!model) {
    of_model.add({"--model", {}, {}, "missing; expected a name or a file"});
  }
  const zoo::ModelFile file =
      model ? load_named("--model", *model, zoo::load_model_file, of_model) : zoo::ModelFile();
  if (of_model.empty()) {
    served.model = collect(zoo::parse_model(file.node, file.name), of_model);
  }
  if (of_model.empty() && of_engine.empty()) {
    served.engine = collect(serving::load_engine_for(file, engine_name), of_engine);
  }
  mistakes.add(std::move(of_model));
  mistakes.add(std::move(of_engine));
  return served;
}

std::vector<std::string> listed(const std::optional<std::string>& text) {
  std::vector<std::string> parts;
  if (text) {
    const auto names = split_at(*text, ',');
    parts.assign(names.begin(), names.end());
  }
  return parts;
}

std::vector<serving::Format> read_formats(const std::optional<std::string>& names,
                                          Error& mistakes) {
  std::vector<serving::Format> formats;
  for (const std::string& name : listed(names)) {
    const auto* const format = std::ranges::find(serving::kFormats, name, &serving::Format::name);
    if (format == serving::kFormats.end()) {
      mistakes.add(wrong_value("--formats", name, "of bf16, w8a8, w8a8kv8, w4a16, w4a4kv8"));
    } else {
      formats.push_back(*format);
    }
  }
  return formats;
}

}  // namespace orrery::cli
