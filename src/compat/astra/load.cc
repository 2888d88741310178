// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/load.h"

#include <algorithm>
#include <filesystem>

#include "base/collect.h"
#include "base/file.h"
#include "base/reader.h"
#include "compat/astra/link_network.h"
#include "compat/astra/parse.h"
#include "workload/chakra/load.h"

namespace orrery::astra {
namespace {

/// JSON whatever the file is called.
Result<ConfigNode> load_json(const std::string& file) {
  return read_file(file).and_then(
      [&](const std::string& text) { return parse_config(text, file, ConfigSyntax::json); });
}

/// A list that is missing is a mistake only of the traces that need it: ASTRA-sim reads nothing.
void check_needed_lists(const std::string& file, const RunInput& input, Error& mistakes) {
  std::array<bool, kOperationCount> needed{};
  for (const chakra::Program& program : input.traces.programs) {
    for (const chakra::Node& node : program.nodes) {
      const auto operation = operation_of(node.collective);
      if (node.type == chakra::NodeType::comm_coll && operation &&
          input.customs.find(node) == nullptr) {
        needed[static_cast<std::size_t>(*operation)] = true;
      }
    }
  }
  for (const auto& operation : kNames<Operation>) {
    const auto index = static_cast<std::size_t>(operation.value);
    if (needed[index] && input.system.implementation[index].empty()) {
      mistakes.add(
          {file,
           std::string(operation.name) + "-implementation",
           {},
           "missing, and the traces have " + std::string(operation.name) + " collectives"});
    }
  }
}

class Loader {
 public:
  Loader(const Quirks& quirks, bool warn_of_unknown)
      : quirks_(quirks), warn_of_unknown_(warn_of_unknown) {}

  void load_links(const std::string& logical, const std::string& network) {
    if (auto links = kept(load_link_network(logical, network, loaded_.warnings), mistakes_)) {
      loaded_.topology = std::move(links->topology);
      set_network(std::move(links->dimensions));
    }
  }

  void take_network(const Result<ConfigNode>& node) {
    if (auto network = kept(node.and_then([&](const ConfigNode& root) {
          return parse_network(root, quirks_, unknown());
        }),
                            mistakes_)) {
      set_network(std::move(*network));
    }
  }

  void take_system(const Result<ConfigNode>& node) {
    auto system = kept(node.and_then([&](const ConfigNode& root) {
      return parse_system(root, loaded_.warnings, unknown());
    }),
                       mistakes_);
    if (!system) {
      return;
    }
    if (!loaded_.input.network.empty()) {
      collect(check_lists(*node, *system, loaded_.input.network.size()), mistakes_);
    }
    system_file_ = node->file();
    const std::string folder = std::filesystem::path(system_file_).parent_path().string();
    if (auto customs = kept(load_customs(*system, folder), mistakes_)) {
      loaded_.input.customs = std::move(*customs);
    }
    loaded_.input.system = std::move(*system);
  }

  void take_memory(const Result<ConfigNode>& node) {
    if (const auto memory = kept(
            node.and_then([&](const ConfigNode& root) { return parse_memory(root, unknown()); }),
            mistakes_)) {
      loaded_.input.memory = *memory;
    }
  }

  void load_traces(const chakra::LoadOptions& options) {
    if (loaded_.input.network.empty()) {
      return;
    }
    chakra::LoadOptions all = options;
    all.ranks = ranks_;
    auto traces = kept(chakra::load(all), mistakes_);
    if (!traces) {
      return;
    }
    loaded_.input.traces = std::move(*traces);
    if (mistakes_.empty()) {
      check_needed_lists(system_file_, loaded_.input, mistakes_);
    }
  }

  void reject(Mistake mistake) { mistakes_.add(std::move(mistake)); }

  Result<Loaded> finish() && { return or_mistakes(std::move(loaded_), std::move(mistakes_)); }

 private:
  std::vector<std::string>* unknown() { return warn_of_unknown_ ? &loaded_.warnings : nullptr; }

  void set_network(std::vector<Dimension> network) {
    loaded_.input.network = std::move(network);
    for (const Dimension& dimension : loaded_.input.network) {
      ranks_ *= dimension.size;
    }
  }

  const Quirks& quirks_;
  bool warn_of_unknown_;
  std::string system_file_;
  std::int64_t ranks_ = 1;
  Loaded loaded_;
  Error mistakes_;
};

}  // namespace

Result<Loaded> load_files(const Files& files, const Quirks& quirks,
                          const std::function<void(double)>& progress) {
  Loader loader(quirks, files.warn_of_unknown);
  if (files.logical) {
    loader.load_links(*files.logical, files.network);
  } else if (files.network.ends_with(".topo")) {
    loader.reject(
        {files.network, {}, "a topology of ASTRA-sim's htsim back-end", std::string(kWhatIsRead)});
  } else {
    loader.take_network(load_config(files.network));
  }
  loader.take_system(load_json(files.system));
  loader.take_memory(load_json(files.memory));
  loader.load_traces({.prefix = files.workload, .groups = files.groups, .progress = progress});
  return std::move(loader).finish();
}

Result<Loaded> load_documents(const Documents& documents, const Quirks& quirks) {
  Loader loader(quirks, false);
  loader.take_network(documents.network);
  loader.take_system(documents.system);
  loader.take_memory(documents.memory);
  loader.load_traces({.prefix = documents.workload, .groups = documents.groups, .progress = {}});
  return std::move(loader).finish();
}

}  // namespace orrery::astra
