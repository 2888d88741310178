// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/load.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/reader.h"
#include "compat/astra/link_network.h"
#include "compat/astra/parse.h"
#include "workload/chakra/load.h"

namespace orrery::astra {
namespace {

template <class T>
std::optional<T> keep(Result<T> result, Error& mistakes) {
  if (result) {
    return std::move(*result);
  }
  mistakes.add(std::move(result.error()));
  return std::nullopt;
}

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
  Loader(const Files& files, const Quirks& quirks) : files_(files), quirks_(quirks) {}

  Result<Loaded> load(const std::function<void(double)>& progress) {
    load_network();
    load_system();
    load_memory();
    load_traces(progress);
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    return std::move(loaded_);
  }

 private:
  std::vector<std::string>* unknown() {
    return files_.warn_of_unknown ? &loaded_.warnings : nullptr;
  }

  void load_network() {
    if (files_.logical) {
      auto links =
          keep(load_link_network(*files_.logical, files_.network, loaded_.warnings), mistakes_);
      if (links) {
        loaded_.topology = std::move(links->topology);
        set_network(std::move(links->dimensions));
      }
      return;
    }
    if (files_.network.ends_with(".topo")) {
      mistakes_.add({files_.network,
                     {},
                     "a topology of ASTRA-sim's htsim back-end",
                     std::string(kWhatIsRead)});
      return;
    }
    const auto node = keep(load_config(files_.network), mistakes_);
    auto network = node ? keep(parse_network(*node, quirks_, unknown()), mistakes_) : std::nullopt;
    if (network) {
      set_network(std::move(*network));
    }
  }

  void set_network(std::vector<Dimension> network) {
    loaded_.input.network = std::move(network);
    for (const Dimension& dimension : loaded_.input.network) {
      ranks_ *= dimension.size;
    }
  }

  void load_system() {
    const auto node = keep(load_json(files_.system), mistakes_);
    if (!node) {
      return;
    }
    auto system = keep(parse_system(*node, loaded_.warnings, unknown()), mistakes_);
    if (!system) {
      return;
    }
    if (!loaded_.input.network.empty()) {
      if (auto fits = check_lists(*node, *system, loaded_.input.network.size()); !fits) {
        mistakes_.add(std::move(fits.error()));
      }
    }
    const std::string folder = std::filesystem::path(files_.system).parent_path().string();
    if (auto customs = keep(load_customs(*system, folder), mistakes_)) {
      loaded_.input.customs = std::move(*customs);
    }
    loaded_.input.system = std::move(*system);
  }

  void load_memory() {
    const auto node = keep(load_json(files_.memory), mistakes_);
    if (const auto memory = node ? keep(parse_memory(*node, unknown()), mistakes_) : std::nullopt) {
      loaded_.input.memory = *memory;
    }
  }

  void load_traces(const std::function<void(double)>& progress) {
    if (loaded_.input.network.empty()) {
      return;
    }
    auto traces = keep(chakra::load({.prefix = files_.workload,
                                     .ranks = ranks_,
                                     .groups = files_.groups,
                                     .progress = progress}),
                       mistakes_);
    if (!traces) {
      return;
    }
    loaded_.input.traces = std::move(*traces);
    if (mistakes_.empty()) {
      check_needed_lists(files_.system, loaded_.input, mistakes_);
    }
  }

  const Files& files_;
  const Quirks& quirks_;
  std::int64_t ranks_ = 1;
  Loaded loaded_;
  Error mistakes_;
};

}  // namespace

Result<Loaded> load_files(const Files& files, const Quirks& quirks,
                          const std::function<void(double)>& progress) {
  return Loader(files, quirks).load(progress);
}

}  // namespace orrery::astra
