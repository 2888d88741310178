// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "planner/spmd/mesh_graph.h"

namespace orrery::spmd {
namespace {

constexpr std::size_t kMostReached = 8'000'000;  // states at a cut: 1 GB

/// A state and the cheapest way to it.
struct MeshLabel {
  MeshState state{};
  Time cost{0};
  int parent = -1;  ///< at the cut before
  int choice = -1;  ///< of the node between
};

struct MeshStateHash {
  std::size_t operator()(const MeshState& state) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t forms : state) {
      hash = (hash ^ forms) * 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio
      hash ^= hash >> 32;
    }
    return hash;
  }
};

class MeshSearch {
 public:
  MeshSearch(const OperatorGraph& graph, const MeshGraph& compiled, const MeshOptions& options)
      : graph_(graph), compiled_(compiled), options_(options) {}

  Result<MeshSolution> run() {
    const int nodes = static_cast<int>(graph_.nodes.size());
    cuts_.resize(static_cast<std::size_t>(nodes) + 1);
    last_ = nodes;
    at(0) = {MeshLabel{}};
    for (int cut = 0; cut < last_; ++cut) {
      if (options_.skip_periods && skipped_ == 0) {
        skip_repeats(cut);
      }
      if (!expand(cut)) {
        return fail(fmt::format("more than {} states after node {}", kMostReached, node_at(cut)));
      }
    }
    if (at(last_).empty()) {
      return fail("no program obeys the rules: every way ends in forms that nothing converts");
    }
    const auto best = std::ranges::min_element(at(last_), {}, &MeshLabel::cost);
    MeshSolution solution{.total = best->cost + skipped_ * step_, .counts = counts_};
    solution.counts.skipped_periods = skipped_;
    solution.strategy = write(trace_back(static_cast<int>(best - at(last_).begin())));
    return solution;
  }

 private:
  std::vector<MeshLabel>& at(int cut) { return cuts_[static_cast<std::size_t>(cut)]; }
  int period() const { return compiled_.repeats.period; }
  /// Returns the node after a cut; cuts count without the periods skipped.
  int node_at(int cut) const { return cut >= seam_ ? cut + skipped_ * period() : cut; }

