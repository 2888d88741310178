// SPDX-License-Identifier: Apache-2.0
// The search against an integer linear program, solved by CBC (coinor-libcbc-dev), where nothing
// overlaps and the last stage is flushed: then a program's time is a sum over nodes and
// conversions, whatever its stages are, and stages exist for every choice (a stage may begin before
// each node that converts; without conversions stages of 11 nodes follow one another).
//
//   x_vs  node v takes signature s          sum over s of x_vs = 1
//   y_tfg tensor t is converted from f to g  sum over f, g of y_tfg <= 1
//         only from what it is              sum over g of y_tfg <= sum of x_vs that make t in f
//         an input in form g is there       sum of x_vs that need g <= sum of x_us that make g
//                                                                      + sum over f of y_tfg
//   min   sum of 6 compute(v, s) x_vs + sum of the four times of conversions y_tfg
//   memory  sum over all of held bytes <= limit
//
// 6: forward once and backward twice, of two half-batches. The one-hot form is that of Alpa (Zheng
// et al., OSDI'22, section 4.1), without products of variables since conversions belong to tensors.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "../random_graph.h"
#include "integer_program.h"
#include "planner/spmd/memory.h"

namespace orrery::spmd {
namespace {

/// The published cost, nothing hidden, every stage's backward charged.
class AdditivePrices : public PublishedPrices {
 public:
  using PublishedPrices::PublishedPrices;
  StageRule rule() const override { return {Overlap::none, 3}; }
};

#ifdef ORRERY_CBC

class AxisProgram {
 public:
  AxisProgram(const OperatorGraph& graph, const Prices& prices, std::int64_t devices)
      : graph_(graph), prices_(prices), devices_(devices) {
    add_nodes();
    add_conversions();
    add_uses();
  }

  /// The least time; nothing: there is no program. Once only.
  std::optional<double> solve(std::optional<Bytes> limit = {}) { return program_.solve(limit); }

 private:
  using Row = IntegerProgram::Row;
  using FormOf = std::pair<int, int>;  ///< tensor, code

  void add_nodes() {
    for (int v = 0; v < static_cast<int>(graph_.nodes.size()); ++v) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(v)];
      Row one;
      for (const Signature& signature : node.signatures) {
        Bytes memory{0};
        for (std::size_t k = 0; k < node.outputs.size(); ++k) {
          memory += held(graph_, node.outputs[k], signature.outputs[k], false, devices_);
        }
        const int column = program_.add_binary(6 * prices_.compute(graph_, v, signature), memory);
        one.emplace_back(column, 1);
        for (std::size_t k = 0; k < node.outputs.size(); ++k) {
          made_[{node.outputs[k], signature.outputs[k].code()}].push_back(column);
        }
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
          needed_[{v, node.inputs[k]}][signature.inputs[k].code()].push_back(column);
        }
      }
      program_.add_row(one, 'E', 1);
    }
  }

  void add_conversions() {
    constexpr int kForms = 16;
    std::map<int, Row> once;  // by tensor
    for (const auto& [form, makers] : made_) {
      const auto [tensor, from] = form;
      Row row;
      for (const int maker : makers) {
        row.emplace_back(maker, -1);
      }
      for (int to = 0; to < kForms; ++to) {
        if (to == from || !wanted(tensor, to) ||
            !conversion(Form::of_code(from), Form::of_code(to))) {
          continue;
        }
        const StageWork work =
            prices_.convert(graph_, tensor, Form::of_code(from), Form::of_code(to));
        const int column =
            program_.add_binary(work.forward_1 + work.forward_2 + work.backward_1 + work.backward_2,
                                held(graph_, tensor, Form::of_code(to), true, devices_));
        converted_[{tensor, to}].push_back(column);
        once[tensor].emplace_back(column, 1);
        row.emplace_back(column, 1);
      }
      program_.add_row(row, 'L', 0);
    }
    for (const auto& [tensor, row] : once) {
      program_.add_row(row, 'L', 1);
    }
  }

  bool wanted(int tensor, int code) const {
    for (const auto& [use, forms] : needed_) {
      if (use.second == tensor && forms.contains(code)) {
        return true;
      }
    }
    return false;
  }

  void add_uses() {
    for (const auto& [use, forms] : needed_) {
      for (const auto& [code, takers] : forms) {
        Row row;
        for (const int taker : takers) {
          row.emplace_back(taker, 1);
        }
        for (const int maker : made_[{use.second, code}]) {
          row.emplace_back(maker, -1);
        }
        for (const int converter : converted_[{use.second, code}]) {
          row.emplace_back(converter, -1);
        }
        program_.add_row(row, 'L', 0);
      }
    }
  }

  const OperatorGraph& graph_;
  const Prices& prices_;
  std::int64_t devices_;
  IntegerProgram program_;
  std::map<FormOf, std::vector<int>> made_;
  std::map<FormOf, std::vector<int>> converted_;
  std::map<std::pair<int, int>, std::map<int, std::vector<int>>> needed_;  ///< node, tensor; form
};

