// SPDX-License-Identifier: Apache-2.0
#include "neural/read_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/one_of.h"
#include "base/reader.h"
#include "neural/build_network.h"
#include "neural/cell.h"

namespace orrery::neural {
namespace {

constexpr std::int64_t kMostExtent = 4096;
constexpr std::size_t kMostLayers = 2000;
constexpr std::size_t kMostWeights = 50'000'000;
constexpr std::size_t kMostValues = 16'000'000;  // of one layer's output, for one sample
constexpr std::int64_t kMostCells = 15'625;

constexpr std::string_view kCell = "cell";

Shape read_input(Reader& read) {
  Shape shape{read.list<std::int64_t>("input", true)};
  const bool well =
      !shape.extents.empty() && shape.extents.size() <= 3 &&
      std::ranges::all_of(shape.extents, [](auto e) { return e >= 1 && e <= kMostExtent; }) &&
      shape.size() <= kMostValues;
  read.require(
      well, "input",
      "1 to 3 extents from 1 to 4096: channels, height, width; tokens, features; features");
  if (!well) {
    shape.extents = {1};
  }
  return shape;
}

class LayerReader {
 public:
  LayerReader(Shape input, std::int64_t classes) : builder_(std::move(input), classes) {}

  void add(const ConfigNode& node) {
    Reader read(node);
    const auto kind = read.required<std::string>("kind");
    const auto name = read.optional("name", fmt::format("layer{}", numbers_.size()));
    if (kind == kCell) {
      add_cell_of(read, name);
    } else if (const auto known = value_of<LayerKind>(kind)) {
      add_layer(read, name, *known);
    } else {
      std::vector<std::string> kinds = names_of<LayerKind>();
      kinds.emplace_back(kCell);
      read.reject("kind", one_of(kind, kinds));
      broken_ = true;
      report(read.finish(0));
      return;
    }
    if (!numbers_.emplace(name, builder_.last()).second || name == "input") {
      read.reject("name", "a name that no other layer has");
    }
    report(read.finish(0));
  }

