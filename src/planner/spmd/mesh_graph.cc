// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/spmd/mesh_ways.h"

namespace orrery::spmd {
namespace {

class MeshCompiler {
 public:
  MeshCompiler(const OperatorGraph& graph, const MeshPrices& prices, const Restriction& allowed,
               const MeshWeights& weights)
      : graph_(graph),
        prices_(prices),
        allowed_(allowed),
        weights_(weights),
        last_use_(graph.tensors.size(), -1),
        uses_(graph.tensors.size(), 0),
        slots_(graph.tensors.size(), -1) {
    live_.fill(kFree);
  }

  Result<MeshGraph> run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const int tensor : graph_.nodes[i].inputs) {
        last_use_[static_cast<std::size_t>(tensor)] = static_cast<int>(i);
        ++uses_[static_cast<std::size_t>(tensor)];
      }
    }
    for (const int uses : uses_) {
      compiled_.used.push_back(uses > 0 ? 1 : 0);
    }
    compiled_.mesh = prices_.mesh();
    find_chains();
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    ways_.emplace(graph_, prices_, allowed_, compiled_.chains_of);
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      add(i);
    }
    if (refused_ > 0) {
      mistakes_.add(Error(fmt::format(
          "{} nodes have no signatures that the mesh and --fixed allow, the first is node {} ({})",
          refused_, first_refused_, graph_.node(first_refused_).name)));
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    compiled_.repeats = repeats_of(compiled_.nodes);
    return std::move(compiled_);
  }

 private:
  static constexpr int kFree = -2;  ///< of a slot: no tensor; -1: one of a single use

  bool is_used_once(int tensor) const { return uses_[static_cast<std::size_t>(tensor)] == 1; }
  /// A load that one node uses and that is decided there.
  bool is_undecided(int tensor) const {
    return graph_.producer(tensor).is_load() && is_used_once(tensor);
  }

  void find_chains() {
    std::map<std::tuple<NodeKind, std::vector<std::int64_t>, std::int64_t>, int> known;
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      const Tensor& tensor = graph_.tensors[t];
      if (tensor.shape.size() > static_cast<std::size_t>(MeshForm::kDimensions)) {
        mistakes_.add(Error(fmt::format("tensor {} has {} dimensions, expected at most {}", t,
                                        tensor.shape.size(), MeshForm::kDimensions)));
        continue;
      }
      const auto [entry, is_new] = known.try_emplace(
          std::tuple(graph_.node(tensor.producer).kind, tensor.shape, tensor.bytes.value()),
          static_cast<int>(compiled_.chains.size()));
      if (is_new) {
        compiled_.chains.emplace_back(graph_, static_cast<int>(t), prices_, weights_);
      }
      compiled_.chains_of.push_back(entry->second);
    }
  }

  void add(int i) {
    const Node& node = graph_.node(i);
    MeshNode made;
    std::vector<int> with_slots;
    std::vector<int> loads;
    for (const int tensor : node.inputs) {
      if (is_undecided(tensor)) {
        loads.push_back(tensor);
        continue;
      }
      const int slot = slots_[static_cast<std::size_t>(tensor)];
      with_slots.push_back(tensor);
      made.inputs.push_back(slot);
      made.once.push_back(is_used_once(tensor) ? 1 : 0);
      if (last_use_[static_cast<std::size_t>(tensor)] == i) {
        made.dead.push_back(slot);
        live_[static_cast<std::size_t>(slot)] = kFree;
      }
    }
    for (const int tensor : node.outputs) {
      if (last_use_[static_cast<std::size_t>(tensor)] >= 0 && !is_undecided(tensor)) {
        made.outputs.push_back(take_slot(tensor));
      }
    }
    for (const int tensor : node.outputs) {
      if (is_used_once(tensor) && !is_undecided(tensor)) {
        needed_together(tensor, made);
      }
    }
    for (std::size_t slot = 0; slot < live_.size(); ++slot) {
      made.chains[slot] = std::max(live_[slot], -1);
    }
    made.choices = choices_of(i);
    for (std::size_t c = 0; c < made.choices.size(); ++c) {
      made.choices_by_need[once_needs(made, made.choices[c])].push_back(static_cast<int>(c));
    }
    compiled_.slot_tensors.push_back(std::move(with_slots));
    compiled_.load_tensors.push_back(std::move(loads));
    const auto same = std::ranges::find(compiled_.distinct, made);
    compiled_.nodes.push_back(static_cast<int>(same - compiled_.distinct.begin()));
    if (same == compiled_.distinct.end()) {
      compiled_.distinct.push_back(std::move(made));
    }
  }

  static std::vector<int> once_needs(const MeshNode& node, const MeshChoice& choice) {
    std::vector<int> needs;
    for (std::size_t k = 0; k < node.once.size() && k < choice.needs.size(); ++k) {
      if (node.once[k] != 0) {
        needs.push_back(choice.needs[k]);
      }
    }
    return needs;
  }

  int take_slot(int tensor) {
    const auto free = std::ranges::find(live_, kFree);
    if (free == live_.end()) {
      mistakes_.add(Error(fmt::format("more than {} tensors are alive at once after node {}",
                                      kMeshSlots, graph_.tensor(tensor).producer)));
      return 0;
    }
    *free = is_used_once(tensor) ? -1 : compiled_.chains_of[static_cast<std::size_t>(tensor)];
    const auto slot = static_cast<int>(free - live_.begin());
    slots_[static_cast<std::size_t>(tensor)] = slot;
    return slot;
  }

  /// Finds what the one user of a tensor needs it in together with its other inputs of one use that
  /// are there, if any.
  void needed_together(int tensor, MeshNode& made) {
    const int user = last_use_[static_cast<std::size_t>(tensor)];
    MeshJoint joint;
    std::vector<std::size_t> places;
    const std::vector<int>& inputs = graph_.node(user).inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (is_used_once(inputs[k]) && slots_[static_cast<std::size_t>(inputs[k])] >= 0) {
        places.push_back(k);
        joint.slots.push_back(slots_[static_cast<std::size_t>(inputs[k])]);
      }
    }
    if (places.size() < 2) {
      return;  // every code that it is kept in is needed
    }
    for (const MeshWay& way : ways_->of(user)) {
      std::vector<int>& codes = joint.codes.emplace_back();
      for (const std::size_t k : places) {
        codes.push_back(input_form(way.forms, k).code());
      }
    }
    std::ranges::sort(joint.codes);
    const auto [first, last] = std::ranges::unique(joint.codes);
    joint.codes.erase(first, last);
    made.joints.push_back(std::move(joint));
  }

  /// Codes in which the tensor's one user takes it.
  std::vector<int> needs_of_use(int tensor) {
    const int user = last_use_[static_cast<std::size_t>(tensor)];
    const std::vector<int>& inputs = graph_.node(user).inputs;
    const auto k = static_cast<std::size_t>(std::ranges::find(inputs, tensor) - inputs.begin());
    std::vector<int> codes;
    for (const MeshWay& way : ways_->of(user)) {
      const int code = input_form(way.forms, k).code();
      if (std::ranges::find(codes, code) == codes.end()) {
        codes.push_back(code);
      }
    }
    return codes;
  }

  /// The choice once for every way to keep its outputs, of which the needs are those of their use.
  std::vector<MeshChoice> kept(const MeshChoice& choice, const std::vector<int>& outputs,
                               const std::vector<std::vector<int>>& needs) const {
    std::vector<MeshChoice> ways{choice};
    for (std::size_t place = 0; place < outputs.size(); ++place) {
      const int from = choice.made[place];
      const std::vector<int> codes =
          is_used_once(outputs[place]) ? needs[place] : std::vector<int>{from};
      ways = with_output(ways, compiled_.of(outputs[place]), from, codes);
    }
    return ways;
  }

  /// Returns each of the choices once for every code that its next output can be brought to.
  static std::vector<MeshChoice> with_output(const std::vector<MeshChoice>& ways,
                                             const MeshChains& chains, int from,
                                             const std::vector<int>& codes) {
    std::vector<MeshChoice> more;
    for (const MeshChoice& way : ways) {
      for (const int to : codes) {
        const Time cost = chains.cost(from, to);
        if (cost < MeshChains::kNever) {
          more.push_back(way);
          more.back().outputs.push_back(to);
          more.back().cost += cost;
        }
      }
    }
    return more;
  }

  /// Returns that on which the choices of a node depend: equal keys, equal choices.
  std::vector<int> choice_key(int i) const {
    const Node& node = graph_.node(i);
    std::vector<int> key{ways_->sort_of(i)};
    for (const int tensor : node.inputs) {
      key.push_back(is_undecided(tensor) ? ways_->sort_of(graph_.tensor(tensor).producer) : -1);
    }
    for (const int tensor : node.outputs) {
      const int user = last_use_[static_cast<std::size_t>(tensor)];
      key.push_back(user < 0 ? -1 : 0);
      if (user >= 0 && is_used_once(tensor)) {
        const std::vector<int>& inputs = graph_.node(user).inputs;
        key.back() = 1 + ways_->sort_of(user);
        key.push_back(static_cast<int>(std::ranges::find(inputs, tensor) - inputs.begin()));
      }
    }
    return key;
  }

  /// A choice of signatures for every needs and outputs: the cheapest. A load that is decided later
  /// has one that costs nothing.
  std::vector<MeshChoice> choices_of(int i) {
    const Node& node = graph_.node(i);
    if (node.is_load() && is_undecided(node.outputs.front())) {
      return {MeshChoice{}};
    }
    const auto [entry, is_new] = choices_.try_emplace(choice_key(i));
    if (is_new) {
      entry->second = new_choices(i);
    }
    if (entry->second.empty()) {
      first_refused_ = refused_ == 0 ? i : first_refused_;
      ++refused_;
    }
    return entry->second;
  }

  std::vector<MeshChoice> new_choices(int i) {
    std::vector<int> outputs;
    std::vector<std::vector<int>> needs;
    for (const int tensor : graph_.node(i).outputs) {
      if (last_use_[static_cast<std::size_t>(tensor)] >= 0) {
        outputs.push_back(tensor);
        needs.push_back(is_used_once(tensor) ? needs_of_use(tensor) : std::vector<int>());
      }
    }
    std::vector<MeshChoice> found;
    std::map<std::pair<std::vector<int>, std::vector<int>>, std::size_t> known;
    for (const MeshWay& signatures : ways_->of(i)) {
      const auto choice = choice_of(i, signatures);
      for (MeshChoice& way : choice ? kept(*choice, outputs, needs) : std::vector<MeshChoice>{}) {
        const auto [entry, is_new] = known.try_emplace({way.needs, way.outputs}, found.size());
        if (is_new) {
          found.push_back(std::move(way));
        } else if (way.cost < found[entry->second].cost) {
          found[entry->second] = std::move(way);
        }
      }
    }
    return found;
  }

  std::optional<MeshChoice> choice_of(int i, const MeshWay& way) {
    const Node& node = graph_.node(i);
    MeshChoice choice;
    choice.signatures = way.signatures;
    choice.cost = MeshWeights::of(way.compute, weights_.compute);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const int need = input_form(way.forms, k).code();
      if (!is_undecided(node.inputs[k])) {
        choice.needs.push_back(need);
        continue;
      }
      const auto [load, cost] = cheapest_load(node.inputs[k], need);
      choice.loads.push_back(load);
      choice.cost += cost;
      if (cost >= MeshChains::kNever) {
        return std::nullopt;
      }
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const MeshForm form = output_form(way.forms, k);
      choice.cost += cost_of_having(node.outputs[k], form);
      if (last_use_[static_cast<std::size_t>(node.outputs[k])] >= 0) {
        choice.made.push_back(form.code());
      }
    }
    return choice;
  }

  /// The optimizer's time and what is held of a tensor as it was made.
  Time cost_of_having(int tensor, const MeshForm& form) {
    const auto [entry, is_new] = having_.try_emplace(
        {compiled_.chains_of[static_cast<std::size_t>(tensor)], form.code()}, Time(0));
    if (is_new) {
      entry->second = MeshWeights::of(prices_.optimizer(graph_, tensor, form), weights_.compute) +
                      weights_.of(prices_.held(graph_, tensor, form, false).total());
    }
    return entry->second;
  }

  std::pair<int, Time> cheapest_load(int tensor, int need) {
    const int load = graph_.tensor(tensor).producer;
    const auto [entry, is_new] =
        loads_.try_emplace({ways_->sort_of(load), need}, std::pair(0, MeshChains::kNever));
    if (is_new) {
      std::pair<int, Time>& best = entry->second;
      for (const MeshWay& way : ways_->of(load)) {
        const MeshForm form = output_form(way.forms, 0);
        const Time cost =
            cost_of_having(tensor, form) + compiled_.of(tensor).cost(form.code(), need);
        best = cost < best.second ? std::pair(form.code(), cost) : best;
      }
    }
    return entry->second;
  }

  const OperatorGraph& graph_;
  const MeshPrices& prices_;
  const Restriction& allowed_;
  const MeshWeights& weights_;
  std::vector<int> last_use_;           ///< by tensor; -1: none
  std::vector<int> uses_;               ///< by tensor
  std::vector<int> slots_;              ///< by tensor; -1: none
  std::array<int, kMeshSlots> live_{};  ///< chains of the tensor in each slot; -1: none
  std::optional<MeshWays> ways_;
  std::map<std::vector<int>, std::vector<MeshChoice>> choices_;  ///< by choice_key()
  std::map<std::pair<int, int>, Time> having_;                   ///< by sort of tensor, code
  std::map<std::pair<int, int>, std::pair<int, Time>> loads_;    ///< by sort of node, code
  int refused_ = 0;                                              ///< nodes without a choice
  int first_refused_ = 0;
  MeshGraph compiled_;
  Error mistakes_;
};

}  // namespace

Result<MeshGraph> compile_mesh(const OperatorGraph& graph, const MeshPrices& prices,
                               const Restriction& allowed, const MeshWeights& weights) {
  return MeshCompiler(graph, prices, allowed, weights).run();
}

}  // namespace orrery::spmd
