// SPDX-License-Identifier: Apache-2.0
#include "neural/cell.h"

#include <algorithm>
#include <cassert>
#include <random>
#include <set>

namespace orrery::neural {
namespace {

constexpr std::array<std::array<int, 2>, kEdges> kEnds{
    {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}}};
constexpr int kNodes = 4;
constexpr std::uint64_t kOperations = kNames<EdgeOperation>.size();

void add(NetworkBuilder& builder, Layer layer) {
  [[maybe_unused]] const std::string wrong = builder.add(std::move(layer));
  assert(wrong.empty() && "a cell's layers fit one another");
}

void add_convolution(NetworkBuilder& builder, const std::string& name, int input,
                     const Layer& sizes) {
  add(builder, {.name = name + ".relu", .kind = LayerKind::relu, .inputs = {input}});
  Layer convolution = sizes;
  convolution.name = name + ".convolution";
  convolution.kind = LayerKind::convolution;
  add(builder, std::move(convolution));
  add(builder, {.name = name + ".norm", .kind = LayerKind::batch_norm});
}

/// Returns the layer that the edge gives, kNetworkInput where nothing had to be added but `input`.
int add_edge(NetworkBuilder& builder, const std::string& name, int input, std::int64_t channels,
             EdgeOperation operation) {
  switch (operation) {
    case EdgeOperation::none:
    case EdgeOperation::skip:
      return input;
    case EdgeOperation::conv1x1:
      add_convolution(builder, name, input, {.width = channels, .kernel = 1});
      break;
    case EdgeOperation::conv3x3:
      add_convolution(builder, name, input, {.width = channels, .kernel = 3});
      break;
    case EdgeOperation::average_pool:
      add(builder, {.name = name, .kind = LayerKind::average_pool, .inputs = {input}, .kernel = 3});
      break;
  }
  return builder.last();
}

}  // namespace

void add_cell(NetworkBuilder& builder, const std::string& name, std::int64_t channels,
              const Cell& cell) {
  std::array<int, kNodes> nodes{builder.last()};
  for (int node = 1; node < kNodes; ++node) {
    std::vector<int> inputs;
    for (std::size_t edge = 0; edge < kEdges; ++edge) {
      if (kEnds[edge][1] != node || cell[edge] == EdgeOperation::none) {
        continue;
      }
      const int from = kEnds[edge][0];
      inputs.push_back(add_edge(builder,
                                name + "." + std::to_string(from) + "-" + std::to_string(node),
                                nodes[static_cast<std::size_t>(from)], channels, cell[edge]));
    }
    const bool cut = inputs.empty();
    if (cut) {
      inputs = {nodes[0]};
    }
    add(builder, {.name = name + "." + std::to_string(node),
                  .kind = cut ? LayerKind::zero : LayerKind::add,
                  .inputs = std::move(inputs)});
    nodes[static_cast<std::size_t>(node)] = builder.last();
  }
}

Network network_of(const CellSpace& space, const std::string& name, const Cell& cell) {
  NetworkBuilder builder(space.input, space.classes);
  builder.network().name = name;
  add(builder, {.name = "stem",
                .kind = LayerKind::convolution,
                .inputs = {kNetworkInput},
                .width = space.stages.front(),
                .kernel = 3});
  add(builder, {.name = "stem.norm", .kind = LayerKind::batch_norm});
  for (std::size_t i = 0; i < space.stages.size(); ++i) {
    const std::string stage = "stage" + std::to_string(i);
    if (i > 0) {
      add_convolution(builder, stage + ".reduce", builder.last(),
                      {.width = space.stages[i], .kernel = 3, .stride = 2});
    }
    add_cell(builder, stage, space.stages[i], cell);
  }
  add(builder, {.name = "head.relu", .kind = LayerKind::relu});
  add(builder, {.name = "head.pool", .kind = LayerKind::global_pool});
  add(builder, {.name = "head", .kind = LayerKind::linear, .width = space.classes, .bias = true});
  return std::move(builder.network());
}

std::vector<Cell> draw_cells(const CellSpace& space) {
  std::mt19937_64 random(space.seed);
  std::set<Cell> drawn;
  std::vector<Cell> cells;
  while (static_cast<std::int64_t>(cells.size()) < space.count) {
    Cell cell{};
    for (EdgeOperation& operation : cell) {
      operation = kNames<EdgeOperation>[random() % kOperations].value;
    }
    if (drawn.insert(cell).second) {
      cells.push_back(cell);
    }
  }
  return cells;
}

}  // namespace orrery::neural
