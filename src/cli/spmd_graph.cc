// SPDX-License-Identifier: Apache-2.0
#include "cli/spmd_graph.h"

#include "cli/command.h"
#include "planner/spmd/models.h"

namespace orrery::cli {

spmd::OperatorGraph read_graph(const GraphWords& words, Error& mistakes) {
  const std::string names = "one of " + all_names<spmd::ModelName>() + ", or a file";
  if (!words.graph) {
    mistakes.add({"--graph", {}, {}, "missing; " + names});
    return {};
  }
  spmd::ModelSize size;
  take("--layers", words.layers, size.layers, mistakes);
  if (const auto name = value_of<spmd::ModelName>(*words.graph)) {
    take("--devices", words.devices, size.devices, mistakes);
    return collect(spmd::build_model(*name, size), mistakes);
  }
  if (words.graph->find_first_of("./") == std::string::npos && *words.graph != "-") {
    mistakes.add(wrong_value("--graph", *words.graph,
                             names + did_you_mean(*words.graph, names_of<spmd::ModelName>())));
    return {};
  }
  if (words.layers) {
    mistakes.add({"--layers", {}, {}, "contradicts --graph with a file, which has its layers"});
  }
  return collect(spmd::load_graph(*words.graph), mistakes);
}

}  // namespace orrery::cli
