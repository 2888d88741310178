// SPDX-License-Identifier: Apache-2.0
// The search on a mesh against an integer linear program, solved by CBC (coinor-libcbc-dev).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "../random_graph.h"
#include "integer_program.h"
#include "planner/spmd/mesh_chains.h"
#include "planner/spmd/mesh_limits.h"

namespace orrery::spmd {
namespace {

#ifdef ORRERY_CBC

/// The least sum on a mesh: one-hot choices of all signatures of a node together, and of chains of
/// steps to any number of forms of a tensor, each from a form that it has.
///
///   x_vs   node v takes signatures s       sum over s of x_vs = 1
///   y_tfg  tensor t converts from f to g   y_tfg <= sum of x_vs that make f + sum over e of y_tef
///          an input in form g is there     x_vs that needs g <= the same sum for g
///   memory sum over all of held bytes <= limit
///
/// Conversions of a set S of forms may feed each other in a circle. Where a solution has one, it
/// is solved again with a row for each y_tfg within S: y_tfg <= sum of x_vs that make a form of S +
/// sum of y_tef that lead into S.
class MeshProgram {
 public:
  MeshProgram(const OperatorGraph& graph, const MeshPrices& prices)
      : graph_(graph), prices_(prices) {
    for (int v = 0; v < static_cast<int>(graph_.nodes.size()); ++v) {
      add_node(v);
    }
    for (int t = 0; t < static_cast<int>(graph_.tensors.size()); ++t) {
      add_conversions(t);
    }
    add_uses();
  }

  /// The least time; nothing: there is no program.
  std::optional<double> solve(std::optional<Bytes> limit = {}) {
    for (;;) {
      const auto best = program_.solve(limit);
      if (!best || !cut_circles()) {
        return best;
      }
    }
  }

 private:
  using Row = IntegerProgram::Row;
  using Place = std::pair<int, int>;  ///< tensor, code

  void add_node(int v) {
    const Node& node = graph_.node(v);
    const int count = static_cast<int>(node.signatures.size());
    const int middles = prices_.mesh()[1] > 1 ? count : 1;
    Row one;
    for (int s = 0; s < count * middles * count; ++s) {
      const MeshSignature forms = signature_of(
          graph_, {{}, v, {s % count, s / count % middles, s / count / middles}}, prices_.mesh());
      if (!prices_.allows(graph_, v, forms)) {
        continue;
      }
      Time cost = prices_.compute(graph_, v, forms);
      Bytes memory{0};
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        cost += prices_.optimizer(graph_, node.outputs[k], output_form(forms, k));
        memory += prices_.held(graph_, node.outputs[k], output_form(forms, k), false).total();
      }
      const int column = program_.add_binary(cost, memory);
      one.emplace_back(column, 1);
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        makers_[{node.outputs[k], output_form(forms, k).code()}].push_back(column);
      }
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        takers_[{v, node.inputs[k]}][input_form(forms, k).code()].push_back(column);
      }
    }
    program_.add_row(one, 'E', 1);
  }

  void add_conversions(int t) {
    const MeshChains chains(graph_, t, prices_, {});
    std::vector<int> codes;  // in which it can be at all
    for (int code = 0; code < MeshForm::kCodes; ++code) {
      if (makers_.contains({t, code}) || wanted(t, code)) {
        codes.push_back(code);
      }
    }
    std::map<int, std::vector<int>> from_there;
    for (const int to : codes) {
      for (const int from : codes) {
        if (from == to || !wanted(t, to) || chains.cost(from, to) >= MeshChains::kNever) {
          continue;
        }
        const int column = program_.add_binary(
            chains.cost(from, to), prices_.held(graph_, t, MeshForm::of_code(to), true).total());
        converters_[{t, to}].push_back(column);
        from_there[from].push_back(column);
        steps_[t].push_back({from, to, column});
      }
    }
    for (const auto& [from, columns] : from_there) {
      for (const int column : columns) {
        Row row{{column, 1}};
        add_those_there({t, from}, row);
        program_.add_row(row, 'L', 0);
      }
    }
  }

  /// Adds rows against circles of the last solution; returns whether it had any.
  bool cut_circles() {
    bool any = false;
    for (const auto& [tensor, steps] : steps_) {
      std::set<int> circle;  // forms that are converted to, but come from nothing
      for (const auto& [from, to, column] : steps) {
        if (program_.is_chosen(column)) {
          circle.insert(to);
        }
      }
      for (bool fewer = true; fewer;) {
        fewer = false;
        for (const auto& [from, to, column] : steps) {
          const bool comes = program_.is_chosen(column) && !circle.contains(from) &&
                             (is_made({tensor, from}) || is_converted({tensor, from}));
          fewer = (comes && circle.erase(to) > 0) || fewer;
        }
        fewer = std::erase_if(circle,
                              [&, t = tensor](int code) {
                                return is_made({t, code});
                              }) > 0 ||
                fewer;
      }
      Row into;
      for (const auto& [from, to, column] : steps) {
        if (circle.contains(to) && !circle.contains(from)) {
          into.emplace_back(column, -1);
        }
      }
      for (const int code : circle) {
        for (const int maker : makers_[{tensor, code}]) {
          into.emplace_back(maker, -1);
        }
      }
      for (const auto& [from, to, column] : steps) {
        if (circle.contains(to) && circle.contains(from)) {
          Row row = into;
          row.emplace_back(column, 1);
          program_.add_row(row, 'L', 0);
        }
      }
      any = any || !circle.empty();
    }
    return any;
  }
  bool is_made(const Place& place) {
    return std::ranges::any_of(makers_[place], [&](int x) { return program_.is_chosen(x); });
  }
  bool is_converted(const Place& place) {
    return std::ranges::any_of(converters_[place], [&](int y) { return program_.is_chosen(y); });
  }

  bool wanted(int tensor, int code) const {
    return std::ranges::any_of(takers_, [&](const auto& use) {
      return use.first.second == tensor && use.second.contains(code);
    });
  }
  void add_those_there(const Place& place, Row& row) {
    for (const int column : makers_[place]) {
      row.emplace_back(column, -1);
    }
    for (const int column : converters_[place]) {
      row.emplace_back(column, -1);
    }
  }

  void add_uses() {
    for (const auto& [use, forms] : takers_) {
      for (const auto& [code, takers] : forms) {
        Row row;
        for (const int taker : takers) {
          row.emplace_back(taker, 1);
        }
        add_those_there({use.second, code}, row);
        program_.add_row(row, 'L', 0);
      }
    }
  }

  const OperatorGraph& graph_;
  const MeshPrices& prices_;
  IntegerProgram program_;
  std::map<Place, std::vector<int>> makers_;
  std::map<Place, std::vector<int>> converters_;
  struct Step {
    int from = 0;
    int to = 0;
    int column = 0;
  };
  std::map<int, std::vector<Step>> steps_;                                 ///< by tensor
  std::map<std::pair<int, int>, std::map<int, std::vector<int>>> takers_;  ///< node, tensor; form
};

