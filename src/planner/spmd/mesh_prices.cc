// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_prices.h"

#include <algorithm>
#include <utility>

#include "collective/group_extents.h"
#include "machine/compute/compute_model.h"
#include "planner/spmd/program.h"
#include "planner/spmd/signatures.h"

namespace orrery::spmd {
namespace {

bool cuts_evenly(const Tensor& tensor, const MeshForm& form, const Mesh& mesh) {
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] % form.parts(mesh, static_cast<int>(d)) != 0) {
      return false;
    }
  }
  return true;
}

bool has_gradient(const OperatorGraph& graph, int tensor) {
  const Node& producer = graph.producer(tensor);
  const bool is_mask = (producer.op == "top_1_gating" || producer.op == "top_2_gating") &&
                       producer.outputs.front() == tensor;
  return producer.kind != NodeKind::input && producer.kind != NodeKind::buffer && !is_mask;
}

/// Returns whether devices have whole heads or groups of what consists of them.
bool keeps_parts(const Node& node, const MeshForm& output, const Mesh& mesh) {
  constexpr int kColumns = 2;
  return !node.kernel || node.kernel->parts % output.parts(mesh, kColumns) == 0;
}

}  // namespace

MeshForm input_form(const MeshSignature& signature, std::size_t k) {
  return MeshForm({signature[0].inputs[k], signature[1].inputs[k], signature[2].inputs[k]});
}
MeshForm output_form(const MeshSignature& signature, std::size_t k) {
  return MeshForm({signature[0].outputs[k], signature[1].outputs[k], signature[2].outputs[k]});
}

Result<MeshPrices> MeshPrices::make(const machine::Machine& machine, const Mesh& mesh,
                                    std::int64_t element) {
  auto alike = MachinePrices::make(machine, devices_of(mesh), Overlap::none, element);
  if (!alike) {
    return fail(std::move(alike.error()));
  }
  return MeshPrices(std::move(*alike), mesh);
}

MeshPrices::MeshPrices(MachinePrices alike, const Mesh& mesh)
    : alike_(std::move(alike)), mesh_(mesh) {
  for (const MeshGroup group : groups_on(mesh)) {
    groups_[static_cast<std::size_t>(group)] =
        collective::group_extents(communicators(group, mesh), 0, machine());
  }
}

bool MeshPrices::allows(const OperatorGraph& graph, int node,
                        const MeshSignature& signature) const {
  const Node& n = graph.node(node);
  bool allowed = true;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    allowed = allowed && (mesh_[axis] == 1 || is_sound(n.op, signature[axis]));
  }
  for (std::size_t i = 0; allowed && i < n.inputs.size(); ++i) {
    allowed = cuts_evenly(graph.tensors[static_cast<std::size_t>(n.inputs[i])],
                          input_form(signature, i), mesh_);
  }
  for (std::size_t i = 0; allowed && i < n.outputs.size(); ++i) {
    const MeshForm form = output_form(signature, i);
    allowed = cuts_evenly(graph.tensors[static_cast<std::size_t>(n.outputs[i])], form, mesh_) &&
              keeps_parts(n, form, mesh_);
  }
  return allowed;
}

graph::Operator MeshPrices::kernel(const OperatorGraph& graph, int node,
                                   const MeshSignature& signature) const {
  std::vector<Cut> cuts;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    cuts.push_back({&signature[axis], mesh_[axis]});
  }
  return MachinePrices::kernel_of(graph, node, cuts, 1, type());
}

std::vector<graph::Operator> MeshPrices::backward(const OperatorGraph& graph, int node,
                                                  const graph::Operator& forward) {
  if (const auto own = own_backward(forward)) {
    return {*own};
  }
  const std::vector<int>& inputs = graph.node(node).inputs;
  std::size_t kernels = 2;
  if (is_product(forward.kind)) {
    kernels -=
        static_cast<std::size_t>(std::count_if(inputs.begin(), inputs.begin() + 2, [&](int tensor) {
          return !has_gradient(graph, tensor);
        }));
  }
  return std::vector<graph::Operator>(kernels, forward);
}

Time MeshPrices::compute(const OperatorGraph& graph, int node,
                         const MeshSignature& signature) const {
  if (graph.node(node).kind != NodeKind::op) {
    return Time(0);
  }
  const graph::Operator forward = kernel(graph, node, signature);
  Time sum = compute::kernel_time(forward, machine().device).alone;
  for (const graph::Operator& op : backward(graph, node, forward)) {
    sum += compute::kernel_time(op, machine().device).alone;
  }
  return sum;
}

MeshTransfers MeshPrices::transfers(const OperatorGraph& graph, int tensor, const MeshForm& form,
                                    const MeshStep& step) const {
  const Conversion kinds = conversion(step.from, step.to).value_or(Conversion{});
  const NodeKind kind = graph.producer(tensor).kind;
  const bool trains = kind == NodeKind::parameter || kind == NodeKind::op;
  std::int64_t parts = 1;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    parts *= !spans(step.group, axis, mesh_) && form[axis].is_gather() ? mesh_[axis] : 1;
  }
  const Bytes whole = graph.tensor(tensor).bytes / parts;
  const std::int64_t members = members_of(step.group, mesh_);
  return {.forward = MachinePrices::transfer_of(kinds.forward, whole, members),
          .backward = MachinePrices::transfer_of(trains ? kinds.gradient : Operation::slice, whole,
                                                 members)};
}

Time MeshPrices::convert(const OperatorGraph& graph, int tensor, const MeshForm& form,
                         const MeshStep& step) const {
  const MeshTransfers moved = transfers(graph, tensor, form, step);
  Time sum(0);
  for (const std::optional<Transfer>& transfer : {moved.forward, moved.backward}) {
    if (transfer) {
      sum += collective::collective_time(transfer->kind, transfer->buffer,
                                         groups_[static_cast<std::size_t>(step.group)],
                                         collective::CollectiveAlgorithm::automatic, machine());
    }
  }
  return sum;
}

graph::Operator MeshPrices::update(const OperatorGraph& graph, int tensor,
                                   const MeshForm& form) const {
  graph::Operator op = alike_.update(graph, tensor, Form::full());
  op.bytes = op.bytes / form.parts(mesh_);
  return op;
}

Time MeshPrices::optimizer(const OperatorGraph& graph, int tensor, const MeshForm& form) const {
  return graph.producer(tensor).kind == NodeKind::parameter
             ? compute::kernel_time(update(graph, tensor, form), machine().device).alone
             : Time(0);
}

Holdings MeshPrices::held(const OperatorGraph& graph, int tensor, const MeshForm& form,
                          bool converted) const {
  return holdings_of(graph, tensor, graph.tensor(tensor).bytes / form.parts(mesh_), converted);
}

}  // namespace orrery::spmd