constexpr double kNear = 1e-6;

TEST(IntegerLinearProgram, HasTheSearchsOptimumOnRandomGraphs) {
  int solved = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    const OperatorGraph graph = random_graph(seed, 4 + static_cast<int>(seed % 24));
    const AdditivePrices prices(cost_of(seed, Overlap::none));
    const auto found = search(graph, prices);
    const auto best = AxisProgram(graph, prices, kDevices).solve();
    ASSERT_EQ(found.has_value(), best.has_value()) << seed;
    if (best) {
      EXPECT_NEAR(to_seconds(found->total), *best, kNear * *best + 1e-9) << seed;
      ++solved;
    }
  }
  EXPECT_GT(solved, 30);
}

TEST(IntegerLinearProgram, HasTheSearchsOptimumOnWholeModels) {
  for (const char* name : {"Rmoe", "Vmoe", "Rswitch", "Vswitch"}) {
    const OperatorGraph graph = model(name, 8, 2);
    const AdditivePrices prices(setting(8, "2m_10g", Overlap::none));
    const auto found = search(graph, prices);
    const auto best = AxisProgram(graph, prices, 8).solve();
    ASSERT_TRUE(found && best) << name;
    EXPECT_NEAR(to_seconds(found->total), *best, kNear * *best) << name;
  }
}

TEST(IntegerLinearProgram, LiesBetweenBoundAndAnswerUnderALimitOfMemory) {
  int limited = 0;
  for (unsigned seed = 0; seed < 240; ++seed) {
    const OperatorGraph graph = random_graph(seed, 6 + static_cast<int>(seed % 12));
    const AdditivePrices prices(cost_of(seed, Overlap::none));
    const auto free = search(graph, prices);
    if (!free) {
      continue;
    }
    const Bytes limit = memory_of(graph, free->strategy, kDevices) * 0.8;
    const auto best = AxisProgram(graph, prices, kDevices).solve(limit);
    const auto found = search_within(graph, prices, kDevices, limit);
    ASSERT_EQ(found.has_value(), best.has_value()) << seed;
    if (best) {
      EXPECT_LE(to_seconds(found->bound), *best * (1 + kNear) + 1e-9) << seed;
      EXPECT_GE(to_seconds(found->solution.total), *best * (1 - kNear) - 1e-9) << seed;
      ++limited;
    }
  }
  EXPECT_GT(limited, 15);
}

TEST(IntegerLinearProgram, NothingIsFasterWithinTheMemoryOfACorner) {
  int corners = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const OperatorGraph graph = random_graph(seed, 6 + static_cast<int>(seed % 12));
    const AdditivePrices prices(cost_of(seed, Overlap::none));
    const auto frontier = memory_frontier(graph, prices, kDevices);
    if (!frontier || frontier->size() < 2) {
      continue;
    }
    for (const MemoryPoint& corner : *frontier) {
      const auto best = AxisProgram(graph, prices, kDevices).solve(corner.memory);
      ASSERT_TRUE(best) << seed;
      EXPECT_NEAR(to_seconds(corner.solution.total), *best, kNear * *best + 1e-9) << seed;
      ++corners;
    }
  }
  EXPECT_GT(corners, 40);
}

#else

TEST(IntegerLinearProgram, IsSkippedWithoutCbc) {
  GTEST_SKIP() << "built without CBC: apt-get install coinor-libcbc-dev";
}

#endif

}  // namespace
}  // namespace orrery::spmd