constexpr double kClose = 1e-6;

TEST(MeshProgram, HasTheOptimumOnMeshesOfTwoAndThreeAxes) {
  int solved = 0;
  for (unsigned seed = 0; seed < 18; ++seed) {
    const OperatorGraph graph = random_graph(seed, 3 + static_cast<int>(seed % 2));
    const MeshPrices prices = mesh_prices("dgx-a100-80g", seed % 3 == 0   ? mesh_of(8, 2)
                                                          : seed % 3 == 1 ? Mesh{2, 4, 2}
                                                                          : Mesh{4, 2, 2});
    const auto found = search_mesh(graph, prices);
    const auto best = MeshProgram(graph, prices).solve();
    ASSERT_EQ(found.has_value(), best.has_value()) << seed;
    if (best) {
      EXPECT_NEAR(to_seconds(found->total), *best, kClose * *best + 1e-9) << seed;
      ++solved;
    }
  }
  EXPECT_GT(solved, 8);
}

TEST(MeshProgram, LiesBetweenBoundAndAnswerOfALimitOnAMesh) {
  int limited = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    const OperatorGraph graph = random_graph(seed, 3 + static_cast<int>(seed % 2));
    const MeshPrices prices = mesh_prices("dgx-a100-80g", mesh_of(4, 4));
    const auto free = search_mesh_within(graph, prices, Bytes::max());
    if (!free) {
      continue;
    }
    const Bytes limit = free->memory * 0.8;
    const auto best = MeshProgram(graph, prices).solve(limit);
    const auto found = search_mesh_within(graph, prices, limit);
    ASSERT_EQ(found.has_value(), best.has_value()) << seed;
    if (best) {
      EXPECT_LE(to_seconds(found->bound), *best * (1 + kClose) + 1e-9) << seed;
      EXPECT_GE(to_seconds(found->time), *best * (1 - kClose) - 1e-9) << seed;
      ++limited;
    }
  }
  EXPECT_GT(limited, 4);
}

#else

TEST(MeshProgram, IsSkippedWithoutCbc) {
  GTEST_SKIP() << "built without CBC: apt-get install coinor-libcbc-dev";
}

#endif

}  // namespace
}  // namespace orrery::spmd
