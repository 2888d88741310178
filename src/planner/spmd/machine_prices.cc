// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/machine_prices.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "machine/compute/compute_model.h"
#include "machine/dimensions_only.h"
#include "planner/spmd/signatures.h"

namespace orrery::spmd {
namespace {

const Tensor& tensor_of(const OperatorGraph& graph, int tensor) {
  return graph.tensors[static_cast<std::size_t>(tensor)];
}

NodeKind kind_of(const OperatorGraph& graph, int tensor) {
  return graph.nodes[static_cast<std::size_t>(tensor_of(graph, tensor).producer)].kind;
}

bool is_constant(NodeKind kind) {
  return kind == NodeKind::parameter || kind == NodeKind::buffer;
}

/// Returns an extent of a node's input; 1 where it has no such input or dimension.
double extent(const OperatorGraph& graph, const Node& node, std::size_t input,
              std::size_t dimension) {
  if (input >= node.inputs.size()) {
    return 1;
  }
  const std::vector<std::int64_t>& shape = tensor_of(graph, node.inputs[input]).shape;
  return dimension < shape.size() ? static_cast<double>(shape[dimension]) : 1;
}

}  // namespace

Result<MachinePrices> MachinePrices::make(const machine::Machine& machine, std::int64_t devices,
                                          Overlap overlap, std::int64_t element) {
  if (auto known = machine::check_dimensions_only(machine, "spmd"); !known) {
    return fail(std::move(known.error()));
  }
  auto part = machine::with_devices(machine, devices);
  if (!part) {
    return fail(std::move(part.error()));
  }
  for (const auto type : {graph::DataType::tf32, graph::DataType::fp32, graph::DataType::bf16,
                          graph::DataType::fp16}) {
    const bool is_wide = graph::bits_of(type) > 16;
    if ((element >= 4 || !is_wide) &&
        part->device.peak[static_cast<std::size_t>(type)] > FlopRate(0)) {
      return MachinePrices(std::move(*part), devices, overlap, type);
    }
  }
  return fail("machine " + machine.name + " has no rate for tf32, fp32, bf16 or fp16");
}

MachinePrices::MachinePrices(machine::Machine machine, std::int64_t devices, Overlap overlap,
                             graph::DataType type)
    : machine_(std::move(machine)),
      devices_(devices),
      overlap_(overlap),
      type_(type),
      group_(collective::extents_of(1, devices, machine_)) {}

Flops MachinePrices::flops_of(const OperatorGraph& graph, int node) {
  const Node& n = graph.nodes[static_cast<std::size_t>(node)];
  if (n.kernel) {
    return n.kernel->flops;
  }
  constexpr std::array<std::string_view, 4> kProducts{"linear", "bmm", "matmul", "conv2d"};
  if (n.op.starts_with("einsum") ||
      std::find(kProducts.begin(), kProducts.end(), n.op) != kProducts.end()) {
    return n.flops * 2 / 3;  // the graph counts a copy as a third one
  }
  if (n.op == "attention") {
    const double tokens = extent(graph, n, 0, 0) * extent(graph, n, 0, 1);
    const double width = extent(graph, n, 0, 2);
    return Flops(4 * tokens * extent(graph, n, 1, 0) * width + 8 * tokens * width * width);
  }
  if (n.op.ends_with("_gating")) {
    return Flops(2 * extent(graph, n, 0, 0) * extent(graph, n, 0, 1) * extent(graph, n, 0, 2) *
                 extent(graph, n, 1, 1));
  }
  return Flops(0);
}

graph::Operator MachinePrices::kernel_of(const OperatorGraph& graph, int node,
                                         const std::vector<Cut>& cuts, std::int64_t batches,
                                         graph::DataType type) {
  const Node& n = graph.nodes[static_cast<std::size_t>(node)];
  graph::Operator op;
  op.name = n.name;
  const KernelShape shape = kernel_shape(graph, n, cuts, batches);
  op.kind = shape.kind;
  op.gemm = shape.gemm;
  op.type = type;
  std::int64_t shares = batches;
  for (const Cut& cut : cuts) {
    shares *= cut.signature->divides_work() ? cut.devices : 1;
  }
  op.flops = flops_of(graph, node) / static_cast<double>(shares);
  if (n.kernel) {
    op.kernels = n.kernel->kernels;
    if (!is_product(op.kind)) {
      op.bytes = n.kernel->bytes / shares;
      return op;
    }
  }
  const auto add = [&](int tensor, const auto& form_of) {
    std::int64_t parts = is_constant(kind_of(graph, tensor)) ? 1 : batches;
    for (const Cut& cut : cuts) {
      parts *= form_of(*cut.signature).is_gather() ? cut.devices : 1;
    }
    op.bytes += tensor_of(graph, tensor).bytes / parts;
  };
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    add(n.inputs[i], [i](const Signature& signature) { return signature.inputs[i]; });
  }
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    add(n.outputs[i], [i](const Signature& signature) { return signature.outputs[i]; });
  }
  return op;
}

