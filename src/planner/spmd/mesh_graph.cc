// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/spmd/mesh_strategy.h"

namespace orrery::spmd {
namespace {

class MeshCompiler {
 public:
  MeshCompiler(const OperatorGraph& graph, const MeshPrices& prices, const Restriction& allowed)
      : graph_(graph),
        prices_(prices),
        allowed_(allowed),
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
    find_chains();
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
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
        compiled_.chains.emplace_back(graph_, static_cast<int>(t), prices_);
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
    compiled_.slot_tensors.push_back(std::move(with_slots));
    compiled_.load_tensors.push_back(std::move(loads));
    const auto same = std::ranges::find(compiled_.distinct, made);
    compiled_.nodes.push_back(static_cast<int>(same - compiled_.distinct.begin()));
    if (same == compiled_.distinct.end()) {
      compiled_.distinct.push_back(std::move(made));
    }
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
  void needed_together(int tensor, MeshNode& made) const {
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
    for (const MeshSignature& pair : allowed_pairs(user)) {
      std::uint64_t codes = 0;
      for (const std::size_t k : places) {
        codes = codes * MeshForm::kCodes +
                static_cast<std::uint64_t>(MeshForm(pair[0].inputs[k], pair[1].inputs[k]).code());
      }
      joint.codes.push_back(codes);
    }
    std::ranges::sort(joint.codes);
    const auto [first, last] = std::ranges::unique(joint.codes);
    joint.codes.erase(first, last);
    made.joints.push_back(std::move(joint));
  }

  std::vector<MeshSignature> allowed_pairs(int i) const {
    std::vector<MeshSignature> pairs;
    for (const Signature& inner : graph_.node(i).signatures) {
      for (const Signature& outer : graph_.node(i).signatures) {
        if (allows(i, {inner, outer})) {
          pairs.push_back({inner, outer});
        }
      }
    }
    return pairs;
  }

  /// Codes in which the tensor's one user takes it.
  std::vector<int> needs_of_use(int tensor) const {
    const int user = last_use_[static_cast<std::size_t>(tensor)];
    const std::vector<int>& inputs = graph_.node(user).inputs;
    const auto k = static_cast<std::size_t>(std::ranges::find(inputs, tensor) - inputs.begin());
    std::vector<int> codes;
    for (const MeshSignature& pair : allowed_pairs(user)) {
      const int code = MeshForm(pair[0].inputs[k], pair[1].inputs[k]).code();
      if (std::ranges::find(codes, code) == codes.end()) {
        codes.push_back(code);
      }
    }
    return codes;
  }

  /// The choice once for every way to keep its outputs.
  std::vector<MeshChoice> kept(int i, const MeshChoice& choice) const {
    std::vector<MeshChoice> ways{choice};
    std::size_t place = 0;
    for (const int tensor : graph_.node(i).outputs) {
      if (last_use_[static_cast<std::size_t>(tensor)] < 0) {
        continue;
      }
      const int from = choice.made[place++];
      const std::vector<int> codes =
          is_used_once(tensor) ? needs_of_use(tensor) : std::vector<int>{from};
      std::vector<MeshChoice> more;
      for (const MeshChoice& way : ways) {
        for (const int to : codes) {
          more.push_back(way);
          more.back().outputs.push_back(to);
          more.back().cost += compiled_.of(tensor).cost(from, to);
        }
      }
      std::erase_if(more, [](const MeshChoice& way) { return way.cost >= MeshChains::kNever; });
      ways = std::move(more);
    }
    return ways;
  }

  /// A pair of signatures for every needs and outputs: the cheapest. A load that is decided later
  /// has one that costs nothing.
  std::vector<MeshChoice> choices_of(int i) {
    const Node& node = graph_.node(i);
    if (node.is_load() && is_undecided(node.outputs.front())) {
      return {MeshChoice{}};
    }
    std::vector<MeshChoice> found;
    const int count = static_cast<int>(node.signatures.size());
    for (int pair = 0; pair < count * count; ++pair) {
      const auto choice = choice_of(i, {pair % count, pair / count});
      for (MeshChoice& way : choice ? kept(i, *choice) : std::vector<MeshChoice>{}) {
        const auto same = std::ranges::find_if(found, [&](const MeshChoice& other) {
          return other.needs == way.needs && other.outputs == way.outputs;
        });
        if (same == found.end()) {
          found.push_back(std::move(way));
        } else if (way.cost < same->cost) {
          *same = std::move(way);
        }
      }
    }
    if (found.empty()) {
      first_refused_ = refused_ == 0 ? i : first_refused_;
      ++refused_;
    }
    return found;
  }

  std::optional<MeshChoice> choice_of(int i, const std::array<int, kAxes>& signatures) const {
    const Node& node = graph_.node(i);
    const MeshSignature pair = signature_of(graph_, {{}, i, signatures});
    if (!allows(i, pair)) {
      return std::nullopt;
    }
    MeshChoice choice;
    choice.signatures = signatures;
    choice.cost = prices_.compute(graph_, i, pair);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const int need = MeshForm(pair[0].inputs[k], pair[1].inputs[k]).code();
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
      const MeshForm form(pair[0].outputs[k], pair[1].outputs[k]);
      choice.cost += prices_.optimizer(graph_, node.outputs[k], form);
      if (last_use_[static_cast<std::size_t>(node.outputs[k])] >= 0) {
        choice.made.push_back(form.code());
      }
    }
    return choice;
  }

  bool allows(int i, const MeshSignature& pair) const {
    const Node& node = graph_.node(i);
    return (!allowed_ || (allowed_(node, pair[0]) && allowed_(node, pair[1]))) &&
           prices_.allows(graph_, i, pair);
  }

  std::pair<int, Time> cheapest_load(int tensor, int need) const {
    const int load = graph_.tensor(tensor).producer;
    const auto& all = graph_.node(load).signatures;
    std::pair<int, Time> best{0, MeshChains::kNever};
    for (const Signature& inner : all) {
      for (const Signature& outer : all) {
        const MeshForm form(inner.outputs[0], outer.outputs[0]);
        if (allows(load, {inner, outer})) {
          const Time cost = prices_.optimizer(graph_, tensor, form) +
                            compiled_.of(tensor).cost(form.code(), need);
          best = cost < best.second ? std::pair(form.code(), cost) : best;
        }
      }
    }
    return best;
  }

  const OperatorGraph& graph_;
  const MeshPrices& prices_;
  const Restriction& allowed_;
  std::vector<int> last_use_;           ///< by tensor; -1: none
  std::vector<int> uses_;               ///< by tensor
  std::vector<int> slots_;              ///< by tensor; -1: none
  std::array<int, kMeshSlots> live_{};  ///< chains of the tensor in each slot; -1: none
  int refused_ = 0;                     ///< nodes without a choice
  int first_refused_ = 0;
  MeshGraph compiled_;
  Error mistakes_;
};

}  // namespace

Result<MeshGraph> compile_mesh(const OperatorGraph& graph, const MeshPrices& prices,
                               const Restriction& allowed) {
  return MeshCompiler(graph, prices, allowed).run();
}

}  // namespace orrery::spmd
