// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/compiled_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "planner/spmd/strategy.h"

namespace orrery::spmd {
namespace {

constexpr std::size_t kMostInputs = 16;
constexpr int kLongestPeriod = 1024;

/// Everything of a compiled node that its work depends on, so that equal nodes are equal lists.
std::vector<std::int64_t> fingerprint(const CompiledNode& node) {
  std::vector<std::int64_t> all{node.decided_inputs};
  const auto add_work = [&](const StageWork& work) {
    for (const Time time : {work.compute, work.forward_1, work.forward_2, work.backward_1,
                            work.backward_2, work.penalty}) {
      all.push_back(time.value());
    }
  };
  const auto add_key = [&](const Key& key) {
    for (const std::uint64_t word : key.words) {
      all.push_back(static_cast<std::int64_t>(word));
    }
  };
  for (const CompiledInput& input : node.inputs) {
    all.insert(all.end(),
               {input.slot, input.position, input.distance, int{input.undecided}, input.prices});
  }
  add_key(node.keep);
  for (const CompiledSignature& signature : node.signatures) {
    all.push_back(signature.index);
    add_work(signature.work);
    add_key(signature.outputs);
    all.insert(all.end(), signature.needs.begin(), signature.needs.end());
    for (const auto& choices : signature.choices) {
      all.push_back(static_cast<std::int64_t>(choices.size()));
      for (const LoadChoice& choice : choices) {
        all.insert(all.end(), {choice.form, int{choice.converts}});
        add_work(choice.work);
      }
    }
  }
  return all;
}

class Compiler {
 public:
  Compiler(const OperatorGraph& graph, const Prices& prices, const Restriction& allowed)
      : graph_(graph), prices_(prices), allowed_(allowed) {
    find_uses();
  }

  Result<CompiledGraph> run() {
    slots_.assign(graph_.tensors.size(), -1);
    undecided_.assign(graph_.tensors.size(), 0);
    std::map<std::vector<std::int64_t>, int> known;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      CompiledNode node = compile_node(i);
      const auto [entry, is_new] =
          known.try_emplace(fingerprint(node), static_cast<int>(compiled_.distinct.size()));
      if (is_new) {
        compiled_.distinct.push_back(std::move(node));
      }
      compiled_.nodes.push_back(entry->second);
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    compiled_.repeats = repeats_of(compiled_.nodes);
    return std::move(compiled_);
  }

 private:
  const Node& node(int i) const { return graph_.nodes[static_cast<std::size_t>(i)]; }

  void find_uses() {
    last_use_.assign(graph_.tensors.size(), -1);
    uses_.assign(graph_.tensors.size(), 0);
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      for (const int tensor : node(i).inputs) {
        last_use_[static_cast<std::size_t>(tensor)] = i;
        ++uses_[static_cast<std::size_t>(tensor)];
      }
    }
  }

  CompiledNode compile_node(int i) {
    CompiledNode compiled;
    if (node(i).inputs.size() > kMostInputs) {
      mistakes_.add(Error(fmt::format("node {} ({}) has {} inputs, expected at most {}", i,
                                      node(i).name, node(i).inputs.size(), kMostInputs)));
      return compiled;
    }
    add_inputs(i, compiled);
    // Slots are given back before outputs take theirs: no key holds both.
    for (const int tensor : node(i).inputs) {
      if (last_use_[static_cast<std::size_t>(tensor)] == i) {
        used_.set(slots_[static_cast<std::size_t>(tensor)], 0);
      }
    }
    compiled.keep = used_;
    const std::vector<int> usable = usable_signatures(i);
    const bool undecided = is_undecided(i, usable);
    for (const int tensor : node(i).outputs) {
      if (last_use_[static_cast<std::size_t>(tensor)] >= 0) {
        take_slot(tensor);
        undecided_[static_cast<std::size_t>(tensor)] = undecided ? 1 : 0;
      }
    }
    if (undecided) {
      loads_[node(i).outputs.front()] = usable;
      CompiledSignature any{.index = -1};
      any.outputs.set(slots_[static_cast<std::size_t>(node(i).outputs.front())], kUndecided);
      compiled.signatures.push_back(std::move(any));
    } else {
      for (const int index : usable) {
        compiled.signatures.push_back(compile_signature(i, index, compiled));
      }
    }
    return compiled;
  }

