// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "planner/spmd/decoder.h"
#include "random_graph.h"
#include "simulate/simulate.h"

namespace orrery::spmd {
namespace {

/// The cheapest chains from one form, step by step until nothing improves.
std::map<MeshForm, Time> chains_from(const OperatorGraph& graph, int tensor, const MeshForm& form,
                                     const MeshPrices& prices) {
  const auto rank = static_cast<int>(graph.tensor(tensor).shape.size());
  std::map<MeshForm, Time> costs{{form, Time(0)}};
  for (bool better = true; better;) {
    better = false;
    for (const auto& [from, cost] : std::map<MeshForm, Time>(costs)) {
      for (const MeshStep& step : steps_from(from, rank, prices.mesh())) {
        const Time sum = cost + prices.convert(graph, tensor, from, step);
        const auto [entry, is_new] = costs.try_emplace(after(from, step, prices.mesh()), sum);
        better = better || is_new || sum < entry->second;
        entry->second = std::min(entry->second, sum);
      }
    }
  }
  return costs;
}

/// The least cost of every program there is: all signatures of every node, loads too, and
/// of every conversion every form that is there.
class Everything {
 public:
  Everything(const OperatorGraph& graph, const MeshPrices& prices)
      : graph_(graph), prices_(prices), forms_(graph.tensors.size()) {
    from(0, Time(0));
  }
  std::optional<Time> best;

 private:
  void from(int i, Time cost) {
    if (i == static_cast<int>(graph_.nodes.size())) {
      best = best ? std::min(*best, cost) : cost;
      return;
    }
    const int count = static_cast<int>(graph_.node(i).signatures.size());
    const int middles = prices_.mesh()[1] > 1 ? count : 1;
    for (int k = 0; k < count * middles * count; ++k) {
      const MeshSignature forms = signature_of(
          graph_, {{}, i, {k / middles / count, k / count % middles, k % count}}, prices_.mesh());
      if (prices_.allows(graph_, i, forms)) {
        need(i, forms, 0, cost);
      }
    }
  }

  void need(int i, const MeshSignature& forms_of_node, std::size_t k, Time cost) {
    const Node& node = graph_.node(i);
    if (k == node.inputs.size()) {
      return compute(i, forms_of_node, cost);
    }
    std::vector<MeshForm>& forms = forms_[static_cast<std::size_t>(node.inputs[k])];
    const MeshForm needed = input_form(forms_of_node, k);
    if (std::ranges::find(forms, needed) != forms.end()) {
      return need(i, forms_of_node, k + 1, cost);
    }
    for (const MeshForm& form : std::vector<MeshForm>(forms)) {
      const std::map<MeshForm, Time>& chains = chains_of(node.inputs[k], form);
      if (const auto chain = chains.find(needed); chain != chains.end()) {
        forms.push_back(needed);
        need(i, forms_of_node, k + 1, cost + chain->second);
        forms.pop_back();
      }
    }
  }

  const std::map<MeshForm, Time>& chains_of(int tensor, const MeshForm& form) {
    const auto [entry, is_new] = chains_.try_emplace({tensor, form});
    if (is_new) {
      entry->second = chains_from(graph_, tensor, form, prices_);
    }
    return entry->second;
  }

  void compute(int i, const MeshSignature& forms_of_node, Time cost) {
    cost += prices_.compute(graph_, i, forms_of_node);
    const Node& node = graph_.node(i);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const MeshForm form = output_form(forms_of_node, k);
      forms_[static_cast<std::size_t>(node.outputs[k])] = {form};
      cost += prices_.optimizer(graph_, node.outputs[k], form);
    }
    from(i + 1, cost);
  }

  const OperatorGraph& graph_;
  const MeshPrices& prices_;
  std::map<std::pair<int, MeshForm>, std::map<MeshForm, Time>> chains_;
  std::vector<std::vector<MeshForm>> forms_;
};

std::optional<Time> found(const OperatorGraph& graph, const MeshPrices& prices,
                          const MeshOptions& options = {}) {
  return replayed(graph, search_mesh(graph, prices, options), prices);
}

TEST(MeshSearch, ExhaustiveSearchFindsNothingCheaper) {
  int solved = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const OperatorGraph graph = random_graph(seed, 3 + static_cast<int>(seed % 3));
    const MeshPrices prices =
        mesh_prices("dgx-a100-80g", seed % 2 == 0 ? mesh_of(8, 2) : mesh_of(4, 4));
    const auto expected = Everything(graph, prices).best;
    EXPECT_EQ(found(graph, prices), expected) << seed;
    solved += expected ? 1 : 0;
  }
  EXPECT_GT(solved, 80);
}

