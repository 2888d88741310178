// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/reader.h"
#include "planner/spmd/read_list.h"

namespace orrery::spmd {
namespace {

/// The forms in which a tensor is there.
struct Available {
  std::optional<Form> original;
  std::optional<Form> converted;

  bool has(Form form) const { return original == form || converted == form; }
};

class Replay {
 public:
  Replay(const OperatorGraph& graph, const Prices& prices)
      : graph_(graph), prices_(prices), forms_(graph.tensors.size()) {}

  Result<StrategyCost> run(const Strategy& strategy) {
    const StageRule rule = prices_.rule();
    Clock clock;
    for (const Stage& stage : strategy.stages) {
      ++at_;
      const StageWork work = execute(stage);
      if (mistakes_.mistakes.size() > kMostMistakes) {
        return fail(std::move(mistakes_));
      }
      const Clock next = advance(rule, clock, work);
      cost_.by_stage.push_back(next.elapsed - clock.elapsed);
      cost_.compute += 6 * work.compute;
      cost_.penalty += work.penalty;
      clock = next;
    }
    if (next_node_ != static_cast<int>(graph_.nodes.size())) {
      mistakes_.add(Error(fmt::format("the strategy ends before node {}", next_node_)));
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    cost_.total = total(rule, clock);
    return std::move(cost_);
  }

 private:
  static constexpr std::size_t kMostMistakes = 20;

  void mistake(const std::string& sentence) {
    mistakes_.add(Error(fmt::format("stage {}: {}", at_, sentence)));
  }

  StageWork execute(const Stage& stage) {
    const int length = static_cast<int>(stage.computations.size());
    if (length < 1 || length > kLongestStage) {
      mistake(fmt::format("has {} computations, expected 1 to {}", length, kLongestStage));
    }
    StageWork work;
    for (const Communication& communication : stage.communications) {
      work += convert(communication);
    }
    for (const Computation& computation : stage.computations) {
      work.compute += compute(computation);
      work.penalty += penalty(computation);
    }
    return work;
  }

  StageWork convert(const Communication& wanted) {
    const bool exists =
        wanted.tensor >= 0 && wanted.tensor < static_cast<int>(graph_.tensors.size());
    const auto kinds = conversion(wanted.from, wanted.to);
    if (!exists || !kinds) {
      mistake(fmt::format("tensor {} cannot become {} from {}", wanted.tensor, to_string(wanted.to),
                          to_string(wanted.from)));
      return {};
    }
    Available& forms = forms_[static_cast<std::size_t>(wanted.tensor)];
    if (forms.original != wanted.from || forms.converted) {
      mistake(
          fmt::format("tensor {} is not there as {} alone", wanted.tensor, to_string(wanted.from)));
      return {};
    }
    forms.converted = wanted.to;
    StageWork work = prices_.convert(graph_, wanted.tensor, wanted.from, wanted.to);
    work.penalty += prices_.penalty(graph_, wanted.tensor, wanted.to, true);
    StrategyCost::Kind& there = cost_.kinds[static_cast<std::size_t>(kinds->forward)];
    ++there.forward_count;
    there.forward += work.forward_1 + work.forward_2;
    StrategyCost::Kind& back = cost_.kinds[static_cast<std::size_t>(prices_.backward(*kinds))];
    ++back.backward_count;
    back.backward += work.backward_1 + work.backward_2;
    return work;
  }

  Time compute(const Computation& wanted) {
    if (wanted.node != next_node_ || wanted.node >= static_cast<int>(graph_.nodes.size())) {
      mistake(fmt::format("found node {}, expected {}", wanted.node, next_node_));
      return Time(0);
    }
    ++next_node_;
    const Node& node = graph_.nodes[static_cast<std::size_t>(wanted.node)];
    if (wanted.signature < 0 || wanted.signature >= static_cast<int>(node.signatures.size())) {
      mistake(fmt::format("node {} ({}) has no signature {}", wanted.node, node.name,
                          wanted.signature));
      return Time(0);
    }
    const Signature& signature = node.signatures[static_cast<std::size_t>(wanted.signature)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!forms_[static_cast<std::size_t>(node.inputs[i])].has(signature.inputs[i])) {
        mistake(fmt::format("node {} ({}) needs tensor {} as {}", wanted.node, node.name,
                            node.inputs[i], to_string(signature.inputs[i])));
      }
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      forms_[static_cast<std::size_t>(node.outputs[i])] = {signature.outputs[i], std::nullopt};
    }
    return prices_.compute(graph_, wanted.node, signature);
  }

  /// Returns the penalty of the forms in which the node makes its tensors.
  Time penalty(const Computation& done) const {
    Time sum(0);
    if (done.node >= 0 && done.node < next_node_) {
      for (const int tensor : graph_.nodes[static_cast<std::size_t>(done.node)].outputs) {
        if (const auto form = forms_[static_cast<std::size_t>(tensor)].original) {
          sum += prices_.penalty(graph_, tensor, *form, false);
        }
      }
    }
    return sum;
  }

  const OperatorGraph& graph_;
  const Prices& prices_;
  std::vector<Available> forms_;  ///< by tensor
  int next_node_ = 0;
  int at_ = -1;  ///< stage
  StrategyCost cost_;
  Error mistakes_;
};

Result<Communication> read_communication(const ConfigNode& node) {
  Reader read(node);
  const Communication found{read.required<int>("tensor"), read_form(read, "from"),
                            read_form(read, "to")};
  return read.finish(found);
}

Result<Computation> read_computation(const ConfigNode& node) {
  Reader read(node);
  const Computation found{read.required<int>("node"), read.required<int>("signature")};
  return read.finish(found);
}

Result<Stage> read_stage(const ConfigNode& node) {
  Reader read(node);
  Stage stage{read_list(read, "communications", read_communication),
              read_list(read, "computations", read_computation)};
  return read.finish(std::move(stage));
}

}  // namespace

Form read_form(Reader& read, std::string_view field) {
  const auto text = read.required<std::string>(field);
  const auto form = parse_form(text);
  read.require(form.has_value(), field, "full, reduce, replicate or gather_D");
  return form.value_or(Form::full());
}

std::int64_t Strategy::communications() const {
  std::int64_t count = 0;
  for (const Stage& stage : stages) {
    count += static_cast<std::int64_t>(stage.communications.size());
  }
  return count;
}

Result<StrategyCost> replay(const OperatorGraph& graph, const Strategy& strategy,
                            const Prices& prices) {
  return Replay(graph, prices).run(strategy);
}

Result<Strategy> load_strategy(const std::string& file) {
  return load_config(file).and_then(read_strategy);
}

Result<Strategy> read_strategy(const ConfigNode& root) {
  Reader read(root);
  const auto format = read.required<std::string>("format");
  read.require(format == kStrategyFormat, "format",
               std::string(kStrategyFormat) + ", a program of devices as one axis");
  for (const char* fact : {"graph", "n_devices", "device_flops", "bandwidth_set", "profile",
                           "overlap", "cost", "total_seconds"}) {
    read.ignore(fact);
  }
  Strategy strategy{read_list(read, "stages", read_stage)};
  return read.finish(std::move(strategy));
}

}  // namespace orrery::spmd