  void add_inputs(int i, CompiledNode& compiled) {
    const std::vector<int>& inputs = node(i).inputs;
    for (const bool undecided : {false, true}) {
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const auto tensor = static_cast<std::size_t>(inputs[k]);
        if ((undecided_[tensor] != 0) == undecided) {
          const int distance = std::min(i - graph_.tensors[tensor].producer, kLongestStage + 1);
          compiled.inputs.push_back(
              {slots_[tensor], static_cast<int>(k), distance, undecided, price_table(inputs[k])});
        }
      }
      compiled.decided_inputs =
          undecided ? compiled.decided_inputs : static_cast<int>(compiled.inputs.size());
    }
  }

  std::vector<int> usable_signatures(int i) {
    std::vector<int> usable;
    const std::vector<Signature>& all = node(i).signatures;
    for (std::size_t s = 0; s < all.size(); ++s) {
      if ((!allowed_ || allowed_(node(i), all[s])) && prices_.allows(graph_, i, all[s])) {
        usable.push_back(static_cast<int>(s));
      }
    }
    if (usable.empty()) {
      mistakes_.add(
          Error(fmt::format("node {} ({}) has no signature that may be used", i, node(i).name)));
    }
    return usable;
  }

  bool is_undecided(int i, const std::vector<int>& usable) const {
    const Node& load = node(i);
    return load.inputs.empty() && load.outputs.size() == 1 &&
           uses_[static_cast<std::size_t>(load.outputs.front())] == 1 &&
           std::all_of(usable.begin(), usable.end(), [&](int s) {
             return prices_.compute(graph_, i, load.signatures[static_cast<std::size_t>(s)]) ==
                    Time(0);
           });
  }

  CompiledSignature compile_signature(int i, int index, const CompiledNode& compiled) {
    const Signature& signature = node(i).signatures[static_cast<std::size_t>(index)];
    CompiledSignature made{.index = index,
                           .work = {.compute = prices_.compute(graph_, i, signature)}};
    for (std::size_t k = 0; k < node(i).outputs.size(); ++k) {
      made.work.penalty += prices_.penalty(graph_, node(i).outputs[k], signature.outputs[k], false);
      const int slot = slots_[static_cast<std::size_t>(node(i).outputs[k])];
      if (slot >= 0) {
        made.outputs.set(slot, byte_of(signature.outputs[k].code(), kNoForm));
      }
    }
    for (const CompiledInput& input : compiled.inputs) {
      const int need = signature.inputs[static_cast<std::size_t>(input.position)].code();
      made.needs.push_back(need);
      if (input.undecided) {
        made.choices.push_back(
            choices_of(node(i).inputs[static_cast<std::size_t>(input.position)], input, need));
      }
    }
    return made;
  }

  /// No choice that another can always stand for: but converting allows what not doing it may not
  /// (a stage without communication), so a conversion never yields to none.
  std::vector<LoadChoice> choices_of(int tensor, const CompiledInput& input, int need) {
    std::vector<LoadChoice> found;
    const Node& load = node(graph_.tensors[static_cast<std::size_t>(tensor)].producer);
    for (const int index : loads_[tensor]) {
      const int form = load.signatures[static_cast<std::size_t>(index)].outputs.front().code();
      const Price& price = compiled_.price(input, form, need);
      const StageWork made{.penalty = prices_.penalty(graph_, tensor, Form::of_code(form), false)};
      StageWork work = price.work;
      work += made;
      const auto stands_for_it = [&](const LoadChoice& other) {
        return other.converts && no_slower(prices_.rule(), other.work, work);
      };
      if (form == need) {
        found.push_back({form, false, made});
      } else if (price.legal && std::none_of(found.begin(), found.end(), stands_for_it)) {
        std::erase_if(found, [&](const LoadChoice& other) {
          return other.converts && no_slower(prices_.rule(), work, other.work);
        });
        found.push_back({form, true, work});
      }
    }
    return found;
  }