TEST(MeshSearch, DominanceAndPeriodsLeaveNothingOut) {
  int fewer = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const OperatorGraph graph = random_graph(seed, 8 + static_cast<int>(seed % 5));
    const MeshPrices prices = mesh_prices("dgx-a100-80g", mesh_of(8, 2));
    EXPECT_EQ(found(graph, prices), found(graph, prices, {.dominance = false})) << seed;
    const auto with = search_mesh(graph, prices);
    const auto without = search_mesh(graph, prices, {.dominance = false});
    fewer += with && with->counts.states < without->counts.states ? 1 : 0;
  }
  EXPECT_GT(fewer, 20);
  const auto model = zoo::load_model("llama-3-8b").value();
  const MeshPrices prices = mesh_prices("dgx-h100", mesh_of(8, 2), 2);
  const OperatorGraph deep =
      decoder_graph(model,
                    {.devices = 16, .batch = 32, .sequence = 1024, .layers = 7, .mesh = true})
          .value();
  const MeshSolution skipped = search_mesh(deep, prices).value();
  EXPECT_GT(skipped.counts.skipped_periods, 0);
  EXPECT_EQ(skipped.total, found(deep, prices, {.skip_periods = false}));
  EXPECT_EQ(skipped.total, replay(deep, skipped.strategy, prices)->total);
}

TEST(MeshSearch, OnThreeAxesExhaustiveSearchFindsNothingCheaper) {
  int solved = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const OperatorGraph graph = random_graph(seed, 3 + static_cast<int>(seed % 2));
    const MeshPrices prices =
        mesh_prices("dgx-a100-80g", seed % 2 == 0 ? Mesh{4, 2, 2} : Mesh{2, 4, 2});
    const auto expected = Everything(graph, prices).best;
    EXPECT_EQ(found(graph, prices), expected) << seed;
    solved += expected ? 1 : 0;
  }
  EXPECT_GT(solved, 20);
}

TEST(MeshSearch, AnAxisOfOneDeviceChangesNothing) {
  // 8 x 2 with a third axis of 1 in front, between or behind: the same groups of ranks.
  const auto model = zoo::load_model("llama-3-8b").value();
  const OperatorGraph llama =
      decoder_graph(model,
                    {.devices = 16, .batch = 32, .sequence = 1024, .layers = 2, .mesh = true})
          .value();
  const auto same = [](const OperatorGraph& graph, std::int64_t element) {
    const auto two = found(graph, mesh_prices("dgx-h100", {8, 1, 2}, element));
    EXPECT_EQ(found(graph, mesh_prices("dgx-h100", {1, 8, 2}, element)), two);
    EXPECT_EQ(found(graph, mesh_prices("dgx-h100", {8, 2, 1}, element)), two);
    return two.has_value();
  };
  EXPECT_TRUE(same(llama, 2));
  int solved = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    solved += same(random_graph(seed, 8), 4) ? 1 : 0;
  }
  EXPECT_GT(solved, 10);
}

TEST(MeshSearch, DroppedStatesLeaveABoundBelowTheOptimum) {
  int inexact = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    const OperatorGraph graph = random_graph(seed, 8 + static_cast<int>(seed % 5));
    const MeshPrices prices = mesh_prices("dgx-a100-80g", mesh_of(8, 2));
    const auto exact = search_mesh(graph, prices);
    const auto narrow = search_mesh(graph, prices, {.most_states = 3});
    if (!exact || !narrow) {
      continue;
    }
    EXPECT_EQ(exact->bound, exact->total);
    EXPECT_LE(narrow->bound, exact->total) << seed;
    EXPECT_GE(narrow->total, exact->total) << seed;
    EXPECT_EQ(narrow->counts.dropped == 0 || narrow->bound <= narrow->total, true);
    inexact += narrow->bound < narrow->total ? 1 : 0;
  }
  EXPECT_GT(inexact, 5);
}

TEST(MeshSearch, TakesOnTheSimulatorWhatItSays) {
  // Every GPU has its own link to the switch and its own adapter: groups of an axis share nothing.
  for (const char* name : {"llama-3-8b", "mixtral-8x7b"}) {
    const auto model = zoo::load_model(name).value();
    const OperatorGraph graph =
        decoder_graph(model,
                      {.devices = 32, .batch = 32, .sequence = 1024, .layers = 2, .mesh = true})
            .value();
    machine::Machine machine = machine::load_machine("dgx-h100").value();
    const MeshPrices prices = MeshPrices::make(machine, mesh_of(8, 4), 2).value();
    const MeshSolution best = search_mesh(graph, prices).value();
    const auto workload = program_of(graph, best.strategy, prices);
    ASSERT_TRUE(workload) << workload.error().to_string();
    EXPECT_TRUE(graph::verify(*workload));
    EXPECT_EQ(simulate::simulate(*workload, prices.machine()).value().step_time, best.total)
        << name;
    const MeshPrices cube = MeshPrices::make(machine, {2, 4, 4}, 2).value();
    const MeshSolution third =
        search_mesh(graph, cube, {.most_states = 100, .with_bound = false}).value();
    const auto wider = program_of(graph, third.strategy, cube);
    ASSERT_TRUE(wider) << wider.error().to_string();
    EXPECT_TRUE(graph::verify(*wider));
    EXPECT_EQ(simulate::simulate(*wider, cube.machine()).value().step_time, third.total) << name;
  }
}

}  // namespace
}  // namespace orrery::spmd
