// SPDX-License-Identifier: Apache-2.0
#include "planner/layerwise/chain.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/reader.h"

namespace orrery::layerwise {
namespace {

constexpr std::int64_t kMostLayers = 4096;
constexpr std::size_t kMostStrategies = 256;

template <class T>
bool none_below_zero(const std::vector<T>& values) {
  return std::all_of(values.begin(), values.end(), [](T value) { return value >= T(0); });
}

/// Returns the list of a node that is one.
Result<std::vector<Time>> read_times(const ConfigNode& node) {
  if (node.kind != ConfigNode::Kind::sequence) {
    return fail(Error(Mistake{node.where(), node.path, node.shown(), "a list of times"}));
  }
  std::vector<Time> times;
  Error mistakes;
  for (const ConfigNode& item : node.items) {
    const auto time = parse_time(item.text);
    if (time && item.kind == ConfigNode::Kind::scalar) {
      times.push_back(*time);
    } else {
      mistakes.add({item.where(), item.path, item.shown(), "a time such as '1.5 us'"});
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return times;
}

struct CountedLayer {
  LayerCosts costs;
  std::int64_t count = 1;
};

Result<CountedLayer> read_layer(const ConfigNode& node, std::size_t strategies) {
  Reader read(node);
  CountedLayer layer{.costs = {.name = read.required<std::string>("name"),
                               .time = read.list<Time>("time", true),
                               .memory = read.list<Bytes>("memory", true),
                               .change = {}},
                     .count = read.optional("count", std::int64_t{1})};
  for (const ConfigNode* row : read.take_items("change", false)) {
    layer.costs.change.push_back(read.absorb(read_times(*row)));
  }
  const LayerCosts& costs = layer.costs;
  const std::string each = "one for each of the " + std::to_string(strategies) + " strategies";
  read.require(costs.time.size() == strategies, "time", each);
  read.require(costs.memory.size() == strategies, "memory", each);
  read.require(none_below_zero(costs.time), "time", "0 or more");
  read.require(none_below_zero(costs.memory), "memory", "0 or more");
  read.require(costs.change.empty() || costs.change.size() == strategies, "change",
               "a row, " + each);
  for (const std::vector<Time>& row : costs.change) {
    read.require(row.size() == strategies && none_below_zero(row), "change",
                 "rows of 0 or more, " + each);
  }
  read.require(layer.count >= 1 && layer.count <= kMostLayers, "count",
               "a number from 1 to " + std::to_string(kMostLayers));
  return read.finish(std::move(layer));
}

}  // namespace

Result<Chain> load_chain(const std::string& file) {
  return load_config(file).and_then([](const ConfigNode& node) {
    Reader read(node);
    Chain chain{
        .strategies = read.list<std::string>("strategies", true), .kinds = {}, .layers = {}};
    const auto repeat = read.optional("repeat", std::int64_t{1});
    const std::string few = "a number from 1 to " + std::to_string(kMostLayers);
    read.require(repeat >= 1 && repeat <= kMostLayers, "repeat", few);
    read.require(!chain.strategies.empty() && chain.strategies.size() <= kMostStrategies,
                 "strategies", "1 to " + std::to_string(kMostStrategies) + " names");
    std::vector<std::size_t> once;
    for (const ConfigNode* item : read.take_items("layers", true)) {
      CountedLayer layer = read.absorb(read_layer(*item, chain.strategies.size()));
      once.insert(once.end(),
                  static_cast<std::size_t>(std::clamp<std::int64_t>(layer.count, 1, kMostLayers)),
                  chain.kinds.size());
      chain.kinds.push_back(std::move(layer.costs));
    }
    const auto times = static_cast<std::size_t>(std::clamp<std::int64_t>(repeat, 1, kMostLayers));
    read.require(!once.empty() && once.size() * times <= static_cast<std::size_t>(kMostLayers),
                 "layers", few + " in all");
    for (std::size_t i = 0; read.ok() && i < times; ++i) {
      chain.layers.insert(chain.layers.end(), once.begin(), once.end());
    }
    return read.finish(std::move(chain));
  });
}

}  // namespace orrery::layerwise
