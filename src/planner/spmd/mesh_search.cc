// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "planner/spmd/mesh_states.h"

namespace orrery::spmd {
namespace {

class MeshSearch {
 public:
  MeshSearch(const OperatorGraph& graph, const MeshGraph& compiled, const MeshOptions& options,
             Beyond beyond)
      : graph_(graph),
        compiled_(compiled),
        options_(options),
        mesh_(compiled.mesh),
        rule_{options.most_states > 0 ? options.most_states : most_states_on(mesh_),
              options.dominance, beyond} {}

  Result<MeshSolution> run() {
    const int nodes = static_cast<int>(graph_.nodes.size());
    cuts_.resize(static_cast<std::size_t>(nodes) + 1);
    trails_.resize(cuts_.size());
    last_ = nodes;
    at(0) = {MeshLabel{}};
    for (int cut = 0; cut < last_; ++cut) {
      if (options_.skip_periods && skipped_ == 0) {
        skip_repeats(cut);
      }
      expand(cut);
    }
    if (at(last_).empty()) {
      return fail(
          counts_.dropped > 0
              ? fmt::format("no program is left of {} states at a cut; more may have one",
                            rule_.most)
              : "no program obeys the rules: every way ends in forms that nothing converts");
    }
    const auto best = std::ranges::min_element(at(last_), {}, &MeshLabel::cost);
    MeshSolution solution{.total = best->cost + skipped_ * step_, .counts = counts_};
    solution.bound = solution.total;
    solution.counts.skipped_periods = skipped_;
    if (rule_.beyond == Beyond::dropped) {
      solution.strategy = write(trace_back(static_cast<int>(best - at(last_).begin())));
    }
    return solution;
  }

 private:
  std::vector<MeshLabel>& at(int cut) { return cuts_[static_cast<std::size_t>(cut)]; }
  int period() const { return compiled_.repeats.period; }
  /// Returns the node after a cut; cuts count without the periods skipped.
  int node_at(int cut) const { return cut >= seam_ ? cut + skipped_ * period() : cut; }

  /// Adds the forms that a choice needs; their cost, or nothing where a form is out of reach.
  std::optional<Time> prepare(const MeshNode& node, const MeshChoice& choice,
                              const std::vector<int>& tensors, MeshState& state) {
    Time cost(0);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      FormSets::Id& forms = state[static_cast<std::size_t>(node.inputs[k])];
      if (node.once[k] != 0) {
        cost += forms == FormSets::of(choice.needs[k]) ? Time(0) : MeshChains::kNever;
        continue;
      }
      const MeshChains& chains = compiled_.of(tensors[k]);
      cost += chains.cost(chains.nearest(sets_.codes(forms), choice.needs[k]), choice.needs[k]);
      if (cost >= MeshChains::kNever) {
        return std::nullopt;
      }
      forms = sets_.with(forms, choice.needs[k]);
    }
    return cost < MeshChains::kNever ? std::optional(cost) : std::nullopt;
  }

  static void leave(const MeshNode& node, const MeshChoice& choice, MeshState& state) {
    for (const int slot : node.dead) {
      state[static_cast<std::size_t>(slot)] = 0;
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      state[static_cast<std::size_t>(node.outputs[k])] = FormSets::of(choice.outputs[k]);
    }
  }

  /// Returns the one form of each of these slots.
  std::vector<int> codes_of(const std::vector<int>& slots, const MeshState& state) const {
    std::vector<int> codes;
    codes.reserve(slots.size());
    for (const int slot : slots) {
      codes.push_back(sets_.codes(state[static_cast<std::size_t>(slot)]).front());
    }
    return codes;
  }

  bool may_be_used(const MeshNode& node, const MeshState& state) const {
    return std::ranges::all_of(node.joints, [&](const MeshJoint& joint) {
      return std::ranges::binary_search(joint.codes, codes_of(joint.slots, state));
    });
  }