  Result<Network> take(const ConfigNode& root, bool ended) {
    Network& network = builder_.network();
    const Shape wanted{{network.classes}};
    if (ended && mistakes_.empty() &&
        (network.layers.empty() || network.layers.back().out != wanted)) {
      mistakes_.add({root.where(), "layers",
                     network.layers.empty() ? "" : to_string(network.layers.back().out),
                     fmt::format("a last layer of {} outputs, one per class", network.classes)});
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    return std::move(network);
  }

 private:
  void report(const Result<int>& result) {
    if (!result) {
      mistakes_.add(result.error());
      broken_ = true;
    }
  }

  std::vector<int> read_inputs(Reader& read) {
    std::vector<int> inputs;
    for (const auto& name : read.list<std::string>("inputs")) {
      const auto known = numbers_.find(name);
      if (name != "input" && known == numbers_.end()) {
        std::vector<std::string> names{"input"};
        for (const auto& [other, number] : numbers_) {
          names.push_back(other);
        }
        if (!broken_) {
          read.reject("inputs", fmt::format("earlier layers; there is no {}{}", name,
                                            did_you_mean(name, names)));
        }
        continue;
      }
      inputs.push_back(name == "input" ? kNetworkInput : known->second);
    }
    return inputs;
  }

  std::int64_t extent(Reader& read, std::string_view name, std::int64_t most,
                      std::optional<std::int64_t> fallback = {}) {
    const auto value =
        fallback ? read.optional<std::int64_t>(name, *fallback) : read.required<std::int64_t>(name);
    read.require(value >= 1 && value <= most, name, fmt::format("a number from 1 to {}", most));
    return std::clamp<std::int64_t>(value, 1, most);
  }

  void add_layer(Reader& read, const std::string& name, LayerKind kind) {
    Layer layer{.name = name, .kind = kind, .inputs = read_inputs(read)};
    const bool convolution = kind == LayerKind::convolution;
    const bool pool = kind == LayerKind::average_pool || kind == LayerKind::max_pool;
    if (convolution || kind == LayerKind::linear) {
      layer.width = extent(read, convolution ? "channels" : "features", kMostExtent);
      layer.bias = read.optional("bias", !convolution);
    }
    if (convolution || pool) {
      layer.kernel = extent(read, "kernel", 31, 3);
      layer.stride = extent(read, "stride", 31, 1);
    }
    if (kind == LayerKind::attention) {
      layer.heads = extent(read, "heads", kMostExtent, 1);
    }
    read.require(kind == LayerKind::add || layer.inputs.size() <= 1, "inputs",
                 "one input; add takes several");
    if (!read.ok() || broken_) {
      broken_ = true;
      return;
    }
    if (const std::string wrong = builder_.add(std::move(layer)); !wrong.empty()) {
      read.reject("kind", "an input of shape " + wrong);
    }
    check_size(read);
  }

  void check_size(Reader& read) {
    const Network& network = builder_.network();
    read.require(network.layers.size() <= kMostLayers && network.weights <= kMostWeights &&
                     (network.layers.empty() || network.layers.back().out.size() <= kMostValues),
                 "kind",
                 "at most 2,000 layers, 50 million weights and 16 million values of a layer");
  }

  void add_cell_of(Reader& read, const std::string& name) {
    const auto channels = extent(read, "channels", kMostExtent);
    const auto edges = read.list<EdgeOperation>("edges", true);
    read.require(edges.size() == kEdges, "edges",
                 "six operations, of 0-1, 0-2, 1-2, 0-3, 1-3, 2-3");
    if (!read.ok() || broken_) {
      broken_ = true;
      return;
    }
    const Shape& before = builder_.shape_of(builder_.last());
    if (before.rank() != 3 || before.extents[0] != channels) {
      read.reject("channels", "those of the image before the cell, which is " + to_string(before));
      return;
    }
    Cell cell{};
    std::copy(edges.begin(), edges.end(), cell.begin());
    add_cell(builder_, name, channels, cell);
    check_size(read);
  }

  NetworkBuilder builder_;
  std::map<std::string, int> numbers_;
  Error mistakes_;
  bool broken_ = false;  ///< shapes from here on are not known
};

std::vector<Network> networks_of(const CellSpace& space, const std::string& name) {
  std::vector<Network> networks;
  for (const Cell& cell : draw_cells(space)) {
    networks.push_back(network_of(space, fmt::format("{}-{:03}", name, networks.size()), cell));
  }
  return networks;
}

Result<std::vector<Network>> read_space(Reader& read, const std::string& name, Shape input,
                                        std::int64_t classes) {
  CellSpace space{.input = std::move(input), .classes = classes};
  space.stages = read.list<std::int64_t>("stages", true);
  space.count = read.required<std::int64_t>("count");
  space.seed = read.optional<std::uint64_t>("seed", 1);
  read.require(!space.stages.empty() && space.stages.size() <= 8 &&
                   std::ranges::all_of(space.stages, [](auto c) { return c >= 1 && c <= 512; }),
               "stages", "1 to 8 numbers of channels from 1 to 512");
  read.require(space.count >= 1 && space.count <= kMostCells, "count",
               "a number from 1 to 15625, as many different cells as there are");
  read.require(space.input.rank() == 3, "input", "channels, height, width");
  auto checked = read.finish(std::move(space));
  if (!checked) {
    return fail(std::move(checked.error()));
  }
  return networks_of(*checked, name);
}

}  // namespace

Result<std::vector<Network>> read_networks(const ConfigNode& root) {
  Reader read(root);
  const std::string stem = std::filesystem::path(root.file()).stem().string();
  const auto name = read.optional("name", stem.empty() ? std::string("network") : stem);
  Shape input = read_input(read);
  const auto classes = read.required<std::int64_t>("classes");
  read.require(classes >= 2 && classes <= kMostExtent, "classes", "2 to 4096");
  if (root.find("stages") != nullptr) {
    return read_space(read, name, std::move(input), classes);
  }
  const auto accuracy = read.maybe<double>("accuracy");
  read.require(!accuracy || (*accuracy >= 0 && *accuracy <= 1), "accuracy", "a share from 0 to 1");
  LayerReader layers(std::move(input), classes);
  for (const ConfigNode* node : read.take_items("layers", true)) {
    layers.add(*node);
  }
  auto network = layers.take(root, read.ok());
  auto head = read.finish(0);
  if (!head || !network) {
    Error mistakes;
    mistakes.add(head ? Error() : std::move(head.error()));
    mistakes.add(network ? Error() : std::move(network.error()));
    return fail(std::move(mistakes));
  }
  network->name = name;
  network->accuracy = accuracy;
  return std::vector<Network>{std::move(*network)};
}

Result<std::vector<Network>> load_networks(const std::string& folder_or_file) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code wrong;
  if (fs::is_directory(folder_or_file, wrong)) {
    for (const auto& entry : fs::directory_iterator(folder_or_file, wrong)) {
      const std::string ending = entry.path().extension().string();
      if (ending == ".yaml" || ending == ".yml") {
        files.push_back(entry.path().string());
      }
    }
    std::sort(files.begin(), files.end());
    if (files.empty()) {
      return fail(Error(Mistake{folder_or_file,
                                {},
                                {},
                                "no .yaml file in it: expected one for "
                                "each architecture"}));
    }
  } else {
    files.push_back(folder_or_file);
  }
  std::vector<Network> networks;
  std::map<std::string, std::string> names;
  Error mistakes;
  for (const std::string& file : files) {
    auto read = load_config(file).and_then(read_networks);
    if (!read) {
      mistakes.add(std::move(read.error()));
      continue;
    }
    for (Network& network : *read) {
      const auto [first, is_new] = names.emplace(network.name, file);
      if (!is_new) {
        mistakes.add({file, "name", network.name, "a name that " + first->second + " has not"});
      }
      networks.push_back(std::move(network));
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return networks;
}

}  // namespace orrery::neural