  int price_table(int tensor) {
    const Tensor& t = graph_.tensors[static_cast<std::size_t>(tensor)];
    const auto [entry, is_new] =
        tables_.try_emplace(std::tuple(node(t.producer).kind, t.shape, t.bytes.value()),
                            static_cast<int>(compiled_.prices.size()));
    if (is_new) {
      PriceTable& table = compiled_.prices.emplace_back();
      const int rank = std::min(static_cast<int>(t.shape.size()), Form::kDimensions);
      const int forms = Form::gather(0).code() + rank;
      for (int pair = 0; pair < forms * forms; ++pair) {
        const Form from = Form::of_code(pair / forms);
        const Form to = Form::of_code(pair % forms);
        if (conversion(from, to)) {
          table[static_cast<std::size_t>(from.code())][static_cast<std::size_t>(to.code())] =
              price_of(tensor, from, to);
        }
      }
    }
    return entry->second;
  }

  Price price_of(int tensor, Form from, Form to) const {
    Price price{true, prices_.convert(graph_, tensor, from, to)};
    price.work.penalty = prices_.penalty(graph_, tensor, to, true);
    return price;
  }

  void take_slot(int tensor) {
    int slot = 0;
    while (slot < Key::kSlots && used_.get(slot) != 0) {
      ++slot;
    }
    if (slot == Key::kSlots) {
      if (!full_) {
        mistakes_.add(
            Error(fmt::format("more than {} tensors are alive at once after node {}", Key::kSlots,
                              graph_.tensors[static_cast<std::size_t>(tensor)].producer)));
      }
      full_ = true;
      slot = 0;
    }
    used_.set(slot, 255);
    slots_[static_cast<std::size_t>(tensor)] = slot;
  }

  const OperatorGraph& graph_;
  const Prices& prices_;
  const Restriction& allowed_;
  std::vector<int> last_use_;    ///< by tensor; -1: none
  std::vector<int> uses_;        ///< by tensor
  std::vector<int> slots_;       ///< by tensor; -1: none
  std::vector<char> undecided_;  ///< by tensor
  Key used_;                     ///< 255 where a slot is taken
  bool full_ = false;
  std::map<int, std::vector<int>> loads_;  ///< usable signatures of undecided tensors' loads
  std::map<std::tuple<NodeKind, std::vector<std::int64_t>, std::int64_t>, int> tables_;
  CompiledGraph compiled_;
  Error mistakes_;
};

Repeats longest_run(const std::vector<int>& nodes, int period) {
  const auto step = static_cast<std::size_t>(period);
  Repeats longest{.period = period};
  std::size_t first = 0;
  for (std::size_t i = 0; i + step <= nodes.size(); ++i) {
    if (i + step < nodes.size() && nodes[i] == nodes[i + step]) {
      continue;
    }
    if (static_cast<int>(i - first) > longest.last - longest.first) {
      longest.first = static_cast<int>(first);
      longest.last = static_cast<int>(i);
    }
    first = i + 1;
  }
  return longest;
}

}  // namespace

Repeats repeats_of(const std::vector<int>& nodes) {
  Repeats best;
  int most = 0;
  for (int period = 1; period <= std::min(static_cast<int>(nodes.size()) / 2, kLongestPeriod);
       ++period) {
    const Repeats found = longest_run(nodes, period);
    if (found.last - found.first - period > most) {
      most = found.last - found.first - period;
      best = found;
    }
  }
  return best;
}

Result<CompiledGraph> compile(const OperatorGraph& graph, const Prices& prices,
                              const Restriction& allowed) {
  return Compiler(graph, prices, allowed).run();
}

}  // namespace orrery::spmd
