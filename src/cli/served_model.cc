// SPDX-License-Identifier: Apache-2.0
#include "cli/served_model.h"

#include <algorithm>

#include "base/split.h"
#include "cli/command.h"

namespace orrery::cli {

ServedModel load_served(const std::optional<std::string>& model,
                        const std::optional<std::string>& engine, Error& mistakes,
                        const std::vector<serving::StatedField>& fields) {
  ServedModel served;
  const std::string engine_name = engine.value_or("vllm@0.20");
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
    served.engine = collect(serving::load_engine_with(file, engine_name, fields), of_engine);
  }
  mistakes.add(std::move(of_model));
  mistakes.add(std::move(of_engine));
  return served;
}

}  // namespace orrery::cli
