// SPDX-License-Identifier: Apache-2.0
/// Small graphs of operators with random shapes, forms and flops for the tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "planner/spmd/mesh_prices.h"
#include "planner/spmd/operator_graph.h"
#include "published.h"

namespace orrery::spmd {

inline constexpr std::int64_t kDevices = 4;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  /// Draws a number from 0 to count - 1.
  int below(int count) { return static_cast<int>(engine_() % static_cast<unsigned>(count)); }
  bool one_in(int count) { return below(count) == 0; }

 private:
  std::mt19937 engine_;
};

inline std::vector<Form> random_forms(Random& random, std::size_t count, bool load) {
  std::vector<Form> forms;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr std::array kForms{Form::full(), Form::gather(0), Form::gather(1), Form::reduce()};
    forms.push_back(load && random.one_in(2) ? Form::replicate()
                                             : kForms[static_cast<std::size_t>(random.below(4))]);
  }
  return forms;
}

/// A load now and then, else an operator of one to three tensors, mostly recent ones, that gives
/// one or two; one to three signatures each, one of them often all full.
inline OperatorGraph random_graph(unsigned seed, int nodes) {
  Random random(seed);
  OperatorGraph graph;
  for (int i = 0; i < nodes; ++i) {
    Node node{.name = "n" + std::to_string(i)};
    const int tensors = static_cast<int>(graph.tensors.size());
    const bool load = tensors == 0 || random.one_in(3);
    node.kind = load ? NodeKind::parameter : NodeKind::op;
    node.flops = Flops(load && random.one_in(4) ? 0 : load ? 0 : 1e9 * random.below(8));
    for (int k = load ? 0 : 1 + random.below(3); k > 0; --k) {
      const int tensor = std::max(0, tensors - 1 - random.below(4));
      if (std::count(node.inputs.begin(), node.inputs.end(), tensor) == 0) {
        node.inputs.push_back(tensor);
      }
    }
    for (int k = load ? 1 : 1 + random.below(2); k > 0; --k) {
      node.outputs.push_back(static_cast<int>(graph.tensors.size()));
      const int exponent = random.below(7);
      graph.tensors.push_back({i, {64, 64}, Bytes(std::int64_t{10'000} << (2 * exponent))});
    }
    for (int k = 1 + random.below(3); k > 0; --k) {
      node.signatures.push_back({random_forms(random, node.inputs.size(), false),
                                 random_forms(random, node.outputs.size(), load)});
    }
    if (random.one_in(2)) {
      node.signatures.push_back({std::vector<Form>(node.inputs.size(), Form::full()),
                                 std::vector<Form>(node.outputs.size(), Form::full())});
    }
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

inline PublishedPrices::Setting cost_of(unsigned seed, Overlap overlap) {
  constexpr std::array kProfiles{"64c8m", "4c4m", "nvl4", "2m_10g"};
  return setting(kDevices, kProfiles.at(seed % kProfiles.size()), overlap);
}

inline MeshPrices mesh_prices(const std::string& machine, const Mesh& mesh,
                              std::int64_t element = 4) {
  return MeshPrices::make(machine::load_machine(machine).value(), mesh, element).value();
}

/// Time of what a search has found, which replay() finds, too; none: it has found nothing.
template <class Solution, class Prices>
std::optional<Time> replayed(const OperatorGraph& graph, const Result<Solution>& solution,
                             const Prices& prices) {
  if (!solution) {
    return std::nullopt;
  }
  const auto cost = replay(graph, solution->strategy, prices);
  EXPECT_TRUE(cost) << cost.error().to_string();
  EXPECT_EQ(cost->total, solution->total);
  return solution->total;
}

}  // namespace orrery::spmd