graph::Operator MachinePrices::kernel(const OperatorGraph& graph, int node,
                                      const Signature& signature) const {
  return kernel_of(graph, node, {{&signature, devices_}}, 2, type_);
}

Time MachinePrices::compute(const OperatorGraph& graph, int node,
                            const Signature& signature) const {
  return graph.nodes[static_cast<std::size_t>(node)].kind == NodeKind::op
             ? compute::kernel_time(kernel(graph, node, signature), machine_.device).alone
             : Time(0);
}

graph::Operator MachinePrices::update(const OperatorGraph& graph, int tensor, Form form) const {
  // Reads gradient, weight, two moments, writes the last three; of a copy also what is used.
  const std::int64_t each = graph.element < 4 ? 28 + graph.element : 7 * graph.element;
  graph::Operator op;
  op.name = "adam";
  op.kind = graph::OperatorKind::optimizer;
  op.type = type_;
  op.kernels = 0;
  op.bytes =
      tensor_of(graph, tensor).bytes / graph.element / (form.is_gather() ? devices_ : 1) * each;
  return op;
}

Time MachinePrices::penalty(const OperatorGraph& graph, int tensor, Form form,
                            bool converted) const {
  return converted || kind_of(graph, tensor) != NodeKind::parameter
             ? Time(0)
             : compute::kernel_time(update(graph, tensor, form), machine_.device).alone;
}

Transfers MachinePrices::transfers(const OperatorGraph& graph, int tensor, Form from,
                                   Form to) const {
  assert(conversion(from, to) && "a legal conversion");
  const Conversion kinds = conversion(from, to).value_or(Conversion{});
  const NodeKind kind = kind_of(graph, tensor);
  const bool once = is_constant(kind);
  const Bytes bytes = tensor_of(graph, tensor).bytes / (once ? 1 : 2);
  const bool trains = kind == NodeKind::parameter || kind == NodeKind::op;
  return {.forward = transfer_of(kinds.forward, bytes, devices_),
          .backward = transfer_of(trains ? kinds.gradient : Operation::slice, bytes, devices_),
          .once = once};
}

StageWork MachinePrices::convert(const OperatorGraph& graph, int tensor, Form from, Form to) const {
  const Transfers moved = transfers(graph, tensor, from, to);
  const Time forward = time_of(moved.forward);
  const Time backward = time_of(moved.backward);
  return {.forward_1 = forward,
          .forward_2 = moved.once ? Time(0) : forward,
          .backward_1 = backward,
          .backward_2 = moved.once ? Time(0) : backward};
}

std::optional<Transfer> MachinePrices::transfer_of(Operation kind, Bytes whole,
                                                   std::int64_t members) {
  const auto collective = layout::collective_of(kind);
  if (!collective || members == 1) {
    return std::nullopt;
  }
  // The library counts an all-to-all's buffer on one device, others' as the whole.
  return Transfer{*collective, kind == Operation::all_to_all ? whole / members : whole};
}

Time MachinePrices::time_of(const std::optional<Transfer>& transfer) const {
  return transfer
             ? collective::collective_time(transfer->kind, transfer->buffer, group_,
                                           collective::CollectiveAlgorithm::automatic, machine_)
             : Time(0);
}

bool MachinePrices::divides(const OperatorGraph& graph, int tensor, Form form) const {
  return !form.is_gather() ||
         tensor_of(graph, tensor).shape[static_cast<std::size_t>(form.dimension())] % devices_ == 0;
}

bool MachinePrices::allows(const OperatorGraph& graph, int node, const Signature& signature) const {
  const Node& n = graph.nodes[static_cast<std::size_t>(node)];
  bool allowed = is_sound(n.op, signature);
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    allowed = allowed && divides(graph, n.inputs[i], signature.inputs[i]);
  }
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    allowed = allowed && divides(graph, n.outputs[i], signature.outputs[i]);
  }
  return allowed;
}

}  // namespace orrery::spmd