  /// Adds the forms that a choice needs; their cost, or nothing where a form is out of reach.
  std::optional<Time> prepare(const MeshNode& node, const MeshChoice& choice,
                              const std::vector<int>& tensors, MeshState& state) const {
    Time cost(0);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      std::uint64_t& forms = state[static_cast<std::size_t>(node.inputs[k])];
      if (node.once[k] != 0) {
        cost += forms == std::uint64_t{1} << choice.needs[k] ? Time(0) : MeshChains::kNever;
        continue;
      }
      const MeshChains& chains = compiled_.of(tensors[k]);
      cost += chains.cost(chains.nearest(forms, choice.needs[k]), choice.needs[k]);
      forms |= std::uint64_t{1} << choice.needs[k];
    }
    return cost < MeshChains::kNever ? std::optional(cost) : std::nullopt;
  }

  static void leave(const MeshNode& node, const MeshChoice& choice, MeshState& state) {
    for (const int slot : node.dead) {
      state[static_cast<std::size_t>(slot)] = 0;
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      state[static_cast<std::size_t>(node.outputs[k])] = std::uint64_t{1} << choice.outputs[k];
    }
  }

  static bool may_be_used(const MeshNode& node, const MeshState& state) {
    return std::ranges::all_of(node.joints, [&](const MeshJoint& joint) {
      std::uint64_t codes = 0;
      for (const int slot : joint.slots) {
        codes = codes * MeshForm::kCodes +
                static_cast<std::uint64_t>(std::countr_zero(state[static_cast<std::size_t>(slot)]));
      }
      return std::ranges::binary_search(joint.codes, codes);
    });
  }

  bool expand(int cut) {
    const int i = node_at(cut);
    const MeshNode& node = compiled_.node(i);
    const std::vector<int>& tensors = compiled_.slot_tensors[static_cast<std::size_t>(i)];
    std::vector<MeshLabel> reached;
    std::unordered_map<MeshState, std::size_t, MeshStateHash> known;
    for (int parent = 0; parent < static_cast<int>(at(cut).size()); ++parent) {
      const MeshLabel& from = at(cut)[static_cast<std::size_t>(parent)];
      for (int c = 0; c < static_cast<int>(node.choices.size()); ++c) {
        const MeshChoice& choice = node.choices[static_cast<std::size_t>(c)];
        MeshLabel next{from.state, from.cost + choice.cost, parent, c};
        const std::optional<Time> cost = prepare(node, choice, tensors, next.state);
        if (!cost) {
          continue;
        }
        next.cost += *cost;
        leave(node, choice, next.state);
        if (!may_be_used(node, next.state)) {
          continue;
        }
        const auto [entry, is_new] = known.try_emplace(next.state, reached.size());
        if (is_new) {
          reached.push_back(next);
        } else if (next.cost < reached[entry->second].cost) {
          reached[entry->second] = next;
        }
      }
      if (reached.size() > kMostReached) {
        return false;
      }
    }
    counts_.reached += static_cast<std::int64_t>(reached.size());
    at(cut + 1) = keep(node, std::move(reached));
    const auto kept = static_cast<std::int64_t>(at(cut + 1).size());
    counts_.states += kept;
    counts_.most_states = std::max(counts_.most_states, kept);
    return true;
  }

  /// Keeps the labels that no other dominates, the cheapest first.
  std::vector<MeshLabel> keep(const MeshNode& node, std::vector<MeshLabel> reached) const {
    std::ranges::stable_sort(reached, {}, &MeshLabel::cost);
    if (!options_.dominance) {
      return reached;
    }
    std::vector<MeshLabel> kept;
    std::unordered_map<MeshState, std::vector<std::size_t>, MeshStateHash> rivals;
    for (const MeshLabel& label : reached) {
      std::vector<std::size_t>& own = rivals[unconverted(node, label.state)];
      if (std::ranges::none_of(
              own, [&](std::size_t other) { return dominates(node, kept[other], label); })) {
        own.push_back(kept.size());
        kept.push_back(label);
      }
    }
    return kept;
  }

  /// Forms that nothing converts: states of which they differ do not dominate each other.
  static MeshState unconverted(const MeshNode& node, MeshState state) {
    for (std::size_t slot = 0; slot < state.size(); ++slot) {
      state[slot] = node.chains[slot] < 0 ? state[slot] : 0;
    }
    return state;
  }

  /// Requires that `other` is no cheaper.
  bool dominates(const MeshNode& node, const MeshLabel& one, const MeshLabel& other) const {
    Time left = other.cost - one.cost;
    for (std::size_t slot = 0; slot < one.state.size(); ++slot) {
      if ((other.state[slot] & ~one.state[slot]) == 0) {
        continue;
      }
      const MeshChains& chains = compiled_.chains[static_cast<std::size_t>(node.chains[slot])];
      left -= chains.to_have(one.state[slot], other.state[slot], left);
      if (left < Time(0)) {
        return false;
      }
    }
    return true;
  }

  /// Skips as many periods as can be, if the cut has the states of a period before.
  void skip_repeats(int cut) {
    const Repeats& repeats = compiled_.repeats;
    if (period() == 0 || cut - period() <= repeats.first || at(cut).empty()) {
      return;
    }
    const std::vector<MeshLabel>& before = at(cut - period());
    const int further = (repeats.last + period() - cut) / period();
    if (further < 1 || before.size() != at(cut).size()) {
      return;
    }
    const Time step = at(cut)[0].cost - before[0].cost;
    const bool same =
        std::ranges::equal(at(cut), before, [&](const MeshLabel& now, const MeshLabel& then) {
          return now.state == then.state && now.cost - then.cost == step;
        });
    if (same) {
      step_ = step;
      skipped_ = further;
      seam_ = cut;
      last_ -= further * period();
    }
  }

  /// Returns the choice of every node. Skipped periods are put back at the seam, where a state is
  /// also that of a period before.
  std::vector<int> trace_back(int label) {
    std::vector<int> choices;
    int left = skipped_;
    for (int cut = last_; cut > 0; --cut) {
      if (left > 0 && cut == seam_ - period()) {
        cut = seam_;
        --left;
      }
      const MeshLabel& now = at(cut)[static_cast<std::size_t>(label)];
      choices.push_back(now.choice);
      label = now.parent;
    }
    std::ranges::reverse(choices);
    return choices;
  }

  /// Returns the program of these choices: conversions follow from them.
  MeshStrategy write(const std::vector<int>& choices) {
    MeshStrategy strategy;
    MeshState state{};
    std::map<int, int> loaded;   // code by tensor
    std::map<int, int> made_as;  // of all others
    for (int i = 0; i < static_cast<int>(choices.size()); ++i) {
      const MeshNode& node = compiled_.node(i);
      const MeshChoice& choice =
          node.choices[static_cast<std::size_t>(choices[static_cast<std::size_t>(i)])];
      MeshComputation made{{}, i, choice.signatures};
      const std::vector<int>& tensors = compiled_.slot_tensors[static_cast<std::size_t>(i)];
      for (std::size_t k = 0; k < tensors.size(); ++k) {
        const std::uint64_t forms = state[static_cast<std::size_t>(node.inputs[k])];
        const int from = node.once[k] != 0
                             ? made_as.at(tensors[k])
                             : compiled_.of(tensors[k]).nearest(forms, choice.needs[k]);
        convert(tensors[k], from, choice.needs[k], made);
      }
      note_outputs(i, choice, made_as);
      prepare(node, choice, tensors, state);
      leave(node, choice, state);
      convert_loads(i, choice, loaded, made);
      strategy.computations.push_back(std::move(made));
    }
    for (const auto& [tensor, code] : loaded) {
      decide_load(tensor, code, strategy);
    }
    return strategy;
  }

  void note_outputs(int i, const MeshChoice& choice, std::map<int, int>& made_as) const {
    std::size_t place = 0;
    for (const int tensor : graph_.node(i).outputs) {
      if (compiled_.is_used(tensor) && place < choice.made.size()) {
        made_as[tensor] = choice.made[place++];
      }
    }
  }

  void convert(int tensor, int from, int to, MeshComputation& made) const {
    if (from != to) {
      made.conversions.push_back(
          {tensor, MeshForm::of_code(from), compiled_.of(tensor).steps(from, to)});
    }
  }

  void convert_loads(int i, const MeshChoice& choice, std::map<int, int>& loaded,
                     MeshComputation& made) const {
    const MeshSignature pair = signature_of(graph_, made);
    const std::vector<int>& loads = compiled_.load_tensors[static_cast<std::size_t>(i)];
    for (std::size_t k = 0; k < loads.size(); ++k) {
      const std::vector<int>& inputs = graph_.node(i).inputs;
      const auto place =
          static_cast<std::size_t>(std::ranges::find(inputs, loads[k]) - inputs.begin());
      const MeshForm need(pair[0].inputs[place], pair[1].inputs[place]);
      loaded[loads[k]] = choice.loads[k];
      convert(loads[k], choice.loads[k], need.code(), made);
    }
  }

  void decide_load(int tensor, int code, MeshStrategy& strategy) const {
    const int load = graph_.tensor(tensor).producer;
    const std::vector<Signature>& all = graph_.node(load).signatures;
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      const auto made = std::ranges::find_if(all, [&](const Signature& signature) {
        return signature.outputs[0] == MeshForm::of_code(code)[axis];
      });
      strategy.computations[static_cast<std::size_t>(load)].signatures[axis] =
          static_cast<int>(made - all.begin());
    }
  }

  const OperatorGraph& graph_;
  const MeshGraph& compiled_;
  const MeshOptions& options_;
  std::vector<std::vector<MeshLabel>> cuts_;  ///< without the periods skipped
  int last_ = 0;                              ///< cut
  int seam_ = 0;                              ///< the cut before which periods are skipped
  int skipped_ = 0;
  Time step_{0};  ///< of one period
  MeshCounts counts_;
};

}  // namespace

Result<MeshSolution> search_mesh(const OperatorGraph& graph, const MeshPrices& prices,
                                 const MeshOptions& options) {
  const auto compiled = compile_mesh(graph, prices, options.allowed);
  if (!compiled) {
    return fail(compiled.error());
  }
  return MeshSearch(graph, *compiled, options).run();
}

}  // namespace orrery::spmd
