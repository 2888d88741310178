// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace orrery::spmd {
namespace {

class MeshReplay {
 public:
  MeshReplay(const OperatorGraph& graph, const MeshPrices& prices)
      : graph_(graph), prices_(prices), forms_(graph.tensors.size()) {}

  Result<MeshCost> run(const MeshStrategy& strategy) {
    int next = 0;
    for (const MeshComputation& computation : strategy.computations) {
      if (computation.node != next || !exists(computation)) {
        return fail(
            fmt::format("computation {} is of node {} by signatures {}, expected node {} and "
                        "signatures that it has",
                        next, computation.node, fmt::join(computation.signatures, ", "), next));
      }
      std::ranges::for_each(computation.conversions, [&](const auto& c) { convert(c); });
      compute(computation);
      ++next;
    }
    if (next != static_cast<int>(graph_.nodes.size())) {
      mistakes_.add(Error(fmt::format("{} of {} nodes are computed", next, graph_.nodes.size())));
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    cost_.total = cost_.compute + cost_.optimizer;
    for (const Time time : cost_.communication) {
      cost_.total += time;
    }
    return cost_;
  }

 private:
  bool exists(const MeshComputation& computation) const {
    const auto count = computation.node < static_cast<int>(graph_.nodes.size())
                           ? static_cast<int>(graph_.node(computation.node).signatures.size())
                           : 0;
    return std::ranges::all_of(computation.signatures, [&](int s) { return s >= 0 && s < count; });
  }
  const Mesh& mesh() const { return prices_.mesh(); }
  std::vector<MeshForm>& forms_of(int tensor) { return forms_[static_cast<std::size_t>(tensor)]; }
  bool has(int tensor, const MeshForm& form) {
    return std::ranges::find(forms_of(tensor), form) != forms_of(tensor).end();
  }

  void convert(const MeshConversion& conversion) {
    if (conversion.tensor < 0 || conversion.tensor >= static_cast<int>(forms_.size()) ||
        !has(conversion.tensor, conversion.from)) {
      mistakes_.add(Error(fmt::format("tensor {} is not there as {}", conversion.tensor,
                                      to_string(conversion.from, mesh()))));
      return;
    }
    const auto rank = static_cast<int>(graph_.tensor(conversion.tensor).shape.size());
    MeshForm form = conversion.from;
    for (const MeshStep& step : conversion.steps) {
      const std::vector<MeshStep> known = steps_from(form, rank, mesh());
      if (std::ranges::find(known, step) == known.end()) {
        mistakes_.add(
            Error(fmt::format("tensor {}: no step of {} leads from {} to {}", conversion.tensor,
                              name_of(step.group), to_string(form, mesh()), to_string(step.to))));
        return;
      }
      const Time time = prices_.convert(graph_, conversion.tensor, form, step);
      const bool loads = graph_.producer(conversion.tensor).kind == NodeKind::parameter;
      cost_.communication[static_cast<std::size_t>(step.group)] += time;
      cost_.of_parameters[static_cast<std::size_t>(step.group)] += loads ? time : Time(0);
      form = after(form, step, mesh());
    }
    forms_of(conversion.tensor).push_back(form);
    cost_.holdings += prices_.held(graph_, conversion.tensor, form, true);
  }

  void compute(const MeshComputation& computation) {
    const Node& node = graph_.node(computation.node);
    const MeshSignature signature = signature_of(graph_, computation, mesh());
    if (!prices_.allows(graph_, computation.node, signature)) {
      std::vector<std::string> names;
      for (const std::size_t axis : axes_of(mesh())) {
        names.push_back(to_string(signature[axis]));
      }
      mistakes_.add(Error(fmt::format("node {} ({}): {} gives wrong results or uneven slices",
                                      computation.node, node.name, fmt::join(names, " x "))));
      return;
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!has(node.inputs[k], input_form(signature, k))) {
        mistakes_.add(
            Error(fmt::format("node {} ({}): input {} is not there as {}", computation.node,
                              node.name, k, to_string(input_form(signature, k), mesh()))));
      }
    }
    cost_.compute += prices_.compute(graph_, computation.node, signature);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const MeshForm form = output_form(signature, k);
      forms_of(node.outputs[k]) = {form};
      cost_.holdings += prices_.held(graph_, node.outputs[k], form, false);
      cost_.optimizer += prices_.optimizer(graph_, node.outputs[k], form);
    }
  }

  const OperatorGraph& graph_;
  const MeshPrices& prices_;
  std::vector<std::vector<MeshForm>> forms_;  ///< by tensor
  MeshCost cost_;
  Error mistakes_;
};

}  // namespace

MeshSignature signature_of(const OperatorGraph& graph, const MeshComputation& computation,
                           const Mesh& mesh) {
  const Node& node = graph.node(computation.node);
  MeshSignature found;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    found[axis] = mesh[axis] > 1
                      ? node.signatures[static_cast<std::size_t>(computation.signatures[axis])]
                      : Signature{std::vector<Form>(node.inputs.size()),
                                  std::vector<Form>(node.outputs.size())};
  }
  return found;
}

Time MeshCost::weighted(const MeshWeights& weights) const {
  Time sum = MeshWeights::of(compute + optimizer, weights.compute);
  for (std::size_t group = 0; group < kMeshGroups; ++group) {
    sum += MeshWeights::of(communication[group] - of_parameters[group], weights.activations[group]);
    sum += MeshWeights::of(of_parameters[group], weights.parameters[group]);
  }
  return sum;
}

Result<MeshCost> replay(const OperatorGraph& graph, const MeshStrategy& strategy,
                        const MeshPrices& prices) {
  return MeshReplay(graph, prices).run(strategy);
}

}  // namespace orrery::spmd
