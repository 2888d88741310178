// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/operator_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace orrery::spmd {
namespace {

std::int64_t elements(const Tensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

class Verifier {
 public:
  explicit Verifier(const OperatorGraph& graph) : graph_(graph) {}

  Result<void> run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      at_ = static_cast<int>(i);
      check(graph_.nodes[i]);
    }
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      check(graph_.tensors[i], static_cast<int>(i));
    }
    if (graph_.nodes.empty()) {
      mistakes_.add(Error("the graph has no nodes"));
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    return {};
  }

 private:
  void mistake(const Node& node, const std::string& sentence) {
    mistakes_.add(Error(fmt::format("node {} ({}): {}", at_, node.name, sentence)));
  }

  void check(const Tensor& tensor, int id) {
    const auto at = static_cast<std::size_t>(tensor.producer);
    if (at >= graph_.nodes.size() ||
        std::count(graph_.nodes[at].outputs.begin(), graph_.nodes[at].outputs.end(), id) != 1) {
      mistakes_.add(Error(
          fmt::format("tensor {}: is no output of its producer, node {}", id, tensor.producer)));
    }
  }

  bool exists(int tensor) const {
    return tensor >= 0 && tensor < static_cast<int>(graph_.tensors.size());
  }

  void check(const Node& node) {
    for (const int tensor : node.inputs) {
      if (!exists(tensor)) {
        return mistake(node, fmt::format("input {} is no tensor", tensor));
      }
      if (graph_.tensors[static_cast<std::size_t>(tensor)].producer >= at_) {
        return mistake(node, fmt::format("input {} is made by a later node", tensor));
      }
    }
    for (const int tensor : node.outputs) {
      if (!exists(tensor) || graph_.tensors[static_cast<std::size_t>(tensor)].producer != at_) {
        return mistake(node, fmt::format("output {} is no tensor that names it producer", tensor));
      }
    }
    if (node.kind != NodeKind::op && node.kind != NodeKind::output &&
        (!node.inputs.empty() || node.outputs.size() != 1)) {
      mistake(node, fmt::format("{} with inputs, or not with one output", name_of(node.kind)));
    }
    if (node.kernel && !has_weight(node)) {
      mistake(node, "a product without a parameter of rank 2, or 3 of experts");
    }
    if (node.signatures.empty()) {
      mistake(node, "has no signature");
    }
    for (const Signature& signature : node.signatures) {
      if (!fits(signature.inputs, node.inputs) || !fits(signature.outputs, node.outputs)) {
        mistake(node, fmt::format("signature '{}' does not fit {} inputs and {} outputs or their "
                                  "dimensions",
                                  to_string(signature), node.inputs.size(), node.outputs.size()));
      }
    }
  }

  bool has_weight(const Node& node) const {
    const bool experts = node.kernel->kind == graph::OperatorKind::grouped_gemm;
    const int weight = graph_.weight_of(node);
    return (!experts && node.kernel->kind != graph::OperatorKind::gemm) ||
           (weight >= 0 &&
            graph_.tensor(node.inputs[static_cast<std::size_t>(weight)]).shape.size() ==
                (experts ? 3U : 2U));
  }

  bool fits(const std::vector<Form>& forms, const std::vector<int>& tensors) const {
    if (forms.size() != tensors.size()) {
      return false;
    }
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const auto& shape = graph_.tensors[static_cast<std::size_t>(tensors[i])].shape;
      if (forms[i].is_gather() && forms[i].dimension() >= static_cast<int>(shape.size())) {
        return false;
      }
    }
    return true;
  }

  const OperatorGraph& graph_;
  int at_ = 0;
  Error mistakes_;
};

}  // namespace

int OperatorGraph::weight_of(const Node& node) const {
  const auto found = std::ranges::find_if(node.inputs, [&](int one) {
    return producer(one).kind == NodeKind::parameter && tensor(one).shape.size() > 1;
  });
  return found == node.inputs.end() ? -1 : static_cast<int>(found - node.inputs.begin());
}

Flops OperatorGraph::forward_flops() const {
  return std::accumulate(nodes.begin(), nodes.end(), Flops(0),
                         [](Flops sum, const Node& node) { return sum + node.flops; });
}

std::int64_t OperatorGraph::parameters() const {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [&](std::int64_t sum, const Tensor& tensor) {
                           const Node& node = nodes[static_cast<std::size_t>(tensor.producer)];
                           return node.kind == NodeKind::parameter ? sum + elements(tensor) : sum;
                         });
}

Result<void> verify(const OperatorGraph& graph) {
  return Verifier(graph).run();
}

}  // namespace orrery::spmd