  /// Returns the choices that need the inputs of one use as they are.
  const std::vector<int>& fitting(const MeshNode& node, const MeshState& state) const {
    static const std::vector<int> none;
    std::vector<int> slots;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.once[k] != 0) {
        slots.push_back(node.inputs[k]);
      }
    }
    const auto found = node.choices_by_need.find(codes_of(slots, state));
    return found != node.choices_by_need.end() ? found->second : none;
  }

  void expand(int cut) {
    const int i = node_at(cut);
    const MeshNode& node = compiled_.node(i);
    const std::vector<int>& tensors = compiled_.slot_tensors[static_cast<std::size_t>(i)];
    MeshStates states(compiled_, node, sets_, rule_);
    for (int parent = 0; parent < static_cast<int>(at(cut).size()); ++parent) {
      const MeshLabel& from = at(cut)[static_cast<std::size_t>(parent)];
      for (const int c : fitting(node, from.state)) {
        const MeshChoice& choice = node.choices[static_cast<std::size_t>(c)];
        MeshLabel next{from.state, from.cost + choice.cost, {parent, c}};
        const std::optional<Time> cost = prepare(node, choice, tensors, next.state);
        if (!cost) {
          continue;
        }
        next.cost += *cost;
        leave(node, choice, next.state);
        if (may_be_used(node, next.state)) {
          states.add(next);
        }
      }
    }
    counts_.reached += states.reached();
    at(cut + 1) = states.keep();
    counts_.dropped += states.dropped();
    for (const MeshLabel& label : at(cut + 1)) {
      trails_[static_cast<std::size_t>(cut) + 1].push_back(label.trail);
    }
    if (cut > period()) {  // nothing is compared with it any more
      at(cut - period() - 1) = {};
    }
    const auto kept = static_cast<std::int64_t>(at(cut + 1).size());
    counts_.states += kept;
    counts_.most_states = std::max(counts_.most_states, kept);
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
      const Trail& now = trails_[static_cast<std::size_t>(cut)][static_cast<std::size_t>(label)];
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
        const FormSets::Id forms = state[static_cast<std::size_t>(node.inputs[k])];
        const int from =
            node.once[k] != 0
                ? made_as.at(tensors[k])
                : compiled_.of(tensors[k]).nearest(sets_.codes(forms), choice.needs[k]);
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
    const MeshSignature forms = signature_of(graph_, made, mesh_);
    const std::vector<int>& loads = compiled_.load_tensors[static_cast<std::size_t>(i)];
    for (std::size_t k = 0; k < loads.size(); ++k) {
      const std::vector<int>& inputs = graph_.node(i).inputs;
      const auto place =
          static_cast<std::size_t>(std::ranges::find(inputs, loads[k]) - inputs.begin());
      loaded[loads[k]] = choice.loads[k];
      convert(loads[k], choice.loads[k], input_form(forms, place).code(), made);
    }
  }

  void decide_load(int tensor, int code, MeshStrategy& strategy) const {
    const int load = graph_.tensor(tensor).producer;
    const std::vector<Signature>& all = graph_.node(load).signatures;
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      if (mesh_[axis] == 1) {
        continue;
      }
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
  Mesh mesh_;
  KeepRule rule_;
  FormSets sets_;
  std::vector<std::vector<MeshLabel>> cuts_;  ///< without the periods skipped; the last ones
  std::vector<std::vector<Trail>> trails_;    ///< of all of these
  int last_ = 0;                              ///< cut
  int seam_ = 0;                              ///< the cut before which periods are skipped
  int skipped_ = 0;
  Time step_{0};  ///< of one period
  MeshCounts counts_;
};

}  // namespace

Result<MeshSolution> search_mesh(const OperatorGraph& graph, const MeshPrices& prices,
                                 const MeshOptions& options) {
  const auto compiled = compile_mesh(graph, prices, options.allowed, options.weights);
  if (!compiled) {
    return fail(compiled.error());
  }
  auto found = MeshSearch(graph, *compiled, options, Beyond::dropped).run();
  if (found && found->counts.dropped > 0) {
    found->bound = Time(0);
    if (!options.with_bound) {
      return found;
    }
    const auto relaxed = MeshSearch(graph, *compiled, options, Beyond::joined).run();
    found->bound = relaxed ? std::min(relaxed->total, found->total) : Time(0);
  }
  return found;
}

}  // namespace orrery::spmd
