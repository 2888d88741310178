// SPDX-License-Identifier: Apache-2.0
#include "cli/spmd_graph.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "cli/command.h"
#include "planner/spmd/decoder.h"
#include "planner/spmd/models.h"
#include "workload/zoo/model.h"

namespace orrery::cli {
namespace {

bool is_of_zoo(const std::string& name) {
  const std::vector<std::string> names = list_configs("models");
  return std::find(names.begin(), names.end(), name) != names.end();
}

spmd::OperatorGraph read_decoder(const GraphWords& words, Error& mistakes) {
  spmd::DecoderSize size;
  take("--devices", words.devices, size.devices, mistakes);
  take("--layers", words.layers, size.layers, mistakes);
  take("--batch", words.batch, size.batch, mistakes);
  take("--sequence", words.sequence, size.sequence, mistakes);
  size.mesh = words.mesh;
  auto model = zoo::load_model(words.graph.value_or(""));
  if (!model) {
    mistakes.add(std::move(model.error()));
    return {};
  }
  return collect(spmd::decoder_graph(*model, size), mistakes);
}

}  // namespace

spmd::OperatorGraph read_graph(const GraphWords& words, Error& mistakes) {
  const std::string names =
      "one of " + all_names<spmd::ModelName>() + ", a name of `orrery list models`, or a file";
  if (!words.graph) {
    mistakes.add({"--graph", {}, {}, "missing; " + names});
    return {};
  }
  if (is_of_zoo(*words.graph)) {
    return read_decoder(words, mistakes);
  }
  refuse_given({{"--batch", words.batch}, {"--sequence", words.sequence}},
               "goes with --graph of a name of `orrery list models`", mistakes);
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
